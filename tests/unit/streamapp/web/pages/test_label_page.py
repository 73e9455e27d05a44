"""Label page, as NiceGUI's own simulation of a user sees it."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from streamapp.web.annotation_terms import Terms
from streamapp.web.clock import now_ms
from streamapp.web.queue.cards import Attribute, Given, Request
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui import ui
    from nicegui.testing.user_simulation import user_simulation

    from streamapp.web.page_frame import Person
    from streamapp.web.pages import label_page
    from streamapp.web.pages.label_page import LabelPage
    from streamapp.web.pages.sure_page import SurePage
    from streamapp.web.pages.surroundings import Surroundings
    from streamapp.web.rate_limit import RateLimit

NASTY = '<img src=x onerror="alert(1)">'
PATIENCE = 600
"""Looks of a tenth of a second at a page that may need a processor and a disk for its next text."""


@pytest.fixture
def queue() -> Iterator[LabelQueue]:
    store = Store(":memory:")
    queue = LabelQueue(store, Terms(undo_ms=60_000))
    now = now_ms()
    requests = [
        Request(0, "k", f"r{n}", name, now, -1, 1.0 - n, "a", "random", {"colour": NASTY, "size": 2.5})
        for n, name in enumerate((NASTY, "second"))
    ]
    queue.topics.apply(requests, [], {}, now, [("k", "b")])
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
            await user.should_see("which ", retries=PATIENCE)
            await story(user, pages)

    asyncio.run(play())


@pytest.fixture(autouse=True)
def quick_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_page, "UNSEEN_MS", 0)


def test_a_card_is_answered_undone_and_answered_by_keys(queue: LabelQueue) -> None:
    async def story(user: Any, pages: list[LabelPage]) -> None:
        (page,) = pages
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        await user.should_not_see("The model answers a")
        await page.press("g")
        await user.should_see("The model answers a", retries=PATIENCE)
        await page.press("2")
        await user.should_see("which class has second?", retries=PATIENCE)
        await user.should_see(f"{NASTY}: b", retries=PATIENCE)
        await page.press("u")
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        await page.press("x")
        await page.press("s")
        await user.should_see("second: skipped", retries=PATIENCE)
        await page.press("1")
        await user.should_see("There is no request now.", retries=PATIENCE)

    simulate(queue, story)
    due = queue.outbox.due(now_ms() + 60_000)
    assert {(each.instance_id, each.label, each.annotator) for each in due} == {
        (NASTY, None, "ann"),
        ("second", "a", "ann"),
    }


def test_an_answer_that_cannot_be_stored_is_said_and_its_card_stays(
    queue: LabelQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async def story(user: Any, pages: list[LabelPage]) -> None:
        (page,) = pages
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        with monkeypatch.context() as patched:
            patched.setattr(queue, "act", full)
            await page.press("2")
            await user.should_see("This was not recorded: the server has no room", retries=PATIENCE)
            await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        assert "an action of ann cannot be stored: database or disk is full" in caplog.text
        caplog.clear()
        await page.press("2")
        await user.should_see("which class has second?", retries=PATIENCE)

    simulate(queue, story)
    (answer,) = queue.outbox.due(now_ms() + 60_000)
    assert (answer.instance_id, answer.label) == (NASTY, "b")


def test_buttons_do_the_same_and_a_class_may_be_new(queue: LabelQueue) -> None:
    async def story(user: Any, pages: list[LabelPage]) -> None:
        await user.should_see("The model answers a", retries=PATIENCE)
        user.find(kind=ui.input).type("brand new")
        user.find("Answer with it").click()
        await user.should_see("which class has second?", retries=PATIENCE)
        user.find("I do not know (x)").click()
        await user.should_see("There is no request now.", retries=PATIENCE)

    simulate(queue, story, hide_guess=False)
    assert {each.label for each in queue.outbox.due(now_ms() + 60_000)} == {"brand new", None}


def test_a_card_that_was_answered_elsewhere_is_taken_away_and_told(queue: LabelQueue) -> None:
    async def story(user: Any, pages: list[LabelPage]) -> None:
        (page,) = pages
        number = page.shown_number
        assert number is not None
        queue.actions.answer("ann", number, "a", now_ms())  # in another window
        await page.press("2")
        await user.should_see("ann has answered this request already.", retries=PATIENCE)
        await user.should_see("which class has second?", retries=PATIENCE)

    simulate(queue, story)


def test_a_key_that_comes_before_the_card_can_have_been_read_does_nothing(
    queue: LabelQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_page, "UNSEEN_MS", math.inf)

    async def story(user: Any, pages: list[LabelPage]) -> None:
        await pages[0].press("1")
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)

    simulate(queue, story)
    assert queue.counts(now_ms()).undoable == 0


def test_features_that_are_asked_for_are_typed_in(queue: LabelQueue) -> None:
    now = now_ms()
    declared = [Attribute("k", "age"), Attribute("k", "colour", "nominal", ("red", "blue"), open=True)]
    wanted = Request(0, "k", "q1", "loan", now, -1, 2.0, None, "acquisition", {"x": 1.0})
    wanted = replace(wanted, wanted=("age", "colour"), cost=3.5)
    queue.topics.apply([wanted], [], {}, now, attributes=declared)

    async def story(user: Any, pages: list[LabelPage]) -> None:
        await user.should_see("k: which values has loan?", retries=PATIENCE)
        await user.should_see("at a cost of 3.5", retries=PATIENCE)
        await pages[0].press("1")
        await user.should_see("k: which values has loan?", retries=PATIENCE)
        user.find("age (years)").type("old")
        user.find("colour").type("12")
        user.find("Send (Enter)").click()
        await user.should_see("'old' is no number", retries=PATIENCE)
        user.find("age (years)").clear().type("41")  # what else was typed is still there
        user.find("Send (Enter)").click()
        await user.should_see("loan: values given", retries=PATIENCE)
        await user.should_see("which class has", retries=PATIENCE)

    simulate(queue, story, units={"age": "years"})
    (going,) = queue.outbox.due(now_ms() + 60_000)
    assert going.given == Given({"age": 41.0, "colour": "12"})


def test_what_is_not_to_be_had_and_what_is_not_waited_for_is_said(queue: LabelQueue) -> None:
    now = now_ms()
    for name, wanted in (("first", ("a", "b")), ("last", ("c",))):
        request = Request(0, "k", name, name, now, -1, 3.0, None, "s", {}, wanted=wanted, cost=1.0)
        queue.topics.apply([request], [], {}, now)

    async def story(user: Any, pages: list[LabelPage]) -> None:
        await user.should_see("which values has first?", retries=PATIENCE)
        for name in ("a", "b"):
            pages[0]._form._fields[name][1].set_value(True)
        user.find("Send (Enter)").click()
        await user.should_see("which values has last?", retries=PATIENCE)
        user.find("Answer without the rest").click()
        await user.should_see("last: values given", retries=PATIENCE)

    simulate(queue, story)
    given = [each.given for each in queue.outbox.due(now_ms() + 60_000)]
    assert given == [Given(unavailable={"a": None, "b": None}), Given(finish=True)]


def test_the_guess_comes_with_its_rules_and_what_each_class_would_speak_for(queue: LabelQueue) -> None:
    now = now_ms()
    shares = {"a": 0.75, "b": 0.25}
    request = Request(0, "k", "r", "i", now, -1, 9.0, "a", "s", {}, rules="size <= 2.5", shares=shares)
    queue.topics.apply([request], [], {}, now)

    async def story(user: Any, pages: list[LabelPage]) -> None:
        await user.should_see("which class has i?", retries=PATIENCE)
        await user.should_not_see("size <= 2.5")
        await pages[0].press("g")
        await user.should_see(
            "The model answers a, because size <= 2.5. There it has seen: a 75%, b 25%", retries=PATIENCE
        )

    simulate(queue, story)


@pytest.mark.parametrize(
    ("reason", "words"),
    [("disagreement", "by s with utility 9, because two models disagree"), (NASTY, f"reason: {NASTY}")],
)
def test_a_card_has_the_reason_of_its_request(queue: LabelQueue, reason: str, words: str) -> None:
    now = now_ms()
    request = Request(0, "k", "r", "i", now, -1, 9.0, "a", "s", {}, reason=reason)
    queue.topics.apply([request], [], {}, now)

    async def story(user: Any, pages: list[LabelPage]) -> None:
        await user.should_see(words, retries=PATIENCE)
        await pages[0].press("x")
        await user.should_see(f"k: which class has {NASTY}?", retries=PATIENCE)
        await user.should_not_see(words)

    simulate(queue, story)


def test_whoever_is_faster_than_a_reader_is_stopped(queue: LabelQueue) -> None:
    async def story(user: Any, pages: list[LabelPage]) -> None:
        await pages[0].press("s")
        await user.should_see("That was too fast; nothing was taken.", retries=PATIENCE)

    simulate(queue, story, rate=RateLimit(1, 0))
    assert queue.counts(now_ms()).leased == 1


def test_sure_ones_are_confirmed_together_and_taken_back_together(queue: LabelQueue) -> None:
    now = now_ms()
    sure = [
        Request(0, "k", f"s{n}", f"s{n}", now, -1, 0.01, "a", "random", {"size": float(n), "name": NASTY})
        for n in range(3)
    ]
    queue.topics.apply([*sure, replace(sure[0], instance_id="other", prediction="b")], [], {}, now)
    pages: list[SurePage] = []

    def root() -> None:
        around = Surroundings(queue, lambda: queue.counts(now_ms()), lambda: "")
        pages.append(SurePage(around, Person("ann")))

    async def play() -> None:
        async with user_simulation(root) as user:
            await user.open("/")
            await user.should_see("k predicts a for all of these records", retries=PATIENCE)
            await user.should_see(NASTY, retries=PATIENCE)
            next(box for box in pages[0]._boxes if "s1:" in box.text).set_value(False)
            user.find("The ticked records are a").click()
            await user.should_see("3 times a.", retries=PATIENCE)
            user.find("Undo").click()
            await user.should_see("Taken back", retries=PATIENCE)
            await user.should_see("k predicts a for all of these records", retries=PATIENCE)
            user.find("The ticked records are a").click()
            await user.should_see("times a.", retries=PATIENCE)

    asyncio.run(play())
    answered = queue.outbox.due(now_ms() + 60_000)
    assert {each.label for each in answered} == {"a"}
    assert {each.instance_id for each in answered} < {"s0", "s1", "s2", "second"}
