"""Gold questions: blind, never beyond their share, never sent, and in turns for each annotator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import pytest

from streamapp.people.annotator_answers import answers_of
from streamapp.web.annotation_terms import Overlap
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.cards import Card, Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.quality.annotator_models import model_of
from streamapp.web.queue.quality.gold_file import GoldRecord
from streamapp.web.queue.quality.gold_questions import is_due
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask, named
from topics.columns.records import AuditEntry

GOLD = [GoldRecord("k", f"gold-{n}", "ab"[n % 2], {"x": float(n), "colour": "red"}) for n in range(6)]
SHARED = replace(TERMS, gold_share=0.25, open_max=10_000)


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store(":memory:")) as made:
        yield made


@pytest.fixture
def queue(store: Store) -> LabelQueue:
    queue = LabelQueue(store, SHARED)
    queue.topics.keep_gold(GOLD)
    ask(queue, *(named(f"i{n:03}", utility=0.9 - n / 1000, expires_ms=NOW + 500 + n) for n in range(200)))
    return queue


def taken(queue: LabelQueue, annotator: str, n: int, now: int = NOW, label: str = "a") -> list[Card]:
    """Answer n cards."""
    cards = []
    for _ in range(n):
        card = queue.leases.next_card(annotator, now)
        assert card is not None
        queue.actions.answer(annotator, card.number, label, now, new_class=True)
        cards.append(card)
    return cards


def confirmed(queue: LabelQueue, now: int = NOW + 100) -> set[str]:
    """Let the broker have the answers whose undo windows are over; return their instances."""
    going = queue.outbox.due(now)
    queue.outbox.sent(going, now)
    return {answer.instance_id for answer in going}


def golds(cards: list[Card]) -> list[str]:
    return [card.instance_id for card in cards if card.instance_id.startswith("gold-")]


def audit_of(store: Store) -> list[AuditEntry]:
    return [entry for _, entry in AuditLog(store).waiting()]


@pytest.mark.parametrize("share", ["0.01", "0.05", "0.1", "0.29", "1/3", "0.5", "0.7", "0.97", "1"])
def test_the_share_is_never_exceeded_and_is_reached(share: str) -> None:
    exact = Fraction(share)
    for annotator in ("ann", "bob"):
        last, shown, places = 0, 0, []
        for card in range(1, 2001):
            if is_due(exact, annotator, card, last):
                last, shown = card, shown + 1
                places.append(card)
            assert shown <= exact * card
        assert shown >= int(exact * 2000) - 1
    assert places, "bob's"


def test_places_differ_by_annotator_and_block_and_are_the_same_again() -> None:
    def places(annotator: str) -> list[int]:
        last, all_places = 0, []
        for card in range(1, 400):
            if is_due(Fraction(1, 10), annotator, card, last):
                last = card
                all_places.append(card)
        return all_places

    assert places("ann") == places("ann") != places("bob")
    assert len({place % 10 for place in places("ann")}) > 4


def test_a_gold_question_looks_like_the_request_whose_place_it_takes(queue: LabelQueue) -> None:
    cards = taken(queue, "ann", 20)
    shown = next(card for card in cards if card.instance_id.startswith("gold-"))
    replaced = queue.leases.next_card("ann", NOW)
    assert replaced is not None
    real = [card for card in cards if not card.instance_id.startswith("gold-")]
    for member in fields(Card):
        assert type(getattr(shown, member.name)) is type(getattr(real[0], member.name)), member.name
    assert {card.expires_ms for card in real} >= {shown.expires_ms}, "the next card had this deadline"
    assert {card.strategy for card in cards} == {"s"}
    assert set(shown.features) == set(real[0].features)
    assert shown.prediction == "a" and shown.classes == real[-1].classes


def test_answers_stay_within_the_share_are_not_sent_and_carry_the_class(
    queue: LabelQueue, store: Store
) -> None:
    cards, sent = [], set[str]()
    for _ in range(8):
        cards += taken(queue, "ann", 5)
        sent |= confirmed(queue)
    assert 8 <= len(golds(cards)) <= 10
    for n in range(1, 41):
        assert len(golds(cards[:n])) <= n / 4
    assert sent == {card.instance_id for card in cards} - set(golds(cards))
    assert queue.outbox.due(NOW + 5000) == []
    answers = answers_of(audit_of(store))
    by_gold = {answer.instance_id: answer.gold for answer in answers}
    settled = {record.instance_id: record.label for record in GOLD}
    assert by_gold == {card.instance_id: settled.get(card.instance_id) for card in cards}
    counts = queue.counts(NOW + 100)
    assert (counts.sent, counts.open, counts.undoable) == (len(sent), 200 - len(sent), 0)
    assert queue.overview.day_of("ann", NOW).labels == 40, "to the annotator they are answers like all others"
    assert queue.overview.by_model(NOW)[0].n == 200 - len(sent)


def test_all_gold_records_of_a_model_are_shown_before_one_is_shown_again(
    queue: LabelQueue, store: Store
) -> None:
    shown = []
    for _ in range(72):
        shown += golds(taken(queue, "ann", 1))
        confirmed(queue)
    assert len(shown) >= 14
    asked = [(answer.instance_id, answer.request_id) for answer in answers_of(audit_of(store)) if answer.gold]
    assert len(set(asked)) == len(shown), "each showing has an id, so that all of them count"
    assert sorted(shown[:6]) == sorted(shown[6:12]) == sorted(record.instance_id for record in GOLD)
    assert golds(taken(queue, "bob", 28)) != shown[:6], "another annotator has another order"


def test_the_annotator_model_learns_gold_answers_when_they_are_final(queue: LabelQueue, store: Store) -> None:
    taken(queue, "ann", 40)
    queue.outbox.due(NOW + 99)
    assert not [entry for entry in audit_of(store) if entry.action == "gold"]
    queue.outbox.due(NOW + 100)
    entries = [replace(entry, id=f"other-{n}") for n, entry in enumerate(audit_of(store))]
    gold = [entry for entry in entries if entry.action == "gold"]
    assert gold and all(entry.votes == {"ann": "a"} and entry.gold in ("a", "b") for entry in gold)
    queue.topics.apply([], [], {}, NOW, audit=entries)
    with store.reading() as db:
        rows = model_of(db, "k").counts["ann"]
    assert sum(map(sum, rows)) == len(gold)


def test_an_answer_can_be_taken_back_and_given_again(queue: LabelQueue, store: Store) -> None:
    while True:
        (card,) = taken(queue, "ann", 1)
        if golds([card]):
            break
    again = queue.actions.undo("ann", NOW + 1)
    while again.number != card.number:  # answers of the same time are taken back together
        again = queue.actions.undo("ann", NOW + 1)
    queue.actions.answer("ann", again.number, "b", NOW + 2, new_class=True)
    queue.outbox.due(NOW + 200)
    (entry,) = [entry for entry in audit_of(store) if entry.action == "gold"]
    assert entry.votes == {"ann": "b"}


def test_a_skipped_or_forgotten_one_goes_and_nobody_else_gets_it(queue: LabelQueue) -> None:
    def dealt(annotator: str) -> Card:
        while True:
            card = queue.leases.next_card(annotator, NOW)
            assert card is not None
            if golds([card]):
                return card
            queue.actions.answer(annotator, card.number, "a", NOW, new_class=True)

    skipped = dealt("ann")
    queue.actions.skip("ann", skipped.number, NOW)
    with pytest.raises(Refused, match="closed"):
        queue.actions.answer("ann", skipped.number, "a", NOW)
    forgotten = dealt("bob")
    with pytest.raises(Refused, match="closed"):
        queue.actions.answer("cy", forgotten.number, "a", NOW + TERMS.lease_ms + 1)
    assert queue.leases.holds("bob", forgotten.number)
    queue.topics.tidy(NOW + TERMS.lease_ms)
    assert not queue.leases.holds("bob", forgotten.number)


def test_there_is_none_without_a_request_or_for_another_model_or_a_class_that_is_closed(store: Store) -> None:
    queue = LabelQueue(store, SHARED)
    queue.topics.keep_gold([replace(record, key="other") for record in GOLD])
    assert queue.leases.next_card("ann", NOW) is None
    ask(queue, *(named(f"i{n}") for n in range(30)))
    assert golds(taken(queue, "ann", 30)) == []


def test_with_feedback_the_class_is_told_and_the_answer_is_final(store: Store) -> None:
    queue = LabelQueue(store, replace(SHARED, gold_feedback=True))
    queue.topics.keep_gold(GOLD[1:2])
    ask(queue, *(named(f"i{n}") for n in range(20)))
    told = []
    for n in range(12):
        card = queue.leases.next_card("ann", NOW + n)
        assert card is not None
        told.append(queue.actions.settled_class(card.number))
        queue.actions.answer("ann", card.number, "a", NOW + n, new_class=True)
        if golds([card]):
            break
    assert told == [None] * (len(told) - 1) + ["b"]
    assert queue.actions.undo("ann", NOW + len(told)).instance_id.startswith("i")


def test_requests_on_which_all_agreed_become_gold_questions_for_others(store: Store) -> None:
    queue = LabelQueue(store, replace(SHARED, gold_share=0.5, overlap=Overlap(1.0)))
    ask(queue, named("agreed"), named("tied"))
    for label, annotator in (("a", "ann"), ("a", "bob"), ("a", "ann"), ("b", "bob"), ("a", "cy")):
        card = queue.leases.next_card(annotator, NOW)
        assert card is not None
        queue.actions.answer(annotator, card.number, label, NOW, new_class=True)
        confirmed(queue)
    ask(queue, *(named(f"i{n}") for n in range(40)))
    seen = {
        annotator: [card.instance_id for card in taken(queue, annotator, 12)] for annotator in ("ann", "dan")
    }
    assert "agreed" in seen["dan"] and "tied" not in seen["dan"]
    assert "agreed" not in seen["ann"], "it would be no test for her"


def test_a_request_of_which_the_label_is_not_sure_becomes_no_gold_question(store: Store) -> None:
    terms = replace(SHARED, gold_share=0.5, agree=2, weighted="quality", sure_posterior=1.0)
    queue = LabelQueue(store, terms)
    queue.outbox.hold_votes(False)
    ask(queue, named("unsure"))
    for annotator in ("ann", "bob", "cy", "dan"):
        card = queue.leases.next_card(annotator, NOW)
        if card is not None:
            queue.actions.answer(annotator, card.number, "b", NOW, new_class=True)
            confirmed(queue)
    with store.reading() as db:
        assert db.execute("SELECT state, label FROM answer").fetchall() == [("sent", "b")]
        assert db.execute("SELECT count(*) FROM gold").fetchone() == (0,)


def test_who_has_seen_which_comes_back_after_a_store_was_lost(queue: LabelQueue, store: Store) -> None:
    shown = golds(taken(queue, "ann", 24))
    entries = audit_of(store)
    with closing(Store(":memory:")) as other:
        again = LabelQueue(other, SHARED)
        again.topics.keep_gold(GOLD)
        again.topics.apply([], [], {}, NOW, audit=entries)
        ask(again, *(named(f"j{n}") for n in range(40)))
        seen = golds(taken(again, "ann", 8))
    assert seen and not set(seen) & set(shown[:5])


def test_records_that_left_the_file_are_gone_and_those_that_stay_keep_their_turn(
    queue: LabelQueue, store: Store, tmp_path: Path
) -> None:
    shown = golds(taken(queue, "ann", 9))
    assert shown
    queue.topics.keep_gold(
        [record for record in GOLD if record.instance_id in (shown[0], "gold-5", "gold-4")]
    )
    with store.reading() as db:
        left = {name for (name,) in db.execute("SELECT instance_id FROM gold")}
        times = dict(db.execute("SELECT instance_id, times FROM gold JOIN gold_shown ON gold = number"))
    assert left == {shown[0], "gold-5", "gold-4"}
    assert times.get(shown[0]) == 1


def test_a_request_for_its_instance_is_not_shown_beside_it(store: Store) -> None:
    queue = LabelQueue(store, replace(SHARED, gold_share=0.5))
    queue.topics.keep_gold([replace(GOLD[0], instance_id="i19")])
    ask(queue, *(named(f"i{n}") for n in range(20)))
    assert [card.instance_id for card in taken(queue, "ann", 19)].count("i19") == 0
    assert REQUEST.key == "k"


def test_the_records_of_the_file_stay_when_topics_are_made_again(store: Store) -> None:
    queue = LabelQueue(store, SHARED)
    queue.topics.keep_gold([*GOLD, replace(GOLD[0], instance_id="wide", left_out=7)])
    queue.topics.begin({"labels": "1"})
    assert queue.topics.begin({"labels": "2"})
    ask(queue, *(named(f"i{n}") for n in range(60)))
    cards = taken(queue, "ann", 30)
    assert len(golds(cards)) > 4
    assert {"a", "b"} <= set(cards[0].classes)
    assert all(card.left_out == 7 for card in cards if card.instance_id == "wide")
