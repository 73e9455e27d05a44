"""Audit log: what people did, stored together with its effect until the topic has it (an outbox)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from streamapp.web.store import Store
from topics.columns.records import AuditEntry

BATCH: Final = 500
DETAIL_MAX: Final = 4096  # characters


def note(db: sqlite3.Connection, entry: AuditEntry) -> None:
    """Note an action within the transaction that carries it out; the entry gets its id when it is sent."""
    if entry.detail is not None:
        entry = replace(entry, detail=entry.detail[:DETAIL_MAX])
    db.execute("INSERT INTO audit (entry) VALUES (?)", (orjson.dumps(entry).decode(),))


class AuditLog:
    """The entries that the topic does not have yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        with store.reading() as db:
            (self._name,) = db.execute("SELECT name FROM identity").fetchone()

    def note(self, user: str, action: str, now: int, detail: str | None = None) -> None:
        """Note an action that changes nothing in the store."""
        with self._store.transaction() as db:
            note(db, AuditEntry("", user, action, now, detail=detail))

    def note_about(self, annotator: str, user: str, action: str, at_ms: int, detail: str) -> None:
        """Note an action of a user that concerns another person."""
        with self._store.transaction() as db:
            note(db, AuditEntry("", user, action, at_ms, detail=detail, annotator=annotator))

    def waiting(self) -> list[tuple[int, AuditEntry]]:
        """Return the oldest entries that are not sent yet, with their numbers."""
        with self._store.reading() as db:
            rows = db.execute("SELECT number, entry FROM audit ORDER BY number LIMIT ?", (BATCH,)).fetchall()
        return [
            (number, AuditEntry(**(orjson.loads(entry) | {"id": f"{self._name}-{number}"})))
            for number, entry in rows
        ]

    def sent(self, numbers: Sequence[int]) -> None:
        """Delete entries that the broker has acknowledged."""
        with self._store.transaction() as db:
            db.executemany("DELETE FROM audit WHERE number = ?", [(number,) for number in numbers])
