"""Intake: stores what was read from the topics. The order in which topics are read makes no difference.

Every function takes the connection of a transaction. A request for a label is closed by a label of its
instance. A request for features is closed when each of them was given or declared unavailable, by any
sender.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

import orjson

from streamapp.web.queue.cards import FINISH, Attribute, Given, Label, Range, Request, Values
from streamapp.web.queue.closed_classes import (
    NOTHING,
    ClassControl,
    Declared,
    after,
    lets_in,
    read_declared,
    written,
)

EARLIER_MS: Final = 60_000
"""The time of an answer may be this much earlier than the time of its request, because clocks differ."""
RANGES_MAX: Final = 500
"""Features of a model whose ranges are kept, at most."""


def written_given(answer: Given) -> str:
    """Return an answer to a request for features as text; equal answers have equal texts."""
    return orjson.dumps(asdict(answer), option=orjson.OPT_SORT_KEYS).decode()


def read_given(text: str) -> Given:
    """Return the answer that `written_given` wrote."""
    return Given(**orjson.loads(text))


def take_labels(db: sqlite3.Connection, labels: Iterable[Label], now: int) -> None:
    """Close the requests that these labels answer."""
    for label in labels:
        settle(db, label.key, label.instance_id, label.timestamp, now)
        row = db.execute(
            "SELECT number FROM request WHERE kind = 'label' AND key = ? AND subject = ? AND asked_ms <= ?",
            (label.key, label.instance_id, label.timestamp + EARLIER_MS),
        ).fetchone()
        if row is not None:
            _close(db, row[0], "annotator", label.annotator)


def settle(db: sqlite3.Connection, key: str, instance_id: str, label_ms: int, now: int) -> None:
    """Remember that an instance has a label."""
    db.execute(
        "INSERT INTO settled VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "label_ms = max(label_ms, excluded.label_ms), seen_ms = excluded.seen_ms",
        (key, instance_id, label_ms, now),
    )


def take_values(db: sqlite3.Connection, values: Iterable[Values], now: int) -> None:
    """Close the requests for features of which all features have been given."""
    for record in values:
        remember_given(db, record.key, record.instance_id, record.given, record.timestamp, now)
        asked = db.execute(
            "SELECT number, asked_ms, wanted FROM request WHERE kind = 'features' AND key = ? "
            "AND instance_id = ? AND asked_ms <= ?",
            (record.key, record.instance_id, record.timestamp + EARLIER_MS),
        ).fetchall()
        for number, asked_ms, requested in asked:
            if not left(db, record.key, record.instance_id, orjson.loads(requested), asked_ms):
                _close(db, number, "given", written_given(record.given))


def remember_given(
    db: sqlite3.Connection, key: str, instance_id: str, answer: Given, given_ms: int, now: int
) -> None:
    """Remember which features of an instance are known or unavailable."""
    db.executemany(
        "INSERT INTO given VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "given_ms = max(given_ms, excluded.given_ms), seen_ms = excluded.seen_ms",
        [(key, instance_id, name, given_ms, now) for name in sorted(answer.names)],
    )


def left(
    db: sqlite3.Connection, key: str, instance_id: str, requested: Sequence[str], asked_ms: int
) -> tuple[str, ...]:
    """Return the requested features that have not been given yet."""
    rows = db.execute(
        "SELECT name FROM given WHERE key = ? AND instance_id = ? AND given_ms >= ?",
        (key, instance_id, asked_ms - EARLIER_MS),
    )
    names = {name for (name,) in rows}
    return () if FINISH in names else tuple(name for name in requested if name not in names)


def _close(db: sqlite3.Connection, request: int, column: str, theirs: str | None) -> None:
    """Close a request that has its answer. The answer is ours if it bears our mark in that column."""
    row = db.execute(
        f"SELECT number, state, {column} FROM answer WHERE request = ?",  # noqa: S608 - a name of ours
        (request,),
    ).fetchone()
    if row is not None:
        answer, state, mine = row
        ours = state in ("sending", "doubt") and mine == theirs
        if state == "sending" and not ours:
            return  # the broker may still get it: `sent` or `caught_up` follows
        db.execute("UPDATE answer SET state = ? WHERE number = ?", ("sent" if ours else "overtaken", answer))
    db.execute("DELETE FROM request WHERE number = ?", (request,))


def open_requests(db: sqlite3.Connection, requests: Sequence[Request], needed: Callable[[str], int]) -> None:
    """Open the requests that have no answer; needed: request id → how many annotators have to answer."""
    for request in requests:
        db.execute(
            "INSERT INTO clock VALUES (?, ?) ON CONFLICT DO UPDATE "
            "SET event_ms = max(event_ms, excluded.event_ms)",
            (request.partition, request.asked_ms),
        )
        if not _is_answered(db, request):
            _open(db, request, 1 if request.wanted else needed(request.request_id))


def _is_answered(db: sqlite3.Connection, request: Request) -> bool:
    if request.wanted:
        return not left(db, request.key, request.instance_id, request.wanted, request.asked_ms)
    row = db.execute(
        "SELECT 1 FROM settled WHERE key = ? AND instance_id = ? AND label_ms >= ?",
        (request.key, request.instance_id, request.asked_ms - EARLIER_MS),
    ).fetchone()
    return row is not None


_COLUMNS: Final = (
    "request_id, partition, asked_ms, expires_ms, utility, prediction, strategy, features, left_out, wanted, "
    "cost, rules, shares, seen, reason"
)
_OPEN: Final = (
    f"INSERT INTO request (kind, key, subject, instance_id, needed, {_COLUMNS}) "  # noqa: S608 - names of ours
    f"VALUES ({', '.join('?' * (5 + len(_COLUMNS.split(', '))))}) "
    "ON CONFLICT (kind, key, subject) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", "))
    + " WHERE excluded.asked_ms >= asked_ms"
)


def _open(db: sqlite3.Connection, request: Request, needed: int) -> None:
    db.execute(
        _OPEN,
        (
            *(request.kind, request.key, request.subject, request.instance_id),
            needed,
            *(request.request_id, request.partition, request.asked_ms, request.expires_ms),
            None if math.isnan(request.utility) else request.utility,
            *(request.prediction, request.strategy),
            *(orjson.dumps(request.features).decode(), request.left_out),
            orjson.dumps(request.wanted).decode(),
            *(request.cost, request.rules, orjson.dumps(request.shares).decode()),
            _written_ranges(request.seen),
            request.reason,
        ),
    )


def _written_ranges(ranges: Mapping[str, Range]) -> str:
    return orjson.dumps({name: [seen.low, seen.high, seen.n] for name, seen in ranges.items()}).decode()


def read_ranges(text: str) -> dict[str, Range]:
    """Return the ranges of a request."""
    return {name: Range(*seen) for name, seen in orjson.loads(text).items()}


def take_names(
    db: sqlite3.Connection, classes: Iterable[tuple[str, str]], attributes: Iterable[Attribute]
) -> None:
    """Store the names of classes, each with its model key, and declarations of features."""
    db.executemany("INSERT OR IGNORE INTO class VALUES (?, ?, NULL)", sorted(set(classes)))
    db.executemany(
        "INSERT OR REPLACE INTO attribute VALUES (?, ?, ?)",
        [(attribute.key, attribute.name, orjson.dumps(attribute).decode()) for attribute in attributes],
    )


def take_answered(db: sqlite3.Connection, requests: Iterable[Request]) -> None:
    """Store the classes that models themselves have answered, with the newest time of each."""
    newest: dict[tuple[str, str], int] = {}
    for request in requests:
        named = request.shares.keys() | ({request.prediction} if request.prediction is not None else set())
        for name in named:
            place = (request.key, name)
            newest[place] = max(request.asked_ms, newest.get(place, request.asked_ms))
    db.executemany(
        "INSERT INTO class VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
        "answered_ms = max(ifnull(answered_ms, excluded.answered_ms), excluded.answered_ms)",
        [(key, name, at_ms) for (key, name), at_ms in sorted(newest.items())],
    )


def take_class_controls(db: sqlite3.Connection, controls: Iterable[ClassControl]) -> None:
    """Apply controls to the classes that models allow; the controls of a key come in their order."""
    for control in controls:
        declared = after(_declared(db, control.key), control)
        db.execute("INSERT OR REPLACE INTO declared VALUES (?, ?)", (control.key, written(declared)))


def _declared(db: sqlite3.Connection, key: str) -> Declared:
    row = db.execute("SELECT classes FROM declared WHERE key = ?", (key,)).fetchone()
    return read_declared(row[0]) if row else NOTHING


def lets_in_of(db: sqlite3.Connection, key: str) -> tuple[str, ...] | None:
    """Return the classes that a model allows, None: any."""
    answered = db.execute(
        "SELECT name, answered_ms FROM class WHERE key = ? AND answered_ms IS NOT NULL", (key,)
    )
    return lets_in(_declared(db, key), answered)


def widen_ranges(db: sqlite3.Connection, requests: Iterable[Request]) -> None:
    """Add the numbers of these requests to the ranges of their models' features.

    A request that is on its topic twice counts twice.
    """
    by_key: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        by_key[request.key].append(request)
    for key, alike in by_key.items():
        ranges = _stored_ranges(db, key)
        for request in alike:
            for name, cell in request.features.items():
                if isinstance(cell, str) or cell is None:
                    continue
                known_range = ranges.get(name)
                if known_range is not None:
                    low, high, n = known_range
                    ranges[name] = (min(low, cell), max(high, cell), n + 1)
                elif len(ranges) < RANGES_MAX:
                    ranges[name] = (cell, cell, 1)
        text = orjson.dumps(ranges).decode()
        db.execute("INSERT OR REPLACE INTO range VALUES (?, ?)", (key, text))


def _stored_ranges(db: sqlite3.Connection, key: str) -> dict[str, tuple[float, float, int]]:
    row = db.execute("SELECT ranges FROM range WHERE key = ?", (key,)).fetchone()
    return orjson.loads(row[0]) if row else {}


def ranges_of(db: sqlite3.Connection, key: str, names: Iterable[str]) -> dict[str, Range]:
    """Return the ranges of some features of a model."""
    ranges = _stored_ranges(db, key)
    return {name: Range(*ranges[name]) for name in names if name in ranges}


def attributes_of(db: sqlite3.Connection, key: str, names: Iterable[str]) -> dict[str, Attribute]:
    """Return the declarations of some features of a model."""
    asked = set(names)
    rows = db.execute("SELECT name, declared FROM attribute WHERE key = ?", (key,))
    return {
        name: Attribute(**(members := orjson.loads(declared)) | {"values": tuple(members["values"])})
        for name, declared in rows
        if name in asked
    }


def forget(db: sqlite3.Connection) -> None:
    """Delete all entries, because the topics have been replaced."""
    for table in (
        "answer",
        "day",
        "request",
        "settled",
        "given",
        "position",
        "clock",
        "class",
        "declared",
        "attribute",
        "range",
        "crowd",
        "outcome",
        "review",
        "adjudication",
        "past_record",
    ):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
    db.execute("DELETE FROM gold WHERE source = 'agreed'")
    db.execute("INSERT INTO class SELECT DISTINCT key, label, NULL FROM gold")  # those of the gold file stay
    db.execute("DELETE FROM origin")


def next_offsets(db: sqlite3.Connection, positions: Mapping[tuple[str, int], int]) -> None:
    """Store the offset of the next record to read, by topic and partition."""
    db.executemany(
        "INSERT INTO position VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next",
        [(topic, partition, offset) for (topic, partition), offset in positions.items()],
    )
