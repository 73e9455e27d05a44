"""Agreement: one label from the answers of several annotators, by plurality or by the annotator model.

`needed` of a request is how many annotators have to answer. A tie, or a posterior of the model below the
limit, needs one more answer, up to twice as many; if there is still a tie, the label is declined. "I do not
know" is an answer like any other. A request of the overlap does not wait for ever: after a time, or shortly
before it expires, its votes decide. If the annotator model settles, this is so for every request.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import orjson

from streamapp.people.annotator_answers import AGREEMENT
from streamapp.web import audit_log
from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.quality import annotator_models, gold_questions
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


class Outcome(NamedTuple):
    """The result of a vote."""

    label: str | None  # None: declined
    share: float  # of the votes that were for the label


class _Settlement(NamedTuple):
    """The label of a request, as it is sent."""

    label: str | None  # None: declined
    weight: float
    is_sure: bool  # False: one more vote could help
    posterior: float | None = None  # of the label, by the annotator model; None: it has no figure
    prior: dict[str, float] | None = None  # class shares of the tree in the request


def outcome(votes: Sequence[str | None]) -> Outcome | None:
    """Return the label with most votes; None if several labels have equally many.

    >>> outcome(["a", "b", "a"])
    Outcome(label='a', share=0.6666666666666666)
    >>> outcome(["a", None])
    """
    (label, most), *others = Counter(votes).most_common(2)
    return None if others and others[0][1] == most else Outcome(label, most / len(votes))


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
) -> _Settlement:
    """Return the label of these votes; a tie of the majority is declined."""
    label, share = outcome([vote for _, vote, _ in votes]) or (None, 0.0)
    weight = share if terms.weighted != "majority" and label is not None else 1.0
    prior = _prior(db, asked.number)
    probabilities = _probabilities(db, asked.key, votes, prior)
    if not terms.by_quality or not probabilities:
        posterior = None if label is None else probabilities.get(label)
        return _Settlement(label, weight, share > 0.0, posterior, prior)
    n_declined = sum(vote is None for _, vote, _ in votes)
    if 2 * n_declined > len(votes):
        return _Settlement(None, 1.0, True, None, prior)
    best = max(sorted(probabilities), key=lambda name: probabilities[name])
    posterior = probabilities[best]
    return _Settlement(best, posterior, posterior >= terms.sure_posterior, posterior, prior)


def _prior(db: sqlite3.Connection, number: int) -> dict[str, float] | None:
    """Return the class shares of the tree in a request, or its prediction alone; None: it has neither."""
    shares, prediction = db.execute(
        "SELECT shares, prediction FROM request WHERE number = ?", (number,)
    ).fetchone()
    by_class: dict[str, float] = orjson.loads(shares)
    if by_class:
        return by_class
    return None if prediction is None else {prediction: 1.0}


def _probabilities(
    db: sqlite3.Connection,
    key: str,
    votes: Sequence[tuple[str, str | None, int]],
    prior: dict[str, float] | None,
) -> dict[str, float]:
    """Return the posterior of each class by the annotator model; empty if no vote is for a class, or if
    there are more classes than the model holds.
    """
    answers = {annotator: label for annotator, label, _ in votes}
    classes = [label for label in answers.values() if label is not None]
    model = annotator_models.model_of(db, key)
    if not classes or not model.has_room_for([*classes, *(prior or ())]):
        return {}
    return model.posterior(answers, prior)


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
    settled: _Settlement,
    now: int,
) -> None:
    """Store the answer that the votes make."""
    label, weight = settled.label, settled.weight
    people = [annotator for annotator, *_ in votes]
    db.execute(
        "INSERT INTO answer (request, kind, key, instance_id, partition, asked_ms, annotator, label, "
        "weight, answered_ms, due_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')",
        (
            *(asked.number, asked.kind, asked.key, asked.instance_id, asked.partition, asked.asked_ms),
            *(_together(people, terms.text_max), label, weight),
            *(max(when for *_, when in votes), now),
        ),
    )
    shown_votes = ", ".join(f"{who}: {'not known' if what is None else what}" for who, what, _ in votes)
    detail = f"{'declined' if label is None else label} with weight {weight:.3g} ({shown_votes})"
    if (
        terms.gold_share
        and label is not None
        and {vote for _, vote, _ in votes} == {label}
        and len(people) > 1
    ):
        gold_questions.promote(db, asked.number, label, people)
    about = (asked.key, asked.instance_id, asked.request_id)
    entry = AuditEntry("", AGREEMENT, "outcome", now, *about, detail, label)
    by_annotator = {annotator: vote for annotator, vote, _ in votes}
    entry = replace(entry, votes=by_annotator, weight=weight)
    audit_log.note(db, replace(entry, posterior=settled.posterior, prior=settled.prior))


def _together(names: Sequence[str], text_max: int) -> str:
    """Return the names joined by "+"; if that is longer than `text_max` bytes, the number of annotators."""
    text = "+".join(names)
    return text if len(text.encode()) <= text_max else f"{len(names)} annotators"
