"""Label queue: open requests, leases, answers and their undo window. No clock, no broker, no page.

A request is open from the moment it was read until its answer is known. The answer is ours, when the
broker has it, or another sender's on the topic. For each request at most one answer of ours is on its way.

    open ── answer ──▶ waiting ── undo window over ──▶ sending ── broker has it ──▶ sent
      ▲                  │  └─ answer of another sender ─▶ overtaken  │
      └───── undo ───────┘                          process died ──▶ doubt ──▶ sent, or sending again

After a restart, an answer in doubt waits until all earlier answers on the topic are read; if it is among
them, it was sent. If several annotators have to agree (`Terms.agree`), their answers are votes, and the
answer is made of the votes (`agreement.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Final, NamedTuple

import orjson

from streamapp.web import audit_log
from streamapp.web.queue import expiry, intake
from streamapp.web.queue.answer_checks import check_given, is_name
from streamapp.web.queue.cards import Attribute, Card, Counts, Given, Label, Refused, Request, Values
from streamapp.web.queue.closed_classes import ClassControl, refusal
from streamapp.web.queue.outbox import Outbox, Terms
from streamapp.web.store import Store

LOOKED_AT: Final = 2000  # requests that are searched for those with the same prediction

ONE, SEVERAL, AHEAD = 0, 1, 2
"""Kinds of leases: the card on display, the sure requests on display, and the card that comes next."""

_OPEN: Final = """
FROM request r LEFT JOIN lease l ON l.request = r.number
  LEFT JOIN skip s ON s.request = r.number AND s.annotator = :annotator
WHERE NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number)
  AND (r.needed = 1 OR (
    NOT EXISTS (SELECT 1 FROM vote v WHERE v.request = r.number AND v.annotator = :annotator)
    AND (SELECT count(*) FROM vote v WHERE v.request = r.number) < r.needed))
"""
_FREE: Final = "AND (l.request IS NULL OR l.until_ms <= :now)"
_BY_UTILITY: Final = "ORDER BY ifnull(r.utility, -9e999) DESC, r.asked_ms, r.number"
_CHOICES: Final = (
    f"{_FREE} AND s.request IS NULL {_BY_UTILITY}",
    f"{_FREE} AND s.request IS NOT NULL ORDER BY s.skipped_ms, r.number",
    f"AND l.several = {AHEAD} AND l.annotator <> :annotator {_BY_UTILITY}",
)
"""Filters of requests, tried in this order; the last one takes a card that another annotator leased ahead."""


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


class Turn(NamedTuple):
    """The result of an action, and the annotator's state after it."""

    refused: str  # why the action was refused; "": it was carried out
    card: Card | None  # the card on display
    ahead: Card | None  # the card after it, unless an annotator without a card takes it
    undoable_ms: int


class LabelQueue(Outbox):
    """Requests, leases and answers; every change is one transaction of the store.

    `now` is the time in ms since the epoch. One process has the store; any thread may call.
    """

    def __init__(self, store: Store, terms: Terms | None = None) -> None:
        """Open the queue; answers that an earlier process was sending are in doubt."""
        super().__init__(store, terms or Terms())
        with store.transaction() as db:
            db.execute("UPDATE answer SET state = 'doubt' WHERE state = 'sending'")
            db.execute(
                "UPDATE request SET needed = ? WHERE kind = 'label' AND needed <> ?", (self.terms.agree,) * 2
            )

    # -- from the topics ---------------------------------------------------------------------------------

    def positions(self, topic: str) -> dict[int, int]:
        """Return partition → offset of the next record to read, for the partitions that were read before."""
        with self._store.reading() as db:
            return dict(db.execute("SELECT partition, next FROM position WHERE topic = ?", (topic,)))

    def begin(self, origin: Mapping[str, str]) -> bool:
        """Store the identities of the topics; return True if they have changed and the queue was emptied.

        A topic that did not exist before does not make the rest other topics.
        """
        with self._store.transaction() as db:
            before = dict(db.execute("SELECT name, value FROM origin"))
            if before == dict(origin):
                return False
            others = any(origin.get(name) != value for name, value in before.items())
            if others:
                intake.forget(db)
            db.executemany("INSERT OR REPLACE INTO origin VALUES (?, ?)", list(origin.items()))
            return others

    def apply(
        self,
        requests: Sequence[Request],
        labels: Sequence[Label],
        positions: Mapping[tuple[str, int], int],
        now: int,
        classes: Sequence[tuple[str, str]] = (),
        values: Sequence[Values] = (),
        attributes: Sequence[Attribute] = (),
        controls: Sequence[ClassControl] = (),
    ) -> None:
        """Store what was read, with the next offsets.

        The order in which records come makes no difference, except for the controls of one key. `classes`:
        model key and class name.
        """
        with self._store.transaction(durable=False) as db:  # not durable: the topics have the records
            intake.take_labels(db, labels, now)
            intake.take_values(db, values, now)
            intake.open_requests(db, requests, self.terms.agree)
            intake.widen_ranges(db, requests)
            names = {(label.key, label.label) for label in labels if label.label is not None}
            intake.take_answered(db, requests)
            intake.take_class_controls(db, controls)
            intake.take_names(db, {*names, *classes}, attributes)
            intake.next_offsets(db, positions)

    def tidy(self, now: int) -> None:
        """Delete what has expired, the requests above the limit, and entries that are too old to matter."""
        with self._store.transaction() as db:
            expiry.tidy(db, self.terms, now)

    # -- actions of people -------------------------------------------------------------------------------

    def act(self, annotator: str, action: Callable[[], Card | None], now: int) -> Turn:
        """Carry out an action and lease the next card in one transaction, with one wait for the disk."""
        refused, card = "", None
        with self._store.transaction():
            try:
                card = action()
            except Refused as reason:
                refused = str(reason)
            card = card or self.next_card(annotator, now)
            return Turn(refused, card, self.card_ahead(annotator, now), self.undoable_ms(annotator, now))

    def next_card(self, annotator: str, now: int) -> Card | None:
        """Lease the most useful request that is free, or return the card that the annotator has already.

        This is the card on display, or the card that was leased ahead. Skipped cards come again when no
        other request is left; requests that are leased ahead to another annotator come last.
        """
        with self._store.transaction(durable=False) as db:
            number = self._held(db, annotator, now, ONE)
            if number is None:
                number = self._held(db, annotator, now, AHEAD)
            if number is None:
                number = self._best(db, annotator, now, _CHOICES)
            if number is None:
                return None
            self._lease(db, number, annotator, now)
            return self._card(db, number)

    def card_ahead(self, annotator: str, now: int) -> Card | None:
        """Lease the card that comes after the displayed card, so that a page need not wait for it."""
        with self._store.transaction(durable=False) as db:
            if self._held(db, annotator, now, ONE) is None:
                return None
            number = self._held(db, annotator, now, AHEAD)
            if number is None:
                number = self._best(db, annotator, now, _CHOICES[:1])
            if number is None:
                return None
            self._lease(db, number, annotator, now, AHEAD)
            return self._card(db, number)

    def _held(self, db: sqlite3.Connection, annotator: str, now: int, kind: int) -> int | None:
        """Return the request that the annotator leases; a card leased ahead must not have expired."""
        row = db.execute(
            "SELECT r.number, r.partition, r.expires_ms FROM lease l JOIN request r ON r.number = l.request "
            "WHERE l.annotator = ? AND l.until_ms > ? AND l.several = ?",
            (annotator, now, kind),
        ).fetchone()
        if row is None or (kind == AHEAD and self._expired(db, row[1], row[2], now)):
            return None
        return int(row[0])

    def _best(self, db: sqlite3.Connection, annotator: str, now: int, choices: Sequence[str]) -> int | None:
        words = {"annotator": annotator, "now": now}
        for choice in choices:
            rows = db.execute(f"SELECT r.number, r.partition, r.expires_ms {_OPEN} {choice}", words)
            for number, partition, expires_ms in rows:
                if not self._expired(db, partition, expires_ms, now):
                    rows.close()
                    return int(number)
        return None

    def sure(self, annotator: str, now: int, most: int) -> list[Card]:
        """Lease requests of one model that have the same confident prediction, the surest first.

        Earlier leases of this kind are returned. `confirm` answers the cards.
        """
        with self._store.transaction() as db:
            db.execute("DELETE FROM lease WHERE annotator = ? AND several = ?", (annotator, SEVERAL))
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
                    "ahead": AHEAD,
                    "limit": self.terms.sure_utility,
                    "looked_at": LOOKED_AT,
                },
            ).fetchall()
            alike: list[int] = []
            like: tuple[str, str] | None = None
            for number, partition, expires_ms, *of in rows:
                if self._expired(db, partition, expires_ms, now) or like not in (None, tuple(of)):
                    continue
                like = (of[0], of[1])
                alike.append(number)
                if len(alike) == most:
                    break
            until = now + self.terms.lease_ms
            db.executemany(
                "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?)",
                [(number, annotator, until, SEVERAL) for number in alike],
            )
            return [self._card(db, number) for number in alike]

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

    def _expired(self, db: sqlite3.Connection, partition: int, expires_ms: int, now: int) -> bool:
        return expiry.has_expired(db, self.terms, partition, expires_ms, now)

    def _lease(self, db: sqlite3.Connection, number: int, annotator: str, now: int, kind: int = ONE) -> None:
        """Lease a request to an annotator; an earlier lease of the same kind ends."""
        db.execute("DELETE FROM lease WHERE annotator = ? AND several = ?", (annotator, kind))
        until = now + self.terms.lease_ms
        db.execute("INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?)", (number, annotator, until, kind))

    def _card(self, db: sqlite3.Connection, number: int) -> Card:
        row = db.execute(
            "SELECT number, key, instance_id, asked_ms, expires_ms, utility, prediction, strategy, features, "
            "left_out, cost, rules, shares, wanted, seen FROM request WHERE number = ?",
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

    def looked_at(self, annotator: str, number: int | None, now: int) -> tuple[bool, int]:
        """Return whether the annotator still has a request, and the ms left to undo the last answer."""
        return number is not None and self.holds(annotator, number), self.undoable_ms(annotator, now)

    def holds(self, annotator: str, number: int) -> bool:
        """Whether the annotator still has an unanswered request; pages check this when they are redrawn."""
        with self._store.reading() as db:
            row = db.execute(
                "SELECT 1 FROM lease l WHERE l.annotator = ? AND l.request = ? "
                "AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = l.request)",
                (annotator, number),
            ).fetchone()
        return row is not None

    def answer(
        self, annotator: str, number: int, label: str | None, now: int, *, new_class: bool = False
    ) -> None:
        """Take an answer, None for declined; it is sent when its undo window is over.

        Refused if the request no longer exists, is answered, leased to another annotator or expired, or if
        the class is unknown (and `new_class` is not set).
        """
        with self._store.transaction() as db:
            asked = self._asked(db, annotator, number, now)
            if asked.kind != "label":
                message = "This card needs features, not a class."
                raise Refused(message)
            if label is not None:
                self._check_class(db, asked.key, label, new_class=new_class)
            self._take_label(db, asked, annotator, label, now)

    def _take_label(
        self, db: sqlite3.Connection, asked: _Asked, annotator: str, label: str | None, now: int
    ) -> None:
        if asked.needed == 1:
            self._insert(db, asked, annotator, now, label, None)
        else:
            due_ms = now + self.terms.undo_ms
            db.execute(
                "INSERT INTO vote VALUES (?, ?, ?, ?, ?)", (asked.number, annotator, label, now, due_ms)
            )
            db.execute("DELETE FROM lease WHERE request = ?", (asked.number,))
        self._note(db, annotator, "decline" if label is None else "label", now, asked.number, label)

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
            check_given(answer, names, intake.attributes_of(db, asked.key, names), self.terms.text_max)
            self._insert(db, asked, annotator, now, None, intake.written_given(answer))
            self._note(db, annotator, "features", now, number, intake.written_given(answer))

    def _asked(self, db: sqlite3.Connection, annotator: str, number: int, now: int) -> _Asked:
        """Return the request that the annotator may answer; Refused."""
        row = db.execute(
            "SELECT r.number, r.kind, r.key, r.instance_id, r.request_id, r.partition, r.asked_ms, r.needed, "
            "r.expires_ms, l.annotator, l.until_ms, "
            "(SELECT a.annotator FROM answer a WHERE a.request = r.number), "
            "(SELECT v.annotator FROM vote v WHERE v.request = r.number AND v.annotator = ?) "
            "FROM request r LEFT JOIN lease l ON l.request = r.number WHERE r.number = ?",
            (annotator, number),
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
        if self._expired(db, asked.partition, expires_ms, now):
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
        db.execute(
            "INSERT INTO answer (request, kind, key, instance_id, partition, asked_ms, annotator, label, "
            "given, weight, answered_ms, due_ms, state) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1.0, ?, ?, 'waiting')",
            (
                *(asked.number, asked.kind, asked.key, asked.instance_id, asked.partition, asked.asked_ms),
                *(annotator, label, values, now, now + self.terms.undo_ms),
            ),
        )
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
        about = {"key": key, "instance_id": instance_id, "request_id": request_id}
        audit_log.note(db, user, action, now, **about, detail=detail)

    def _check_class(self, db: sqlite3.Connection, key: str, label: str, *, new_class: bool) -> None:
        if not is_name(label, self.terms.text_max):
            message = f"A class must have 1 to {self.terms.text_max:,} bytes, all of them printable."
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

    def skip(self, annotator: str, number: int, now: int) -> None:
        """Return a card to the queue unanswered."""
        with self._store.transaction() as db:
            if not db.execute("SELECT 1 FROM request WHERE number = ?", (number,)).fetchone():
                return
            db.execute("DELETE FROM lease WHERE request = ? AND annotator = ?", (number, annotator))
            db.execute("INSERT OR REPLACE INTO skip VALUES (?, ?, ?)", (number, annotator, now))
            self._note(db, annotator, "skip", now, number)

    def undo(self, annotator: str, now: int) -> Card:
        """Take back the annotator's last answer, and lease its request again; Refused if it is on its way.

        If several requests were confirmed together, all their answers are taken back, and one request is
        leased.
        """
        with self._store.transaction() as db:
            rows = db.execute(
                "SELECT request, answered_ms FROM answer WHERE annotator = :who AND state = 'waiting' "
                "AND due_ms > :now UNION ALL SELECT request, answered_ms FROM vote "
                "WHERE annotator = :who AND due_ms > :now ORDER BY 2 DESC, 1 DESC",
                {"who": annotator, "now": now},
            ).fetchall()
            together = [request for request, answered_ms in rows if answered_ms == rows[0][1]]
            if not together:
                message = "There is nothing to undo: your last answer has been sent."
                raise Refused(message)
            for request in together:
                db.execute("DELETE FROM answer WHERE request = ?", (request,))
                db.execute("DELETE FROM vote WHERE request = ? AND annotator = ?", (request, annotator))
                self._note(db, annotator, "undo", now, request)
            self._lease(db, together[0], annotator, now)
            return self._card(db, together[0])

    def undoable_ms(self, annotator: str, now: int) -> int:
        """Return for how many ms the annotator's last answer can still be taken back; 0: not at all."""
        with self._store.reading() as db:
            (answer,) = db.execute(
                "SELECT max(due_ms) FROM answer WHERE annotator = ? AND state = 'waiting'", (annotator,)
            ).fetchone()
            (vote,) = db.execute("SELECT max(due_ms) FROM vote WHERE annotator = ?", (annotator,)).fetchone()
        return max(0, max(answer or 0, vote or 0) - now)

    def counts(self, now: int) -> Counts:
        with self._store.reading() as db:
            tally = dict(db.execute("SELECT name, n FROM tally"))
            (leased,) = db.execute(
                "SELECT count(*) FROM lease WHERE until_ms > ? AND several <> ?", (now, AHEAD)
            ).fetchone()
            (dropped,) = db.execute("SELECT sum(next) FROM position WHERE topic = 'dropped'").fetchone()
            (answered,) = db.execute("SELECT count(*) FROM answer WHERE request IS NOT NULL").fetchone()
        under_way = sum(tally[state] for state in ("waiting", "sending", "doubt"))
        return Counts(
            tally["request"] - answered,
            leased,
            under_way,
            tally["sent"],
            tally["overtaken"],
            dropped or 0,
        )
