"""Arrow columns to numbers, texts and class names. Their types have been judged (layout.py)."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from topics.codecs.arrow.layout import is_text
from topics.codecs.cells import label_codes
from topics.codecs.flaws import Flaws
from topics.records import Floats, Ints32


def plain(column: pa.Array) -> pa.Array:
    """Return the column without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def numbers(column: pa.Array) -> Floats:
    """Return float64[n]; NaN where null. Integers beyond 2^53 are rounded."""
    column = plain(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    cells: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return cells


def texts(column: pa.Array) -> list[str | None]:
    """Return n strings; None where null."""
    if pa.types.is_dictionary(column.type):
        # One string object for each distinct value, not one for each row.
        distinct = [*column.dictionary.to_pylist(), None]
        return [distinct[code] for code in _codes(column).tolist()]
    cells: list[str | None] = column.to_pylist()
    return cells


def _codes(column: pa.DictionaryArray) -> np.ndarray:
    """Return int[n] into the dictionary; -1 where null."""
    indices = column.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(-1)
    codes: np.ndarray = indices.to_numpy()
    return codes


def cells(column: pa.Array) -> list[Any]:
    """Return n strings or whole numbers; None where null."""
    if is_text(column.type):
        return texts(column)
    found: list[Any] = plain(column).to_pylist()
    return found


def labels(column: pa.Array, flaws: Flaws) -> tuple[list[str], Ints32]:
    """Return the distinct class names and int32[n] into them (-1 where null)."""
    kind = column.type
    if pa.types.is_null(kind):
        return [], np.full(len(column), -1, dtype=np.int32)
    if not pa.types.is_dictionary(kind):
        if pa.types.is_floating(kind):
            column = column.cast(pa.float64())
        elif pa.types.is_string_view(kind):
            column = column.cast(pa.string())
        column = column.dictionary_encode()
    code = _codes(column)
    bad: Flaws = {}
    names, number = label_codes([*column.dictionary.to_pylist(), None], bad)
    for cell, flaw in bad.items():
        for row in np.flatnonzero(code == cell).tolist():
            flaws.setdefault(row, flaw)
    return only_used(names, number[code])


def only_used(names: list[str], label: Ints32) -> tuple[list[str], Ints32]:
    """Drop the class names that no row has: of a dictionary, of bad rows."""
    present = np.zeros(len(names) + 1, dtype=np.bool_)  # the last element stands for -1, no label
    present[label] = True
    if present[:-1].all():
        return names, label
    number = np.append(np.cumsum(present[:-1]) - 1, -1)
    return list(compress(names, present)), number[label].astype(np.int32)
