"""Agreement: one label from the answers of several annotators, by plurality.

`needed` of a request is how many annotators have to answer. A tie needs one more answer, up to twice as
many; if there is still a tie, the label is declined. "I do not know" is an answer like any other. A request
of the overlap does not wait for ever: after a time, or shortly before it expires, its votes decide.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streamapp.web import audit_log
from streamapp.web.annotation_terms import Terms
from topics.columns.records import AuditEntry

USER: Final = "agreement"

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
SELECT {_MEMBERS}, r.expires_ms, c.event_ms, min(v.answered_ms)
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

    With `terms.weighted` the label's weight is the share of the votes for it; otherwise it is 1. A request
    of the overlap is decided by the votes that it has, if it may not wait longer.
    """
    for asked in map(_Asked._make, db.execute(ANSWERED, (now,)).fetchall()):
        votes = _votes(db, asked.number)
        decided = outcome([label for _, label, _ in votes])
        if decided is None and asked.needed < 2 * terms.needed(asked.request_id):
            db.execute("UPDATE request SET needed = needed + 1 WHERE number = ?", (asked.number,))
            continue
        _answer(db, terms, asked, votes, decided, now)
    if not terms.overlap.share:
        return
    for *members, expires_ms, event_ms, first_ms in db.execute(WAITING, (now, now)).fetchall():
        asked = _Asked._make(members)
        if not terms.overlap.covers(asked.request_id):
            continue
        last_ms = first_ms + terms.overlap.wait_ms
        is_late = expires_ms >= 0 and terms.event_time(event_ms, now) >= _end(asked.asked_ms, expires_ms)
        if is_late or now >= last_ms:
            votes = _votes(db, asked.number)
            _answer(db, terms, asked, votes, outcome([label for _, label, _ in votes]), now)


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
    decided: Outcome | None,
    now: int,
) -> None:
    """Store the answer that the votes make; decided: None for a tie, which is declined."""
    label, share = decided or Outcome(None, 0.0)
    weight = share if terms.weighted and label is not None else 1.0
    db.execute(
        "INSERT INTO answer (request, kind, key, instance_id, partition, asked_ms, annotator, label, "
        "weight, answered_ms, due_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')",
        (
            *(asked.number, asked.kind, asked.key, asked.instance_id, asked.partition, asked.asked_ms),
            *(_together([who for who, *_ in votes], terms.text_max), label, weight),
            *(max(when for *_, when in votes), now),
        ),
    )
    shown_votes = ", ".join(f"{who}: {'not known' if what is None else what}" for who, what, _ in votes)
    detail = f"{'declined' if label is None else label} with weight {weight:.3g} ({shown_votes})"
    about = (asked.key, asked.instance_id, asked.request_id)
    entry = AuditEntry("", USER, "outcome", now, *about, detail, label)
    by_annotator = {annotator: vote for annotator, vote, _ in votes}
    audit_log.note(db, replace(entry, votes=by_annotator, weight=weight))


def _together(names: Sequence[str], text_max: int) -> str:
    """Return the names joined by "+"; if that is longer than `text_max` bytes, the number of annotators."""
    text = "+".join(names)
    return text if len(text.encode()) <= text_max else f"{len(names)} annotators"
