"""The cells of a number: values below, at and above a frequent value differ, beside the twin."""

import math
import sys
from bisect import bisect_left

import numpy as np
import pytest

from core.inputs.input import rows
from core.layout.inputs import COUNTING, SAMPLE_OF_BIN, SAMPLING, FeatureRow, row_words
from core.spec import Spec
from tests.naive.inputs import Inputs
from tests.unit.core.builders import schema_of, table_of
from tests.unit.core.inputs.test_input import alarms_of

RANDOM = np.random.default_rng(5)
FIRST, WINDOW = 80 + 2000, 500
"""Records before the first window, and of a window."""
CHANGE = FIRST + 2 * WINDOW


def mixed(share, value, others):
    """Return a function from a number of records to values: a share of them is one value."""
    return lambda n: np.where(np.arange(n) % 100 < 100 * share, value, others(n))


def constant(value):
    return lambda n: np.full(n, float(value))


def normal(n):
    return RANDOM.normal(size=n)


def positive(n):
    return 1.0 + RANDOM.exponential(size=n)


CASES = {
    "a constant falls": (constant(5), constant(3)),
    "a constant falls by the least": (constant(5), constant(math.nextafter(5.0, 0.0))),
    "a constant becomes random": (constant(5), normal),
    "zeros become frequent": (mixed(0.05, 0.0, constant(1)), mixed(0.95, 0.0, constant(1))),
    "zeros become half": (mixed(0.08, 0.0, constant(1)), mixed(0.5, 0.0, constant(1))),
    "zeros become a sentinel": (mixed(0.3, 0.0, positive), mixed(0.3, -1.0, positive)),
    "a bin of zeros becomes a sentinel": (mixed(0.15, 0.0, positive), mixed(0.15, -1.0, positive)),
    "zeros become small": (mixed(0.15, 0.0, positive), mixed(0.15, 0.5, positive)),
    "the middle of three falls": (
        mixed(0.3, 0.0, mixed(0.7, 1.0, constant(2))),
        mixed(0.3, 0.0, mixed(0.7, 0.5, constant(2))),
    ),
}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("case", CASES)
def test_a_change_of_a_frequent_value_is_an_alarm_after_a_window(case, sign):
    """In both directions: a number and its negative are watched alike."""
    before, after = CASES[case]
    x = sign * np.concatenate([before(CHANGE), after(WINDOW + 1)])
    columns = RANDOM.permuted(x[:CHANGE]), RANDOM.permuted(x[CHANGE:])
    table = table_of(schema_of(None), Spec.parse({"drift": ["input"], "evaluation": {"every": 0}}))
    assert alarms_of(table, np.concatenate(columns)[:, None]) == [(CHANGE + WINDOW, [0])]


def cells_of(sample, bins, values):
    """Return the cell of each value, and the edges."""
    words = np.zeros(row_words(bins), dtype=np.int64)
    row = FeatureRow.over(words)
    for value in sample:
        rows.take_number(row, float(value), bins, SAMPLING)
    rows.make_edges(row, bins)
    edges = [float(edge) for edge in row.numbers[: bins - 1]]
    cells = []
    for value in values:
        before = row.counts[bins - 1 : 2 * bins - 1].copy()
        rows.take_number(row, float(value), bins, COUNTING)
        cells.append(int(np.flatnonzero(row.counts[bins - 1 : 2 * bins - 1] - before)[0]))
    return cells, edges


@pytest.mark.parametrize("bins", [4, 5, 7, 10])
def test_cells_are_those_of_the_twin_and_divide_frequent_values(bins):
    """Samples of a few different values, of every size; values between them and beyond them are counted."""
    random = np.random.default_rng(bins)
    values = np.arange(-1.0, 5.25, 0.25)
    frequent, smallest, largest = 0, 0, 0
    for _ in range(150):
        size = int(random.integers(1, SAMPLE_OF_BIN * bins + 1))
        sample = random.choice([0.0, 1.0, 2.0, 3.0, 4.0], size, p=random.dirichlet([0.5] * 5))
        cells, edges = cells_of(sample, bins, values)
        twin = Inputs([0], (), window=50, reference=50, bins=bins, alpha=0.01, features=1)
        twin.sample, twin.before = [[v] for v in sample], [[v] for v in values]
        assert cells == twin.cells(0)[0]
        assert cells == [bisect_left(edges, v) for v in values]
        assert edges == sorted(edges)
        for value in np.unique(sample):
            cell = cells[int(4 * (value + 1))]
            below, above = cells[int(4 * (value + 1)) - 1], cells[int(4 * (value + 1)) + 1]
            count = int((sample == value).sum())
            if value == sample.min() and bins * count >= size:
                smallest += 1
                assert below < cell
            if value == sample.max() and bins * count > size:
                largest += 1
                assert cell < above
            if bins * count > 2 * size:
                frequent += 1
                assert below < cell < above
    assert min(frequent, smallest, largest) > 50


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, -1e-300, 1.0, sys.float_info.max])
def test_the_next_numbers_below_and_above_a_constant_have_other_cells(value):
    """Also beside zero, where they are denormal, and at the upper end of the numbers."""
    below, above = (math.nextafter(value, end) for end in (-math.inf, math.inf))
    cells, edges = cells_of([value] * 80, 10, [v for v in (below, value, above) if math.isfinite(v)])
    assert cells == [cell for cell, v in ((0, below), (1, value), (9, above)) if math.isfinite(v)]
    assert edges == [below] + [value] * 8


def test_no_number_is_below_the_least_one():
    least = -sys.float_info.max
    cells, edges = cells_of([least] * 80, 10, [least, math.nextafter(least, 0.0)])
    assert (cells, edges) == ([0, 9], [least] * 9)


def test_a_number_without_values_in_the_sample_has_two_cells():
    words = np.zeros(row_words(10), dtype=np.int64)
    rows.make_edges(FeatureRow.over(words), 10)
    assert not words.any(), "as if the attribute had come later"
    cells, _ = cells_of([], 10, [-3.0, 0.0, 5e-324, 3.0])
    assert cells == [0, 0, 9, 9]
