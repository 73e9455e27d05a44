"""Agreement: one label from the answers of several annotators, by plurality.

`needed` of a request is how many annotators have to answer. A tie needs one more answer, up to twice as
many; if there is still a tie, the label is declined. "I do not know" is an answer like any other.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streamapp.web import audit_log
from topics.columns.records import AuditEntry

USER: Final = "agreement"

ANSWERED: Final = """
SELECT r.number, r.needed, r.kind, r.key, r.instance_id, r.request_id, r.partition, r.asked_ms
FROM vote v CROSS JOIN request r ON r.number = v.request WHERE v.due_ms <= ?
AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number)
GROUP BY r.number HAVING count(*) >= r.needed
"""
"""Requests that enough annotators have answered. CROSS JOIN makes SQLite go from the votes, which are few, to
their requests, not through all requests.
"""


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


def decide(db: sqlite3.Connection, now: int, agree: int, text_max: int, *, weighted: bool) -> None:
    """Turn votes into an answer, for each request with enough votes whose undo windows are over.

    weighted: the label's weight is the share of the votes for it; otherwise 1.
    """
    rows = db.execute(ANSWERED, (now,)).fetchall()
    for number, needed, kind, key, instance_id, request_id, partition, asked_ms in rows:
        votes = db.execute(
            "SELECT annotator, label, answered_ms FROM vote WHERE request = ? ORDER BY annotator", (number,)
        ).fetchall()
        decided = outcome([label for _, label, _ in votes])
        if decided is None and needed < 2 * agree:
            db.execute("UPDATE request SET needed = needed + 1 WHERE number = ?", (number,))
            continue
        label, share = decided or Outcome(None, 0.0)
        weight = share if weighted and label is not None else 1.0
        shown_votes = ", ".join(f"{who}: {'not known' if what is None else what}" for who, what, _ in votes)
        db.execute(
            "INSERT INTO answer (request, kind, key, instance_id, partition, asked_ms, annotator, label, "
            "weight, answered_ms, due_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')",
            (
                *(number, kind, key, instance_id, partition, asked_ms),
                *(_together([who for who, *_ in votes], text_max), label, weight),
                *(max(when for *_, when in votes), now),
            ),
        )
        detail = f"{'declined' if label is None else label} with weight {weight:.3g} ({shown_votes})"
        entry = AuditEntry("", USER, "outcome", now, key, instance_id, request_id, detail, label)
        by_annotator = {annotator: vote for annotator, vote, _ in votes}
        audit_log.note(db, replace(entry, votes=by_annotator, weight=weight))


def _together(names: Sequence[str], text_max: int) -> str:
    """Return the names joined by "+"; if that is longer than `text_max` bytes, the number of annotators."""
    text = "+".join(names)
    return text if len(text.encode()) <= text_max else f"{len(names)} annotators"
