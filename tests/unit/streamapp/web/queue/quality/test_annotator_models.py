"""Requests settled by the annotator model: it follows the topic `audit`, and a lost store comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import orjson
import pytest

from streamapp.people import dawid_skene
from streamapp.web.annotation_terms import Overlap, Terms
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.quality.annotator_models import model_of
from streamapp.web.store import Store
from tests.unit.streamapp.people.crowds import crowd
from tests.unit.streamapp.web.queue.requests import NOW, REQUEST, TERMS, ask, ids, named
from topics.codecs import decode_audit, encode_audit
from topics.columns.records import AuditEntry

BY_QUALITY = replace(TERMS, agree=3, weighted="quality", open_max=10_000)


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store(":memory:")) as made:
        yield made


def vote(queue: LabelQueue, given: Mapping[str, str | None], now: int = NOW) -> None:
    for annotator, label in given.items():
        card = queue.leases.next_card(annotator, now)
        assert card is not None
        queue.actions.answer(annotator, card.number, label, now, new_class=True)


def read_back(store: Store, queue: LabelQueue) -> list[AuditEntry]:
    """Send the waiting entries to their topic and read them, as reader and writer do."""
    audit, read = AuditLog(store), list[AuditEntry]()
    while waiting := audit.waiting():
        audit.sent([number for number, _ in waiting])
        sent = decode_audit(encode_audit([entry for _, entry in waiting]))
        entries = [entry for entry in sent if isinstance(entry, AuditEntry)]
        queue.topics.apply([], [], {}, NOW, audit=entries)
        read += entries
    return read


def state_of(store: Store) -> object:
    with store.reading() as db:
        return dawid_skene.written(model_of(db, "k"))


def after_a_crowd(store: Store, terms: Terms = BY_QUALITY) -> list[AuditEntry]:
    """Let a crowd settle 120 requests, and return the entries of the topic."""
    queue, entries = LabelQueue(store, terms), list[AuditEntry]()
    for number, record in enumerate(crowd(2, 120, 2, [1.0, 1.0])):
        ask(queue, named(f"i{number}"))
        vote(queue, record.answers)
        queue.outbox.due(NOW + TERMS.undo_ms)
        for spare in ("a97", "a98", "a99"):
            if ids(queue, spare) == [f"i{number}"]:
                vote(queue, {spare: record.truth})
                queue.outbox.due(NOW + TERMS.undo_ms)
        entries += read_back(store, queue)
    return entries


def test_a_lost_store_is_rebuilt_with_the_same_model(store: Store) -> None:
    entries = after_a_crowd(store)
    with closing(Store(":memory:")) as other:
        queue = LabelQueue(other, BY_QUALITY)
        for start in range(0, len(entries), 7):
            batch = entries[start : start + 7]
            queue.topics.apply([], [], {}, NOW, audit=batch)
            queue.topics.apply([], [], {}, NOW, audit=batch[-3:])  # delivered again
        assert state_of(other) == state_of(store)
    with store.reading() as db:
        model = model_of(db, "k")
    assert model.accuracy("a02") is not None and model.accuracy("a05") is not None
    assert (model.accuracy("a02") or 1.0) < (model.accuracy("a05") or 0.0)


def test_the_label_is_the_likeliest_class_with_its_posterior_as_weight(store: Store) -> None:
    after_a_crowd(store)
    queue = LabelQueue(store, replace(BY_QUALITY, sure_posterior=0.0))
    ask(queue, named("next"))
    vote(queue, {"a00": "c1", "a02": "c1", "a05": "c0"})
    with store.reading() as db:
        expected = model_of(db, "k").posterior({"a00": "c1", "a02": "c1", "a05": "c0"}, {"a": 1.0})
    (going,) = queue.outbox.due(NOW + TERMS.undo_ms)
    assert going.label == "c0", "two of the three are spammers"
    assert going.weight == expected["c0"]
    *_, (_, entry) = AuditLog(store).waiting()
    assert (entry.label, entry.weight, entry.posterior, entry.prior) == (
        *("c0", expected["c0"], expected["c0"]),
        {"a": 1.0},
    )


def test_an_unsure_request_gets_more_answers_up_to_twice_the_number(store: Store) -> None:
    queue = LabelQueue(store, replace(BY_QUALITY, agree=2, sure_posterior=0.999))
    ask(queue, REQUEST)
    vote(queue, {"ann": "a", "bob": "b"})
    assert queue.outbox.due(NOW + 100) == []
    vote(queue, {"cy": "a"}, NOW + 100)
    assert queue.outbox.due(NOW + 200) == []
    vote(queue, {"dan": "a"}, NOW + 200)
    (going,) = queue.outbox.due(NOW + 300)
    assert going.label == "a" and 0.5 < going.weight < 0.999


def test_a_single_answer_that_is_doubtful_gets_a_second_one_but_not_of_the_same_person(store: Store) -> None:
    queue = LabelQueue(store, replace(BY_QUALITY, agree=1))
    ask(queue, replace(REQUEST, prediction="b", shares={"a": 0.5, "b": 0.5}))
    vote(queue, {"ann": "a"})
    assert ids(queue, "ann", "bob") == [None, None], "its undo window is open"
    assert queue.outbox.due(NOW + 100) == []
    assert ids(queue, "ann") == [None]
    vote(queue, {"bob": "a"}, NOW + 100)
    (going,) = queue.outbox.due(NOW + 200)
    assert (going.label, going.annotator) == ("a", "ann+bob")


def test_most_answers_not_known_decline(store: Store) -> None:
    queue = LabelQueue(store, BY_QUALITY)
    ask(queue, REQUEST)
    vote(queue, {"ann": None, "bob": None, "cy": "a"})
    (going,) = queue.outbox.due(NOW + 100)
    assert (going.label, going.weight) == (None, 1.0)


def test_answers_of_a_request_that_expires_are_not_lost(store: Store) -> None:
    queue = LabelQueue(store, BY_QUALITY)
    ask(queue, named("i", expires_ms=NOW + 1000))
    vote(queue, {"ann": "a"})
    assert queue.outbox.due(NOW + 899) == []
    queue.topics.tidy(NOW + 2000)
    (going,) = queue.outbox.due(NOW + 2000)
    assert (going.label, going.annotator) == ("a", "ann")
    assert 0.5 < going.weight <= 1.0


def test_a_wait_for_one_more_answer_ends(store: Store) -> None:
    terms = replace(BY_QUALITY, agree=2, sure_posterior=1.0, overlap=Overlap(0.0, 2, 5_000))
    queue = LabelQueue(store, terms)
    ask(queue, named("i"), named("j"))
    vote(queue, {"ann": "a", "bob": "b"})
    vote(queue, {"ann": "a"})
    assert queue.outbox.due(NOW + 4_999) == []
    (going,) = queue.outbox.due(NOW + 5_000)
    assert going.instance_id == "i", "the other lacks an answer that everybody's requests need"


def test_votes_are_settled_after_the_topic_was_read(store: Store) -> None:
    queue = LabelQueue(store, BY_QUALITY)
    queue.outbox.hold_votes(True)
    ask(queue, REQUEST)
    vote(queue, {"ann": "a", "bob": "a", "cy": "a"})
    assert queue.outbox.due(NOW + 100) == []
    queue.outbox.hold_votes(False)
    assert [going.label for going in queue.outbox.due(NOW + 100)] == ["a"]
    majority = LabelQueue(store, replace(TERMS, agree=3))
    majority.outbox.hold_votes(True)
    ask(majority, named("other"))
    vote(majority, {"ann": "a", "bob": "a", "cy": "a"})
    assert [going.label for going in majority.outbox.due(NOW + 100)] == ["a"], "it needs no model"


@pytest.mark.parametrize(
    "members",
    [
        {"votes": ["ann"]},
        {"votes": {"ann": 1}},
        {"votes": {"ann": "a"}, "prior": {"a": "much"}},
        {"votes": {"ann": "a"}, "prior": {"a": 1e308, "b": 1e308}},
        {"votes": {"ann": "a"}, "prior": ["a"]},
        {"votes": {"ann": "a"}, "key": 7},
        {"votes": {"ann": "a"}, "id": 7},
        {"votes": {"ann": "a"}, "gold": 7},
        {"votes": {f"a{n}": "a" for n in range(201)}},
    ],
    ids=str,
)
def test_an_entry_of_another_form_is_no_outcome(store: Store, members: dict[str, object]) -> None:
    queue = LabelQueue(store, BY_QUALITY)
    entry = {"id": "x-1", "user": "agreement", "action": "outcome", "at_ms": 5, "key": "k"} | members
    read = decode_audit([orjson.dumps(entry)])
    good = AuditEntry("x-2", "agreement", "outcome", 5, "k", votes={"ann": "a", "bob": "b"})
    entries = [one for one in read if isinstance(one, AuditEntry)]
    queue.topics.apply([], [], {}, NOW, audit=[*entries, good])
    with store.reading() as db:
        assert list(model_of(db, "k").counts) == ["ann", "bob"]
