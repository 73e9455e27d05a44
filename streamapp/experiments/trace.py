"""A model over a stream, test then train, with what the experiments plot: accuracy, leaves, time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core import jit
from core.features import Schema
from core.model import Model, Summary
from core.model_table import ON_REQUEST, ModelTable
from core.spec import Spec

Batch = tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]

WINDOW = 1000


@dataclass(frozen=True)
class Trace:
    """What a run has left behind."""

    summary: Summary
    accuracy: float
    """Over all records."""
    window_accuracy: float
    """Mean of the accuracies of the last 1000 records, taken at every sample [D13]."""
    seconds: float
    """Processor time of answering and learning alone: making or reading the records does not count."""
    curve: list[tuple[int, float, int]]
    """At every sample: records, accuracy so far, leaves."""
    f1_rarer: float
    model: Model


def trace(
    spec: str | dict[str, Any] | Spec, schema: Schema, batches: Iterable[Batch], sample: int = 10_000
) -> Trace:
    """Run a model over a stream; sample: records between two points of the curve."""
    table = ModelTable()
    index = table.add(Model.create(Spec.parse(spec), schema))
    jit.warm()
    last = np.zeros(0, np.bool_)
    hits = records = 0
    seconds = 0.0
    windows, curve = [], []
    for x, y in _cut(batches, sample):
        n = len(y)
        which, ones = np.full(n, index, np.int64), np.ones(n)
        began = time.process_time()
        answers = table.answer(which, x, y, ones, ON_REQUEST)
        seconds += time.process_time() - began
        hit = answers.prediction == y
        hits += int(hit.sum())
        records += n
        last = np.concatenate((last, hit))[-WINDOW:]
        if records % sample == 0:
            windows.append(float(last.mean()))
            curve.append((records, hits / records, table.model(index).summary().leaves))
    model = table.model(index)
    return Trace(
        summary=model.summary(),
        accuracy=hits / max(records, 1),
        window_accuracy=float(np.mean(windows)) if windows else hits / max(records, 1),
        seconds=seconds,
        curve=curve,
        f1_rarer=model.evaluation().f1_rarer,
        model=model,
    )


def _cut(batches: Iterable[Batch], sample: int) -> Iterable[Batch]:
    """Yield the records in parts that end wherever a sample is due."""
    records = 0
    for x, y in batches:
        first = 0
        while first < len(y):
            n = min(len(y) - first, sample - records % sample)
            yield x[first : first + n], y[first : first + n]
            first += n
            records += n
