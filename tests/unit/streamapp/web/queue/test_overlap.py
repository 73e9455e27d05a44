"""Overlap: a share of the requests gets several independent answers, and none of them waits for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamapp.cli.running.web_options import overlap_of
from streamapp.errors import UsageError
from streamapp.web.annotation_terms import Overlap
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask, ids, named

WAIT_MS = 5_000
ALL = replace(TERMS, overlap=Overlap(1.0, 2, WAIT_MS))


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store(":memory:")
    yield store
    store.close()


def answer(queue: LabelQueue, annotator: str, label: str | None, at: int = NOW) -> None:
    card = queue.leases.next_card(annotator, at)
    assert card is not None
    queue.actions.answer(annotator, card.number, label, at, new_class=True)


def test_the_share_is_a_hash_of_the_request_and_larger_shares_contain_smaller_ones() -> None:
    requests = [f"{partition}-{offset}" for partition in range(4) for offset in range(500)]
    covered = {
        share: {id_ for id_ in requests if Overlap(share).covers(id_)} for share in (0.0, 0.1, 0.5, 1.0)
    }
    assert covered[0.0] == set()
    assert covered[0.1] < covered[0.5] < covered[1.0] == set(requests)
    assert abs(len(covered[0.1]) - 200) < 60, "more than four standard deviations"
    assert {id_ for id_ in ("3-1042", "3-1043", "3-1044", "3-1045") if Overlap(0.5).covers(id_)} == {
        "3-1042"
    }, "the same in every release: a rebuilt store asks the same people again"


def test_two_answers_of_the_share_and_one_of_the_others(store: Store) -> None:
    half = replace(TERMS, open_max=100, overlap=Overlap(0.5, 2, WAIT_MS))
    queue = LabelQueue(store, half)
    ask(queue, *(named(f"r{number}") for number in range(40)))
    twice = {f"r{number}" for number in range(40) if half.overlap.covers(f"r{number}")}
    assert 0 < len(twice) < 40
    answered = {"ann": set[str](), "bob": set[str]()}
    for annotator, instances in answered.items():
        while (card := queue.leases.next_card(annotator, NOW)) is not None:
            queue.actions.answer(annotator, card.number, "a", NOW)
            instances.add(card.instance_id)
    assert len(answered["ann"]) == 40
    assert answered["bob"] == twice
    senders = {going.instance_id: going.annotator for going in queue.outbox.due(NOW + 100)}
    assert {name for name, sender in senders.items() if sender == "ann+bob"} == twice
    assert len(senders) == 40


def test_a_first_answer_goes_out_alone_after_the_wait(store: Store) -> None:
    queue = LabelQueue(store, ALL)
    ask(queue, REQUEST)
    answer(queue, "ann", "a")
    assert queue.outbox.due(NOW + WAIT_MS - 1) == []
    (going,) = queue.outbox.due(NOW + WAIT_MS)
    assert (going.label, going.annotator, going.weight) == ("a", "ann", 1.0)
    assert ids(queue, "bob") == [None]


def test_a_first_answer_goes_out_alone_before_its_request_expires(store: Store) -> None:
    queue = LabelQueue(store, ALL)
    ask(queue, replace(REQUEST, expires_ms=NOW + 1_000))
    answer(queue, "ann", "a")
    assert queue.outbox.due(NOW + 899) == []
    assert [going.annotator for going in queue.outbox.due(NOW + 900)] == ["ann"]


def test_an_answer_that_came_shortly_before_the_end_is_not_lost(store: Store) -> None:
    queue = LabelQueue(store, ALL)
    ask(queue, replace(REQUEST, expires_ms=NOW + 1_000))
    answer(queue, "ann", "a", NOW + 950)
    assert queue.outbox.due(NOW + 1_001) == [], "its undo window is open"
    queue.topics.tidy(NOW + 1_001)
    assert [going.label for going in queue.outbox.due(NOW + 1_050)] == ["a"]


def test_an_undo_window_that_is_open_at_the_end_of_the_wait_is_respected(store: Store) -> None:
    queue = LabelQueue(store, ALL)
    ask(queue, REQUEST)
    answer(queue, "ann", "a")
    answer(queue, "bob", "b", NOW + WAIT_MS - 10)
    assert queue.outbox.due(NOW + WAIT_MS) == []
    queue.actions.undo("bob", NOW + WAIT_MS + 1)
    assert [(going.label, going.annotator) for going in queue.outbox.due(NOW + WAIT_MS + 1)] == [("a", "ann")]


def test_a_third_person_decides_between_two_or_the_label_is_declined_in_time(store: Store) -> None:
    queue = LabelQueue(store, ALL)
    ask(queue, REQUEST)
    answer(queue, "ann", "a")
    answer(queue, "bob", "b")
    assert queue.outbox.due(NOW + 100) == []
    answer(queue, "cy", "b", NOW + 200)
    assert [going.label for going in queue.outbox.due(NOW + 300)] == ["b"]
    ask(queue, named("tied"))
    answer(queue, "ann", "a")
    answer(queue, "bob", "b")
    assert queue.outbox.due(NOW + 100) == []
    (going,) = queue.outbox.due(NOW + WAIT_MS)
    assert (going.label, going.annotator) == (None, "ann+bob")


def test_a_restart_with_other_options_changes_how_many_answer(store: Store) -> None:
    ask(LabelQueue(store, TERMS), REQUEST)
    queue = LabelQueue(store, ALL)
    answer(queue, "ann", "a")
    assert queue.outbox.due(NOW + 100) == []
    assert [going.annotator for going in LabelQueue(store, TERMS).outbox.due(NOW + 100)] == ["ann"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((0.1, None, None, 3), "--overlap 0.1 must not be given with --agree 3"),
        ((0, 3, None, 1), "--overlap-answers needs --overlap SHARE above 0"),
        ((0, None, 60.0, 1), "--overlap-seconds needs --overlap SHARE above 0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: tuple[float, int | None, float | None, int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        overlap_of(*options)
