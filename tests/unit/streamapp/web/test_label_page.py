"""Label page, as NiceGUI's own simulation of a user sees it."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from streamapp.web.cards import Request
from streamapp.web.clock import now_ms
from streamapp.web.label_queue import LabelQueue, Terms
from streamapp.web.store import Store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui import ui
    from nicegui.testing.user_simulation import user_simulation

    from streamapp.web import label_page
    from streamapp.web.label_page import LabelPage, Person, Surroundings

NASTY = '<img src=x onerror="alert(1)">'


@pytest.fixture
def queue() -> Iterator[LabelQueue]:
    store = Store(":memory:")
    queue = LabelQueue(store, Terms(undo_ms=60_000))
    now = now_ms()
    requests = [
        Request(0, "k", f"r{n}", name, now, -1, 1.0 - n, "a", "random", {"colour": NASTY, "size": 2.5})
        for n, name in enumerate((NASTY, "second"))
    ]
    queue.apply(requests, [], {}, now, [("k", "b")])
    yield queue
    store.close()


def simulate(
    queue: LabelQueue, story: Callable[[Any, list[LabelPage]], Awaitable[None]], **given: Any
) -> None:
    pages: list[LabelPage] = []

    def root() -> None:
        around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "", **given)
        pages.append(LabelPage(around, Person("ann")))

    async def play() -> None:
        async with user_simulation(root) as user:
            await user.open("/")
            await user.should_see("which class has", retries=100)
            await story(user, pages)

    asyncio.run(play())


@pytest.fixture(autouse=True)
def quick_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_page, "UNSEEN_MS", 0)


def test_a_card_is_answered_undone_and_answered_by_keys(queue: LabelQueue) -> None:
    async def story(user: Any, pages: list[LabelPage]) -> None:
        (page,) = pages
        await user.should_see(f"k: which class has {NASTY}?")
        await user.should_not_see("The model says a")
        await page.press("g")
        await user.should_see("The model says a")
        await page.press("2")
        await user.should_see("which class has second?")
        await user.should_see(f"{NASTY}: b")
        await page.press("u")
        await user.should_see(f"k: which class has {NASTY}?")
        await page.press("x")
        await page.press("s")
        await user.should_see("second: skipped")
        await page.press("1")
        await user.should_see("Nothing is asked at the moment.")

    simulate(queue, story)
    due = queue.due(now_ms() + 60_000)
    assert {(each.instance_id, each.label, each.annotator) for each in due} == {
        (NASTY, None, "ann"),
        ("second", "a", "ann"),
    }


def test_buttons_do_the_same_and_a_class_may_be_new(queue: LabelQueue) -> None:
    async def story(user: Any, pages: list[LabelPage]) -> None:
        await user.should_see("The model says a")
        user.find(kind=ui.input).type("brand new")
        user.find("Answer with it").click()
        await user.should_see("which class has second?", retries=100)
        user.find("I do not know (x)").click()
        await user.should_see("Nothing is asked at the moment.", retries=100)

    simulate(queue, story, hide_guess=False)
    assert {each.label for each in queue.due(now_ms() + 60_000)} == {"brand new", None}


def test_a_card_that_was_answered_elsewhere_is_taken_away_and_told(queue: LabelQueue) -> None:
    async def story(user: Any, pages: list[LabelPage]) -> None:
        (page,) = pages
        number = page.shown_number
        assert number is not None
        queue.answer("ann", number, "a", now_ms())  # in another window
        await page.press("2")
        await user.should_see("ann has answered this request already.")
        await user.should_see("which class has second?")

    simulate(queue, story)


def test_a_key_that_comes_before_the_card_can_have_been_read_does_nothing(
    queue: LabelQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_page, "UNSEEN_MS", math.inf)

    async def story(user: Any, pages: list[LabelPage]) -> None:
        await pages[0].press("1")
        await user.should_see(f"k: which class has {NASTY}?")

    simulate(queue, story)
    assert queue.counts(now_ms()).undoable == 0
