"""Adjudication: a reviewer decides the label of a request; the label on its way is replaced or corrected.

A label that is still here (`Terms.review_ms`, or no broker) is replaced, so that one label is sent. A label
that was sent cannot be taken out of a tree: a correction is sent, which workers count as a duplicate. If the
operator chooses so (`Terms.learn_corrections`), the record with the right class is sent as one more example.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, NamedTuple

import orjson

from streamapp.people.annotator_answers import AGREEMENT
from streamapp.web import audit_log
from streamapp.web.annotation_terms import Terms
from streamapp.web.queue import intake
from streamapp.web.queue.answer_checks import check_words, is_name
from streamapp.web.queue.cards import CORRECTION, EXAMPLE, TEXT_MAX, Cell, Range, Refused
from streamapp.web.queue.closed_classes import refusal
from streamapp.web.queue.review import reviewed_outcomes
from streamapp.web.queue.review.reviewed_outcomes import REVIEW
from streamapp.web.store import Store
from topics.columns.records import AuditEntry

EXAMPLE_SUFFIX: Final = " (corrected)"
ADJUDICATED: Final = "adjudicated"
"""Action of the entry from which the annotator model learns a reviewer's decision."""
Order = Literal["oldest", "least sure"]
Effect = Literal["kept", "replaced", "corrected", "noted"]
_ORDERS: Final[Mapping[Order, str]] = {
    "oldest": "v.at_ms, v.key, v.instance_id, v.request_id",
    "least sure": "v.certainty, v.at_ms, v.key, v.instance_id, v.request_id",
}
_ITEMS: Final = """
SELECT v.key, v.instance_id, v.request_id, v.at_ms, v.label, v.weight, v.certainty, v.votes,
  a.reviewer, a.label, a.reviewed_ms, p.record
FROM review v
LEFT JOIN adjudication a USING (key, instance_id, request_id)
LEFT JOIN past_record p USING (key, instance_id, request_id)
"""


class PastRecord(NamedTuple):
    """The record of a request whose label may have been sent."""

    partition: int
    asked_ms: int
    expires_ms: int
    prediction: str | None
    strategy: str
    features: dict[str, Cell]
    left_out: int
    rules: str | None
    shares: dict[str, float]
    seen: dict[str, Range]
    utility: float | None


@dataclass(frozen=True, slots=True)
class Item:
    """An outcome to review, or a reviewed one."""

    key: str
    instance_id: str
    request_id: str
    at_ms: int
    label: str | None  # the outcome; None: declined
    weight: float | None
    certainty: float  # its posterior, or its share of the votes
    votes: dict[str, str | None]
    reviewer: str | None  # None: not reviewed
    decision: str | None
    reviewed_ms: int | None
    record: PastRecord | None  # None: not known here any more
    classes: tuple[str, ...] = ()

    @property
    def present(self) -> str | None:
        """Return the class that the label has now."""
        return self.label if self.reviewer is None else self.decision


class Adjudication:
    """The reviews of a store; `now` is in ms since the epoch, any thread may call."""

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store, self._terms = store, terms

    def count_open(self) -> int:
        """Return how many outcomes wait for a review."""
        with self._store.reading() as db:
            (count,) = db.execute(
                "SELECT count(*) FROM review v WHERE NOT EXISTS (SELECT 1 FROM adjudication a "
                "WHERE (a.key, a.instance_id, a.request_id) = (v.key, v.instance_id, v.request_id))"
            ).fetchone()
        return int(count)

    def open_items(self, order: Order, first: int, count: int) -> list[Item]:
        """Return the outcomes that wait for a review."""
        return self._items(f"WHERE a.reviewer IS NULL ORDER BY {_ORDERS[order]}", first, count)

    def reviewed_items(self, count: int) -> list[Item]:
        """Return the newest reviewed outcomes."""
        return self._items("WHERE a.reviewer IS NOT NULL ORDER BY a.reviewed_ms DESC", 0, count)

    def decide(
        self,
        reviewer: str,
        item: Item,
        label: str | None,
        now: int,
        *,
        new_class: bool = False,
        comment: str | None = None,
    ) -> Effect:
        """Take a decision, None for declined, about an item as it was shown.

        Refused if the item was reviewed since, if its outcome is no longer known, or if the model does not
        have the class (and `new_class` is not set).
        """
        about = (item.key, item.instance_id, item.request_id)
        with self._store.transaction() as db:
            present = self._present(db, item)
            if label is not None:
                self._check_class(db, item, label, new_class=new_class)
            check_words(self._terms, label or "", None, comment)
            effect = self._effect(db, reviewer, item, label, present, now)
            at_ms = max(now, (item.reviewed_ms or 0) + 1)
            reviewed_outcomes.take_adjudication(db, about, reviewer, label, at_ms)
            detail = f"{_word(present)} becomes {_word(label)}: {effect}"
            entry = AuditEntry("", reviewer, REVIEW, at_ms, *about, detail, label, comment=comment)
            audit_log.note(db, entry)
            db.execute(
                "DELETE FROM gold WHERE source = 'agreed' AND key = ? AND instance_id = ? AND label IS NOT ?",
                (item.key, item.instance_id, label),
            )
            # Nobody's own decision may make their own answers right.
            votes = {name: vote for name, vote in item.votes.items() if name != reviewer}
            if label is not None and item.reviewer is None and votes:
                truth = AuditEntry("", AGREEMENT, ADJUDICATED, at_ms, *about, gold=label, votes=votes)
                audit_log.note(db, truth)
        return effect

    def _present(self, db: sqlite3.Connection, item: Item) -> str | None:
        """Return the present class of an item; Refused if it is not the one that was shown."""
        rows = db.execute(
            f"{_ITEMS} WHERE (v.key, v.instance_id, v.request_id) = (?, ?, ?)",
            (item.key, item.instance_id, item.request_id),
        ).fetchall()
        if not rows:
            message = "This outcome is not known here any more: it is older than 14 days."
            raise Refused(message)
        now_there = _item(rows[0])
        if now_there.reviewed_ms != item.reviewed_ms:
            message = f"{now_there.reviewer} has reviewed this: {_word(now_there.decision)}."
            raise Refused(message)
        return now_there.present

    def _effect(
        self,
        db: sqlite3.Connection,
        reviewer: str,
        item: Item,
        label: str | None,
        present: str | None,
        now: int,
    ) -> Effect:
        """Replace or correct the label, if it changes; return what was done."""
        waiting = db.execute(
            "SELECT a.number FROM answer a JOIN request r ON r.number = a.request WHERE a.state = 'waiting' "
            "AND (r.key, r.instance_id, r.request_id) = (?, ?, ?)",
            (item.key, item.instance_id, item.request_id),
        ).fetchone()
        if waiting is not None:
            db.execute(
                "UPDATE answer SET label = ?, annotator = ?, weight = 1.0, due_ms = ? WHERE number = ?",
                (label, reviewer, now, waiting[0]),
            )
            return "kept" if label == present else "replaced"
        if label == present:
            return "kept"
        if item.record is None:
            return "noted"
        self._send(db, CORRECTION, item, item.instance_id, reviewer, label, now, None)
        cells = self._example(item, label)
        if cells:
            self._send(db, EXAMPLE, item, item.instance_id + EXAMPLE_SUFFIX, reviewer, label, now, cells)
        return "corrected"

    def _example(self, item: Item, label: str | None) -> dict[str, float | str]:
        """Return the features of an example to learn; {}: none is to be learned, or they are not whole."""
        record = item.record
        if not self._terms.learn_corrections or label is None or record is None or record.left_out:
            return {}
        if len((item.instance_id + EXAMPLE_SUFFIX).encode()) > self._terms.text_max:
            return {}
        texts = [cell for cell in record.features.values() if isinstance(cell, str)]
        if any(len(text) >= TEXT_MAX for text in texts):  # it may have been cut
            return {}
        return {name: cell for name, cell in record.features.items() if cell is not None}

    @staticmethod
    def _send(
        db: sqlite3.Connection,
        kind: str,
        item: Item,
        instance_id: str,
        reviewer: str,
        label: str | None,
        now: int,
        cells: dict[str, float | str] | None,
    ) -> None:
        assert item.record is not None
        db.execute(
            "INSERT INTO answer (request, kind, key, instance_id, partition, asked_ms, annotator, label, "
            "given, weight, answered_ms, due_ms, state) "
            "VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 1.0, ?, ?, 'waiting')",
            (
                *(kind, item.key, instance_id, item.record.partition, item.record.asked_ms, reviewer, label),
                None if cells is None else orjson.dumps(cells).decode(),
                *(now, now),
            ),
        )

    def _check_class(self, db: sqlite3.Connection, item: Item, label: str, *, new_class: bool) -> None:
        if not is_name(label, self._terms.text_max):
            message = f"A class must have 1 to {self._terms.text_max:,} bytes, all of them printable."
            raise Refused(message)
        allowed = intake.lets_in_of(db, item.key)
        if allowed is not None and label not in allowed:
            raise Refused(refusal(label, allowed))
        if not new_class and label not in _classes(db, item.key, item.votes):
            message = f"This model has no class {label!r}; give it as a new class if it is one."
            raise Refused(message)

    def _items(self, where: str, first: int, count: int) -> list[Item]:
        with self._store.reading() as db:
            rows = db.execute(f"{_ITEMS} {where} LIMIT ? OFFSET ?", (count, first)).fetchall()
            items = [_item(row) for row in rows]
            return [replace(item, classes=_classes(db, item.key, item.votes)) for item in items]


def _classes(db: sqlite3.Connection, key: str, votes: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the classes that a model has, with those of the votes unless its schema closes them."""
    allowed = intake.lets_in_of(db, key)
    if allowed is not None:
        return tuple(sorted(allowed))
    names = {str(name) for (name,) in db.execute("SELECT name FROM class WHERE key = ?", (key,))}
    return tuple(sorted(names.union(vote for vote in votes.values() if vote is not None)))


def _item(row: tuple[Any, ...]) -> Item:
    """Return an item from a row of `_ITEMS`."""
    members = dict(zip((field.name for field in fields(Item)), row, strict=False))
    members |= {"votes": orjson.loads(members["votes"]), "record": _past_record(members["record"])}
    return Item(**members)


def _past_record(text: str | None) -> PastRecord | None:
    if text is None:
        return None
    members = PastRecord(*orjson.loads(text))
    return members._replace(
        features=orjson.loads(str(members.features)),
        shares=orjson.loads(str(members.shares)),
        seen=intake.read_ranges(str(members.seen)),
    )


def _word(label: str | None) -> str:
    return "declined" if label is None else label
