"""Arrow columns to numbers, texts and class names."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from topics.codecs.cells import label_codes
from topics.codecs.flaws import Flaw, Flaws, quote
from topics.errors import Reason
from topics.records import Floats, Ints32


class UnreadableColumn(Exception):  # noqa: N818  (never leaves the package)
    """A column whose type has no place in a record."""

    def __init__(self, name: str, wanted: str, given: pa.DataType) -> None:
        """Say which column it is."""
        self.flaw = Flaw(Reason.WRONG_TYPE, f"column {quote(name)} must hold {wanted}; got {given}")
        super().__init__(self.flaw.detail)


def cell_type(column: pa.Array) -> pa.DataType:
    """Return the type of the cells, whether dictionary-encoded or not."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def is_number(kind: pa.DataType) -> bool:
    """Return whether cells of this type are numbers; booleans count as 1 and 0."""
    types = pa.types
    return bool(
        types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Return whether cells of this type are strings."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def plain(column: pa.Array) -> pa.Array:
    """Return the column without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def numbers(name: str, column: pa.Array) -> Floats:
    """Return float64[n]; NaN where null. Integers beyond 2^53 are rounded."""
    if not is_number(cell_type(column)):
        raise UnreadableColumn(name, "numbers", column.type)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not pa.types.is_float64(column.type):
        column = plain(column).cast(pa.float64(), safe=False)
    cells: Floats = column.to_numpy(zero_copy_only=False)
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
    """Return int64[n] into the dictionary; -1 where null."""
    indices = column.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(-1)
    codes: np.ndarray = indices.to_numpy()
    return codes


def cells(name: str, column: pa.Array) -> list[Any]:
    """Return n strings or whole numbers; None where null."""
    kind = cell_type(column)
    if is_text(kind):
        return texts(column)
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        found: list[Any] = plain(column).to_pylist()
        return found
    raise UnreadableColumn(name, "strings or whole numbers", column.type)


def labels(name: str, column: pa.Array, flaws: Flaws) -> tuple[list[str], Ints32]:
    """Return the distinct class names and int32[n] into them (-1 where null)."""
    kind = cell_type(column)
    if not (is_text(kind) or is_number(kind)):
        raise UnreadableColumn(name, "class names", column.type)
    if pa.types.is_null(kind):
        return [], np.full(len(column), -1, dtype=np.int32)
    if not pa.types.is_dictionary(column.type):
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


def booleans(name: str, column: pa.Array) -> np.ndarray:
    """Return bool[n]; False where null."""
    if not (pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
        raise UnreadableColumn(name, "booleans", column.type)
    return np.array([cell is True for cell in column.to_pylist()], dtype=np.bool_)
