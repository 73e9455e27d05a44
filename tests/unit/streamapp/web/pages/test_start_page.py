"""Start page: what it shows to annotators and operators, with nothing and with much to do."""

from __future__ import annotations

import asyncio
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from streamapp.web.annotation_terms import Terms
from streamapp.web.clock import now_ms
from streamapp.web.queue.cards import Request
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.overview import Day, OpenRequests
from streamapp.web.store import Store
from streamapp.web.watch.watched import Watched
from tests.unit.streamapp.web.watch.test_watched import evaluated, said

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui import ui
    from nicegui.testing.user_simulation import user_simulation

    from streamapp.web.page_frame import Person
    from streamapp.web.pages.start_page import CALM, NO_MODELS, NO_REQUESTS, StartPage, attention
    from streamapp.web.pages.surroundings import Surroundings
    from streamapp.web.users import ANNOTATOR
    from streamapp.web.watch.inspector import Inspector
    from streamapp.web.watch.watching import Watching

NASTY = "<b>shop</b>"
HOUR_MS = 3_600_000
PATIENCE = 600
"""Looks of a tenth of a second at a page that may need a processor and a disk for its next text."""


def test_the_most_urgent_comes_first() -> None:
    now = 100 * HOUR_MS
    watched = Watched(":memory:")
    watched.begin({"prefix": "t."})
    watched.apply([], [said("k", "drift", 0, at=now - HOUR_MS, level="input")], {})
    watched.apply([], [said("calm", "drift", 0, at=now - 30 * HOUR_MS, level="drift")], {})
    rows, _ = watched.models("", "drift_ms", descending=True, first=0, count=9)
    assert [row.key for row in rows] == ["k", "calm"]
    watched.close()
    soon = OpenRequests("soon", 2, now - HOUR_MS, now + HOUR_MS // 2)
    late = OpenRequests("late", 1, now - HOUR_MS, now - 1)
    calm = OpenRequests("calm", 1, now, None)
    stopped = {"behind": 7, "has_workers": False, "letters": 3, "paused": 2}
    needs = attention("no broker", [soon, late, calm], rows, now, **stopped)  # type: ignore[arg-type]
    assert [need.text.partition(" ")[0] for need in needs] == ["no", "No", "soon:", "late:", "3", "2", "k:"]
    assert [need.level for need in needs] == ["bad"] * 2 + ["warn"] * 5
    assert needs[-2].address == "/people"
    assert needs[-1].address == "/model?key=k"
    assert "drift alarm 1 h ago" in needs[-1].text
    assert attention("", [calm], [], now, behind=0, has_workers=True, letters=0) == []


@pytest.mark.parametrize("busy", [False, True])
def test_an_operator_sees_requests_models_and_next_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")  # no installation is there to be inspected
    store, watched, inspector = Store(":memory:"), Watched(":memory:"), Inspector({})
    watched.begin({"prefix": "t."})
    queue, now = LabelQueue(store, Terms()), now_ms()
    if busy:
        asked = Request(
            0, NASTY, "r", "i", now - 2 * HOUR_MS, now + HOUR_MS // 2, 0.5, "a", "random", {"x": 1.0}
        )
        queue.topics.apply([asked], [], {}, now)
        watched.apply([evaluated(NASTY, 40, 0.75), evaluated(NASTY, 80, 0.875)], [], {})
    pages: list[StartPage] = []

    def root() -> None:
        around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "")
        watching = Watching(watched, inspector, tmp_path, lambda *_: None)
        pages.append(StartPage(around, watching, Person("ann")))

    async def play() -> None:
        async with user_simulation(root) as user:
            await user.open("/")
            words = "1 request waits" if busy else "No request waits."
            await user.should_see(words, retries=PATIENCE)
            await user.should_see("see its log", retries=PATIENCE)
            await pages[0].tick()  # the texts above come before the tables
            await user.should_see("No outcome of several answers waits for a review.")
            if not busy:
                await user.should_see(NO_REQUESTS)
                await user.should_see(NO_MODELS)

    asyncio.run(play())
    inspector.close()
    watched.close()
    store.close()
    needs = pages[0].attention.content
    asked_rows, model_rows = (table.table.rows for table in (pages[0].asked, pages[0].models))
    if busy:
        assert NASTY not in needs
        assert "1 request for a label; the first expires in" in needs
        assert [(row["key"], row["requests"], row["oldest"]) for row in asked_rows] == [
            (NASTY, "1", "2 h ago")
        ]
        assert asked_rows[0]["oldest_title"].endswith(" UTC")
        assert [row["accuracy"] for row in model_rows] == ["87.5 %, requested labels only"]
        assert "none was drawn with a known probability" in model_rows[0]["accuracy_title"]
        assert "<polyline" in model_rows[0]["course_svg"]
        assert CALM not in needs
    else:
        assert CALM in needs
        assert asked_rows == model_rows == []


def test_the_day_keeps_answers_of_which_the_label_was_sent() -> None:
    """If the votes went with their request, only gold questions would stay, and be known by that."""
    store, now = Store(":memory:"), now_ms()
    queue = LabelQueue(store, Terms(agree=2))
    requests = [Request(0, "k", f"r{n}", f"i{n}", now, -1, 0.5, "a", "random", {}) for n in range(3)]
    queue.topics.apply(requests, [], {}, now)
    for annotator in ("ann", "bob"):
        for n, label in enumerate(("a", None, "a")):
            card = queue.leases.next_card(annotator, now + n)
            assert card is not None
            queue.actions.answer(annotator, card.number, label, now + n)
    queue.actions.undo("bob", now + 3)
    later = now + 3 + Terms().undo_ms
    going = queue.outbox.due(later)
    queue.outbox.sent(going, later)
    assert len(going) == 2
    days = [queue.overview.day_of(annotator, now) for annotator in ("ann", "bob")]
    store.close()
    assert days == [Day(2, 1, 0), Day(1, 1, 0)]


def test_an_annotator_sees_the_queue_and_the_day_alone(tmp_path: Path) -> None:
    store = Store(":memory:")
    reasons: list[str] = []
    queue, now = LabelQueue(store, Terms(), lambda _: "".join(reasons)), now_ms()
    requests = [Request(0, "k", f"r{n}", f"i{n}", now, -1, 0.5, "a", "random", {}) for n in range(3)]
    queue.topics.apply(requests, [], {}, now)
    for label in ("a", None):
        card = queue.leases.next_card("ann", now)
        assert card is not None
        queue.actions.answer("ann", card.number, label, now)
    assert queue.overview.day_of("ann", now) == Day(1, 1, 0)
    assert queue.overview.day_of("bob", now) == Day(0, 0, 0)
    assert queue.overview.day_of("ann", now + 24 * HOUR_MS) == Day(0, 0, 0), "another day"
    assert [(asked.key, asked.n) for asked in queue.overview.by_model(now)] == [("k", 1)]

    def root() -> None:
        around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "")
        watching: Any = None  # an annotator's page does not touch it
        StartPage(around, watching, Person("ann", role=ANNOTATOR))

    async def play() -> None:
        async with user_simulation(root) as user:
            await user.open("/")
            await user.should_see("1 request waits", retries=PATIENCE)
            await user.should_see('Today (UTC): 1 label, "I do not know" 1 time.', retries=PATIENCE)
            await user.should_not_see("for a review")
            assert not [link for link in user.find(kind=ui.link).elements if link.text == "Models"]
            reasons.append("You get no cards for now.")
            await user.should_see("You get no cards for now.", retries=PATIENCE)

    asyncio.run(play())
    store.close()
