"""Annotator actions: annotators answer, skip and confirm leased requests, and take their last answer back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from streamapp.web import audit_log
from streamapp.web.annotation_terms import Terms
from streamapp.web.queue import intake
from streamapp.web.queue.answer_checks import check_given, check_words, is_name
from streamapp.web.queue.cards import Card, Given, Refused
from streamapp.web.queue.closed_classes import refusal
from streamapp.web.queue.leases import Leases
from streamapp.web.queue.overview import count_answer
from streamapp.web.store import Store
from topics.columns.records import AuditEntry


class _Asked(NamedTuple):
    """A request that an annotator answers."""

    number: int
    kind: str
    key: str
    instance_id: str
    request_id: str
    partition: int
    asked_ms: int
    needed: int
    gold: str | None  # the settled class, if the request is a gold question

    @property
    def is_gold(self) -> bool:
        """Whether the request is a gold question, whose answer is not sent."""
        return self.kind == "gold"


class _Words(NamedTuple):
    """Members of an answer beside its class; the names are those of `AuditEntry`."""

    seconds: float | None = None
    reason: str | None = None
    comment: str | None = None


class AnnotatorActions:
    """The actions of annotators on requests."""

    def __init__(self, store: Store, terms: Terms, leases: Leases) -> None:
        self._store, self._terms, self._leases = store, terms, leases

    def answer(
        self,
        annotator: str,
        number: int,
        label: str | None,
        now: int,
        *,
        new_class: bool = False,
        shown_ms: int | None = None,
        reason: str | None = None,
        comment: str | None = None,
    ) -> None:
        """Take an answer, None for declined; it is sent when its undo window is over.

        `shown_ms`: the time at which the annotator saw the card, if it is known; `reason`: why they declined.

        Refused if the request no longer exists, is answered, leased to another annotator or expired, or if
        the class is unknown (and `new_class` is not set).
        """
        with self._store.transaction() as db:
            asked = self._asked(db, annotator, number, now)
            if asked.kind == "features":
                message = "This card needs features, not a class."
                raise Refused(message)
            if label is not None:
                self._check_class(db, asked.key, label, new_class=new_class)
            check_words(self._terms, label, reason, comment)
            seconds = None if shown_ms is None else max(0, now - shown_ms) / 1000
            words = _Words(seconds, None if label is not None else reason, comment)
            self._take_label(db, asked, annotator, label, now, words)

    def settled_class(self, number: int) -> str | None:
        """Return the class of a gold question, if annotators get to read it after their answer."""
        if not self._terms.gold_feedback:
            return None
        with self._store.reading() as db:
            row = db.execute("SELECT gold FROM request WHERE number = ?", (number,)).fetchone()
        return None if row is None else row[0]

    def give(self, annotator: str, number: int, answer: Given, now: int) -> None:
        """Take the values of requested features; they are sent when their undo window is over.

        Refused for the reasons of `answer`, and if a feature is missing, was not requested, or cannot have
        such a value.
        """
        with self._store.transaction() as db:
            asked = self._asked(db, annotator, number, now)
            if asked.kind != "features":
                message = "This card needs a class, not features."
                raise Refused(message)
            (requested,) = db.execute("SELECT wanted FROM request WHERE number = ?", (number,)).fetchone()
            names = intake.left(db, asked.key, asked.instance_id, orjson.loads(requested), asked.asked_ms)
            check_given(answer, names, intake.attributes_of(db, asked.key, names), self._terms.text_max)
            self._insert(db, asked, annotator, now, None, intake.written_given(answer))
            self._note(db, annotator, "features", now, number, intake.written_given(answer))

    def confirm(self, annotator: str, right: Sequence[int], others: Sequence[int], now: int) -> list[str]:
        """Answer requests with the predicted class, and return others to the queue; return the refusals."""
        refused = []
        with self._store.transaction() as db:
            for number in right:
                try:
                    asked = self._asked(db, annotator, number, now)
                    (label,) = db.execute(
                        "SELECT prediction FROM request WHERE number = ?", (number,)
                    ).fetchone()
                    self._check_let_in(db, asked.key, label)
                    self._take_label(db, asked, annotator, label, now)
                except Refused as reason:
                    refused.append(str(reason))
            db.executemany(
                "DELETE FROM lease WHERE request = ? AND annotator = ?",
                [(number, annotator) for number in others],
            )
        return refused

    def skip(self, annotator: str, number: int, now: int) -> None:
        """Return a card to the queue unanswered."""
        with self._store.transaction() as db:
            row = db.execute("SELECT kind FROM request WHERE number = ?", (number,)).fetchone()
            if row is None:
                return
            db.execute("DELETE FROM lease WHERE request = ? AND annotator = ?", (number, annotator))
            self._note(db, annotator, "skip", now, number)
            if row == ("gold",):  # it is the annotator's alone, and comes again in its turn
                db.execute("DELETE FROM request WHERE number = ?", (number,))
            else:
                db.execute("INSERT OR REPLACE INTO skip VALUES (?, ?, ?)", (number, annotator, now))

    def undo(self, annotator: str, now: int) -> Card:
        """Take back the annotator's last answer, and lease its request again; Refused if it is on its way.

        If several requests were confirmed together, all their answers are taken back, and one request is
        leased.
        """
        with self._store.transaction() as db:
            rows = db.execute(
                "SELECT request, answered_ms, kind, label FROM answer "
                "WHERE annotator = :who AND state = 'waiting' "
                "AND due_ms > :now AND NOT EXISTS (SELECT 1 FROM vote v WHERE v.request = answer.request) "
                "UNION ALL SELECT request, answered_ms, 'label', label FROM vote "
                "WHERE annotator = :who AND due_ms > :now ORDER BY 2 DESC, 1 DESC",
                {"who": annotator, "now": now},
            ).fetchall()
            together = [row for row in rows if row[1] == rows[0][1]]
            if not together:
                message = "There is nothing to undo: your last answer has been sent."
                raise Refused(message)
            for request, answered_ms, kind, label in together:
                count_answer(db, annotator, kind, label, answered_ms, -1)
                db.execute("DELETE FROM answer WHERE request = ?", (request,))
                db.execute("DELETE FROM vote WHERE request = ? AND annotator = ?", (request, annotator))
                self._note(db, annotator, "undo", now, request)
            last_request = together[0][0]
            self._leases.lease(db, last_request, annotator, now)
            return self._leases.card(db, last_request)

    def undoable_ms(self, annotator: str, now: int) -> int:
        """Return for how many ms the annotator's last answer can still be taken back; 0: not at all."""
        with self._store.reading() as db:
            (answer,) = db.execute(
                "SELECT max(due_ms) FROM answer WHERE annotator = ? AND state = 'waiting' "
                "AND NOT EXISTS (SELECT 1 FROM vote v WHERE v.request = answer.request)",
                (annotator,),
            ).fetchone()
            (vote,) = db.execute("SELECT max(due_ms) FROM vote WHERE annotator = ?", (annotator,)).fetchone()
        return max(0, max(answer or 0, vote or 0) - now)

    def _take_label(
        self,
        db: sqlite3.Connection,
        asked: _Asked,
        annotator: str,
        label: str | None,
        now: int,
        words: _Words | None = None,
    ) -> None:
        if asked.is_gold or (asked.needed == 1 and not self._terms.by_quality):
            self._insert(db, asked, annotator, now, label, None)
        else:
            due_ms = now + self._terms.undo_ms
            db.execute(
                "INSERT INTO vote VALUES (?, ?, ?, ?, ?)", (asked.number, annotator, label, now, due_ms)
            )
            db.execute("DELETE FROM lease WHERE request = ?", (asked.number,))
            count_answer(db, annotator, "label", label, now)
        action = "decline" if label is None else "label"
        entry = AuditEntry("", annotator, action, now, asked.key, asked.instance_id, asked.request_id)
        words = words or _Words()
        audit_log.note(db, replace(entry, detail=label, label=label, gold=asked.gold, **words._asdict()))

    def _asked(self, db: sqlite3.Connection, annotator: str, number: int, now: int) -> _Asked:
        """Return the request that the annotator may answer; Refused."""
        if reason := self._leases.paused(annotator):
            raise Refused(reason)
        row = db.execute(
            "SELECT r.number, r.kind, r.key, r.instance_id, r.request_id, r.partition, r.asked_ms, r.needed, "
            "r.gold, r.expires_ms, l.annotator, l.until_ms, "
            "(SELECT a.annotator FROM answer a WHERE a.request = r.number), "
            "(SELECT v.annotator FROM vote v WHERE v.request = r.number AND v.annotator = ?) "
            "FROM request r LEFT JOIN lease l ON l.request = r.number "
            "WHERE r.number = ? AND (r.gold_for IS NULL OR r.gold_for = ?)",
            (annotator, number, annotator),
        ).fetchone()
        if row is None:
            message = "This request is closed: its answer came from elsewhere, or its time is over."
            raise Refused(message)
        *members, expires_ms, holder, until_ms, answered_by, voted = row
        asked = _Asked(*members)
        if answered_by is not None or voted is not None:
            message = f"{voted or answered_by} has answered this request already."
            raise Refused(message)
        if holder not in (None, annotator) and until_ms > now:
            message = f"Your time for this card was over, and {holder} has it now."
            raise Refused(message)
        if self._leases.has_expired(db, asked.partition, expires_ms, now):
            message = "This request has expired: the model would not learn the answer any more."
            raise Refused(message)
        return asked

    def _insert(
        self,
        db: sqlite3.Connection,
        asked: _Asked,
        annotator: str,
        now: int,
        label: str | None,
        values: str | None,
    ) -> None:
        # An annotator who reads the right class must not answer once more.
        undo_ms = 0 if asked.is_gold and self._terms.gold_feedback else self._terms.undo_ms
        db.execute(
            "INSERT INTO answer (request, kind, key, instance_id, partition, asked_ms, annotator, label, "
            "given, weight, answered_ms, due_ms, state) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1.0, ?, ?, 'waiting')",
            (
                *(asked.number, asked.kind, asked.key, asked.instance_id, asked.partition, asked.asked_ms),
                *(annotator, label, values, now, now + undo_ms),
            ),
        )
        count_answer(db, annotator, asked.kind, label, now)
        db.execute("DELETE FROM lease WHERE request = ?", (asked.number,))

    def _note(
        self,
        db: sqlite3.Connection,
        user: str,
        action: str,
        now: int,
        number: int,
        detail: str | None = None,
    ) -> None:
        key, instance_id, request_id = db.execute(
            "SELECT key, instance_id, request_id FROM request WHERE number = ?", (number,)
        ).fetchone()
        audit_log.note(db, AuditEntry("", user, action, now, key, instance_id, request_id, detail))

    def _check_class(self, db: sqlite3.Connection, key: str, label: str, *, new_class: bool) -> None:
        if not is_name(label, self._terms.text_max):
            message = f"A class must have 1 to {self._terms.text_max:,} bytes, all of them printable."
            raise Refused(message)
        self._check_let_in(db, key, label)
        if db.execute("SELECT 1 FROM class WHERE key = ? AND name = ?", (key, label)).fetchone():
            return
        if not new_class:
            message = f"This model has no class {label!r}; give it as a new class if it is one."
            raise Refused(message)
        db.execute("INSERT INTO class VALUES (?, ?, NULL)", (key, label))

    def _check_let_in(self, db: sqlite3.Connection, key: str, label: str) -> None:
        """Refuse a class that the schema of a model does not allow: its label would be a dead letter."""
        classes = intake.lets_in_of(db, key)
        if classes is not None and label not in classes:
            raise Refused(refusal(label, classes))
