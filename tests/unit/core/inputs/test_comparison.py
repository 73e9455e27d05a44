"""Distances of windows and their p-values, beside scipy and the exact distributions."""

import math

import numpy as np
import pytest
from scipy import stats

from core.inputs.input import rows
from core.inputs.input.distances import UNTESTED, compare, share_p_value
from core.inputs.input.input import InputParameters, Plugin
from core.layout.inputs import FeatureRow, row_words


def test_the_bound_of_a_share_is_above_the_exact_p_value():
    """Fisher's two one-sided tests, doubled, are the exact counterpart."""
    for before, now in ((0, 1), (0, 12), (3, 12), (40, 2), (250, 150), (499, 190), (1, 0)):
        bound = share_p_value(before, 500, now, 200)
        tails = stats.hypergeom(700, before + now, 200)
        exact = 2 * min(tails.sf(now - 1), tails.cdf(now))
        assert min(1.0, exact) <= bound <= 1.0
    assert share_p_value(0, 500, 0, 200) == share_p_value(500, 500, 200, 200) == UNTESTED


def row_of(bins, before, now, is_category):
    """Return a row with these counts by cell."""
    words = np.zeros(row_words(bins), dtype=np.int64)
    row = FeatureRow.over(words)
    first, n = (0, rows.CELLS_OF_BIN * bins) if is_category else (bins - 1, bins)
    row.counts[first : first + len(before)] = before
    row.counts[first + n : first + n + len(now)] = now
    return row


def parameters(**given):
    return InputParameters.over(np.array(Plugin(**given).constants()))


@pytest.mark.parametrize("is_category", [False, True])
def test_distances_are_those_of_the_formulas(is_category):
    random = np.random.default_rng(3)
    before, now = random.multinomial(2000, [0.1] * 10), random.multinomial(400, np.arange(1, 11) / 55)
    p = parameters(window=500)
    shift = compare(p, row_of(10, before, now, is_category), is_category)
    q, r = before / 2000, now / 400
    assert shift.psi == pytest.approx(((r - q) * np.log(r / q)).sum(), rel=1e-12)
    assert shift.hellinger == pytest.approx(math.sqrt(1 - np.sqrt(q * r).sum()), rel=1e-9)
    if is_category:
        assert shift.ks == pytest.approx(abs(r - q).max())
    else:
        values = [np.repeat(np.arange(10), counts) for counts in (before, now)]
        test = stats.ks_2samp(*values, method="asymp")
        assert shift.ks == pytest.approx(test.statistic)
        assert test.pvalue <= shift.p < 1e-6
    assert (shift.before, shift.now, shift.unseen) == (2000, 400, 0)
    assert shift.missing_p == share_p_value(0, 2000, 100, 500)


def test_a_new_category_is_unseen():
    shift = compare(parameters(), row_of(10, [0, 1000, 1000], [5, 300, 180, 15], True), True)
    assert shift.unseen == 20
    assert shift.p == pytest.approx(4 * share_p_value(0, 2000, 15, 500))


@pytest.mark.parametrize("is_category", [False, True])
def test_values_of_one_window_alone_count_as_a_test_of_either_window(is_category):
    """The number of tests is a property of both windows together: their level must not depend on a change."""
    for before, now in (([200] * 10, []), ([], [50] * 10)):
        shift = compare(parameters(), row_of(10, before, now, is_category), is_category)
        assert shift.p == 1.0
        assert shift.missing_p < 1e-100
    shift = compare(parameters(), row_of(10, [], [], is_category), is_category)
    assert (shift.p, shift.missing_p) == (UNTESTED, UNTESTED)


@pytest.mark.parametrize(("n", "m"), [(2000, 500), (2000, 50), (150, 60), (1987, 481), (50, 50), (5, 1)])
def test_the_bound_of_the_largest_difference_is_above_the_exact_p_value(n, m):
    """The two-sample inequality with the constant e is proved for equal sizes alone; scipy counts paths."""
    first, size = np.arange(n) / n, n * m / (n + m)
    for shift in np.linspace(0.0, min(1.0, 3.5 / math.sqrt(size)), 25):
        test = stats.ks_2samp(first, shift + np.arange(m) / m, method="exact")
        assert test.pvalue <= math.exp(1.0 - 2.0 * size * test.statistic**2)
