"""Layout: words with their chapters, relative times, and tables that people sort and filter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamapp.web.layout.navigation import PAGES, listed_pages, may_see
from streamapp.web.layout.style_sheet import FOLDER
from streamapp.web.layout.words import WORDS, Word, address_of, anchor
from streamapp.web.users import ANNOTATOR, OPERATOR

DOCS = Path(__file__).resolve().parents[4] / "docs"


@pytest.mark.parametrize("word", WORDS.values(), ids=lambda word: word.name)
def test_the_chapter_of_each_word_exists(word: Word) -> None:
    text = (DOCS / f"{word.page}.md").read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert not word.heading or word.heading in headings
    end = f"#{anchor(word.heading)}" if word.heading else ""
    assert address_of(word, "https://docs.example") == f"https://docs.example/{word.page}.html{end}"


def test_roles_see_their_pages_and_a_path_without_an_entry_is_for_operators() -> None:
    assert [page.address for page in listed_pages(ANNOTATOR)][:3] == ["/", "/label", "/sure"]
    assert {page.address for page in listed_pages(OPERATOR)} >= {"/models", "/dead-letters", "/partitions"}
    assert len({page.address for page in PAGES}) == len(PAGES)
    for path in ("/models", "/model", "/not-there", "/label/", "/words/x"):
        assert may_see(OPERATOR, path)
        assert not may_see(ANNOTATOR, path)


def test_every_colour_of_the_light_theme_is_in_both_dark_ones() -> None:
    style = (FOLDER / "grove.css").read_text()
    blocks = re.findall(r"color-scheme: (light|dark);([^}]*)}", style)
    assert [scheme for scheme, _ in blocks] == ["light", "dark", "dark"]
    light, *dark = (set(re.findall(r"(--grove-[\w-]+):", block)) for _, block in blocks)
    assert dark == [light, light]
    values = [dict(re.findall(r"(--grove-[\w-]+): ([^;]+);", block)) for _, block in blocks[1:]]
    assert values[0] == values[1]


def test_pages_have_no_address_of_another_host_and_no_inline_handler() -> None:
    for path in (*FOLDER.iterdir(), *FOLDER.parent.parent.rglob("*.py")):
        text = path.read_text()
        assert not re.findall(r"(?:src|href)=[\"']https?:|@import|url\(", text), path
        assert not re.findall(r"<[a-z]+[^>]* on(?:click|load|error|change|submit)=", text), path
