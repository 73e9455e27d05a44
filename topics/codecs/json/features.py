"""Features of JSON documents: rows with the same feature names become one matrix."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from topics.codecs.flaws import Flaw, Flaws, add_flaw, kind, quote
from topics.columns.records import Features, Floats
from topics.errors import Reason

_SHAPES = {dict, list}
_NUMBERS = {float, int, bool}


def gather(cells: Sequence[Any], flaws: Flaws, *, optional: bool = False) -> list[Features]:
    """Return the features of n cells, each an object by name or an array by position.

    With `optional`, null is a row without features; otherwise it is a flaw.
    """
    if not cells:
        return []
    types = set(map(type, cells))
    if optional and types == {type(None)}:
        return []
    if types == {dict}:
        names = list(cells[0])
        # Each row has at most len(names) different names, so equal concatenations mean equal rows.
        if names and list(chain.from_iterable(cells)) == names * len(cells):
            return [_matrix(tuple(names), range(len(cells)), cells, flaws)]
    return _by_shape(cells, flaws, optional)


def _by_shape(cells: Sequence[Any], flaws: Flaws, optional: bool) -> list[Features]:
    groups: dict[tuple[str, ...] | int, list[int]] = {}
    for row, cell in enumerate(cells):
        if type(cell) is dict:
            groups.setdefault(tuple(cell), []).append(row)
        elif type(cell) is list:
            groups.setdefault(len(cell), []).append(row)
        elif cell is not None:
            detail = f"features must be an object or an array; got {kind(cell)}"
            flaws.setdefault(row, Flaw(Reason.WRONG_TYPE, detail))
        elif not optional:
            flaws.setdefault(row, Flaw(Reason.MISSING_FIELD, "features are missing"))
    found = []
    for shape, rows in groups.items():
        if not shape:
            add_flaw(flaws, rows, Flaw(Reason.MISSING_FIELD, "features must not be empty"))
        else:
            names = None if isinstance(shape, int) else shape
            found.append(_matrix(names, rows, [cells[row] for row in rows], flaws))
    return found


def _matrix(
    names: tuple[str, ...] | None, rows: Sequence[int], cells: Sequence[Any], flaws: Flaws
) -> Features:
    if names is not None and "" in names:
        add_flaw(flaws, rows, Flaw(Reason.WRONG_TYPE, "a feature must have a name; got an empty one"))
    width = len(cells[0])
    lists = cells if names is None else map(dict.values, cells)
    flat = list(chain.from_iterable(lists))
    number = np.array(rows, dtype=np.int64)
    try:
        # This takes int, float and bool at C speed and refuses other types. JSON has no NaN, and orjson no
        # infinity.
        values = np.frombuffer(array("d", flat), dtype=np.float64).reshape(len(cells), width)
    except TypeError:
        return _columns(names, number, flat, width, flaws)
    return Features(names, number, values)


def _columns(
    names: tuple[str, ...] | None, rows: np.ndarray, flat: list[Any], width: int, flaws: Flaws
) -> Features:
    """Return the features of rows with strings, nulls or cells of a wrong type, column by column."""
    values = np.empty((len(rows), width))
    strings: dict[int, list[str | None]] = {}
    for column in range(width):
        cells = flat[column::width]
        types = set(map(type, cells))
        if types & _SHAPES:
            name = f"feature {column}" if names is None else f"feature {quote(names[column])}"
            for row, cell in zip(rows.tolist(), cells, strict=True):
                if type(cell) in _SHAPES:
                    detail = f"{name} must be a number, a string, a boolean or null; got {kind(cell)}"
                    flaws.setdefault(row, Flaw(Reason.WRONG_TYPE, detail))
        values[:, column] = _numbers(cells, types)
        if str in types:
            strings[column] = cells if types == {str} else [c if type(c) is str else None for c in cells]
    return Features(names, rows, values, strings)


def _numbers(cells: list[Any], types: set[type]) -> Floats | float:
    if types <= _NUMBERS:
        return np.frombuffer(array("d", cells), dtype=np.float64)
    if not types & _NUMBERS:
        return math.nan
    return np.array([cell if type(cell) in _NUMBERS else math.nan for cell in cells], dtype=np.float64)
