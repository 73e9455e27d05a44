"""Header of a CSV file: whether the first row holds the column names, and these names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from topics.readers.number_form import is_number_of_some_form
from topics.readers.vocabulary import MISSING

USUAL_NAMES = frozenset(["class", "label", "target"])
ROWS_OF_NUMBERS = 500
"""Rows that are checked to decide whether a column is numeric."""
FROM_NAUGHT = 3
"""Least count of the names 0, 1, 2, … that make a header without other names. pandas writes them for an array
without names, after an empty name for the row numbers.
"""

_RUN = re.compile(r"[0-9]+|[^\W\d_]+")


def has_header(rows: Sequence[Sequence[str]], missing: frozenset[str] = MISSING) -> bool:
    """Return whether the first row holds the names of the columns.

    - It does not if one of its words occurs again as a value of its column.
    - A word above numbers is a name, and so is an empty cell above row numbers.
    - Then the other cells are names too, even missing words, repeated names and ascending numbers.
    - Beside `class`, `label` or `target` all numbers are names.
    - Without such a word the first row is a header if its cells differ and are neither numbers nor missing,
      or if its numbers are 0, 1, 2, … and the numbers below have fractions.
    """
    if not rows:
        return False
    first = rows[0]
    alike = [row for row in rows[1:] if len(row) == len(first)]
    below = [row for row in alike if row != first]
    columns = [[row[j] for row in below] for j in range(len(first))]
    named = [cell for cell in first if cell]
    numbers = [float(cell) for cell in named if _is_plain(cell)]
    words = [cell for cell in named if not is_number_of_some_form(cell) and cell not in missing]
    is_value = [name in cells for name, cells in zip(first, columns, strict=True) if name in words]
    if not named or any(is_value):
        return False
    signs = sum(_names(name, cells, missing) for name, cells in zip(first, columns, strict=True))
    if any(is_number_of_some_form(cell) and not _is_plain(cell) for cell in named):
        return False
    counts = [float(n) for n in range(len(numbers))]
    if not numbers:
        if signs:
            return True
        if len(below) < len(alike):  # a repeated header occurs only in joined files
            return False
        if len(set(named)) < len(named) or len(words) < len(named):
            return False
        return not any(_is_alike(name, cells, missing) for name, cells in zip(first, columns, strict=True))
    if any(cell.lower() in USUAL_NAMES for cell in words):
        return True
    if signs:
        ascending = all(a < b for a, b in pairwise(numbers))
        return numbers == counts or (ascending and len(numbers) > 1) or signs > 1
    if len(numbers) + (not first[0]) < FROM_NAUGHT or numbers != counts:
        return False
    return any(
        not value.isdecimal()
        for cell, cells in zip(first, columns, strict=True)
        if _is_plain(cell)
        for value in cells
    )


def _is_plain(cell: str) -> bool:
    return re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", cell) is not None


def _names(cell: str, below: Sequence[str], missing: frozenset[str]) -> bool:
    """Return whether a cell of the first row is certainly a name: the cells below are of another kind."""
    if not cell:
        counts = ([str(n + first) for n in range(len(below))] for first in (0, 1))
        return len(below) > 0 and any(list(below) == count for count in counts)
    if cell in missing or is_number_of_some_form(cell) or not any(map(str.isalpha, cell)):
        return False
    if cell.lower() in USUAL_NAMES:
        return True
    values = [value for value in below[:ROWS_OF_NUMBERS] if value not in missing]
    return bool(values) and all(map(is_number_of_some_form, values))


def _is_alike(cell: str, below: Sequence[str], missing: frozenset[str]) -> bool:
    """Return whether a cell with digits has the form of all cells below it, as dates do."""
    values = [value for value in below if value not in missing]
    if not any(map(str.isdecimal, cell)) or not values:
        return False
    return all(_shape(value) == _shape(cell) for value in values)


def _shape(text: str) -> str:
    return _RUN.sub(lambda run: "9" if run.group().isdecimal() else "a", text)


def unique_names(cells: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of all columns, and the names that were changed because they occur twice.

    An empty cell is named f1, f2, … by its place; a repeated name becomes NAME.1, NAME.2 as in
    pandas.read_csv.
    """
    names: list[str] = []
    used = set(cells)
    again: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell or f"f{number}"
        if name in names or (not cell and name in used):
            again.append(name)
            count = 1
            while f"{name}.{count}" in used:
                count += 1
            name = f"{name}.{count}"
            used.add(name)
        names.append(name)
    return names, again
