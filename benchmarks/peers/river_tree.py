"""River's HoeffdingTreeClassifier on rows in memory."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.datasets import Rows
from benchmarks.peers.result import Result, Task

ENOUGH = 60.0
"""Seconds after which River's runs are no longer repeated."""


def run(rows: Rows, task: Task, *, repeats: int = 5) -> Result:
    """Test-then-train over all rows; dictionaries are made beforehand.

    Raises ImportError if River is not installed.
    """
    from river.tree import HoeffdingTreeClassifier

    return _timed("river", HoeffdingTreeClassifier, rows, task, repeats)


def run_efdt(rows: Rows, task: Task, *, repeats: int = 5) -> Result:
    """Do the same with River's EFDT."""
    from river.tree import ExtremelyFastDecisionTreeClassifier

    return _timed("river-efdt", ExtremelyFastDecisionTreeClassifier, rows, task, repeats)


def _timed(system: str, learner: Any, rows: Rows, task: Task, repeats: int) -> Result:
    records = [dict(enumerate(row)) for row in rows.x.tolist()]
    labels = rows.y.tolist()
    nominal = [i for i, values in enumerate(rows.attributes) if values is not None]
    seconds: list[float] = []
    tree: Any = None
    right = 0
    for _ in range(repeats):
        tree = learner(
            grace_period=task.grace_period,
            delta=task.delta,
            tau=task.tau,
            leaf_prediction=task.leaf_model,
            split_criterion=task.criterion,
            nominal_attributes=nominal,
            max_size=1e6,
            memory_estimate_period=2**31,
        )
        predict, learn = tree.predict_one, tree.learn_one
        right = 0
        start = time.thread_time()
        for record, label in zip(records, labels, strict=True):
            right += predict(record) == label
            learn(record, label)
        seconds.append(time.thread_time() - start)
        if sum(seconds) > ENOUGH:
            break
    return Result(
        system,
        seconds,
        len(labels),
        right / len(labels),
        tree.n_leaves,
        tree.n_branches,
        tree.height,
    )
