"""Our H-Tree on rows in memory, one model in a table, in runs as in a worker."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Rows
from benchmarks.peers.result import Result, Task
from core import registry
from core.events import Split
from core.learners.hoeffding.learner import HoeffdingLearner
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec

RUN = 2000
"""Rows of a run: ``max.poll.records`` of a worker."""


@dataclass
class Trace:
    """Every prediction, and the splits in order with the record that caused them."""

    predictions: npt.NDArray[np.int32]
    splits: list[tuple[int, Split]] = field(default_factory=list)


def spec(task: Task, window: int = 1000) -> Spec:
    learner: dict[str, Any] = {"name": task.learner}
    if issubclass(registry.plugin("learners", task.learner), HoeffdingLearner):
        learner |= {"leaf_model": task.leaf_model, "compat": task.compat}
    if task.evidence is not None:
        learner["evidence"] = task.evidence
    if task.learner in ("h-tree", "efdt", "hat"):
        learner |= {
            "criterion": task.criterion,
            "grace_period": task.grace_period,
            "delta": task.delta,
            "tau": task.tau,
        }
    return Spec.parse({"learner": learner, "evaluation": {"window": window, "every": 0}})


def run(rows: Rows, task: Task, *, repeats: int = 5, size: int = RUN) -> Result:
    """Test-then-train over all rows, ``repeats`` times from the beginning; the first time also compiles."""
    seconds = []
    model = None
    _pass(rows.first(size), task, size)
    for _ in range(repeats):
        start = time.thread_time()
        model = _pass(rows, task, size)
        seconds.append(time.thread_time() - start)
    assert model is not None
    summary = model.summary()
    return Result(
        task.learner if task.learner != "h-tree" else "streamgrove",
        seconds,
        len(rows.y),
        model.evaluation().accuracy,
        summary.leaves,
        summary.splits,
        summary.depth,
        summary.attempts,
    )


def trace(rows: Rows, task: Task, size: int = RUN) -> tuple[Model, Trace]:
    """Test-then-train over all rows, keeping predictions and splits."""
    kept = Trace(np.empty(len(rows.y), np.int32))
    return _pass(rows, task, size, kept), kept


def _pass(rows: Rows, task: Task, size: int, kept: Trace | None = None) -> Model:
    table = ModelTable()
    schema = rows.schema_with_ranges if task.learner == "ufodt" else rows.schema
    index = table.add(Model.create(spec(task), schema))
    models = np.full(size, index, np.int64)
    weights = np.ones(size)
    for first in range(0, len(rows.y), size):
        x, y = rows.x[first : first + size], rows.y[first : first + size]
        answers = table.answer(models[: len(y)], x, y, weights[: len(y)])
        if kept is not None:
            kept.predictions[first : first + len(y)] = answers.prediction
            kept.splits += [(first + e.row, e) for e in answers.events if isinstance(e, Split)]
    return table.model(index)
