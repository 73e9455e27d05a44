"""A model over a stream, test then train, with the measures of the experiments: accuracy, leaves, time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.kernels import jit
from core.model.model import Model, Summary
from core.model_table import ON_REQUEST, ModelTable
from core.schema.schema import Schema
from core.spec import Spec

Batch = tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]

WINDOW = 1000


@dataclass(frozen=True)
class Trace:
    """The measures of a run."""

    summary: Summary
    accuracy: float
    """Over all records."""
    window_accuracy: float
    """Mean of the accuracies of the last 1000 records, taken at every sample [D13]."""
    seconds: float
    """Processor time of answering and learning alone, without making or reading the records."""
    curve: list[tuple[int, float, int]]
    """At every sample: records, accuracy (or F1) so far, leaves."""
    f1_rarer: float
    """F1 of the rarer class over all records, whether their labels were learned or not."""
    model: Model


def trace(
    spec: str | dict[str, Any] | Spec,
    schema: Schema,
    batches: Iterable[Batch],
    sample: int = 10_000,
    *,
    by_f1: bool = False,
    table: ModelTable | None = None,
) -> Trace:
    """Run a model over a stream; sample: records between two points of the curve.

    Labels are learned only if the model's strategy requests them, and all are counted. by_f1: the curve
    has the F1 of the rarer class instead of the accuracy. table: runs the model.
    """
    table = ModelTable() if table is None else table
    index = table.add(Model.create(Spec.parse(spec), schema))
    jit.warm()
    last = np.zeros(0, np.bool_)
    counts = np.zeros((max(schema.n_classes, 1),) * 2, np.int64)
    records = 0
    seconds = 0.0
    windows, curve = [], []
    for x, y in _cut(batches, sample):
        n = len(y)
        which, ones = np.full(n, index, np.int64), np.ones(n)
        began = time.process_time()
        answers = table.answer(which, x, y, ones, ON_REQUEST)
        seconds += time.process_time() - began
        # A model without classes answers -1, which is counted as a wrong class: 0, or 1 if the label is 0.
        answered = np.where(answers.prediction >= 0, answers.prediction, (y == 0).astype(np.int32))
        np.add.at(counts, (y, answered), 1)
        records += n
        last = np.concatenate((last, answered == y))[-WINDOW:]
        if records % sample == 0:
            windows.append(float(last.mean()))
            measured = f1_of_rarer(counts) if by_f1 else np.trace(counts) / records
            curve.append((records, float(measured), table.model(index).summary().leaves))
    model = table.model(index)
    accuracy = float(np.trace(counts) / max(records, 1))
    return Trace(
        summary=model.summary(),
        accuracy=accuracy,
        window_accuracy=float(np.mean(windows)) if windows else accuracy,
        seconds=seconds,
        curve=curve,
        f1_rarer=f1_of_rarer(counts),
        model=model,
    )


def f1_of_rarer(counts: npt.NDArray[np.int64]) -> float:
    """Return the F1 of the class with the fewest labels; counts: int64[label, prediction]."""
    actual, predicted = counts.sum(axis=1), counts.sum(axis=0)
    rarer = int(np.argmin(np.where(actual > 0, actual, actual.sum() + 1)))
    both = int(actual[rarer] + predicted[rarer])
    return 2.0 * float(counts[rarer, rarer]) / both if both else 0.0


def in_memory(x: npt.NDArray[np.float64], y: npt.NDArray[np.int32], size: int = 8192) -> Iterator[Batch]:
    """Yield records in memory (x float64[n, d], y int32[n]) in batches."""
    for first in range(0, len(y), size):
        yield np.ascontiguousarray(x[first : first + size]), y[first : first + size]


def _cut(batches: Iterable[Batch], sample: int) -> Iterable[Batch]:
    """Yield the records in parts that end at each sample."""
    records = 0
    for x, y in batches:
        first = 0
        while first < len(y):
            n = min(len(y) - first, sample - records % sample)
            yield x[first : first + n], y[first : first + n]
            first += n
            records += n
