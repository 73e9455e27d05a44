"""Runs of AFA's experiments: a model over a stream, tested on a holdout after some of the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from core.layout.model import Floats
from core.learners.ufodt.account import feature_account
from core.model.model import Model
from core.model_table import ANSWER_ONLY, LABELLED, NO_LABEL, ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.lab.experiments.base import Row

Holdout = Callable[[int], tuple[Floats, Any]]
"""Returns a test set, x float64[n, d] and y int32[n], for a number of learned records."""
Measure = Callable[[Any, Any], float]
"""Returns the utility of predicted classes, given the true classes."""


Prepare = Callable[[Model], None]
"""Prepares a model that has learned nothing."""


def nothing(model: Model) -> None:
    """Leave a model as it is."""


def accuracy(predicted: Any, actual: Any) -> float:
    return float((predicted == actual).mean())


def f1_of_class_1(predicted: Any, actual: Any) -> float:
    """Return the F1 score of the class with code 1, 0 if neither answers nor records have it."""
    hit = float(((predicted == 1) & (actual == 1)).sum())
    all_of_it = float((predicted == 1).sum() + (actual == 1).sum())
    return 2.0 * hit / all_of_it if all_of_it else 0.0


def weighted_f1(predicted: Any, actual: Any) -> float:
    """Return the F1 scores of the classes, weighted by their records."""
    total = 0.0
    for c in np.unique(actual).tolist():
        hit = float(((predicted == c) & (actual == c)).sum())
        wrong = float((predicted == c).sum() + (actual == c).sum())
        total += 2.0 * hit / wrong * float((actual == c).sum()) if wrong else 0.0
    return total / len(actual)


def holdout_run(
    spec: dict[str, Any],
    schema: Schema,
    x: Floats,
    y: Any,
    holdout: Holdout,
    every: int,
    measure: Measure = accuracy,
    prepare: Prepare = nothing,
) -> dict[str, Any]:
    """Run a model over a stream, test then train; test it on a holdout after every `every` records.

    The cost is the sum of the purchased features; a learner that cannot buy features pays for all of them.
    ``bought`` is the mean cost of a record since the last test, ``trained`` the utility of all predictions
    so far, ``right`` the accuracy on the holdout, with any measure of utility.
    """
    table, model = ModelTable(), Model.create(Spec.parse(spec), schema)
    prepare(model)
    table.add(model)
    steps: list[int] = []
    spent = [0.0]
    utility: list[float] = []
    right: list[float] = []
    bought: list[float] = []
    trained: list[float] = []
    predicted = np.empty(len(y), dtype=np.int64)
    for first in range(0, len(y), every):
        rows = slice(first, min(first + every, len(y)))
        n = rows.stop - first
        which = np.zeros(n, dtype=np.int64)
        predicted[rows] = table.answer(which, x[rows], y[rows], np.ones(n), LABELLED).prediction
        test_x, test_y = holdout(rows.stop)
        m = len(test_y)
        no_label = np.full(m, NO_LABEL, dtype=np.int32)
        tested = table.answer(np.zeros(m, dtype=np.int64), test_x, no_label, np.ones(m), ANSWER_ONLY)
        steps.append(rows.stop)
        utility.append(measure(tested.prediction, test_y))
        right.append(accuracy(tested.prediction, test_y))
        spent.append(spent_by(model, rows.stop))
        bought.append((spent[-1] - spent[-2]) / n)
        trained.append(measure(predicted[: rows.stop], y[: rows.stop]))
    is_ufodt = model.spec.learner.name == "ufodt"
    return {
        "steps": steps,
        "utility": utility,
        "right": right,
        "bought": bought,
        "trained": trained,
        "mean": float(np.mean(utility)),
        "accuracy": trained[-1],
        "hits": accuracy(predicted, y),
        "records": len(y),
        "cost": spent[-1],
        "region_differed": feature_account(model).region_differed if is_ufodt else 0,
    }


def spent_by(model: Model, records: int) -> float:
    """Return the cost of the features that a model has used."""
    if model.spec.learner.name == "ufodt":
        return feature_account(model).cost
    return float(model.schema.n_attributes * records)


def aggregate(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    n = len(values)
    spread = float(np.std(values, ddof=1)) if n > 1 else 0.0
    return float(np.mean(values)), spread / float(np.sqrt(n))


def mean_line(rows: Sequence[Row], name: str) -> tuple[tuple[float, float], ...]:
    """Return a curve averaged over runs with the same steps."""
    steps = [float(step) for step in rows[0]["steps"]]
    return tuple(zip(steps, np.mean([row[name] for row in rows], axis=0).tolist(), strict=True))
