"""Expiry: removes requests that can no longer be answered, and entries that are too old to matter."""

from __future__ import annotations

import sqlite3
from typing import Final

from streamapp.web.queue.outbox import Terms

NEVER: Final = -1
KEEP_MS: Final = 14 * 24 * 3600 * 1000
"""How long answers and settled instances are kept: twice the retention of the topics."""


def tidy(db: sqlite3.Connection, terms: Terms, now: int) -> None:
    """Delete what has expired, the requests above the limit, and entries that are too old to matter."""
    unanswered = "number NOT IN (SELECT request FROM answer WHERE request IS NOT NULL)"
    for partition, event_ms in db.execute("SELECT partition, event_ms FROM clock").fetchall():
        db.execute(
            "DELETE FROM request WHERE partition = ? AND expires_ms BETWEEN 0 AND ? "  # noqa: S608
            f"AND {unanswered}",
            (partition, event_time(terms, event_ms, now) - 1),
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
    db.execute("DELETE FROM lease WHERE until_ms <= ?", (now,))


def event_time(terms: Terms, event_ms: int, now: int) -> int:
    """Return the event time of a partition, as far as this process can infer it.

    The event time of a stream of the present follows the clock even if no request comes. A stream of the
    past stops with its requests.
    """
    return max(event_ms, now) if now - event_ms <= terms.jump_ms else event_ms


def has_expired(db: sqlite3.Connection, terms: Terms, partition: int, expires_ms: int, now: int) -> bool:
    """Return whether an answer would come too late to be learned."""
    if expires_ms == NEVER:
        return False
    (event_ms,) = db.execute("SELECT event_ms FROM clock WHERE partition = ?", (partition,)).fetchone()
    return event_time(terms, event_ms, now) > expires_ms
