"""Arrow columns to numbers, texts and class names. The types are checked before (layout.py)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topics.codecs.arrow.layout import is_text
from topics.codecs.cells import label_codes
from topics.codecs.flaws import Flaws
from topics.columns.records import Floats, Ints32

KEPT_CLASSES = 64  # classes of a dictionary; with more the rest of the work dominates
KEPT = 256


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


def text_bytes_within(batch: pa.RecordBatch, views: Sequence[int], size: int) -> bool:
    """Return whether each column of string views holds at most `size` bytes of text: views may overlap.

    `views` are the columns with views, directly or in their dictionary.
    """
    for place in views:
        column = batch.column(place)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary
        if int(_lengths(column).sum()) > size:
            return False
    return True


def text_bytes(batch: pa.RecordBatch, shared: Sequence[int], longest: int) -> int:
    """Return the bytes of the texts that cells share (by dictionaries or views), counted once per row.

    `shared` are the columns with such texts. Texts of more than `longest` bytes do not count: their rows are
    refused.
    """
    total = 0
    for place in shared:
        column = batch.column(place)
        if pa.types.is_string_view(column.type):
            total += int(_kept(_lengths(column), longest).sum())
        else:
            lengths = np.append(_kept(_lengths(column.dictionary), longest), 0)
            total += int(lengths[_codes(column)].sum())
    return total


def most_text_bytes(batch: pa.RecordBatch, shared: Sequence[int], longest: int) -> int:
    """Return an upper bound of `text_bytes`: each row counts as the longest text of its column."""
    total = 0
    for place in shared:
        column = batch.column(place)
        texts = column.dictionary if pa.types.is_dictionary(column.type) else column
        total += min(longest, texts.get_total_buffer_size()) * len(column)
    return total


def _kept(lengths: npt.NDArray[np.int64], longest: int) -> npt.NDArray[np.int64]:
    return np.where(lengths <= longest, lengths, 0)


def _lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return int64[n]: the bytes of each text, 0 where null."""
    if not pa.types.is_string_view(column.type) or not len(column):
        found: npt.NDArray[np.int64] = pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
        return found
    views = np.frombuffer(column.buffers()[1], dtype=np.int32)  # the length is the first of four numbers
    lengths = views[4 * column.offset : 4 * (column.offset + len(column)) : 4].astype(np.int64)
    given: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(given, lengths, 0)


def texts(column: pa.Array) -> list[str | None]:
    """Return n strings; None where null."""
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        column = column.dictionary.take(column.indices)  # a large dictionary of which few values are used
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
    is_given = pa.types.is_dictionary(kind)  # a dictionary may hold values that no row has
    if not is_given:
        if pa.types.is_floating(kind):
            column = column.cast(pa.float64())
        elif pa.types.is_string_view(kind):
            column = column.cast(pa.string())
        column = column.dictionary_encode()
    code = _codes(column)
    values = tuple(column.dictionary.to_pylist())
    if is_text(kind) and len(values) <= KEPT_CLASSES and all(values):
        names, number = _class_names(values)
        label = number[code]
        return only_used(list(names), label) if is_given else (list(names), label)
    bad: Flaws = {}
    found, number = label_codes([*values, None], bad)
    for cell, flaw in bad.items():
        for row in np.flatnonzero(code == cell).tolist():
            flaws.setdefault(row, flaw)
    return only_used(found, number[code])


@lru_cache(maxsize=KEPT)
def _class_names(values: tuple[str, ...]) -> tuple[tuple[str, ...], Ints32]:
    """Return the class names in a dictionary of texts, and the number of each text's class, -1 as the last
    element.
    """
    names, number = label_codes([*values, None], {})
    return tuple(names), number


def only_used(names: list[str], label: Ints32) -> tuple[list[str], Ints32]:
    """Drop class names that no row has; they come from dictionaries and from bad rows."""
    present = np.zeros(len(names) + 1, dtype=np.bool_)  # the last element stands for -1, no label
    present[label] = True
    if present[:-1].all():
        return names, label
    number = np.append(np.cumsum(present[:-1]) - 1, -1)
    return list(compress(names, present)), number[label].astype(np.int32)
