"""A binary tree over a stream: its performance and leaves at every sample, from one pass over long batches.

One call of the table answers a batch, and not one call each sample. The curve needs the number of leaves at
each sample, which follows from the splits: each is an event with its record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from core.events import Split
from core.kernels import jit
from core.layout.model import Ints
from core.model.model import Model
from core.model_table import ON_REQUEST, ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.lab.experiments.cdt.cdt_systems import by_leaves
from streamapp.lab.experiments.trace import Batch, f1_of_rarer


def grow(
    spec: dict[str, Any], schema: Schema, batches: Iterable[Batch], sample: int, *, by_f1: bool = False
) -> dict[str, Any]:
    """Return the results of a cell: those of ``trace`` for a tree of two classes that only splits in two.

    Performance is the accuracy over all records, or by_f1 the F1 of the rarer class; ``by_leaves`` has it for
    each number of leaves, at the last sample with that number. Answers of a model without classes count as
    wrong. Raises RuntimeError if the leaves are not those of the splits.
    """
    table = ModelTable()
    index = table.add(Model.create(Spec.parse(spec), schema))
    jit.warm()
    counts, leaves, records = np.zeros(4, np.int64), 1, 0
    curve: list[tuple[int, float, int]] = []
    for x, y in batches:
        n = len(y)
        answers = table.answer(np.full(n, index, np.int64), x, y, np.ones(n), ON_REQUEST)
        answered = np.where(answers.prediction >= 0, answers.prediction, (y == 0).astype(np.int32))
        pair = 2 * y.astype(np.int64) + answered
        ends = np.arange(sample - records % sample, n + 1, sample)
        at_ends = counts + _pairs_before(pair, ends)
        splits = np.array([event.row for event in answers.events if isinstance(event, Split)], np.int64)
        sizes = leaves + np.searchsorted(splits, ends)
        for end, of_pairs, size in zip(ends.tolist(), at_ends, sizes.tolist(), strict=True):
            curve.append((records + end, _performance(of_pairs, by_f1=by_f1), size))
        counts = counts + np.bincount(pair, minlength=4)
        leaves, records = leaves + len(splits), records + n
    summary = table.model(index).summary()
    if summary.leaves != leaves:
        message = f"leaves={summary.leaves} of the tree must be {leaves}, one more than its splits"
        raise RuntimeError(message)
    return {
        "performance": _performance(counts, by_f1=by_f1),
        "leaves": leaves,
        "attempts": summary.attempts,
        "by_leaves": by_leaves(curve),
    }


def _pairs_before(pair: Ints, ends: Ints) -> Ints:
    """Return how often each pair of label and answer occurs before each end, int64[end, 4]."""
    cumulated = np.cumsum(pair[:, np.newaxis] == np.arange(4), axis=0, dtype=np.int64)
    before: Ints = cumulated[ends - 1]
    return before


def _performance(counts: Ints, *, by_f1: bool) -> float:
    """Return accuracy or F1; counts: int64[4], by 2 · label + answer."""
    if by_f1:
        return f1_of_rarer(counts.reshape(2, 2))
    return float((counts[0] + counts[3]) / max(int(counts.sum()), 1))
