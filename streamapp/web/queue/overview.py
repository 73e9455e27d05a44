"""Overview: open requests by model with their records, and the answers of an annotator since a time."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from typing import Final

import orjson

from streamapp.web.queue.cards import Cell
from streamapp.web.store import Store

FRESH_MS: Final = 5_000
"""Requests by model are counted at most this often, for all pages together."""
MODELS_MAX: Final = 50
RECORDS_MAX: Final = 20
DAY_MS: Final = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class OpenRequests:
    """The requests of a model without an answer."""

    key: str
    n: int
    oldest_ms: int  # time of the oldest request
    deadline_ms: int | None  # event time at which the first of them expires; None: none expires


@dataclass(frozen=True, slots=True)
class Day:
    """Answers of an annotator since midnight UTC."""

    labels: int
    declined: int
    values: int  # answers to requests for features


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """The record of an open request for a label."""

    instance_id: str
    asked_ms: int
    features: dict[str, Cell]


class Overview:
    """Counts for the start page; any thread may call."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.Lock()
        self._counted_ms, self._by_model = -FRESH_MS, list[OpenRequests]()

    def by_model(self, now: int) -> list[OpenRequests]:
        """Return the open requests of at most 50 models, those whose oldest request waits longest first."""
        with self._turn:
            if now - self._counted_ms >= FRESH_MS:
                self._by_model = self._count()
                self._counted_ms = now
            return self._by_model

    def _count(self) -> list[OpenRequests]:
        with self._store.reading() as db:
            rows = db.execute(
                "SELECT key, count(*), min(asked_ms), min(CASE WHEN expires_ms >= 0 THEN expires_ms END) "
                "FROM request r WHERE r.kind <> 'gold' "
                "AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number) "
                "GROUP BY key ORDER BY 3, 1 LIMIT ?",
                (MODELS_MAX,),
            ).fetchall()
        return [OpenRequests(*row) for row in rows]

    def waiting(self, key: str) -> list[WaitingRecord]:
        """Return the records of at most RECORDS_MAX open requests of a model for labels, newest first."""
        with self._store.reading() as db:
            rows = db.execute(
                "SELECT instance_id, asked_ms, features FROM request r WHERE key = ? AND kind = 'label' "
                "AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number) "
                "ORDER BY asked_ms DESC, number DESC LIMIT ?",
                (key, RECORDS_MAX),
            ).fetchall()
        return [WaitingRecord(name, asked_ms, orjson.loads(features)) for name, asked_ms, features in rows]

    def day_of(self, annotator: str, now: int) -> Day:
        """Return the answers of an annotator since midnight UTC, gold questions and votes included."""
        with self._store.reading() as db:
            row = db.execute(
                "SELECT labels, declined, given FROM day WHERE annotator = ? AND day = ?",
                (annotator, now // DAY_MS),
            ).fetchone()
        return Day(*(row or (0, 0, 0)))


def count_answer(
    db: sqlite3.Connection, annotator: str, kind: str, label: str | None, at_ms: int, times: int = 1
) -> None:
    """Count an answer in its day; times -1: it is taken back.

    Answers themselves do not show it: the votes of a request go when its label is sent.
    """
    is_given = kind == "features"
    counts = (times * (not is_given and label is not None), times * (not is_given and label is None))
    db.execute(
        "INSERT INTO day VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET labels = labels + excluded.labels, "
        "declined = declined + excluded.declined, given = given + excluded.given",
        (annotator, at_ms // DAY_MS, *counts, times * is_given),
    )
