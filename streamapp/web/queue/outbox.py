"""Outbox: answers on their way to the broker, and answers that may or may not have arrived."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue import agreement, intake
from streamapp.web.queue.cards import CORRECTION, EXAMPLE, Kind, Outgoing
from streamapp.web.queue.intake import EARLIER_MS
from streamapp.web.queue.quality import gold_questions
from streamapp.web.store import Store

OUTGOING_MAX: Final = 500
REPEATABLE: Final = (CORRECTION, EXAMPLE)
"""Kinds of answers that may be sent twice: the worker has seen their instance ids then."""


class Outbox:
    """The answers of a store that wait, are being sent, or are in doubt."""

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store, self._terms = store, terms
        self._holds_votes = False

    def hold_votes(self, hold: bool) -> None:
        """Settle no request until its annotators' earlier outcomes are read from the topic, or go on."""
        self._holds_votes = hold and self._terms.by_quality

    def due(self, now: int) -> list[Outgoing]:
        """Return answers whose undo window is over, and mark them as being sent."""
        with self._store.transaction() as db:
            gold_questions.finish(db, now)
            if not self._holds_votes:
                agreement.decide(db, self._terms, now)
            rows = db.execute(
                "SELECT number, partition, key, instance_id, label, annotator, max(answered_ms, asked_ms), "
                "weight, kind, given FROM answer WHERE state = 'waiting' AND due_ms <= ? "
                "ORDER BY due_ms, number LIMIT ?",
                (now, OUTGOING_MAX),
            ).fetchall()
            db.executemany(
                "UPDATE answer SET state = 'sending' WHERE number = ?", [(row[0],) for row in rows]
            )
        return [_outgoing(*row) for row in rows]

    def sent(self, answers: Sequence[Outgoing], now: int) -> None:
        """Note that the broker has these answers."""
        with self._store.transaction() as db:
            for answer in answers:
                if answer.given is None:
                    intake.settle(db, answer.key, answer.instance_id, answer.timestamp, now)
                else:
                    about = (answer.key, answer.instance_id, answer.given, answer.timestamp)
                    intake.remember_given(db, *about, now)
                db.execute(
                    "DELETE FROM request WHERE number = (SELECT request FROM answer WHERE number = ?)",
                    (answer.number,),
                )
                db.execute("UPDATE answer SET state = 'sent' WHERE number = ?", (answer.number,))

    def not_sent(self, answers: Sequence[Outgoing]) -> None:
        """Note that these answers are in doubt: the broker may or may not have them."""
        with self._store.transaction() as db:
            db.executemany(
                "UPDATE answer SET state = 'doubt' WHERE number = ? AND state = 'sending'",
                [(answer.number,) for answer in answers],
            )

    def in_doubt(self) -> list[int]:
        """Return the answers that an earlier client may have sent."""
        with self._store.reading() as db:
            return [number for (number,) in db.execute("SELECT number FROM answer WHERE state = 'doubt'")]

    def caught_up(self, numbers: Sequence[int]) -> None:
        """Decide answers in doubt, after all answers that the topics had are read.

        An answer whose request is still open is sent again. If another sender's answer came, ours is
        overtaken. Corrections are sent again, because a second one is a duplicate.
        """
        with self._store.transaction() as db:
            for number in numbers:
                row = db.execute(
                    "SELECT a.request, a.key, a.instance_id, a.asked_ms, r.wanted, a.kind FROM answer a "
                    "LEFT JOIN request r ON r.number = a.request WHERE a.number = ? AND a.state = 'doubt'",
                    (number,),
                ).fetchone()
                if row is None:
                    continue
                request, key, instance_id, asked_ms, requested, kind = row
                features = orjson.loads(requested or "[]")
                if kind not in REPEATABLE and self._is_closed(db, key, instance_id, asked_ms, features):
                    db.execute("UPDATE answer SET state = 'overtaken' WHERE number = ?", (number,))
                    db.execute("DELETE FROM request WHERE number = ?", (request,))
                else:
                    db.execute("UPDATE answer SET state = 'waiting', due_ms = 0 WHERE number = ?", (number,))

    def _is_closed(
        self, db: sqlite3.Connection, key: str, instance_id: str, asked_ms: int, requested: Sequence[str]
    ) -> bool:
        if requested:
            return not intake.left(db, key, instance_id, requested, asked_ms)
        row = db.execute(
            "SELECT 1 FROM settled WHERE key = ? AND instance_id = ? AND label_ms >= ?",
            (key, instance_id, asked_ms - EARLIER_MS),
        ).fetchone()
        return row is not None


def _outgoing(
    number: int,
    partition: int,
    key: str,
    instance_id: str,
    label: str | None,
    annotator: str,
    timestamp: int,
    weight: float,
    kind: Kind,
    given: str | None,
) -> Outgoing:
    """Return an answer from its row; `given` has the values that were requested, or an example's features."""
    answer = Outgoing(number, partition, key, instance_id, label, annotator, timestamp, weight, None, kind)
    if given is None:
        return answer
    if kind == EXAMPLE:
        return replace(answer, cells=orjson.loads(given))
    return replace(answer, given=intake.read_given(given))
