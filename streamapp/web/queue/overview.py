"""Overview: open requests by model with their records, and the answers of an annotator since a time."""

from __future__ import annotations

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
        """Return the answers and votes of an annotator since midnight UTC."""
        words = {"annotator": annotator, "midnight": now - now % DAY_MS}
        with self._store.reading() as db:
            rows = db.execute(
                "SELECT kind, label IS NULL, count(*) FROM answer "
                "WHERE annotator = :annotator AND answered_ms >= :midnight GROUP BY 1, 2 "
                "UNION ALL SELECT 'label', label IS NULL, count(*) FROM vote "
                "WHERE annotator = :annotator AND answered_ms >= :midnight GROUP BY 1, 2",
                words,
            ).fetchall()
        labels = sum(n for kind, declined, n in rows if kind != "features" and not declined)
        declines = sum(n for kind, declined, n in rows if kind != "features" and declined)
        return Day(labels, declines, sum(n for kind, _, n in rows if kind == "features"))
