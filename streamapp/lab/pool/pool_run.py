"""Pool run: a data set is read whole, split into pool and test set, and labelled by one system."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.kernels import jit
from core.layout.model import Floats
from core.schema.schema import Schema
from streamapp.errors import UsageError
from streamapp.lab.datasets import FollowingSchema
from streamapp.lab.pool.pool_protocol import Point, Records, label_counts, label_pool, split
from streamapp.lab.pool.pool_specs import Maker

if TYPE_CHECKING:
    from topics.readers import Dataset

CELL_BYTES = 8
MAX_BYTES = 2 << 30
"""Limit of all rows, 8 bytes a value; memory holds them twice while pool and test set are copied."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a pool."""

    curve: list[Point]
    pool: int
    """Rows of the pool."""
    test: int
    """Rows of the test set."""
    without_label: int
    """Rows of the file that have no label and were left out."""

    def figures(self) -> dict[str, Any]:
        """Return the figures of `grove pool --json`."""
        last = self.curve[-1]
        return {
            "accuracy": last.accuracy,
            "labels": last.labels,
            "leaves": last.leaves,
            "pool": self.pool,
            "test": self.test,
            "rows_without_label": self.without_label,
            "curve": [
                {"labels": point.labels, "accuracy": point.accuracy, "leaves": point.leaves}
                for point in self.curve
            ],
        }


def read_records(
    dataset: Dataset, max_classes: int = 1024, max_bytes: int = MAX_BYTES
) -> tuple[Records, int]:
    """Return the labelled rows of a data set, and the number of rows without a label.

    The schema is complete after this, and takes no further values. UsageError if no row has a label, or if
    the labelled rows take more than ``max_bytes``.
    """
    following = FollowingSchema(dataset, max_classes)
    width = len(dataset.names)
    xs, ys = [], []
    rows = labelled = 0
    for x, y in dataset.batches():
        following.follow((x, y))
        kept = y >= 0
        xs.append(x[kept])
        ys.append(y[kept].astype(np.int64))
        rows += len(y)
        labelled += len(ys[-1])
        if labelled * width * CELL_BYTES > max_bytes:
            message = (
                f"{labelled:,} rows of {width:,} attributes so far take over {max_bytes:,} bytes, "
                "and a pool lies in memory: leave attributes out with --ignore, take fewer rows, or raise "
                "--max-bytes"
            )
            raise UsageError(message)
    if not labelled:
        message = f"none of {rows} rows has a label; name the class column with --target"
        raise UsageError(message)
    grown = following.current
    attributes = [dataclasses.replace(a, open=False) for a in grown.attributes]
    schema = Schema.of(attributes, grown.classes, max_classes=max(grown.n_classes, 1))
    return Records(schema, _joined(xs, labelled, width), np.concatenate(ys)), rows - labelled


def _joined(batches: list[Floats], rows: int, width: int) -> Floats:
    """Return batches as one array, and free each batch once it is copied, to save memory."""
    joined = np.empty((rows, width))
    end = rows
    while batches:
        batch = batches.pop()
        joined[end - len(batch) : end] = batch
        end -= len(batch)
    return joined


def run_pool(
    make: Maker,
    dataset: Dataset,
    budget: int,
    test_share: float,
    seed: int,
    advance: Callable[[int], None] = lambda _: None,
    max_bytes: int = MAX_BYTES,
) -> Outcome:
    """Label a pool of a data set; UsageError if it has fewer rows than the budget, or more than fit."""
    check_share(test_share)
    records, left_out = read_records(dataset, max_bytes=max_bytes)
    pool_rows, test_rows = split(len(records.y), test_share, seed)
    if not len(pool_rows) or not len(test_rows):
        message = (
            f"--test {test_share} leaves {len(pool_rows)} rows to the pool and {len(test_rows)} to the test "
            f"set, of {len(records.y)} with a label; both need one"
        )
        raise UsageError(message)
    if budget > len(pool_rows):
        message = (
            f"--budget {budget} must be at most the {len(pool_rows)} rows of the pool (--test {test_share} "
            f"keeps {len(test_rows)} of {len(records.y)} rows with a label): lower it"
        )
        raise UsageError(message)
    pool, test = records.part(pool_rows), records.part(test_rows)
    del records
    jit.warm()
    system = make(pool.schema, pool.x)
    curve = label_pool(system, pool, test, budget, seed, label_counts(budget), advance)
    return Outcome(curve, len(pool.y), len(test.y), left_out)


def check_share(share: float) -> None:
    """Refuse a share that leaves no pool or no test set."""
    if not (math.isfinite(share) and 0.0 < share < 1.0):
        message = (
            f"--test {share} must be above 0 and below 1: the share of the rows that are kept for the test"
        )
        raise UsageError(message)
