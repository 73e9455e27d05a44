"""Leases: the requests that annotators have on display, or have as their next card."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Final

import orjson

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue import expiry, intake
from streamapp.web.queue.cards import Card
from streamapp.web.queue.quality import gold_questions
from streamapp.web.store import Store

LOOKED_AT: Final = 2000  # requests that are searched for those with the same prediction

ONE, SEVERAL, AHEAD = 0, 1, 2
"""Kinds of leases: the card on display, the sure requests on display, and the card that comes next."""

_OPEN: Final = """
FROM request r LEFT JOIN lease l ON l.request = r.number
  LEFT JOIN skip s ON s.request = r.number AND s.annotator = :annotator
WHERE r.kind <> 'gold' AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number)
  AND ((r.needed = 1 AND :direct) OR (
    NOT EXISTS (SELECT 1 FROM vote v WHERE v.request = r.number AND v.annotator = :annotator)
    AND (SELECT count(*) FROM vote v WHERE v.request = r.number) < r.needed))
  AND (:models IS NULL OR r.key IN (SELECT value FROM json_each(:models)))
"""
_FREE: Final = "AND (l.request IS NULL OR l.until_ms <= :now)"
_BY_UTILITY: Final = "ORDER BY ifnull(r.utility, -9e999) DESC, r.asked_ms, r.number"
_CHOICES: Final = (
    f"{_FREE} AND s.request IS NULL {_BY_UTILITY}",
    f"{_FREE} AND s.request IS NOT NULL ORDER BY s.skipped_ms, r.number",
    f"AND l.several = {AHEAD} AND l.annotator <> :annotator {_BY_UTILITY}",
)
"""Filters of requests, tried in this order; the last one takes a card that another annotator leased ahead."""


class Leases:
    """Leases requests to annotators, the most useful first."""

    def __init__(self, store: Store, terms: Terms, paused: Callable[[str], str] = lambda _: "") -> None:
        """paused: why an annotator gets no cards for now; "": they get cards."""
        self._store, self._terms, self.paused = store, terms, paused
        self._models = orjson.dumps(terms.models).decode() if terms.models else None

    def next_card(self, annotator: str, now: int) -> Card | None:
        """Lease the most useful request that is free, or return the card that the annotator has already.

        This is the card on display, or the card that was leased ahead. Skipped cards come again when no
        other request is left; requests that are leased ahead to another annotator come last.
        """
        with self._store.transaction(durable=False) as db:
            if self.paused(annotator):
                db.execute("DELETE FROM lease WHERE annotator = ?", (annotator,))
                return None
            number = self._held(db, annotator, now, ONE)
            if number is None:
                number = self._held(db, annotator, now, AHEAD)
            if number is None:
                number = self._dealt(db, annotator, now, _CHOICES)
            if number is None:
                return None
            self.lease(db, number, annotator, now)
            return self.card(db, number)

    def card_ahead(self, annotator: str, now: int) -> Card | None:
        """Lease the card that comes after the displayed card, so that a page need not wait for it."""
        with self._store.transaction(durable=False) as db:
            if self._held(db, annotator, now, ONE) is None:
                return None
            number = self._held(db, annotator, now, AHEAD)
            if number is None:
                number = self._dealt(db, annotator, now, _CHOICES[:1])
            if number is None:
                return None
            self.lease(db, number, annotator, now, AHEAD)
            return self.card(db, number)

    def sure(self, annotator: str, now: int, most: int) -> list[Card]:
        """Lease requests of one model that have the same confident prediction, the surest first.

        Earlier leases of this kind are returned. `confirm` answers the cards.
        """
        with self._store.transaction() as db:
            db.execute("DELETE FROM lease WHERE annotator = ? AND several = ?", (annotator, SEVERAL))
            if self.paused(annotator):
                return []
            rows = db.execute(
                f"SELECT r.number, r.partition, r.expires_ms, r.key, r.prediction {_OPEN} "
                "AND (l.request IS NULL OR l.until_ms <= :now "
                "OR (l.annotator = :annotator AND l.several = :ahead)) "
                "AND r.kind = 'label' AND r.prediction IS NOT NULL AND s.request IS NULL "
                "AND ifnull(r.utility, -9e999) BETWEEN -1e308 AND :limit "
                "ORDER BY ifnull(r.utility, -9e999), r.asked_ms DESC, r.number DESC LIMIT :looked_at",
                {
                    "annotator": annotator,
                    "now": now,
                    "models": self._models,
                    "direct": not self._terms.by_quality,
                    "ahead": AHEAD,
                    "limit": self._terms.sure_utility,
                    "looked_at": LOOKED_AT,
                },
            ).fetchall()
            alike: list[int] = []
            like: tuple[str, str] | None = None
            for number, partition, expires_ms, *of in rows:
                if self.has_expired(db, partition, expires_ms, now) or like not in (None, tuple(of)):
                    continue
                like = (of[0], of[1])
                alike.append(number)
                if len(alike) == most:
                    break
            until = now + self._terms.lease_ms
            db.executemany(
                "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?)",
                [(number, annotator, until, SEVERAL) for number in alike],
            )
            return [self.card(db, number) for number in alike]

    def holds(self, annotator: str, number: int) -> bool:
        """Whether the annotator still has an unanswered request; pages check this when they are redrawn."""
        if self.paused(annotator):
            return False
        with self._store.reading() as db:
            row = db.execute(
                "SELECT 1 FROM lease l WHERE l.annotator = ? AND l.request = ? "
                "AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = l.request)",
                (annotator, number),
            ).fetchone()
        return row is not None

    def _held(self, db: sqlite3.Connection, annotator: str, now: int, kind: int) -> int | None:
        """Return the request that the annotator leases; a card leased ahead must not have expired."""
        row = db.execute(
            "SELECT r.number, r.partition, r.expires_ms FROM lease l JOIN request r ON r.number = l.request "
            "WHERE l.annotator = ? AND l.until_ms > ? AND l.several = ?",
            (annotator, now, kind),
        ).fetchone()
        if row is None or (kind == AHEAD and self.has_expired(db, row[1], row[2], now)):
            return None
        return int(row[0])

    def _dealt(self, db: sqlite3.Connection, annotator: str, now: int, choices: Sequence[str]) -> int | None:
        """Return the best request, or a gold question in its place."""
        number = self._best(db, annotator, now, choices)
        if number is None:
            return None
        return gold_questions.deal(db, self._terms.gold_share, annotator, number)

    def _best(self, db: sqlite3.Connection, annotator: str, now: int, choices: Sequence[str]) -> int | None:
        words = {
            "annotator": annotator,
            "now": now,
            "models": self._models,
            "direct": not self._terms.by_quality,
        }
        for choice in choices:
            rows = db.execute(f"SELECT r.number, r.partition, r.expires_ms {_OPEN} {choice}", words)
            for number, partition, expires_ms in rows:
                if not self.has_expired(db, partition, expires_ms, now):
                    rows.close()
                    return int(number)
        return None

    def has_expired(self, db: sqlite3.Connection, partition: int, expires_ms: int, now: int) -> bool:
        """Return whether the time of a request is over, by the clock of its partition."""
        return expiry.has_expired(db, self._terms, partition, expires_ms, now)

    def lease(self, db: sqlite3.Connection, number: int, annotator: str, now: int, kind: int = ONE) -> None:
        """Lease a request to an annotator; an earlier lease of the same kind ends."""
        db.execute("DELETE FROM lease WHERE annotator = ? AND several = ?", (annotator, kind))
        until = now + self._terms.lease_ms
        db.execute("INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?)", (number, annotator, until, kind))

    def card(self, db: sqlite3.Connection, number: int) -> Card:
        """Return what a page shows of a request."""
        row = db.execute(
            "SELECT number, key, instance_id, asked_ms, expires_ms, utility, prediction, strategy, reason, "
            "features, left_out, cost, rules, shares, wanted, seen FROM request WHERE number = ?",
            (number,),
        ).fetchone()
        members = dict(zip((field.name for field in fields(Card)), row, strict=False))
        key, features, requested = members["key"], orjson.loads(members["features"]), orjson.loads(row[-2])
        classes = intake.lets_in_of(db, key)
        if classes is None:
            rows = db.execute("SELECT name FROM class WHERE key = ? ORDER BY name", (key,))
            classes = tuple(name for (name,) in rows)
        members |= {
            "features": features,
            "shares": orjson.loads(members["shares"]),
            "wanted": intake.left(db, key, members["instance_id"], requested, members["asked_ms"]),
            "classes": tuple(sorted(classes)),
            "attributes": intake.attributes_of(db, key, [*features, *requested]),
            "ranges": intake.ranges_of(db, key, [*features, *requested]),
            "seen": intake.read_ranges(row[-1]),
        }
        return Card(**members)
