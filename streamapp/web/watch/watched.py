"""Watched: evaluations and model events of each model, in SQLite.

All of it is a copy of what the topics have, written in one transaction with the next offsets; a lost file
is filled again. For each model a curve of POINTS_MAX points and the newest EVENTS_MAX events are kept. The
size of the file depends on the number of models; the use of memory does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import orjson

from streamapp.people.topic_copy import TOPIC_TABLES, TopicCopy
from topics.columns.records import EvaluationRecord, ModelEvent

VERSION: Final = 2
POINTS_MAX: Final = 400
EVENTS_MAX: Final = 1000
NODES_MAX: Final = 4000
"""Nodes of a model whose splits are kept, at most."""
LARGEST: Final = 2**53
"""A record with a larger number was not written by a worker."""
BEGINS: Final = ("created", "reset", "imported", "promoted")
"""Events that begin another model under the same key: its curve starts again."""
ALARM_LEVELS: Final = ("drift", "input")
"""Levels of drift events that are alarms: of errors, and of inputs."""
NEW_TREE: Final = ("new tree", "background tree took over")
"""Actions of a drift that replace a tree, so that its nodes are new."""
RENUMBERED: Final = ("efhat", "hat")
"""Learners whose nodes get other numbers without an event."""

Order = Literal["key", "records", "labels", "accuracy", "splits", "drifts", "last_ms", "drift_ms"]
ORDERS: Final = ("key", "records", "labels", "accuracy", "splits", "drifts", "last_ms", "drift_ms")

_SCHEMA: Final = f"""{TOPIC_TABLES}
CREATE TABLE model (
  key TEXT PRIMARY KEY, partition INTEGER NOT NULL, learner TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT '', records INTEGER NOT NULL DEFAULT 0, labels INTEGER NOT NULL DEFAULT 0,
  accuracy REAL, unbiased REAL, low REAL, high REAL,
  splits INTEGER NOT NULL DEFAULT 0, drifts INTEGER NOT NULL DEFAULT 0,
  last_ms INTEGER NOT NULL, drift_ms INTEGER NOT NULL DEFAULT 0, begun_ms INTEGER NOT NULL DEFAULT 0,
  points INTEGER NOT NULL DEFAULT 0, events INTEGER NOT NULL DEFAULT 0,
  stride INTEGER NOT NULL DEFAULT 1, skipped INTEGER NOT NULL DEFAULT 0, evaluation BLOB
) WITHOUT ROWID;
CREATE INDEX model_by_records ON model (records);
CREATE INDEX model_by_last ON model (last_ms);
CREATE TABLE point (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX point_by_key ON point (key, number);
CREATE TABLE event (
  number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, topic TEXT NOT NULL, offset INTEGER NOT NULL,
  kind TEXT NOT NULL, place TEXT NOT NULL, time_ms INTEGER NOT NULL, body BLOB NOT NULL,
  UNIQUE (key, topic, offset, kind, place)
);
CREATE INDEX event_by_key ON event (key, number);
CREATE TABLE split (
  key TEXT, node INTEGER, body BLOB NOT NULL, PRIMARY KEY (key, node)
) WITHOUT ROWID;
"""
_MEASURES: Final = tuple(field.name for field in fields(EvaluationRecord))
_NEWEST_ONLY: Final = ("per_class", "confusion", "learning_curve")
"""Fields that are kept of the newest evaluation alone: a curve does not show them."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation, as read from its topic."""

    key: str
    partition: int
    time_ms: int
    evaluation: EvaluationRecord


@dataclass(frozen=True, slots=True)
class Said:
    """A model event, as read from its topic."""

    key: str
    partition: int
    event: ModelEvent


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in a list."""

    key: str
    partition: int
    learner: str
    state: str  # "", "frozen" or "deleted"
    records: int
    labels: int
    accuracy: float | None  # on the labels that were requested
    splits: int
    drifts: int
    last_ms: int
    unbiased: float | None  # accuracy over all records, with its 95 % interval
    low: float | None
    high: float | None
    drift_ms: int  # time of the newest drift alarm; 0: none


def is_alarm(kind: str, detail: Mapping[str, Any]) -> bool:
    """Return whether an event is an alarm of a detector, and no warning or reaction."""
    return kind == "drift" and detail.get("level") in ALARM_LEVELS


class Watched(TopicCopy):
    """One file and one connection, which threads use in turn; `:memory:` for data that need not last."""

    schema, version = _SCHEMA, VERSION
    tables = ("origin", "position", "model", "point", "event", "split")

    def apply(
        self,
        evaluations: Iterable[Evaluated],
        events: Iterable[Said],
        positions: Mapping[tuple[str, int], int],
    ) -> None:
        """Store records, and the next offsets."""
        with self._transaction() as db:
            for event in events:
                self._event(event)
            for evaluated in evaluations:
                self._evaluation(evaluated)
            self._note(db, positions)

    def _model(self, key: str, partition: int, time_ms: int) -> None:
        self._connection.execute(
            "INSERT INTO model (key, partition, last_ms) VALUES (?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET last_ms = max(last_ms, excluded.last_ms)",
            [key, partition, time_ms],
        )

    def _evaluation(self, evaluated: Evaluated) -> None:
        """Keep every `stride`-th point; when there are too many, drop every second one."""
        run, key, evaluation = self._connection.execute, evaluated.key, evaluated.evaluation
        self._model(key, evaluated.partition, evaluated.time_ms)
        (begun,) = run("SELECT begun_ms FROM model WHERE key = ?", [key]).fetchone()
        if evaluated.time_ms < begun:
            return  # of an earlier model of the key; the topics are read side by side
        body = orjson.dumps(
            {name: getattr(evaluation, name) for name in _MEASURES} | {"time_ms": evaluated.time_ms}
        )
        figures = (
            evaluation.accuracy,
            evaluation.accuracy_unbiased,
            evaluation.accuracy_unbiased_low,
            evaluation.accuracy_unbiased_high,
        )
        defined = [None if math.isnan(figure) else figure for figure in figures]
        run(
            "UPDATE model SET records = max(records, ?), labels = ?, accuracy = ?, unbiased = ?, low = ?, "
            "high = ?, evaluation = ? WHERE key = ?",
            [evaluation.records, evaluation.labels, *defined, body, key],
        )
        points, stride, skipped = run(
            "SELECT points, stride, skipped FROM model WHERE key = ?", [key]
        ).fetchone()
        if skipped + 1 < stride:
            run("UPDATE model SET skipped = skipped + 1 WHERE key = ?", [key])
            return
        point = {name: getattr(evaluation, name) for name in _MEASURES if name not in _NEWEST_ONLY}
        body = orjson.dumps(point | {"time_ms": evaluated.time_ms})
        run("INSERT INTO point (key, body) VALUES (?, ?)", [key, body])
        points += 1
        if points >= POINTS_MAX:
            run(
                "DELETE FROM point WHERE number IN (SELECT number FROM (SELECT number, row_number() OVER "
                "(ORDER BY number) AS at FROM point WHERE key = ?) WHERE at % 2 = 1)",
                [key],
            )
            points, stride = points // 2, stride * 2
        run(
            "UPDATE model SET points = ?, stride = ?, skipped = 0 WHERE key = ?",
            [points, stride, key],
        )

    def _event(self, said_event: Said) -> None:
        run, key, event = self._connection.execute, said_event.key, said_event.event
        detail = event.detail
        body = orjson.dumps({name: getattr(event, name) for name in ModelEvent.__slots__})
        place = f"{detail.get('node')} {detail.get('pair')} {detail.get('member')}"
        entry = [key, event.topic, event.offset, event.event, place, event.time_ms, body]
        self._model(key, said_event.partition, event.time_ms)
        added = run(
            "INSERT OR IGNORE INTO event (key, topic, offset, kind, place, time_ms, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            entry,
        )
        if not added.rowcount:
            return  # the event was read before: delivery is at least once
        self._change(key, event, body)
        (events,) = run(
            "UPDATE model SET events = events + 1, records = max(records, ?), labels = max(labels, ?) "
            "WHERE key = ? RETURNING events",
            [event.records, event.version, key],
        ).fetchone()
        if events > EVENTS_MAX + EVENTS_MAX // 4:
            run(
                "DELETE FROM event WHERE key = ? AND number <= (SELECT number FROM event WHERE key = ? "
                "ORDER BY number DESC LIMIT 1 OFFSET ?)",
                [key, key, EVENTS_MAX],
            )
            run("UPDATE model SET events = ? WHERE key = ?", [EVENTS_MAX, key])

    def _change(self, key: str, event: ModelEvent, body: bytes) -> None:
        """Apply an event to the state of its model, and to the nodes of its tree."""
        run, kind, detail = self._connection.execute, event.event, event.detail
        number = detail.get("node")
        has_node = False
        node = 0  # without a number: all nodes may have been renumbered
        if isinstance(number, int) and 0 <= number <= LARGEST:
            has_node, node = True, number
        if kind in BEGINS or kind == "deleted":
            run("DELETE FROM split WHERE key = ?", [key])
            run("UPDATE model SET splits = 0, drifts = 0 WHERE key = ?", [key])
        if kind in BEGINS:
            run("DELETE FROM point WHERE key = ?", [key])
            run(
                "UPDATE model SET points = 0, stride = 1, skipped = 0, records = 0, labels = 0, "
                "accuracy = NULL, unbiased = NULL, low = NULL, high = NULL, drift_ms = 0, "
                "evaluation = NULL, state = '', begun_ms = ? WHERE key = ?",
                [event.time_ms, key],
            )
        if kind in ("deleted", "frozen", "unfrozen"):
            run("UPDATE model SET state = ? WHERE key = ?", [{"unfrozen": ""}.get(kind, kind), key])
        if isinstance(detail.get("learner"), str):
            run("UPDATE model SET learner = ? WHERE key = ?", [detail["learner"], key])
        if is_alarm(kind, detail):
            run(
                "UPDATE model SET drifts = drifts + 1, drift_ms = max(drift_ms, ?) WHERE key = ?",
                [event.time_ms, key],
            )
            if detail.get("action") in NEW_TREE and detail.get("member") is None:
                run("DELETE FROM split WHERE key = ?", [key])
        is_drawn = not detail.get("pair") and detail.get("member") is None and not self._renumbers(key)
        if kind in ("revised", "pruned") and detail.get("action") != "moved" and is_drawn:
            # The nodes after a removed subtree get other numbers, which the event does not contain.
            run("DELETE FROM split WHERE key = ? AND node >= ?", [key, node])
        if kind in ("split", "revised"):
            run("UPDATE model SET splits = splits + 1 WHERE key = ?", [key])
            if has_node and node < NODES_MAX and is_drawn:
                run("INSERT OR REPLACE INTO split VALUES (?, ?, ?)", [key, node, body])

    def _renumbers(self, key: str) -> bool:
        """Return whether the nodes of a model's tree are renumbered without an event."""
        row = self._connection.execute("SELECT learner FROM model WHERE key = ?", [key]).fetchone()
        return row is not None and row[0] in RENUMBERED

    # -- reading ------------------------------------------------------------------------------------------

    def models(
        self, search: str, order: str, *, descending: bool, first: int, count: int
    ) -> tuple[list[ModelRow], int]:
        """Return a page of the models whose keys contain a text, and the number of all such models."""
        by = order if order in ORDERS else "key"
        if by == "accuracy":
            by = "ifnull(unbiased, accuracy)"
        names = ", ".join(field.name for field in fields(ModelRow))
        where = "instr(lower(key), lower(?)) > 0" if search else "? = ''"
        direction = "DESC" if descending else "ASC"
        with self._turn:
            run = self._connection.execute
            rows = run(
                f"SELECT {names} FROM model WHERE {where} ORDER BY {by} {direction}, key LIMIT ? OFFSET ?",  # noqa: S608
                [search, count, first],
            ).fetchall()
            (total,) = run(f"SELECT count(*) FROM model WHERE {where}", [search]).fetchone()  # noqa: S608
        return [ModelRow(*row) for row in rows], total

    def model(self, key: str) -> ModelRow | None:
        """Return one model; None: no record of it has been read."""
        names = ", ".join(field.name for field in fields(ModelRow))
        with self._turn:
            row = self._connection.execute(f"SELECT {names} FROM model WHERE key = ?", [key]).fetchone()  # noqa: S608
        return None if row is None else ModelRow(*row)

    def evaluation(self, key: str) -> dict[str, Any] | None:
        """Return the newest evaluation of a model, NaN as None."""
        with self._turn:
            row = self._connection.execute("SELECT evaluation FROM model WHERE key = ?", [key]).fetchone()
        return None if row is None or row[0] is None else dict(orjson.loads(row[0]))

    def curve(self, key: str) -> list[dict[str, Any]]:
        """Return the stored evaluations of a model, oldest first, and the newest one."""
        with self._turn:
            rows = self._connection.execute(
                "SELECT body FROM point WHERE key = ? ORDER BY number", [key]
            ).fetchall()
        points: list[dict[str, Any]] = [orjson.loads(body) for (body,) in rows]
        newest = self.evaluation(key)
        if newest is not None:
            newest = {name: value for name, value in newest.items() if name not in _NEWEST_ONLY}
        if newest is not None and (not points or points[-1] != newest):
            points.append(newest)
        return points

    def events(
        self,
        key: str,
        kinds: Sequence[str] = (),
        *,
        first: int = 0,
        count: int = 50,
        oldest_first: bool = False,
    ) -> list[dict[str, Any]]:
        """Return events of a model, newest first unless oldest_first; kinds: only events of these kinds."""
        marks = ", ".join("?" * len(kinds))
        where = f"AND kind IN ({marks})" if kinds else ""
        direction = "ASC" if oldest_first else "DESC"
        with self._turn:
            rows = self._connection.execute(
                f"SELECT body FROM event WHERE key = ? {where} ORDER BY number {direction} LIMIT ? OFFSET ?",  # noqa: S608
                [key, *kinds, count, first],
            ).fetchall()
        return [orjson.loads(body) for (body,) in rows]

    def event_counts(self, key: str) -> dict[str, int]:
        """Return the number of stored events of a model by kind, the most frequent kind first."""
        with self._turn:
            rows = self._connection.execute(
                "SELECT kind, count(*) FROM event WHERE key = ? GROUP BY kind ORDER BY 2 DESC, kind", [key]
            ).fetchall()
        return dict(rows)

    def splits(self, key: str) -> dict[int, dict[str, Any]]:
        """Return, by node number, the event that gave the node its test; only nodes with a known event."""
        with self._turn:
            rows = self._connection.execute("SELECT node, body FROM split WHERE key = ?", [key]).fetchall()
        return {node: orjson.loads(body) for node, body in rows}
