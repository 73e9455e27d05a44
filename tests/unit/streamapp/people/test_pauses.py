"""Pauses: a person below the limit, the newest entry about a person, and a fresh start after a resumption."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamapp.people.pauses import CHANGEABLE_MS, USER, PauseRule
from streamapp.people.people_store import PeopleStore
from streamapp.web.people.audit_reader import after
from topics.columns.records import LATEST_MS, AuditEntry

RULE = PauseRule(0.7, 10)
NOW = 1_800_000_000_000


@pytest.fixture
def store() -> Iterator[PeopleStore]:
    store = PeopleStore(":memory:")
    yield store
    store.close()


def answers(
    user: str, labels: str, at_ms: int, *, gold: str | None = None, record: str = "i"
) -> list[AuditEntry]:
    """Return the answers of a person, one to each of as many records."""
    return [
        AuditEntry(
            *(
                f"{user}-{at_ms}-{number}",
                user,
                "label",
                at_ms,
                "k",
                f"{record}{number}",
                f"{record}{number}",
            ),
            label=label,
            gold=gold,
        )
        for number, label in enumerate(labels)
    ]


def state(
    action: str, annotator: str, at_ms: int, user: str = USER, detail: str | None = "why"
) -> AuditEntry:
    return AuditEntry(f"{user}-{annotator}-{at_ms}", user, action, at_ms, detail=detail, annotator=annotator)


def test_a_person_is_paused_by_gold_questions_once_even_the_upper_bound_is_below_the_limit(
    store: PeopleStore,
) -> None:
    store.apply(answers("ann", "aaabbbbbb", 1, gold="a"), {})
    assert store.to_pause(RULE) == [], "nine questions are too few"
    store.apply(answers("ann", "b", 2, gold="a", record="more"), {})
    (low,) = store.to_pause(RULE)
    assert low.annotator == "ann"
    assert low.reason.startswith("3 of 10 gold questions right: at most 60 % can be expected, and the")
    store.apply([state("pause", "ann", 3), *answers("bob", "aaaaabbbbb", 1, gold="a")], {})
    assert store.to_pause(RULE) == [], "five of ten may be a person with 70 %"


def test_one_person_after_another_is_paused_by_agreement_with_others(store: PeopleStore) -> None:
    people = {"ann": "a", "bob": "a", "cy": "a", "eve": "b", "fay": "c"}
    for user, label in people.items():
        store.apply(answers(user, label * 20, 1), {})
    paused = []
    for at_ms in (2, 3):
        (low,) = store.to_pause(RULE)
        paused.append(low.annotator)
        store.apply([state("pause", low.annotator, at_ms)], {})
    assert paused == ["eve", "fay"]
    assert store.to_pause(RULE) == []


def test_two_who_disagree_with_each_other_are_not_both_paused(store: PeopleStore) -> None:
    for user, label in (("ann", "a"), ("eve", "b")):
        store.apply(answers(user, label * 20, 1), {})
    (low,) = store.to_pause(RULE)
    assert low.reason.startswith("0 of 20 answers as most other people answered: at most 16 %")
    store.apply([state("pause", low.annotator, 2)], {})
    assert store.to_pause(RULE) == [], "nobody is left to be compared with"


def test_only_answers_after_a_resumption_count(store: PeopleStore) -> None:
    store.apply(answers("ann", "b" * 30, 1, gold="a"), {})
    store.apply([state("pause", "ann", 2)], {})
    assert store.pause_states["ann"].is_paused
    assert store.to_pause(RULE) == [], "paused already"
    store.apply([state("resume", "ann", 3, "olga", "we talked")], {})
    assert (store.pause_states["ann"].user, store.pause_states["ann"].reason) == ("olga", "we talked")
    store.apply(answers("ann", "b" * 9, 4, gold="a", record="later"), {})
    assert store.to_pause(RULE) == []
    store.apply(answers("ann", "b", 5, gold="a", record="last"), {})
    assert [low.annotator for low in store.to_pause(RULE)] == ["ann"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
def test_the_newest_entry_counts_in_any_order(store: PeopleStore, order: tuple[int, ...]) -> None:
    entries = [
        state("pause", "ann", 1),
        state("resume", "ann", 2, "olga"),
        state("pause", "ann", 3, detail=None),
    ]
    for place in order:
        store.apply([entries[place]], {})
    assert store.pause_states["ann"].at_ms == 3
    assert store.pause_states["ann"].is_paused
    assert store.pause_states["ann"].reason == "no reason is given"


def test_a_pause_in_the_far_future_can_be_taken_back_or_is_none(store: PeopleStore) -> None:
    store.apply([state("pause", "ann", CHANGEABLE_MS - 1), state("pause", "bob", LATEST_MS)], {})
    assert "bob" not in store.pause_states, "nothing could come after it"
    at_ms = after(store, "ann", NOW)
    store.apply([state("resume", "ann", at_ms, "olga")], {})
    assert not store.pause_states["ann"].is_paused


def test_a_restart_looks_at_everybody_again(
    store: PeopleStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("people") / "people.sqlite"
    first = PeopleStore(path)
    first.apply([*answers("ann", "b" * 30, 1, gold="a"), state("pause", "bob", 1)], {})
    first.close()
    second = PeopleStore(path)
    assert [low.annotator for low in second.to_pause(RULE)] == ["ann"]
    assert second.pause_states["bob"].is_paused
    second.close()
