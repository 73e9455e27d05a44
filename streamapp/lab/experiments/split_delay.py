"""Split delay: how much later than possible a schedule lets leaves split (VFS section 4; [D40]).

Two trees that grow apart cannot be compared leaf by leaf. Therefore one *ideal* tree grows with an attempt
at every record, and each of its leaves has a *shadow*: a model of one leaf that gets the leaf's records,
follows the schedule and never splits. When the ideal leaf splits:

- A schedule that waits for a weight is late by the rest of its interval, and makes one more attempt if
  there is a rest.
- IMAC is not late if it is due at that record. Otherwise its shadow continues with the records that pass
  the node, until it is due. Before its first attempt it is treated like a schedule that waits, with its
  cold start as the interval.

While a leaf is pure, its interval ends without an attempt, and the first impure record makes the attempt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import SchemaError
from core.events import Split
from core.layout.model import Ints
from core.layout.tree import CATEGORY, NUMERIC, Leaf, Tree
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from core.streams.base import Batch
from core.tree import views


@dataclass(slots=True)
class SplitDelay:
    """The results of a schedule beside the ideal tree."""

    attempts: int = 0
    """Attempts at impure leaves, including one for each split."""
    bound_delays: list[float] = field(default_factory=list)
    """For each split whose gap exceeded the bound: the weight by which it was late."""
    tie_delays: list[float] = field(default_factory=list)
    """For each split with a bound below τ: the weight by which it was late."""
    pending: int = 0
    """Splits for which the schedule was not due yet at the end of the stream."""

    @property
    def mean_bound_delay(self) -> float:
        """Mean over splits with a sufficient gap, the column of VFS Table 2; NaN if there are none."""
        return float(np.mean(self.bound_delays)) if self.bound_delays else math.nan

    @property
    def mean_tie_delay(self) -> float:
        """Mean over splits with a tie; NaN if there are none."""
        return float(np.mean(self.tie_delays)) if self.tie_delays else math.nan


def split_delay(
    stream: Iterable[Batch],
    schema: Schema,
    schedules: Sequence[str | dict[str, Any]],
    learner: dict[str, Any] | None = None,
) -> list[SplitDelay]:
    """Return the attempts and delays of several schedules on a stream (x float64[m, d], y int32[m]).

    A schedule is its name, or an object of learner parameters such as ``{"schedule": "osm",
    "grace_period": 100}``. ``learner`` has the parameters of the tree (by default H-Tree with the majority
    class). The schema must declare its classes and values, because shadows do not grow. Raises SchemaError
    for missing values, whose path depends on earlier records of the node.
    """
    common = {"name": "h-tree", "leaf_model": "mc"} | (learner or {})
    nominal = [i for i, attribute in enumerate(schema.attributes) if attribute.kind == "nominal"]
    ideal = _Ideal(schema, common)
    shadows = [
        _Shadows(schema, common | ({"schedule": schedule} if isinstance(schedule, str) else schedule))
        for schedule in schedules
    ]
    for x, y in stream:
        if not np.isfinite(x).all() or (x[:, nominal] < 0).any():
            msg = "x must have no missing values: split delays are measured on complete records"
            raise SchemaError(msg)
        splits = ideal.learn(x, y)
        start = 0
        for split in [*splits, None]:
            end = len(y) if split is None else split.row + 1
            rows = np.arange(start, end)
            for shadow in shadows:
                ideal.walk(x, rows, shadow, y)
                if split is not None:
                    shadow.split(split, ideal.children[split.node])
            if split is not None:
                ideal.splits_at[split.node] = ideal.done - len(y) + split.row
            start = end
    for shadow in shadows:
        shadow.close()
    return [shadow.result for shadow in shadows]


class _Ideal:
    """The ideal tree, and the path of a record through the tree at the time of the record."""

    def __init__(self, schema: Schema, learner: dict[str, Any]) -> None:
        every_record = {"schedule": "every_record", "grace_period": 100}
        spec = Spec.parse({"learner": learner | every_record, "evaluation": {"every": 0}})
        self.table = ModelTable()
        self.table.add(Model.create(spec, schema))
        self.done = 0
        self.children: dict[int, range] = {}
        self.splits_at: dict[int, int] = {}

    def learn(self, x: Any, y: Any) -> list[Split]:
        """Train the tree with a batch, return its splits."""
        answers = self.table.answer(np.zeros(len(y), dtype=np.int64), x, y, np.ones(len(y)))
        self.done += len(y)
        model = self.table.model(0)
        tree = views.tree_view(model.plan, model.ints, model.first)
        self.tree = tree.block
        splits = [event for event in answers.events if isinstance(event, Split)]
        for split in splits:
            node = self.tree.node(split.node)
            self.children[split.node] = range(node.child, node.child + node.children)
        return splits

    def walk(self, x: Any, rows: Ints, shadows: _Shadows, y: Any) -> None:
        """Give rows, between two splits, to the shadows on their path: of late nodes, and of their leaf."""
        waiting = [(0, rows)]
        while waiting:
            node, there = waiting.pop()
            if not len(there):
                continue
            if node not in self.splits_at:
                shadows.learn(node, x[there], y[there])
                continue
            if node in shadows.late:
                shadows.follow(node, x[there], y[there])
            branch = self._branches(node, x[there])
            waiting += [(child, there[branch == i]) for i, child in enumerate(self.children[node])]

    def _branches(self, number: int, x: Any) -> Any:
        node = self.tree.node(number)
        value = x[:, node.attribute]
        if node.kind == NUMERIC:
            branch = np.where(value <= node.value, 0, 1)
        elif node.kind == CATEGORY:
            branch = np.where(value == node.value, 0, 1)
        else:
            branch = value.astype(np.int64)
        return branch


class _Shadows:
    """One-leaf models by node of the ideal tree."""

    def __init__(self, schema: Schema, learner: dict[str, Any]) -> None:
        self.spec = Spec.parse({"learner": learner | {"max_leaves": 1}, "evaluation": {"every": 0}})
        self.schema = schema
        self.periodic = self.spec.learner.schedule.periodic
        self.table = ModelTable()
        self.index: dict[int, int] = {}
        self.only: dict[int, int] = {}  # the only class of each pure leaf
        self.late: dict[int, tuple[str, float]] = {}
        self.result = SplitDelay()

    def _model(self, node: int) -> Model:
        if node not in self.index:
            self.index[node] = self.table.add(Model.create(self.spec, self.schema))
            self.only[node] = -1
            self._wait(node, math.inf)
        return self.table.model(self.index[node])

    def _leaf(self, node: int) -> Leaf:
        """Return the leaf record of a node's shadow."""
        model = self._model(node)
        return Tree(model.ints, model.floats, model.first).leaf(0)

    def _wait(self, node: int, weight: float) -> None:
        self._leaf(node).next = weight

    def _answer(self, node: int, x: Any, y: Any) -> None:
        self.table.answer(np.full(len(y), self.index[node]), x, y, np.ones(len(y)))

    def learn(self, node: int, x: Any, y: Any) -> None:
        """Give rows of a leaf to its shadow; a pure leaf is never due."""
        self._model(node)
        if node in self.only:
            if self.only[node] < 0:
                self.only[node] = int(y[0])
            other = np.flatnonzero(y != self.only[node])
            alike = int(other[0]) if len(other) else len(y)
            self._answer(node, x[:alike], y[:alike])
            x, y = x[alike:], y[alike:]
            if len(y):
                del self.only[node]
                self._wait(node, self.spec.learner.schedule.first())
        if len(y):
            self._answer(node, x, y)

    def split(self, split: Split, children: range) -> None:
        """Note the delay of the shadow of a leaf that has split now."""
        node, leaf = split.node, self._leaf(split.node)
        kind = "tie" if split.reason == "tie" else "bound"
        attempts, observed = int(leaf.attempts), float(leaf.observed)
        self.result.attempts += attempts
        if attempts and leaf.evaluated == observed:
            self._finish(node, kind, 0.0)
        elif self.periodic or not attempts:
            self.result.attempts += 1
            self._finish(node, kind, float(leaf.next) - observed)
        else:
            self.late[node] = (kind, observed)

    def follow(self, node: int, x: Any, y: Any) -> None:
        """Give rows that pass a node to its late shadow, until it is due."""
        kind, since = self.late[node]
        for row in range(len(y)):
            self._answer(node, x[row : row + 1], y[row : row + 1])
            leaf = self._leaf(node)
            if leaf.evaluated == leaf.observed:
                del self.late[node]
                self.result.attempts += 1
                self._finish(node, kind, float(leaf.observed) - since)
                return

    def close(self) -> None:
        """Count the attempts at leaves that have not split, and the splits that are still missed."""
        self.result.pending = len(self.late)
        for node in self.index:
            if node not in self.late:
                self.result.attempts += int(self._leaf(node).attempts)

    def _finish(self, node: int, kind: str, delay: float) -> None:
        delays = self.result.tie_delays if kind == "tie" else self.result.bound_delays
        delays.append(max(delay, 0.0))
        self.table.remove(self.index.pop(node))
