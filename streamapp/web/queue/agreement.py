"""Agreement: one label from the answers of several annotators, by plurality or by the annotator model.

`needed` of a request is how many annotators have to answer. A tie, or a posterior of the model below the
limit, needs one more answer, up to twice as many; if there is still a tie, the label is declined. "I do not
know" is an answer like any other. A request of the overlap does not wait for ever: after a time, or shortly
before it expires, its votes decide. If the annotator model settles, this is so for every request.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import orjson

from streamapp.people.annotator_answers import AGREEMENT
from streamapp.people.settlement import Settlement, settlement
from streamapp.web import audit_log
from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.quality import annotator_models, gold_questions
from streamapp.web.queue.review import reviewed_outcomes
from topics.columns.records import AuditEntry

_MEMBERS: Final = "r.number, r.needed, r.kind, r.key, r.instance_id, r.request_id, r.partition, r.asked_ms"
ANSWERED: Final = f"""
SELECT {_MEMBERS}
FROM vote v CROSS JOIN request r ON r.number = v.request WHERE v.due_ms <= ?
AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number)
GROUP BY r.number HAVING count(*) >= r.needed
"""  # noqa: S608 - names of ours
"""Requests that enough annotators have answered. CROSS JOIN makes SQLite go from the votes, which are few, to
their requests, not through all requests.
"""
WAITING: Final = f"""
SELECT {_MEMBERS}, r.expires_ms, c.event_ms, min(v.answered_ms), count(*)
FROM vote v CROSS JOIN request r ON r.number = v.request JOIN clock c ON c.partition = r.partition
WHERE v.due_ms <= ? AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number)
AND NOT EXISTS (SELECT 1 FROM vote u WHERE u.request = r.number AND u.due_ms > ?)
GROUP BY r.number
"""  # noqa: S608 - names of ours
"""Requests with votes but without an answer, no undo window of which is open."""


class _Asked(NamedTuple):
    """A request that annotators have answered."""

    number: int
    needed: int
    kind: str
    key: str
    instance_id: str
    request_id: str
    partition: int
    asked_ms: int


def decide(db: sqlite3.Connection, terms: Terms, now: int) -> None:
    """Turn votes into an answer, for each request with enough votes whose undo windows are over.

    A request that is not settled surely gets one more vote, up to twice the number. If votes are kept
    (`terms.keeps_votes`), a request that may not wait longer is settled by the votes that it has.
    """
    for asked in map(_Asked._make, db.execute(ANSWERED, (now,)).fetchall()):
        votes = _votes(db, asked.number)
        settled = _settled(db, terms, asked, votes)
        if not settled.is_sure and asked.needed < 2 * terms.needed(asked.request_id):
            db.execute("UPDATE request SET needed = needed + 1 WHERE number = ?", (asked.number,))
            continue
        _answer(db, terms, asked, votes, settled, now)
    if not terms.keeps_votes:
        return
    for *members, expires_ms, event_ms, first_ms, n_votes in db.execute(WAITING, (now, now)).fetchall():
        asked = _Asked._make(members)
        lacks_extra = terms.by_quality and n_votes >= terms.needed(asked.request_id)
        overlaps = terms.overlap.covers(asked.request_id)
        is_over = (overlaps or lacks_extra) and now >= first_ms + terms.overlap.wait_ms
        is_late = expires_ms >= 0 and terms.event_time(event_ms, now) >= _end(asked.asked_ms, expires_ms)
        if is_over or (is_late and (overlaps or terms.by_quality)):
            votes = _votes(db, asked.number)
            _answer(db, terms, asked, votes, _settled(db, terms, asked, votes), now)


def _settled(
    db: sqlite3.Connection, terms: Terms, asked: _Asked, votes: Sequence[tuple[str, str | None, int]]
) -> Settlement:
    """Return the label of these votes by the present annotator model."""
    answers = {annotator: vote for annotator, vote, _ in votes}
    model, prior = annotator_models.model_of(db, asked.key), _prior(db, asked.number)
    return settlement(answers, terms.weighted, model, prior, terms.sure_posterior)


def _prior(db: sqlite3.Connection, number: int) -> dict[str, float] | None:
    """Return the class shares of the tree in a request, or its prediction alone; None: it has neither."""
    shares, prediction = db.execute(
        "SELECT shares, prediction FROM request WHERE number = ?", (number,)
    ).fetchone()
    by_class: dict[str, float] = orjson.loads(shares)
    if by_class:
        return by_class
    return None if prediction is None else {prediction: 1.0}


def _end(asked_ms: int, expires_ms: int) -> int:
    """Return the event time after which a request waits for no vote: nine tenths of its time are over."""
    return expires_ms - (expires_ms - asked_ms) // 10


def _votes(db: sqlite3.Connection, number: int) -> list[tuple[str, str | None, int]]:
    """Return annotator, label and time of each vote."""
    return db.execute(
        "SELECT annotator, label, answered_ms FROM vote WHERE request = ? ORDER BY annotator", (number,)
    ).fetchall()


def _answer(
    db: sqlite3.Connection,
    terms: Terms,
    asked: _Asked,
    votes: Sequence[tuple[str, str | None, int]],
    settled: Settlement,
    now: int,
) -> None:
    """Store the answer that the votes make."""
    label, weight = settled.label, settled.weight
    people = [annotator for annotator, *_ in votes]
    by_annotator = {annotator: vote for annotator, vote, _ in votes}
    certainty = reviewed_outcomes.certainty_of(label, by_annotator, settled.posterior)
    due_ms = now
    if reviewed_outcomes.needs_review(terms, label, by_annotator, certainty):
        reviewed_outcomes.keep_record(db, asked.number, now)
        due_ms = now + _hold_ms(db, terms, asked, now)
    db.execute(
        "INSERT INTO answer (request, kind, key, instance_id, partition, asked_ms, annotator, label, "
        "weight, answered_ms, due_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')",
        (
            *(asked.number, asked.kind, asked.key, asked.instance_id, asked.partition, asked.asked_ms),
            *(_together(people, terms.text_max), label, weight),
            *(max(when for *_, when in votes), due_ms),
        ),
    )
    shown_votes = ", ".join(f"{who}: {'not known' if what is None else what}" for who, what, _ in votes)
    detail = f"{'declined' if label is None else label} with weight {weight:.3g} ({shown_votes})"
    if (
        terms.gold_share
        and label is not None
        and settled.is_sure  # people who are often wrong may agree, too
        and {vote for _, vote, _ in votes} == {label}
        and len(people) > 1
    ):
        gold_questions.promote(db, asked.number, label, people)
    about = (asked.key, asked.instance_id, asked.request_id)
    entry = AuditEntry("", AGREEMENT, "outcome", now, *about, detail, label)
    entry = replace(entry, votes=by_annotator, weight=weight)
    audit_log.note(db, replace(entry, posterior=settled.posterior, prior=_prior(db, asked.number)))


def _hold_ms(db: sqlite3.Connection, terms: Terms, asked: _Asked, now: int) -> int:
    """Return for how many ms a label waits for its review: at most for the time that its request has left."""
    if not terms.review_ms:
        return 0
    expires_ms, event_ms = db.execute(
        "SELECT r.expires_ms, c.event_ms FROM request r JOIN clock c ON c.partition = r.partition "
        "WHERE r.number = ?",
        (asked.number,),
    ).fetchone()
    if expires_ms < 0:
        return terms.review_ms
    ms_left = _end(asked.asked_ms, expires_ms) - terms.event_time(event_ms, now)
    return min(terms.review_ms, max(0, ms_left))


def _together(names: Sequence[str], text_max: int) -> str:
    """Return the names joined by "+"; if that is longer than `text_max` bytes, the number of annotators."""
    text = "+".join(names)
    return text if len(text.encode()) <= text_max else f"{len(names)} annotators"
