"""Expiry: removes requests that can no longer be answered, and entries that are too old to matter."""

from __future__ import annotations

import sqlite3
from typing import Final

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.overview import DAY_MS
from streamapp.web.queue.quality import gold_questions
from streamapp.web.queue.review import reviewed_outcomes

NEVER: Final = -1
KEEP_MS: Final = 14 * DAY_MS
"""How long answers and settled instances are kept: twice the retention of the topics."""


def tidy(db: sqlite3.Connection, terms: Terms, now: int) -> None:
    """Delete what has expired, the requests above the limit, and entries that are too old to matter.

    If votes are kept, an expired request with an answer stays: `agreement.decide` sends its label.
    """
    unanswered = "number NOT IN (SELECT request FROM answer WHERE request IS NOT NULL)"
    unvoted = "number NOT IN (SELECT request FROM vote)" if terms.keeps_votes else "TRUE"
    for partition, event_ms in db.execute("SELECT partition, event_ms FROM clock").fetchall():
        db.execute(
            "DELETE FROM request WHERE partition = ? AND expires_ms BETWEEN 0 AND ? "  # noqa: S608
            f"AND {unanswered} AND {unvoted}",
            (partition, terms.event_time(event_ms, now) - 1),
        )
    (count,) = db.execute("SELECT n FROM tally WHERE name = 'request'").fetchone()
    if count > terms.open_max:
        gone = db.execute(
            "DELETE FROM request WHERE number IN (SELECT number FROM request "  # noqa: S608
            f"WHERE {unanswered} ORDER BY ifnull(utility, -9e999), asked_ms DESC, number DESC "
            "LIMIT ?)",
            (count - terms.open_max,),
        ).rowcount
        db.execute(
            "INSERT INTO position VALUES ('dropped', -1, ?) "
            "ON CONFLICT DO UPDATE SET next = next + excluded.next",
            (gone,),
        )
    db.execute("DELETE FROM settled WHERE seen_ms < ?", (now - KEEP_MS,))
    db.execute("DELETE FROM given WHERE seen_ms < ?", (now - KEEP_MS,))
    db.execute("DELETE FROM answer WHERE state IN ('sent', 'overtaken') AND due_ms < ?", (now - KEEP_MS,))
    db.execute("DELETE FROM day WHERE day < ?", ((now - KEEP_MS) // DAY_MS,))
    db.execute("DELETE FROM lease WHERE until_ms <= ?", (now,))
    gold_questions.drop_unheld(db)
    reviewed_outcomes.tidy(db, now - KEEP_MS)


def has_expired(db: sqlite3.Connection, terms: Terms, partition: int, expires_ms: int, now: int) -> bool:
    """Return whether an answer would come too late to be learned."""
    if expires_ms == NEVER:
        return False
    (event_ms,) = db.execute("SELECT event_ms FROM clock WHERE partition = ?", (partition,)).fetchone()
    return terms.event_time(event_ms, now) > expires_ms
