"""Review page, and the words of declined cards, as NiceGUI's own simulation of a user sees them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from streamapp.web.annotation_terms import Terms
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.queue.cards import Request
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.review.adjudication import Item
from streamapp.web.store import Store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui import ui
    from nicegui.testing.user_simulation import user_simulation

    from streamapp.web.page_frame import Person
    from streamapp.web.pages import label_page
    from streamapp.web.pages.label_page import LabelPage
    from streamapp.web.pages.review import review_page
    from streamapp.web.pages.review.review_page import ReviewPage
    from streamapp.web.pages.surroundings import Surroundings

NASTY = '<img src=x onerror="alert(1)">'
PATIENCE = 600


@pytest.fixture(autouse=True)
def quick_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_page, "UNSEEN_MS", 0)
    monkeypatch.setattr(review_page, "UNSEEN_MS", 0)


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store(":memory:")
    yield made
    made.close()


def queue_of(store: Store, terms: Terms) -> LabelQueue:
    queue = LabelQueue(store, terms)
    now = now_ms()
    requests = [
        Request(0, "k", f"r{n}", name, now, -1, 1.0 - n, "a", "random", {"colour": NASTY, "size": 2.5})
        for n, name in enumerate((NASTY, "second"))
    ]
    queue.topics.apply(requests, [], {}, now, [("k", "b")])
    return queue


def simulate(queue: LabelQueue, page: type[Any], story: Callable[[Any, list[Any]], Awaitable[None]]) -> None:
    pages: list[Any] = []

    def root() -> None:
        around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "")
        pages.append(page(around, Person("rev")))

    async def play() -> None:
        async with user_simulation(root) as user:
            await user.open("/")
            await story(user, pages)

    asyncio.run(play())


def test_disagreements_are_decided_by_keys_left_for_later_and_decided_again(store: Store) -> None:
    queue = queue_of(store, Terms(undo_ms=0, agree=3))
    for annotator, labels in (("ann", "aa"), ("bob", "bb"), ("cy<", "aa")):
        for label in labels:
            card = queue.leases.next_card(annotator, now_ms())
            assert card is not None
            queue.actions.answer(annotator, card.number, label, now_ms())
    later = now_ms() + 1
    queue.outbox.sent(queue.outbox.due(later), later)
    entries = [entry for _, entry in AuditLog(store).waiting()]
    queue.topics.apply([], [], {}, later, audit=entries)

    async def story(user: Any, pages: list[ReviewPage]) -> None:
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        await user.should_see("2 wait for a review", retries=PATIENCE)
        (page,) = pages
        await page.press("s")
        await user.should_see("k: which class has second?", retries=PATIENCE)
        await page.press("2")
        await user.should_see("second: b; the label had been sent, and a correction follows.")
        await user.should_see("second: rev decided for b", retries=PATIENCE)
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        user.find(kind=ui.input).type("no such class")
        await page.press("1")
        await user.should_see("the label stays as it is", retries=PATIENCE)
        await user.should_see("No outcome waits for a review.", retries=PATIENCE)
        second = next(item for item in page._again if item.instance_id == "second")
        page._show(second)
        await page.press("x")
        await user.should_see("second: rev decided for no class", retries=PATIENCE)

    simulate(queue, ReviewPage, story)
    going = queue.outbox.due(now_ms() + 1)
    assert [(answer.kind, answer.instance_id, answer.label) for answer in going] == [
        ("correction", "second", "b"),
        ("correction", "second", None),
    ]


def test_votes_and_names_are_text() -> None:
    item = Item("k", "i", "r", 0, "a", 1.0, 0.5, {"<b>": "<i>", "ann": None}, None, None, None, None)
    table = review_page.votes_table(item)
    assert "&lt;b&gt;" in table
    assert "&lt;i&gt;" in table
    assert "<i>" not in table
    assert "does not have the record any more" in review_page.record_table(item, {})


def test_a_card_is_declined_for_a_reason_and_answered_with_a_comment(store: Store) -> None:
    queue = queue_of(store, Terms(undo_ms=60_000, decline_reasons=("too dark", "<b>"), comments=True))

    async def story(user: Any, pages: list[LabelPage]) -> None:
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        (page,) = pages
        await page.press("x")
        await user.should_see("Choose why you do not know the class.", retries=PATIENCE)
        user.find("too dark").click()
        await user.should_see("k: which class has second?", retries=PATIENCE)
        page._comment._field.set_value("looks odd")  # type: ignore[union-attr]
        await page.press("1")
        await user.should_see("There is no request now.", retries=PATIENCE)

    simulate(queue, LabelPage, story)
    entries = [entry for _, entry in AuditLog(store).waiting()]
    assert [(entry.action, entry.label, entry.reason, entry.comment) for entry in entries] == [
        ("decline", None, "too dark", None),
        ("label", "a", None, "looks odd"),
    ]
