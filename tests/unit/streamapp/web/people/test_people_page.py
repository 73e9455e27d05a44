"""People page: everybody for operators, their own figures for annotators, and a pause by hand."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamapp.people.people_store import PeopleStore
from streamapp.web.audit_log import AuditLog
from streamapp.web.clock import now_ms
from streamapp.web.people.people_figures import PeopleFigures
from streamapp.web.store import Store
from topics.columns.records import AuditEntry

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its imports complain of is not ours
    from nicegui.testing.user_simulation import user_simulation

    from streamapp.web.page_frame import Person
    from streamapp.web.people.people_page import ModelPeoplePage, OnePersonPage, PeoplePage, page_for
    from streamapp.web.users import ANNOTATOR

PATIENCE = 600
"""Looks of a tenth of a second at a page that may need a processor and a disk for its next text."""
NASTY = "<b>shop</b>"


@pytest.fixture
def figures() -> Iterator[PeopleFigures]:
    """Answers of two people to ten records, of whom ann is right about nine of ten gold questions."""
    store, people = Store(":memory:"), PeopleStore(":memory:")
    at_ms = now_ms()
    entries = [
        AuditEntry(f"{user}-{number}", user, "label", at_ms, NASTY, f"i{number}", f"r{number}", label=label)
        for user, labels in (("ann", "aaaaabbbbb"), ("bob", "aaaabbbbbb"))
        for number, label in enumerate(labels)
    ]
    entries += [
        AuditEntry(
            f"g-{number}",
            "ann",
            "label",
            at_ms,
            NASTY,
            f"g{number}",
            "gold",
            label="a",
            gold="ab"[number == 9],
        )
        for number in range(10)
    ]
    people.apply([*entries, AuditEntry("d", "ann", "decline", at_ms, NASTY, "d", "d", seconds=4.26)], {})
    yield PeopleFigures(people, AuditLog(store), leaderboard=True)
    people.close()
    store.close()


def drawn(make: Any) -> Any:
    """Return a page after its first tick."""
    made: list[Any] = []

    def root() -> None:
        made.append(make())

    async def play() -> None:
        async with user_simulation(root) as user:
            await user.open("/")
            if hasattr(made[0], "tick"):
                await made[0].tick()

    asyncio.run(play())
    return made[0]


def test_an_operator_sees_everybody(figures: PeopleFigures) -> None:
    page = drawn(lambda: PeoplePage(figures, Person("olga"), has_users=False))
    ann, bob = page.people.table.rows
    assert (ann["annotator"], ann["annotator_link"], ann["answers"]) == ("ann", "/people?name=ann", "21")
    assert (ann["agreement"], ann["agreement_title"]) == ("90 %", "9 of 10")
    assert (ann["gold"], ann["gold_title"]) == ("90 % (60 % to 98 %)", "9 of 10")
    assert (ann["declined"], ann["seconds"], ann["state"]) == ("5 %", "4.3", "yes")
    assert (bob["gold"], bob["seconds"]) == ("–", "–")
    (model,) = page.models.table.rows
    assert (model["key"], model["records"]) == (NASTY, "10")
    assert model["fleiss"].startswith("0.80 (0.")


def test_a_person_is_paused_by_hand_and_reads_why(
    figures: PeopleFigures, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def agreed(question: str) -> bool:
        assert question == "ann gets no cards for now. Is this right?"
        return True

    monkeypatch.setattr("streamapp.web.people.people_page.confirmed", agreed)
    person = Person("olga")
    page = drawn(lambda: OnePersonPage(figures, person, "ann", has_users=False, is_own=False))
    assert page._state.text == "Gets cards."
    asyncio.run(page.change())
    assert page._said.text.startswith("A pause needs a reason")
    assert figures.audit.waiting() == []


def test_a_pause_that_has_come_back_is_on_every_page(figures: PeopleFigures) -> None:
    figures.note("ann", "olga", pause=True, reason="too fast", now=now_ms())
    ((_, entry),) = figures.audit.waiting()
    assert (entry.user, entry.action, entry.annotator, entry.detail) == ("olga", "pause", "ann", "too fast")
    assert figures.why_paused("ann") == "", "it has its effect when the topic has it"
    figures.people.apply([entry], {})
    assert figures.why_paused("ann").startswith("You get no cards for now: too fast.")
    everybody = drawn(lambda: PeoplePage(figures, Person("olga"), has_users=False))
    assert everybody.people.table.rows[0]["state"].startswith("paused ")
    page = drawn(lambda: OnePersonPage(figures, Person("olga"), "ann", has_users=False, is_own=False))
    assert page._state.text == "Paused less than 1 min ago by olga: too fast"
    assert page._change.text == "Resume"
    figures.note("ann", "olga", pause=False, reason="we talked", now=entry.at_ms - 5_000)
    (_, (_, resumed)) = figures.audit.waiting()
    assert resumed.at_ms > entry.at_ms, "a clock that was set back does not hide it"


def test_an_annotator_sees_their_own_figures_and_no_others(figures: PeopleFigures) -> None:
    person = Person("ann", role=ANNOTATOR)
    page = drawn(lambda: page_for(figures, person, "bob", NASTY, has_users=False))
    assert isinstance(page, OnePersonPage)
    assert page._annotator == "ann"
    assert page._state.text == "You get cards."
    assert [row["answers"] for row in page.days.table.rows] == ["21"]
    assert [row["annotator"] for row in page.board.table.rows] == ["ann", "bob"]
    asyncio.run(page.change())
    assert figures.audit.waiting() == [], "annotators resume nobody"


def test_the_agreement_of_a_model_has_classes_and_pairs(figures: PeopleFigures) -> None:
    page = drawn(lambda: page_for(figures, Person("olga"), "", NASTY, has_users=False))
    assert isinstance(page, ModelPeoplePage)
    classes, pairs = page.classes.table, page.pairs.table
    assert [row["key"] for row in classes.rows] == ["a", "b"]
    assert [(row["first"], row["second"], row["agreed"]) for row in pairs.rows] == [("ann", "bob", "9")]
    assert pairs.rows[0]["cohen"].startswith("0.80 (0.")


def test_figures_are_read_once_for_all_pages(figures: PeopleFigures, tmp_path: Path) -> None:
    now = now_ms()
    before = figures.everybody(7, now)
    late = AuditEntry("late", "cy", "label", now, NASTY, "z", "z", label="a")
    figures.people.apply([late], {})
    assert figures.everybody(7, now + 4_999) is before
    assert [person.annotator for person in figures.everybody(7, now + 5_000)] == ["ann", "bob", "cy"]
