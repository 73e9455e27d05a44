"""Label queue: open requests, leases, answers and their undo window. No clock, no broker, no page.

A request is open from the moment it was read until a label for it is known: its own answer when the broker
has it, or anybody's label on the topic. Of each there is at most one answer that is on its way.

    open ── answer ──▶ waiting ── undo window over ──▶ sending ── broker has it ──▶ sent
      ▲                  │  └── somebody else's label ──▶ overtaken   │
      └───── undo ───────┘                         process died ──▶ doubt ──▶ sent, or sending again

After a restart an answer in doubt waits until the labels of before are read: if it is among them it was sent.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from streamapp.web.cards import Card, Counts, Label, Outgoing, Refused, Request
from streamapp.web.store import Store

NEVER: Final = -1
KEEP_MS: Final = 14 * 24 * 3600 * 1000
"""How long answers and settled instances are remembered: twice what the topics keep."""
EARLIER_MS: Final = 60_000
"""A label may bear a time so long before its request and be an answer to it: clocks differ."""
OUTGOING_MAX: Final = 500
ANSWERED_LIMIT: Final = 1024  # bytes of a class name, as text.max.bytes has it by default

_FREE = """
FROM request r LEFT JOIN lease l ON l.request = r.number
  LEFT JOIN skip s ON s.request = r.number AND s.annotator = :annotator
WHERE NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = r.number)
  AND (l.request IS NULL OR l.until_ms <= :now OR l.annotator = :annotator)
"""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things last, in ms, and how many requests are kept."""

    lease_ms: int = 300_000
    undo_ms: int = 5_000
    jump_ms: int = 24 * 3600 * 1000  # event time further behind the clock than this is that of the past
    open_max: int = 200_000
    text_max: int = ANSWERED_LIMIT


class LabelQueue:
    """What is asked, who has it before him, what he said; every change is one transaction of the store.

    `now` is the time in ms since the epoch. One process has the store; any thread may call.
    """

    def __init__(self, store: Store, terms: Terms | None = None) -> None:
        """Take up what a process before had: what it was sending is in doubt."""
        self._store = store
        self.terms = terms or Terms()
        with store.transaction() as db:
            db.execute("UPDATE answer SET state = 'doubt' WHERE state = 'sending'")

    # -- what the topics say ------------------------------------------------------------------------------

    def positions(self, topic: str) -> dict[int, int]:
        """Return partition → offset of the next record to read, of those that were read before."""
        with self._store.reading() as db:
            return dict(db.execute("SELECT partition, next FROM position WHERE topic = ?", (topic,)))

    def begin(self, origin: Mapping[str, str]) -> bool:
        """Note where the topics are; return whether what is stored is of others, and so was given up."""
        with self._store.transaction() as db:
            before = dict(db.execute("SELECT name, value FROM origin"))
            if before == dict(origin):
                return False
            for table in ("answer", "request", "settled", "position", "clock", "class", "origin"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
            db.executemany("INSERT INTO origin VALUES (?, ?)", list(origin.items()))
            return bool(before)

    def apply(
        self,
        requests: Sequence[Request],
        labels: Sequence[Label],
        positions: Mapping[tuple[str, int], int],
        now: int,
        classes: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Take in what was read, with the positions behind it.

        The order in which requests and labels come makes no difference. `classes`: model key and class name.
        """
        with self._store.transaction() as db:
            for label in labels:
                self._settle(db, label, now)
            for request in requests:
                self._open(db, request)
            names = {(each.key, each.label) for each in labels if each.label is not None}
            names |= {(each.key, each.prediction) for each in requests if each.prediction is not None}
            db.executemany("INSERT OR IGNORE INTO class VALUES (?, ?)", sorted({*names, *classes}))
            db.executemany(
                "INSERT INTO position VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next",
                [(topic, partition, offset) for (topic, partition), offset in positions.items()],
            )

    def _settle(self, db: sqlite3.Connection, label: Label, now: int) -> None:
        db.execute(
            "INSERT INTO settled VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "label_ms = max(label_ms, excluded.label_ms), seen_ms = excluded.seen_ms",
            (label.key, label.instance_id, label.timestamp, now),
        )
        found = db.execute(
            "SELECT r.number, a.number, a.state, a.annotator FROM request r "
            "LEFT JOIN answer a ON a.request = r.number "
            "WHERE r.key = ? AND r.instance_id = ? AND r.asked_ms <= ?",
            (label.key, label.instance_id, label.timestamp + EARLIER_MS),
        ).fetchone()
        if found is None:
            return
        request, answer, state, annotator = found
        ours = state in ("sending", "doubt") and annotator == label.annotator
        if state == "sending" and not ours:
            return  # the broker may get it yet: `sent` or `caught_up` follows
        if answer is not None:
            told = "sent" if ours else "overtaken"
            db.execute("UPDATE answer SET state = ? WHERE number = ?", (told, answer))
        db.execute("DELETE FROM request WHERE number = ?", (request,))

    def _open(self, db: sqlite3.Connection, request: Request) -> None:
        db.execute(
            "INSERT INTO clock VALUES (?, ?) ON CONFLICT DO UPDATE "
            "SET event_ms = max(event_ms, excluded.event_ms)",
            (request.partition, request.asked_ms),
        )
        settled = db.execute(
            "SELECT 1 FROM settled WHERE key = ? AND instance_id = ? AND label_ms >= ?",
            (request.key, request.instance_id, request.asked_ms - EARLIER_MS),
        ).fetchone()
        if settled is not None:
            return
        db.execute(
            "INSERT INTO request (key, instance_id, request_id, partition, asked_ms, expires_ms, utility, "
            "prediction, strategy, features, left_out) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (key, instance_id) DO UPDATE SET request_id = excluded.request_id, "
            "asked_ms = excluded.asked_ms, expires_ms = excluded.expires_ms, utility = excluded.utility, "
            "prediction = excluded.prediction, strategy = excluded.strategy, features = excluded.features, "
            "left_out = excluded.left_out WHERE excluded.asked_ms >= asked_ms",
            (
                request.key,
                request.instance_id,
                request.request_id,
                request.partition,
                request.asked_ms,
                request.expires_ms,
                None if math.isnan(request.utility) else request.utility,
                request.prediction,
                request.strategy,
                json.dumps(request.features),
                request.left_out,
            ),
        )

    def tidy(self, now: int) -> None:
        """Let go of what has expired, of what is above the limit, and of what is too old to matter."""
        with self._store.transaction() as db:
            unanswered = "number NOT IN (SELECT request FROM answer WHERE request IS NOT NULL)"
            for partition, event_ms in db.execute("SELECT partition, event_ms FROM clock").fetchall():
                db.execute(
                    "DELETE FROM request WHERE partition = ? AND expires_ms BETWEEN 0 AND ? "  # noqa: S608
                    f"AND {unanswered}",
                    (partition, self._event_time(event_ms, now) - 1),
                )
            (count,) = db.execute("SELECT count(*) FROM request").fetchone()
            if count > self.terms.open_max:
                gone = db.execute(
                    "DELETE FROM request WHERE number IN (SELECT number FROM request "  # noqa: S608
                    f"WHERE {unanswered} ORDER BY ifnull(utility, -9e999), asked_ms DESC, number DESC "
                    "LIMIT ?)",
                    (count - self.terms.open_max,),
                ).rowcount
                db.execute(
                    "INSERT INTO position VALUES ('dropped', -1, ?) "
                    "ON CONFLICT DO UPDATE SET next = next + excluded.next",
                    (gone,),
                )
            db.execute("DELETE FROM settled WHERE seen_ms < ?", (now - KEEP_MS,))
            db.execute(
                "DELETE FROM answer WHERE state IN ('sent', 'overtaken') AND answered_ms < ?",
                (now - KEEP_MS,),
            )
            db.execute("DELETE FROM lease WHERE until_ms <= ?", (now,))

    def _event_time(self, event_ms: int, now: int) -> int:
        """Return the event time of a partition as far as it can be told from here.

        A stream of the present goes on with the clock though nothing is asked; one of the past does not.
        """
        return max(event_ms, now) if now - event_ms <= self.terms.jump_ms else event_ms

    # -- what people do -----------------------------------------------------------------------------------

    def next_card(self, annotator: str, now: int) -> Card | None:
        """Lease the most useful request that nobody has; the one he has already, if he has one.

        What he skipped comes again when nothing else is left.
        """
        with self._store.transaction() as db:
            held = db.execute(
                "SELECT request FROM lease WHERE annotator = ? AND until_ms > ?", (annotator, now)
            ).fetchone()
            number = held[0] if held else self._best(db, annotator, now)
            if number is None:
                return None
            self._lease(db, number, annotator, now)
            return self._card(db, number)

    def _best(self, db: sqlite3.Connection, annotator: str, now: int) -> int | None:
        words = {"annotator": annotator, "now": now}
        by_utility = "ORDER BY ifnull(r.utility, -9e999) DESC, r.asked_ms, r.number"
        for condition, order in (
            ("AND s.request IS NULL", by_utility),
            ("AND s.request IS NOT NULL", "ORDER BY s.skipped_ms, r.number"),
        ):
            found = db.execute(
                f"SELECT r.number, r.partition, r.expires_ms {_FREE} {condition} {order}", words
            )
            for number, partition, expires_ms in found:
                if not self._expired(db, partition, expires_ms, now):
                    found.close()
                    return int(number)
        return None

    def _expired(self, db: sqlite3.Connection, partition: int, expires_ms: int, now: int) -> bool:
        if expires_ms == NEVER:
            return False
        (event_ms,) = db.execute("SELECT event_ms FROM clock WHERE partition = ?", (partition,)).fetchone()
        return self._event_time(event_ms, now) > expires_ms

    def _lease(self, db: sqlite3.Connection, number: int, annotator: str, now: int) -> None:
        db.execute("DELETE FROM lease WHERE annotator = ? OR request = ?", (annotator, number))
        db.execute("INSERT INTO lease VALUES (?, ?, ?)", (number, annotator, now + self.terms.lease_ms))

    def _card(self, db: sqlite3.Connection, number: int) -> Card:
        row = db.execute(
            "SELECT number, key, instance_id, asked_ms, expires_ms, utility, prediction, strategy, features, "
            "left_out FROM request WHERE number = ?",
            (number,),
        ).fetchone()
        names = db.execute("SELECT name FROM class WHERE key = ? ORDER BY name", (row[1],)).fetchall()
        members = dict(zip((field.name for field in fields(Card)), row, strict=False))
        members |= {"features": json.loads(members["features"])}
        return Card(**members, classes=tuple(name for (name,) in names))

    def holds(self, annotator: str, number: int) -> bool:
        """Whether a request is still his, unanswered: pages ask when they are drawn anew."""
        with self._store.reading() as db:
            found = db.execute(
                "SELECT 1 FROM lease l WHERE l.annotator = ? AND l.request = ? "
                "AND NOT EXISTS (SELECT 1 FROM answer a WHERE a.request = l.request)",
                (annotator, number),
            ).fetchone()
        return found is not None

    def answer(
        self, annotator: str, number: int, label: str | None, now: int, *, new_class: bool = False
    ) -> None:
        """Take an answer, None for declined; it is sent when its undo window is over.

        Refused if the request is gone, answered, leased to somebody else or expired, or nobody knows the
        class (`new_class`: he says that it is one).
        """
        with self._store.transaction() as db:
            row = db.execute(
                "SELECT r.key, r.instance_id, r.partition, r.asked_ms, r.expires_ms, l.annotator, "
                "l.until_ms, (SELECT a.annotator FROM answer a WHERE a.request = r.number) "
                "FROM request r LEFT JOIN lease l ON l.request = r.number WHERE r.number = ?",
                (number,),
            ).fetchone()
            if row is None:
                message = "This request is closed: its label came from elsewhere, or its time is over."
                raise Refused(message)
            key, instance_id, partition, asked_ms, expires_ms, holder, until_ms, answered_by = row
            if answered_by is not None:
                message = f"{answered_by} has answered this request already."
                raise Refused(message)
            if holder not in (None, annotator) and until_ms > now:
                message = f"Your time for this card was over, and {holder} has it now."
                raise Refused(message)
            if self._expired(db, partition, expires_ms, now):
                message = "This request has expired: the model would not learn the label any more."
                raise Refused(message)
            if label is not None:
                self._check_class(db, key, label, new_class=new_class)
            db.execute(
                "INSERT INTO answer (request, key, instance_id, partition, asked_ms, annotator, label, "
                "answered_ms, due_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')",
                (
                    *(number, key, instance_id, partition, asked_ms),
                    *(annotator, label, now, now + self.terms.undo_ms),
                ),
            )
            db.execute("DELETE FROM lease WHERE request = ?", (number,))

    def _check_class(self, db: sqlite3.Connection, key: str, label: str, *, new_class: bool) -> None:
        limit = self.terms.text_max
        if not label or len(label.encode("utf-8", "surrogatepass")) > limit or not label.isprintable():
            message = f"A class must have 1 to {limit:,} bytes, all of them printable."
            raise Refused(message)
        if db.execute("SELECT 1 FROM class WHERE key = ? AND name = ?", (key, label)).fetchone():
            return
        if not new_class:
            message = f"Nobody knows a class {label!r} of this model; give it as a new one if it is."
            raise Refused(message)
        db.execute("INSERT INTO class VALUES (?, ?)", (key, label))

    def skip(self, annotator: str, number: int, now: int) -> None:
        """Give a card back unanswered."""
        with self._store.transaction() as db:
            if not db.execute("SELECT 1 FROM request WHERE number = ?", (number,)).fetchone():
                return
            db.execute("DELETE FROM lease WHERE request = ? AND annotator = ?", (number, annotator))
            db.execute("INSERT OR REPLACE INTO skip VALUES (?, ?, ?)", (number, annotator, now))

    def undo(self, annotator: str, now: int) -> Card:
        """Take back his last answer and lease its request again; Refused if it is on its way."""
        with self._store.transaction() as db:
            row = db.execute(
                "SELECT number, request, due_ms FROM answer WHERE annotator = ? AND state = 'waiting' "
                "ORDER BY number DESC LIMIT 1",
                (annotator,),
            ).fetchone()
            if row is None or row[2] <= now:
                message = "There is nothing to undo: your last answer has been sent."
                raise Refused(message)
            db.execute("DELETE FROM answer WHERE number = ?", (row[0],))
            self._lease(db, row[1], annotator, now)
            return self._card(db, row[1])

    def undoable_ms(self, annotator: str, now: int) -> int:
        """Return for how long his last answer can still be taken back; 0: not at all."""
        with self._store.reading() as db:
            (due_ms,) = db.execute(
                "SELECT max(due_ms) FROM answer WHERE annotator = ? AND state = 'waiting'", (annotator,)
            ).fetchone()
        return max(0, due_ms - now) if due_ms is not None else 0

    def counts(self, now: int) -> Counts:
        """Return what there is."""
        with self._store.reading() as db:
            states = dict(db.execute("SELECT state, count(*) FROM answer GROUP BY state"))
            (requests,) = db.execute("SELECT count(*) FROM request").fetchone()
            (leased,) = db.execute("SELECT count(*) FROM lease WHERE until_ms > ?", (now,)).fetchone()
            (dropped,) = db.execute("SELECT sum(next) FROM position WHERE topic = 'dropped'").fetchone()
            (answered,) = db.execute("SELECT count(request) FROM answer").fetchone()
        under_way = sum(states.get(each, 0) for each in ("waiting", "sending", "doubt"))
        return Counts(
            requests - answered,
            leased,
            under_way,
            states.get("sent", 0),
            states.get("overtaken", 0),
            dropped or 0,
        )

    # -- what is sent -------------------------------------------------------------------------------------

    def due(self, now: int) -> list[Outgoing]:
        """Return answers whose undo window is over; from now on they are being sent."""
        with self._store.transaction() as db:
            rows = db.execute(
                "SELECT number, partition, key, instance_id, label, annotator, max(answered_ms, asked_ms) "
                "FROM answer WHERE state = 'waiting' AND due_ms <= ? ORDER BY due_ms, number LIMIT ?",
                (now, OUTGOING_MAX),
            ).fetchall()
            db.executemany(
                "UPDATE answer SET state = 'sending' WHERE number = ?", [(row[0],) for row in rows]
            )
        return [Outgoing(*row) for row in rows]

    def sent(self, answers: Sequence[Outgoing], now: int) -> None:
        """Note that the broker has these."""
        with self._store.transaction() as db:
            for each in answers:
                db.execute(
                    "INSERT INTO settled VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                    "label_ms = max(label_ms, excluded.label_ms), seen_ms = excluded.seen_ms",
                    (each.key, each.instance_id, each.timestamp, now),
                )
                db.execute(
                    "DELETE FROM request WHERE number = (SELECT request FROM answer WHERE number = ?)",
                    (each.number,),
                )
                db.execute("UPDATE answer SET state = 'sent' WHERE number = ?", (each.number,))

    def not_sent(self, answers: Sequence[Outgoing]) -> None:
        """Note that it is not known whether the broker has these."""
        with self._store.transaction() as db:
            db.executemany(
                "UPDATE answer SET state = 'doubt' WHERE number = ? AND state = 'sending'",
                [(each.number,) for each in answers],
            )

    def in_doubt(self) -> list[int]:
        """Return the answers that may have been sent by a client that is gone."""
        with self._store.reading() as db:
            return [number for (number,) in db.execute("SELECT number FROM answer WHERE state = 'doubt'")]

    def caught_up(self, numbers: Sequence[int]) -> None:
        """Note that what the topic had when these were in doubt is read: those that still are, are due.

        Not those of which somebody else's label came while they were on their way.
        """
        rows = [(number,) for number in numbers]
        with self._store.transaction() as db:
            db.executemany(
                "UPDATE answer SET state = 'overtaken' WHERE number = ? AND state = 'doubt' AND EXISTS ("
                "SELECT 1 FROM settled s WHERE s.key = answer.key AND s.instance_id = answer.instance_id "
                "AND s.label_ms >= answer.asked_ms - ?)",
                [(number, EARLIER_MS) for number in numbers],
            )
            db.executemany(
                "DELETE FROM request WHERE number = "
                "(SELECT request FROM answer WHERE number = ? AND state = 'overtaken')",
                rows,
            )
            db.executemany(
                "UPDATE answer SET state = 'waiting', due_ms = 0 WHERE number = ? AND state = 'doubt'",
                rows,
            )
