"""Answers from audit entries: each once, in order, without those that were taken back."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from streamapp.people.annotator_answers import REMEMBERED, Answer, AnswerReader, Change, answers_of
from streamapp.web.audit_log import AuditLog
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import NOW, TERMS, ask, named
from topics.codecs import decode_audit, encode_audit
from topics.columns.records import AuditEntry

ENTRY = AuditEntry("s-1", "ann", "label", 5, "k", "i", "r", "a", "a", seconds=2.5, gold="b")


def test_entries_of_the_label_page_come_back_as_its_answers() -> None:
    with closing(Store(":memory:")) as store:
        queue, audit = LabelQueue(store, TERMS), AuditLog(store)
        ask(queue, named("one"), named("two"), named("three"))
        for label, shown_ms in (("a", NOW - 1500), (None, None), ("b", NOW + 7)):
            card = queue.leases.next_card("ann", NOW)
            assert card is not None
            queue.actions.answer("ann", card.number, label, NOW, new_class=True, shown_ms=shown_ms)
        queue.topics.apply([named("four")], [], {}, NOW)
        card = queue.leases.next_card("ann", NOW)
        assert card is not None
        queue.actions.answer("ann", card.number, "a", NOW + 1)
        queue.actions.undo("ann", NOW + 2)
        entries = [entry for _, entry in audit.waiting()]
    read = decode_audit(encode_audit(entries))
    assert read == entries
    assert [(answer.instance_id, answer.label, answer.seconds) for answer in answers_of(entries)] == [
        ("one", "a", 1.5),
        ("two", None, None),
        ("three", "b", 0.0),
    ]


def test_votes_are_in_the_entry_of_their_outcome() -> None:
    with closing(Store(":memory:")) as store:
        queue, audit = LabelQueue(store, replace(TERMS, agree=2, weighted="share")), AuditLog(store)
        ask(queue, named("one"))
        for annotator in ("ann", "bob"):
            card = queue.leases.next_card(annotator, NOW)
            assert card is not None
            queue.actions.answer(annotator, card.number, "a", NOW)
        queue.outbox.due(NOW + TERMS.undo_ms)
        *_, (_, outcome) = audit.waiting()
    assert (outcome.action, outcome.label, outcome.weight) == ("outcome", "a", 1.0)
    assert outcome.votes == {"ann": "a", "bob": "a"}


def test_an_entry_has_all_that_an_answer_needs() -> None:
    assert answers_of([ENTRY]) == [Answer("ann", "k", "i", "r", "a", 5, 2.5, "b")]


def test_entries_of_older_releases_have_their_class_in_the_detail() -> None:
    old = b'{"id":"s-1","user":"ann","action":"label","at_ms":5,"key":"k","instance_id":"i","detail":"a, b"}'
    declined = old.replace(b'"label"', b'"decline"').replace(b"s-1", b"s-2").replace(b'"a, b"', b"null")
    entries = [entry for entry in decode_audit([old, declined]) if isinstance(entry, AuditEntry)]
    assert answers_of(entries) == [
        Answer("ann", "k", "i", "", "a, b", 5),
        Answer("ann", "k", "i", "", None, 5),
    ]


def test_repeated_entries_count_once() -> None:
    undo = replace(ENTRY, id="s-2", action="undo", label=None)
    again = replace(ENTRY, id="s-3", label="c")
    batch = [ENTRY, undo, again]
    assert [answer.label for answer in answers_of(batch + batch)] == ["c"]


def test_an_undo_takes_back_the_last_answer_to_its_request_only() -> None:
    reader = AnswerReader()
    other = replace(ENTRY, id="s-2", request_id="other", instance_id="other")
    for entry in (ENTRY, other, replace(ENTRY, id="s-3", user="bob")):
        change = reader.take(entry)
        assert change is not None and not change.taken_back
    undo = replace(ENTRY, id="s-4", action="undo", label=None)
    taken = Change(Answer("ann", "k", "i", "r", "a", 5, 2.5, "b"), taken_back=True)
    assert reader.take(undo) == taken
    assert reader.take(replace(undo, id="s-5")) is None, "it was taken back once"
    assert reader.take(undo) is None


def test_other_actions_are_no_answers_and_memory_is_bounded() -> None:
    reader = AnswerReader()
    reader.take(ENTRY)
    for number in range(REMEMBERED):
        assert reader.take(AuditEntry(f"t-{number}", "ann", "skip", 6, "k", "i", "r")) is None
    assert reader.take(replace(ENTRY, id="u", action="undo")) is None
