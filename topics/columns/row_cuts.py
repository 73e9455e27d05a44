"""Row cuts: batches of columns cut and joined by row, whatever columns they have.

A column is an array or a sequence; None and tuples concern the batch as a whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from topics.columns.spans import Spans, Texts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Columns = TypeVar("Columns", bound="DataclassInstance")


def taken(columns: Columns, rows: list[int]) -> Columns:
    """Return some rows of a batch, in the given order."""
    return _made(type(columns), [_taken(column, rows) for column in _values(columns)])


def joined(parts: Sequence[Columns]) -> Columns:
    """Return the rows of several batches (at least one), which agree in what concerns them as a whole."""
    return _made(type(parts[0]), [_joined(columns) for columns in zip(*map(_values, parts), strict=True)])


def _made(kind: type[Columns], values: list[Any]) -> Columns:
    return kind(*values)


def _values(columns: DataclassInstance) -> list[Any]:
    return [getattr(columns, column.name) for column in dataclasses.fields(columns)]


def _taken(column: Any, rows: list[int]) -> Any:
    if column is None or isinstance(column, tuple):
        return column
    if isinstance(column, np.ndarray):
        return column[rows]
    return [column[row] for row in rows]


def _joined(columns: Sequence[Any]) -> Any:
    first = columns[0]
    if first is None or isinstance(first, tuple):
        return first
    if isinstance(first, np.ndarray):
        if first.ndim > 1:  # a batch may have columns beyond those that count
            width = min(column.shape[1] for column in columns)
            columns = [column[:, :width] for column in columns]
        return np.concatenate(columns)
    if all(isinstance(column, Texts) for column in columns):
        return Texts(Spans.joined([column.spans for column in columns]))
    return [*chain.from_iterable(columns)]
