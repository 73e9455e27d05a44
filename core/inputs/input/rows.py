"""Rows of features: which features are watched, and how their values are counted."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from core.kernels.jit import kernel, tail
from core.kernels.records import name_tuple
from core.layout.inputs import (
    COMPARING,
    FIRST_ROW,
    ROW_FIELDS,
    SAMPLE_OF_BIN,
    SAMPLING,
    FeatureRow,
    InputState,
)
from core.layout.plan import PlanRecord

ANSWER_ROWS: Final = 2
"""With ``scores`` the first two rows are of the answer: its largest probability, and its class."""
LARGEST: Final = 0
CLASS: Final = 1

LEAST_NUMBER: Final = float(np.finfo(np.float64).min)
"""The smallest finite number; no other number is below it."""

CELLS_OF_BIN: Final = SAMPLE_OF_BIN // 2
"""Cells of a category for each bin of a number: two counts each fill the row."""


class Cells(NamedTuple):
    """The counts of a feature: cell i of the reference and of the current window."""

    before: Any
    """int64[n]"""
    now: Any
    """int64[n]"""
    n: int


name_tuple(Cells, "CPointer(int64)", "CPointer(int64)", "int64")


@kernel
def feature_row(p, state: InputState, number: int) -> FeatureRow:
    """Return a row by its number: rows of the answer come first, then those of the attributes by column."""
    start = state.start + FIRST_ROW + number * (ROW_FIELDS + SAMPLE_OF_BIN * int(p.bins))
    return FeatureRow(state.ints, state.floats, start)


@kernel
def attribute_row(p, state: InputState, column: int) -> FeatureRow:
    """Return the row of an attribute."""
    return feature_row(p, state, column + (ANSWER_ROWS if p.scores != 0.0 else 0))


@kernel
def steps(plan: PlanRecord, p) -> int:
    """Return the number of steps of a loop over all rows, see ``row_at``."""
    return plan.numeric + plan.nominal + (ANSWER_ROWS if p.scores != 0.0 else 0)


@kernel
def row_at(plan: PlanRecord, p, step: int) -> tuple[int, bool]:
    """Return the number of a row and whether it counts categories; -1: the attribute is not watched."""
    first = ANSWER_ROWS if p.scores != 0.0 else 0
    attribute = step - first
    if attribute < 0:
        return step, step == CLASS
    is_category = attribute >= plan.numeric
    if is_category:
        column = plan.nominal_column(attribute - plan.numeric).column
    else:
        column = plan.numeric_column(attribute)
    return (first + column if column < int(p.features) else -1), is_category


@kernel
def take_in(plan: PlanRecord, p, state: InputState, x, shares, predicted: int) -> None:
    """Count the values of a record and of its answer; shares: float64[class], as they are published."""
    bins, phase, features = int(p.bins), state.phase, int(p.features)
    for number in range(plan.numeric):
        column = plan.numeric_column(number)
        if column >= features:
            break  # columns ascend
        take_number(attribute_row(p, state, column), x[column], bins, phase)
    for number in range(plan.nominal):
        column = plan.nominal_column(number).column
        if column >= features:
            break
        take_category(attribute_row(p, state, column), x[column], bins, phase)
    if p.scores != 0.0 and predicted >= 0:
        take_number(feature_row(p, state, LARGEST), shares[predicted], bins, phase)
        take_category(feature_row(p, state, CLASS), float(predicted), bins, phase)
    state.records += 1
    if state.open > 0:
        state.open -= 1


@kernel
def take_number(row: FeatureRow, value: float, bins: int, phase: int) -> None:
    """Count a number in its bin; a value that is not finite is missing."""
    if not abs(value) < math.inf:
        return
    if phase == SAMPLING:
        row.numbers[row.values] = value
        row.values += 1
        return
    edges, cell = row.numbers, 0
    for i in range(bins - 1):
        cell += int(edges[i] < value)
    row.counts[(2 * bins - 1 if phase == COMPARING else bins - 1) + cell] += 1


@kernel
def take_category(row: FeatureRow, code: float, bins: int, phase: int) -> None:
    """Count a category in its cell; NaN is missing, and a value without a code has cell 0.

    Categories beyond the cells share these: a change of the share of any of them is a change of a cell.
    """
    if phase == SAMPLING or code != code:
        return
    n = CELLS_OF_BIN * bins
    cell = 1 + int(code) % (n - 1) if code >= 0.0 else 0
    row.counts[(n if phase == COMPARING else 0) + cell] += 1


@kernel
def make_edges(row: FeatureRow, bins: int) -> None:
    """Replace the sample by the edges of bins with about equal shares of it; all counts become zeros.

    Without a value in the sample all edges are 0.
    """
    numbers, n = row.numbers, row.values
    for i in range(1, n):
        value, place = numbers[i], i
        while place > 0 and numbers[place - 1] > value:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = value
    least, most = numbers[0], numbers[max(n - 1, 0)]
    # In this order no edge is written over a value that another edge needs.
    for step in range(1, bins):
        edge = step if n >= bins else bins - step
        numbers[edge - 1] = numbers[max((edge * n + bins - 1) // bins - 1, 0)] if n > 0 else 0.0
    for place in range(bins - 1, SAMPLE_OF_BIN * bins):
        numbers[place] = 0.0
    row.values = 0
    if n > 0:
        divide_frequent_values(numbers, bins - 1, least, most)


@kernel
def divide_frequent_values(edges, n: int, least: float, most: float) -> None:
    """Give a frequent value a cell of its own, so that smaller and larger values are not counted with it.

    edges: float64[n], ascending, n at least 3, changed in place; least, most: smallest and largest value of
    the sample. Values up to an edge and above the edge before it share a cell. A value with several edges
    needs two of them: its own, and the next smaller number. The smallest and the largest value of the sample
    get a second edge from their neighbour if no other value needs it.
    """
    if edges[0] == least and edges[1] > least and edges[2] > edges[1]:
        edges[1] = least
    if edges[n - 1] == most and least < edges[n - 2] < most and edges[n - 3] < edges[n - 2]:
        edges[n - 2] = most
    before = LEAST_NUMBER
    for i in range(n):
        edge = edges[i]
        if edge > before and (edge == least or (i + 1 < n and edges[i + 1] == edge)):
            edges[i] = np.nextafter(edge, -math.inf)
        before = edge


@kernel
def cells_of(row: FeatureRow, bins: int, is_category: bool) -> Cells:
    """Return the counts of a row."""
    first, n = (0, CELLS_OF_BIN * bins) if is_category else (bins - 1, bins)
    return Cells(tail(row.counts, first), tail(row.counts, first + n), n)


@kernel
def clear_window(cells: Cells) -> None:
    """Begin a window without records."""
    for i in range(cells.n):
        cells.now[i] = 0
