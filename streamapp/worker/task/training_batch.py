"""Training batch: the labels of a run that are to be learned, as columns for one kernel call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from topics.columns.records import Ints32, Ints64


class TrainingRow(NamedTuple):
    """A label to learn, or (DECLINED) a request that ends without one."""

    row: int
    slot: int
    serial: int  # of the pending instance whose features it takes; -1: it has features, or needs none
    code: int
    predicted: int  # class code answered, -1: not known
    requested: bool  # its request was open
    sampled: int  # whether and for what its record was sampled (core/active/label_account.py)
    importance: float  # inverse-probability weight of the label


class TrainingColumns(NamedTuple):
    """m labels to learn."""

    row: Ints64  # int64[m], ascending
    slot: Ints64
    serial: Ints64
    code: Ints32
    predicted: Ints32
    requested: npt.NDArray[np.bool_]
    sampled: npt.NDArray[np.int8]
    importance: npt.NDArray[np.float64]


_TYPES = (np.int64, np.int64, np.int64, np.int32, np.int32, np.bool_, np.int8, np.float64)


class TrainingBatch:
    """Collects rows to learn, one at a time or many at once."""

    def __init__(self) -> None:
        self._parts: list[TrainingColumns] = []
        self._single: list[TrainingRow] = []

    def add(self, row: TrainingRow) -> None:
        """Add the next row."""
        self._single.append(row)

    def add_all(self, training: TrainingColumns) -> None:
        """Add the next rows."""
        self._close()
        self._parts.append(training)

    def columns(self) -> TrainingColumns:
        """Return all rows in the order in which they were added."""
        self._close()
        if len(self._parts) == 1:
            return self._parts[0]
        return _columns(map(np.concatenate, zip(_columns(()), *self._parts, strict=True)))

    def _close(self) -> None:
        """Turn the single rows into columns."""
        if self._single:
            self._parts.append(_columns(zip(*self._single, strict=True)))
            self._single = []


def _columns(cells: Iterable[Any]) -> TrainingColumns:
    """Return columns of their types; empty columns if there are no cells."""
    rows = [*cells] or [()] * len(_TYPES)
    return TrainingColumns(*[np.array(column, dtype=kind) for kind, column in zip(_TYPES, rows, strict=True)])
