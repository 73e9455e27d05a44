"""Pages of annotators in Chromium: axe-core finds nothing, on a desk in light and on a phone in the dark."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamapp.web.annotation_terms import Terms
from streamapp.web.application import WebPlan, _server
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.guard import Entry
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.queue.cards import Attribute, Cell, Range, Request
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from streamapp.web.users import Sessions, Users, add_user
from topics.columns.records import AuditEntry
from topics.definitions import TopicNames

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui.testing.general import nicegui_reset_globals

CHROMIUM = Path("/usr/bin/chromium")
PASSWORD = "correct horse battery"
PATIENCE_MS = 120_000
DESK, PHONE = {"width": 1300, "height": 900}, {"width": 360, "height": 740}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@contextmanager
def served(tmp_path: Path) -> Iterator[tuple[str, LabelQueue]]:
    """The pages without a broker: what is asked goes straight into the queue."""
    store = Store(":memory:")
    queue, path = LabelQueue(store, Terms(sure_utility=0.3)), tmp_path / "users.txt"
    add_user(path, "ann", PASSWORD, "reviewer")
    users = Users(path)
    around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "", True, True, {"amount": "EUR"})
    entry = Entry(Sessions(store), users, "web", True, AuditLog(store))
    ready, address = threading.Event(), list[str]()

    def started(where: str) -> None:
        address.append(where)
        ready.set()

    server = _server(WebPlan(tmp_path, TopicNames(), port=0, users=path), around, entry, started)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(PATIENCE_MS / 1000)
        yield address[0], queue
    finally:
        server.should_exit = True
        thread.join(PATIENCE_MS / 1000)
        store.close()


def flaws(page: Any) -> list[tuple[str, str]]:
    """What axe-core finds on a page by the rules of WCAG 2.2, levels A and AA."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": RULES}})
    return [
        (each["id"], node["html"][:200]) for each in found.response["violations"] for node in each["nodes"]
    ]


def test_nothing_is_found_on_any_page(tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not here")
    from playwright.sync_api import expect, sync_playwright

    found: dict[str, list[tuple[str, str]]] = {}
    complaints: list[str] = []
    with nicegui_reset_globals(), served(tmp_path) as (address, queue), sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for kind, size, scheme in (("", DESK, "light"), ("-phone", PHONE, "dark")):
            page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            heading = page.get_by_role("heading", level=1)

            def look_at(name: str, page: Any = page, kind: str = kind) -> None:
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
                found[name + kind] = flaws(page)

            page.goto(address)
            look_at("sign-in")
            page.get_by_label("Name").fill("ann")
            page.get_by_label("Password").fill(PASSWORD)
            page.keyboard.press("Enter")
            expect(page.get_by_text("No request waits.")).to_be_visible()
            look_at("start")
            page.get_by_role("link", name="Label the next card").click()
            expect(page.get_by_text("There is no request now")).to_be_visible()
            look_at("nothing")
            assert page.evaluate("document.body.classList.contains('body--dark')") is (scheme == "dark")
            key, now = f"shop{kind}", now_ms()
            features: dict[str, Cell] = {"amount": 12.5, "country": "DE", "items": 3.0}
            asked = Request(
                0, key, "r", "order-4711", now - 90_000, -1, 0.37, "fraud", "variable_uncertainty", features
            )
            asked = replace(
                asked,
                rules="amount <= 40 and items > 2",
                shares={"fraud": 0.63, "good": 0.37},
                seen={"amount": Range(0.5, 980.0, 12_407), "items": Range(1.0, 12.0, 12_410)},
            )
            sure = [
                replace(
                    asked,
                    instance_id=f"order-48{n}",
                    utility=n / 100,
                    features=features | {"amount": 9.0 * n},
                )
                for n in range(5)
            ]
            queue.topics.apply(
                [asked, *sure], [], {}, now, [(key, each) for each in ("fraud", "good", "unclear")]
            )
            expect(heading).to_contain_text("which class has order-4711")
            page.wait_for_timeout(400)  # a key before the card can have been read is not taken
            page.keyboard.press("g")
            expect(page.get_by_text("because amount <= 40")).to_be_visible()
            look_at("label")
            assert re.search(r"skipHijack\W+true", page.content()), "its bar for requests has no name"
            page.goto(f"{address}sure")
            expect(heading).to_contain_text("for all of these")
            look_at("sure")
            page.get_by_role("button", name="The ticked records").click()
            expect(page.get_by_text("5 times fraud")).to_be_visible()
            votes: dict[str, str | None] = {"ann": "fraud", "bob": "fraud", "cy": "good"}
            outcome = AuditEntry("1", "agreement", "outcome", now, key, "order-4711", "r", None, "fraud")
            queue.topics.apply([], [], {}, now, audit=[replace(outcome, votes=votes, weight=0.667)])
            page.goto(f"{address}review")
            expect(page.get_by_text("which class has order-4711")).to_be_visible()
            look_at("review")
            page.get_by_role("button", name="fraud (1)").click()
            expect(page.get_by_text("the label stays as it is")).to_be_visible()
            look_at("reviewed")
            page.goto(address)
            expect(page.get_by_text(f"Today (UTC): {11 if kind else 5} labels")).to_be_visible()
            page.get_by_role("link", name="Label", exact=True).click()
            expect(heading).to_contain_text("which class has")
            page.wait_for_timeout(400)
            page.keyboard.press("2")
            expect(page.get_by_text("There is no request now")).to_be_visible()
            wanted = replace(
                asked, request_id="q", instance_id="loan-17", wanted=("income", "bureau"), cost=5.0
            )
            wanted = replace(wanted, prediction=None, strategy="acquisition", rules=None, shares={})
            declared = [Attribute(key, "income"), Attribute(key, "bureau", "nominal", ("clean", "entries"))]
            queue.topics.apply([wanted], [], {}, now_ms(), attributes=declared)
            expect(heading).to_contain_text("which values has loan-17")
            look_at("features")
            page.get_by_role("button", name="Answer without the rest").click()
            expect(page.get_by_text("loan-17: values given")).to_be_visible()
        browser.close()
    assert {name: what for name, what in found.items() if what} == {}
    assert len(found) == 16
    assert complaints == []
