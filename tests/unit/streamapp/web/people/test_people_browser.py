"""People page in Chromium: axe-core finds nothing, all fits a phone; a pause and what comes of it.

With GROVE_SCREENSHOTS=docs/screenshots the pictures of docs/people.md are made again.
"""

from __future__ import annotations

import os
import random
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamapp.people.people_store import PeopleStore
from streamapp.web.application import WebPlan, _server
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.guard import Entry
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.people.people_figures import PeopleFigures
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from streamapp.web.users import Sessions
from tests.unit.streamapp.web.test_accessibility import CHROMIUM, DESK, PATIENCE_MS, PHONE, flaws
from topics.columns.records import AuditEntry
from topics.definitions import TopicNames

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui.testing.general import nicegui_reset_globals

ACCURACY = {"ann": 0.95, "bob": 0.9, "cy": 0.85, "dan": 0.9, "eve": 0.4}
NASTY = "shop <b>17</b>"


def answers() -> list[AuditEntry]:
    """Return a week of answers of five people, one a spammer; every third record is a gold question."""
    draw, at_ms = random.Random(3), now_ms() - 6 * 24 * 3_600_000
    entries = []
    for number in range(300):
        true, is_gold = draw.choice(["fraud", "good", "good"]), number % 3 == 0
        at_ms += 1_700_000
        for user in draw.sample(sorted(ACCURACY), 2):
            label = true if draw.random() < ACCURACY[user] else draw.choice(["fraud", "good"])
            about = (NASTY, f"i{number}", f"r{number}")
            seconds = 1.2 if user == "eve" else draw.lognormvariate(1.6, 0.5)
            entry = AuditEntry(f"{number}-{user}", user, "label", at_ms, *about, label=label, seconds=seconds)
            entries.append(replace(entry, gold=true) if is_gold else entry)
    return entries


@contextmanager
def served(tmp_path: Path) -> Iterator[tuple[str, PeopleFigures]]:
    """The pages without a broker, for an operator; entries of the audit log go into the people store."""
    store, people = Store(":memory:"), PeopleStore(":memory:")
    audit = AuditLog(store)
    figures = PeopleFigures(people, audit)
    people.apply(answers(), {})
    queue = LabelQueue(store, paused=figures.why_paused)
    around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "")
    ready, address = threading.Event(), list[str]()

    def started(where: str) -> None:
        address.append(where)
        ready.set()

    entry = Entry(Sessions(store), None, "olga", True, audit)
    server = _server(WebPlan(tmp_path, TopicNames(), port=0), around, entry, started, None, figures)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(PATIENCE_MS / 1000)
        yield address[0], figures
    finally:
        server.should_exit = True
        thread.join(PATIENCE_MS / 1000)
        people.close()
        store.close()


def test_an_operator_pauses_a_person_with_bad_figures(tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    pictures = Path(os.environ.get("GROVE_SCREENSHOTS", tmp_path))
    found: dict[str, list[tuple[str, str]]] = {}
    complaints: list[str] = []
    with nicegui_reset_globals(), served(tmp_path) as (address, figures), sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport=DESK).new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))

        def look_at(name: str, page: Any = page) -> None:
            for kind, size in (("-phone", PHONE), ("", DESK)):
                page.set_viewport_size(size)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
                page.screenshot(path=pictures / f"web-{name}{kind}.png")
            found[name] = flaws(page)

        page.goto(f"{address}people")
        expect(page.get_by_role("link", name="eve", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name=NASTY)).to_be_visible()
        look_at("people")
        page.get_by_role("link", name=NASTY).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Agreement on the records of {NASTY}")
        expect(page.get_by_role("cell", name="fraud", exact=True)).to_be_visible()
        look_at("people-model")
        page.get_by_role("link", name="eve", exact=True).first.click()
        expect(page.get_by_text("Gets cards.")).to_be_visible()
        look_at("people-one")
        expect(page.get_by_role("button", name="Pause", exact=True)).to_be_in_viewport()
        page.get_by_role("button", name="Pause", exact=True).click()
        expect(page.get_by_text("A pause needs a reason")).to_be_visible()
        page.get_by_label("Reason").fill("answers in 1.2 seconds")
        page.get_by_role("button", name="Pause", exact=True).click()
        page.get_by_role("button", name="Yes", exact=True).click()
        expect(page.get_by_text("Noted; it has its effect")).to_be_visible()
        ((_, entry),) = figures.audit.waiting()
        figures.people.apply([entry], {})
        expect(page.get_by_text("Paused less than 1 min ago by olga: answers in 1.2 seconds")).to_be_visible()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.get_by_role("link", name="All people").click()
        expect(page.get_by_text("paused less than 1 min ago")).to_be_visible()
        browser.close()
    assert {name: what for name, what in found.items() if what} == {}
    assert len(found) == 3
    assert complaints == []
