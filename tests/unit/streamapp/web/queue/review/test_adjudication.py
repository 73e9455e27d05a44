"""Review: disagreements wait for a reviewer, whose decision replaces or corrects a label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from streamapp.people.annotator_answers import AGREEMENT
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.cards import Label, Outgoing, Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.review.adjudication import Item
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask, named
from topics.codecs import decode_labels, encode_corrections
from topics.columns.records import AuditEntry, RawRecords

TWO = replace(TERMS, agree=3, open_max=100)


class Desk:
    """A queue with its store, and the topic `audit` as its records come back."""

    def __init__(self, **terms: Any) -> None:
        self.store = Store(":memory:")
        self.queue = LabelQueue(self.store, replace(TWO, **terms))
        self.log = AuditLog(self.store)
        self.audit: list[AuditEntry] = []
        self.sent: list[Outgoing] = []

    def vote(self, name: str, now: int = NOW, **votes: str | None) -> None:
        """Ask for a label, and let these people answer it."""
        ask(self.queue, named(name))
        for annotator, label in votes.items():
            card = self.queue.leases.next_card(annotator, now)
            assert card is not None
            assert card.instance_id == name
            self.queue.actions.answer(annotator, card.number, label, now, new_class=True)

    def send(self, now: int) -> list[Outgoing]:
        """Send the answers that are due, and read the audit entries that the broker got."""
        going = self.queue.outbox.due(now)
        self.queue.outbox.sent(going, now)
        self.read_audit(now)
        self.sent += going
        return going

    def read_audit(self, now: int) -> None:
        waiting = self.log.waiting()
        self.audit += [entry for _, entry in waiting]
        self.log.sent([number for number, _ in waiting])
        self.queue.topics.apply([], [], {}, now, audit=[entry for _, entry in waiting])

    def items(self) -> list[Item]:
        return self.queue.reviews.open_items("oldest", 0, 100)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.store.close()


def test_disagreements_wait_the_oldest_or_the_least_sure_first(desk: Desk) -> None:
    desk.vote("same", ann="a", bob="a", cy="a")
    desk.send(NOW + 100)
    desk.vote("one unknown", now=NOW + 100, ann="a", bob="a", cy=None)
    desk.send(NOW + 250)
    assert desk.items() == []
    desk.vote("two", now=NOW + 300, ann="a", bob="b", cy="a")
    desk.send(NOW + 450)
    desk.vote("tie", now=NOW + 500, ann="a", bob="b", cy="c")
    desk.send(NOW + 650)
    for n, (annotator, label) in enumerate((("dan", "d"), ("eve", "e"), ("fay", "f"))):
        card = desk.queue.leases.next_card(annotator, NOW + 700 + 100 * n)
        assert card is not None
        desk.queue.actions.answer(annotator, card.number, label, NOW + 700 + 100 * n, new_class=True)
        desk.send(NOW + 800 + 100 * n)
    assert [item.instance_id for item in desk.items()] == ["two", "tie"]
    surest_last = desk.queue.reviews.open_items("least sure", 0, 10)
    assert [item.instance_id for item in surest_last] == ["tie", "two"]
    item = surest_last[-1]
    assert item.votes == {"ann": "a", "bob": "b", "cy": "a"}
    assert (item.label, 0.5 < item.certainty < 1.0) == ("a", True)
    assert item.record is not None
    assert item.record.features == {"x": 1.0, "colour": "<b>"}
    assert item.classes == ("a", "b", "c", "d", "e", "f")
    assert desk.queue.reviews.count_open() == 2


def test_a_label_that_was_sent_is_corrected_and_the_annotators_are_measured(desk: Desk) -> None:
    desk.vote("i", ann="a", bob="b", cy="a")
    desk.send(NOW + 100)
    (item,) = desk.items()
    assert desk.queue.reviews.decide("rev", item, "b", NOW + 200) == "corrected"
    assert desk.items() == []
    (correction,) = desk.send(NOW + 200)
    assert (correction.kind, correction.instance_id, correction.label) == ("correction", "i", "b")
    assert (correction.annotator, correction.partition, correction.weight) == ("rev", 0, 1.0)
    review, truth = desk.audit[-2:]
    assert (review.user, review.action, review.label, review.detail) == (
        "rev",
        "review",
        "b",
        "a becomes b: corrected",
    )
    assert (truth.user, truth.gold, truth.votes) == (AGREEMENT, "b", item.votes)
    (reviewed,) = desk.queue.reviews.reviewed_items(10)
    assert (reviewed.reviewer, reviewed.present) == ("rev", "b")


def test_a_reviewer_who_voted_does_not_become_right_by_their_own_decision(desk: Desk) -> None:
    desk.vote("i", ann="a", rev="b", cy="a")
    desk.send(NOW + 100)
    (item,) = desk.items()
    desk.queue.reviews.decide("rev", item, "b", NOW + 200)
    desk.send(NOW + 200)
    (truth,) = [entry for entry in desk.audit if entry.action == "adjudicated"]
    assert truth.votes == {"ann": "a", "cy": "a"}


def test_a_label_that_is_held_is_replaced_and_one_label_is_sent() -> None:
    desk = Desk(review_ms=60_000)
    desk.vote("i", ann="a", bob="b", cy="a")
    assert desk.send(NOW + 100) == []
    (item,) = desk.items()
    assert desk.queue.reviews.decide("rev", item, "b", NOW + 200) == "replaced"
    (label,) = desk.send(NOW + 200)
    assert (label.kind, label.label, label.annotator, label.weight) == ("label", "b", "rev", 1.0)
    assert desk.send(NOW + 100_000) == []


def test_a_held_label_goes_out_without_a_reviewer_in_time() -> None:
    desk = Desk(review_ms=60_000)
    desk.vote("never", ann="a", bob="b", cy="a")
    assert desk.send(NOW + 100) == []
    assert [label.label for label in desk.send(NOW + 60_100)] == ["a"]
    late = replace(named("late"), expires_ms=NOW + 71_000, asked_ms=NOW + 61_000)
    ask(desk.queue, late)
    for annotator, label in (("ann", "a"), ("bob", "b"), ("cy", "a")):
        card = desk.queue.leases.next_card(annotator, NOW + 61_000)
        assert card is not None
        desk.queue.actions.answer(annotator, card.number, label, NOW + 61_000)
    assert desk.send(NOW + 61_100) == []
    assert [label.instance_id for label in desk.send(NOW + 70_000)] == ["late"], "before it expires"
    desk.store.close()


def test_keeping_the_label_sends_nothing_and_a_second_review_corrects_the_first(desk: Desk) -> None:
    desk.vote("i", ann="a", bob="b", cy="a")
    desk.send(NOW + 100)
    (item,) = desk.items()
    assert desk.queue.reviews.decide("rev", item, "a", NOW + 200) == "kept"
    assert desk.send(NOW + 200) == []
    with pytest.raises(Refused, match="rev has reviewed this: a"):
        desk.queue.reviews.decide("other", item, "b", NOW + 300)
    (again,) = desk.queue.reviews.reviewed_items(10)
    assert desk.queue.reviews.decide("other", again, None, NOW + 300) == "corrected"
    assert [(label.kind, label.label) for label in desk.send(NOW + 300)] == [("correction", None)]
    assert sum(entry.gold is not None for entry in desk.audit) == 1, "one decision counts for annotators"


def test_classes_are_checked_as_an_answer_is(desk: Desk) -> None:
    desk.vote("i", ann="a", bob="b", cy="a")
    desk.send(NOW + 100)
    (item,) = desk.items()
    for label, reason in (("new", "no class 'new'"), ("", "1 to 1,024 bytes"), ("x" * 2000, "1 to 1,024")):
        with pytest.raises(Refused, match=reason):
            desk.queue.reviews.decide("rev", item, label, NOW + 200)
    with pytest.raises(Refused, match="switched off"):
        desk.queue.reviews.decide("rev", item, "b", NOW + 200, comment="why")
    assert desk.queue.reviews.decide("rev", item, "new", NOW + 200, new_class=True) == "corrected"


@pytest.mark.parametrize(
    ("features", "left_out", "is_learned"),
    [
        ({"x": 1.0, "colour": "<b>", "none": None}, 0, True),
        ({"x": 1.0}, 3, False),  # the card has not all features
        ({"text": "x" * 1024}, 0, False),  # it may have been cut
        ({}, 0, False),
    ],
)
def test_a_correction_is_learned_as_one_more_example_if_its_record_is_whole(
    features: dict[str, Any], left_out: int, is_learned: bool
) -> None:
    desk = Desk(learn_corrections=True)
    ask(desk.queue, replace(REQUEST, features=features, left_out=left_out))
    for annotator, label in (("ann", "a"), ("bob", "b"), ("cy", "a")):
        card = desk.queue.leases.next_card(annotator, NOW)
        assert card is not None
        desk.queue.actions.answer(annotator, card.number, label, NOW, new_class=True)
    desk.send(NOW + 100)
    (item,) = desk.items()
    desk.queue.reviews.decide("rev", item, "b", NOW + 200)
    going = desk.send(NOW + 200)
    assert [answer.kind for answer in going] == ["correction", *["example"] * is_learned]
    if is_learned:
        assert (going[1].instance_id, going[1].cells) == ("i (corrected)", {"x": 1.0, "colour": "<b>"})
    desk.store.close()


def test_a_correction_in_doubt_is_sent_again(desk: Desk) -> None:
    desk.vote("i", ann="a", bob="b", cy="a")
    desk.send(NOW + 100)
    desk.queue.reviews.decide("rev", desk.items()[0], "b", NOW + 200)
    going = desk.queue.outbox.due(NOW + 200)
    desk.queue.outbox.not_sent(going)
    desk.queue.outbox.caught_up(desk.queue.outbox.in_doubt())
    assert [(answer.kind, answer.label) for answer in desk.send(NOW + 300)] == [("correction", "b")]


def test_a_lost_store_gets_outcomes_and_decisions_again_in_any_order(desk: Desk) -> None:
    for n, name in enumerate(("open", "done")):
        desk.vote(name, now=NOW + 200 * n, ann="a", bob="b", cy="a")
        desk.send(NOW + 100 + 200 * n)
    desk.queue.reviews.decide("rev", desk.items()[1], "b", NOW + 500)
    desk.send(NOW + 500)
    for entries in (desk.audit, desk.audit[::-1]):
        other = Desk()
        other.queue.topics.apply([], [], {}, NOW + 600, audit=entries)
        (item,) = other.items()
        assert (item.instance_id, item.votes) == ("open", {"ann": "a", "bob": "b", "cy": "a"})
        (reviewed,) = other.queue.reviews.reviewed_items(10)
        assert (reviewed.instance_id, reviewed.decision, reviewed.reviewer) == ("done", "b", "rev")
        assert item.record is None
        assert other.queue.reviews.decide("rev", item, "b", NOW + 700) == "noted"
        assert other.send(NOW + 700) == [], "without its record nothing says where it belongs"
        other.store.close()


def test_labels_of_other_senders_take_the_place_of_a_held_label() -> None:
    desk = Desk(review_ms=60_000)
    desk.vote("i", ann="a", bob="b", cy="a")
    desk.send(NOW + 100)
    desk.queue.topics.apply([], [Label("k", "i", "c", "oracle", NOW + 150)], {}, NOW + 150)
    assert desk.queue.reviews.decide("rev", desk.items()[0], "b", NOW + 200) == "corrected"
    assert [answer.kind for answer in desk.send(NOW + 100_000)] == ["correction"]
    desk.store.close()


def test_a_correction_is_a_label_that_older_readers_take_as_a_plain_one() -> None:
    values = encode_corrections(
        ["i", "i", "i (corrected)"],
        ["b", None, "b"],
        ["rev"] * 3,
        [1.0, 1.0, 2.0],
        [{}, {}, {"x": 1.0, "colour": "red"}],
    )
    assert orjson.loads(values[0]) == {"id": "i", "label": "b", "annotator": "rev", "corrects": True}
    decoded = decode_labels(RawRecords("labels", 0, [0, 1, 2], [5] * 3, [b"k"] * 3, values, [[], [], []]))
    assert not decoded.malformed
    assert decoded.label.tolist() == [0, -1, 0]
    assert decoded.weight.tolist() == [1.0, 1.0, 2.0]
    assert [features.rows.tolist() for features in decoded.features] == [[2]]
