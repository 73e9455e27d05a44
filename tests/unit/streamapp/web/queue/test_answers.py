"""Answers: undone, expired, sent once, and looked for after a failure; each in the audit log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.cards import Given, Label, Refused
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, WANTED, ask, ids, named


def test_what_has_expired_is_neither_asked_nor_taken(queue: LabelQueue) -> None:
    ask(queue, replace(REQUEST, expires_ms=NOW + 50))
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    with pytest.raises(Refused, match="has expired"):
        queue.actions.answer("ann", card.number, "a", NOW + 51)
    assert queue.leases.next_card("bob", NOW + 400) is None
    queue.topics.tidy(NOW + 400)
    assert queue.counts(NOW).open == 0
    with pytest.raises(Refused, match="is closed"):
        queue.actions.answer("ann", card.number, "a", NOW + 401)


def test_an_answer_in_the_last_moment_is_taken(queue: LabelQueue) -> None:
    ask(queue, replace(REQUEST, expires_ms=NOW + 50))
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.topics.tidy(NOW + 50)
    queue.actions.answer("ann", card.number, "a", NOW + 50)
    assert queue.counts(NOW + 50).undoable == 1


def test_a_stream_of_the_past_expires_by_its_own_clock(queue: LabelQueue) -> None:
    ask(queue, named("old", asked_ms=1000, expires_ms=1050))
    queue.topics.tidy(NOW)
    assert ids(queue, "ann") == ["old"]
    ask(queue, named("next", asked_ms=1051, expires_ms=2000))
    queue.topics.tidy(NOW)
    assert ids(queue, "bob") == ["next"]
    assert queue.counts(NOW).open == 1


def test_an_answer_can_be_taken_back_until_it_is_sent(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.answer("ann", card.number, "a", NOW)
    assert queue.actions.undoable_ms("ann", NOW + 40) == 60
    assert queue.outbox.due(NOW + 99) == []
    assert queue.actions.undo("ann", NOW + 99) == card
    queue.actions.answer("ann", card.number, None, NOW + 99)
    with pytest.raises(Refused, match="nothing to undo"):
        queue.actions.undo("bob", NOW + 100)
    (going,) = queue.outbox.due(NOW + 199)
    assert (going.label, going.annotator, going.timestamp) == (None, "ann", NOW + 99)
    with pytest.raises(Refused, match="nothing to undo"):
        queue.actions.undo("ann", NOW + 199)


def test_a_label_is_not_older_than_its_request(queue: LabelQueue) -> None:
    ask(queue, named("ahead", asked_ms=NOW + 5000))
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.answer("ann", card.number, "a", NOW)
    assert queue.outbox.due(NOW + 100)[0].timestamp == NOW + 5000


def test_an_id_may_be_asked_again_long_after_its_label(queue: LabelQueue) -> None:
    queue.topics.apply([], [Label("k", "i", "a", None, NOW)], {}, NOW)
    ask(queue, REQUEST)
    assert ids(queue, "ann") == [None]
    ask(queue, replace(REQUEST, asked_ms=NOW + 100_000))
    assert ids(queue, "ann") == ["i"]


def test_what_is_being_sent_stays_ours_though_somebody_else_labels_meanwhile(queue: LabelQueue) -> None:
    ask(queue, REQUEST)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.answer("ann", card.number, "a", NOW)
    (going,) = queue.outbox.due(NOW + TERMS.undo_ms)
    queue.topics.apply([], [Label("k", "i", "b", "oracle", NOW)], {}, NOW)
    counts = queue.counts(NOW)
    assert (counts.undoable, counts.sent, counts.overtaken) == (1, 0, 0), "the broker may have it"
    queue.outbox.not_sent([going])
    assert queue.outbox.in_doubt() == [going.number]
    queue.topics.apply([], [Label("k", "i", "a", "ann", going.timestamp)], {}, NOW)
    counts = queue.counts(NOW)
    assert (counts.undoable, counts.sent, counts.overtaken) == (0, 1, 0)


@pytest.mark.parametrize(("annotator", "state"), [("ann", "sent"), ("oracle", "overtaken")])
def test_a_label_that_is_read_before_the_client_fails_is_not_sent_again(
    queue: LabelQueue, annotator: str, state: str
) -> None:
    ask(queue, REQUEST)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.answer("ann", card.number, "a", NOW)
    going = queue.outbox.due(NOW + 100)
    queue.topics.apply([], [Label("k", "i", "a", annotator, NOW)], {}, NOW + 100)
    queue.outbox.not_sent(going)
    queue.outbox.caught_up(queue.outbox.in_doubt())
    assert queue.outbox.due(NOW + 200) == []
    assert getattr(queue.counts(NOW), state) == 1
    assert queue.counts(NOW).open == 0


@pytest.mark.parametrize("arrived", [True, False])
def test_what_a_dead_process_was_sending_is_looked_for_before_it_is_sent(arrived: bool) -> None:
    store = Store(":memory:")
    queue = LabelQueue(store, TERMS)
    ask(queue, REQUEST)
    card = queue.leases.next_card("ann", NOW)
    assert card is not None
    queue.actions.answer("ann", card.number, "a", NOW)
    (going,) = queue.outbox.due(NOW + 100)
    queue = LabelQueue(store, TERMS)
    assert queue.outbox.due(NOW + 200) == []
    doubts = queue.outbox.in_doubt()
    if arrived:
        queue.topics.apply([], [Label("k", "i", "a", "ann", going.timestamp)], {}, NOW + 200)
    queue.outbox.caught_up(doubts)
    assert queue.outbox.due(NOW + 200) == ([] if arrived else [going])
    assert queue.counts(NOW).sent == int(arrived)
    store.close()


def test_every_action_is_in_the_audit_log_once_and_refusals_are_not() -> None:
    store = Store(":memory:")
    queue, log = LabelQueue(store, TERMS), AuditLog(store)
    ask(queue, named("one", 0.9), named("two", 0.8), WANTED)
    for at, label in ((NOW, "a"), (NOW + 1, None)):
        card = queue.leases.next_card("ann", NOW)
        assert card is not None
        queue.actions.answer("ann", card.number, label, at)
        with pytest.raises(Refused):
            queue.actions.answer("ann", card.number, label, at)
    queue.actions.undo("ann", NOW)
    card = queue.leases.next_card("bob", NOW)
    assert card is not None
    queue.actions.skip("bob", card.number, NOW)
    queue.actions.give("bob", card.number, Given(finish=True), NOW)
    found = log.waiting()
    assert [(each.user, each.action, each.instance_id, each.detail) for _, each in found][:4] == [
        ("ann", "label", "one", "a"),
        ("ann", "decline", "two", None),
        ("ann", "undo", "two", None),
        ("bob", "skip", "loan", None),
    ]
    assert found[-1][1].action == "features"
    assert len({each.id for _, each in found}) == len(found)
    log.sent([number for number, _ in found[:2]])
    assert log.waiting() == found[2:]
    store.close()
