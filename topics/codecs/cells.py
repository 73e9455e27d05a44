"""Columns of parsed cells: ids, labels, weights and texts, each with the flaws of its rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from topics.codecs.flaws import Flaw, Flaws, add_flaw, kind
from topics.columns.records import MAX_WEIGHT, Floats, Ints32, weight_rule
from topics.errors import Reason

_NONE = type(None)


def codes(cells: Sequence[Hashable]) -> tuple[list[Any], Ints32]:
    """Return the distinct cells in order of appearance and int32[n] into them."""
    distinct = list(dict.fromkeys(cells))
    code = {cell: number for number, cell in enumerate(distinct)}
    return distinct, np.fromiter(map(code.__getitem__, cells), np.int32, len(cells))


def class_name(cell: object) -> str | None:
    """Return the canonical class name of a label, or None.

    >>> class_name(1.0), class_name(True), class_name("spam"), class_name(0.5)
    ('1', 'true', 'spam', None)
    """
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else None
    return str(cell) if isinstance(cell, int) else None


def label_codes(cells: Sequence[Any], flaws: Flaws) -> tuple[list[str], Ints32]:
    """Return the distinct class names and int32[n] into them (-1 where the cell is null)."""
    n = len(cells)
    types = set(map(type, cells))
    if types == {_NONE}:
        return [], np.full(n, -1, dtype=np.int32)
    if types & {dict, list}:  # not hashable, and not labels
        odd = [row for row, cell in enumerate(cells) if isinstance(cell, dict | list)]
        for row in odd:
            flaws.setdefault(row, _label_flaw(cells[row]))
        cells = [None if isinstance(cell, dict | list) else cell for cell in cells]
    # In Python 1 == 1.0 == True, but the class "true" is not the class "1": compare by type, too.
    mixed = bool in types and len(types - {_NONE, str}) > 1
    distinct, code = codes([(type(cell), cell) for cell in cells] if mixed else cells)
    names: dict[str, int] = {}
    number = np.empty(len(distinct), dtype=np.int32)
    for i, cell in enumerate(distinct):
        value = cell[1] if mixed else cell
        name = class_name(value)
        number[i] = -1 if name is None else names.setdefault(name, len(names))
        if name is None and value is not None:
            add_flaw(flaws, np.flatnonzero(code == i), _label_flaw(value))
    return list(names), number[code]


def _label_flaw(cell: object) -> Flaw:
    given = "an empty string" if cell == "" else kind(cell)
    if isinstance(cell, float):
        given = f"{cell}"
    return Flaw(Reason.WRONG_TYPE, f"label must be a class name, a whole number, true or false; got {given}")


def weights(cells: Sequence[Any], flaws: Flaws) -> Floats:
    """Return float64[n]; 1.0 where the cell is null."""
    types = set(map(type, cells))
    if types == {_NONE}:
        return np.ones(len(cells))
    if not types <= {int, float, _NONE}:
        for row, cell in enumerate(cells):
            if type(cell) not in (int, float, _NONE):
                flaws.setdefault(row, Flaw(Reason.WRONG_TYPE, f"weight must be a number; got {kind(cell)}"))
        cells = [cell if type(cell) in (int, float) else None for cell in cells]
    column = np.array([1.0 if cell is None else cell for cell in cells], dtype=np.float64)
    check_weights(column, flaws)
    return column


def check_weights(column: Floats, flaws: Flaws) -> None:
    """Note the rows whose weight is not above 0 and at most MAX_WEIGHT."""
    good = (column > 0) & (column <= MAX_WEIGHT)
    if not good.all():
        for row in np.flatnonzero(~good).tolist():
            flaws.setdefault(row, Flaw(Reason.BAD_WEIGHT, weight_rule(column[row])))


def texts(name: str, cells: Sequence[Any], flaws: Flaws) -> list[str | None]:
    """Return n texts, whole numbers as their digits, None where the cell is null."""
    types = set(map(type, cells))
    if types == {_NONE} or (types <= {str, _NONE} and "" not in cells):
        return list(cells)
    column: list[str | None] = []
    for row, cell in enumerate(cells):
        given = type(cell)
        if given is int:
            column.append(str(cell))
        elif cell is None or (given is str and cell):
            column.append(cell)
        else:
            what = "an empty string" if cell == "" else kind(cell)
            detail = f"{name} must be a string or a whole number; got {what}"
            flaws.setdefault(row, Flaw(Reason.WRONG_TYPE, detail))
            column.append(None)
    return column


def ids_or(cells: Sequence[Any], defaults: Callable[[], Sequence[str]], flaws: Flaws) -> Sequence[str]:
    """Return n ids: given by the producer, else the default of the row."""
    if set(map(type, cells)) == {_NONE}:
        return defaults()
    given = texts("id", cells, flaws)
    if None not in given:
        return given  # type: ignore[return-value]
    return [default if cell is None else cell for cell, default in zip(given, defaults(), strict=True)]


def required_ids(cells: Sequence[Any], flaws: Flaws) -> list[str]:
    """Return n ids; a row without an id gets a flaw and an empty id."""
    given = texts("id", cells, flaws)
    if None in given:
        absent = [row for row, cell in enumerate(given) if cell is None]
        add_flaw(
            flaws,
            absent,
            Flaw(Reason.MISSING_FIELD, "id is missing: the id of the instance the label is for"),
        )
    return [cell or "" for cell in given]
