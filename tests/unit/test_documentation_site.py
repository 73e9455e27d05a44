"""The documentation site: every page is in it, whole, and nothing in it leads nowhere or to other hosts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))

pytestmark = pytest.mark.skipif(find_spec("zensical") is None, reason="zensical is not installed")


def copied(folder: Path) -> Path:
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    return folder


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build as `make docs` does; no proxy is there, so that whoever fetches something fails."""
    words = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    closed = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    environment = {**os.environ, **closed, "NO_COLOR": "1"}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(tmp_path_factory.mktemp("site"))
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


class Page(HTMLParser):
    """The headings of a page, what a browser fetches with it, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings = 0
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.headings += bool(re.fullmatch("h[1-6]", tag))
        given = dict(attributes)
        if target := given.get("src") or given.get("href"):
            (self.links if tag == "a" else self.fetched).append(target)


def headings(text: str) -> int:
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return len(re.findall(r"^#{1,6} ", outside, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_whole_and_fetches_from_no_other_host(page: Path, site: Path) -> None:
    made = Page((site / f"{page.stem}.html").read_text())
    assert made.headings == headings(page.read_text())
    assert any(made.fetched)
    assert [url for url in made.fetched if "//" in url] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_and_names_is_there(page: Path, site: Path) -> None:
    """Of a picture that is missing the tool says nothing."""
    made = Page((site / f"{page.stem}.html").read_text())
    files = {url.partition("#")[0] for url in made.fetched + made.links if "//" not in url}
    assert [name for name in files if not (site / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lists_and_tables_are_some_to_the_site_too(page: Path, site: Path) -> None:
    """GitHub needs no empty line before a list, Python's Markdown does."""
    made = (site / f"{page.stem}.html").read_text()
    paragraphs = re.findall(r"<p>(.*?)</p>", made, re.DOTALL)
    assert [text for text in paragraphs if re.search(r"^(?:- |1\. |\||```)", text, re.MULTILINE)] == []


def test_the_navigation_has_every_page_once() -> None:
    def pages(entries: list[dict[str, object]]) -> Iterator[str]:
        for entry in entries:
            (target,) = entry.values()
            yield from [target] if isinstance(target, str) else pages(target)  # type: ignore[arg-type]

    listed = list(pages(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    assert sorted(listed) == [page.name for page in PAGES]
    assert listed[0] == "index.md"


def test_the_search_has_every_page(site: Path) -> None:
    found = {
        item["location"].partition("#")[0] for item in json.loads((site / "search.json").read_text())["items"]
    }
    assert {f"{page.stem}.html" for page in PAGES} <= {name or "index.html" for name in found}


@pytest.mark.parametrize("link", ["nowhere.md", "records.md#nowhere"])
def test_a_link_that_leads_nowhere_ends_the_build(link: str, tmp_path: Path) -> None:
    folder = copied(tmp_path)
    with (folder / "docs" / "index.md").open("a") as page:
        page.write(f"\nSee [there]({link}).\n")
    done = build(folder)
    assert done.returncode != 0
    assert "does not exist" in done.stdout + done.stderr


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not here")
def test_a_browser_searches_the_site_and_asks_no_other_host(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/"
    asked: list[str] = []
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
            page = browser.new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.goto(f"{here}index.html")
            page.keyboard.press("/")
            page.keyboard.type("Hoeffding")
            page.locator("a[href*='trees.html']:visible, a[href*='glossary.html']:visible").first.wait_for()
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
    assert any(url.endswith("search.json") for url in asked)
    assert [url for url in asked if not url.startswith((here, "data:", "blob:"))] == []
