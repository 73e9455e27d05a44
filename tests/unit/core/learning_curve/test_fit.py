"""The fit of the learning curve against dense linear algebra, least squares, and its own limits."""

from itertools import pairwise

import numpy as np
import pytest

from core.learning_curve.fit import (
    EXPECTED,
    EXPECTED_SPREAD,
    GAIN,
    GAIN_SPREAD,
    MEAN,
    MORE,
    RESULTS,
    SPREAD,
)
from core.learning_curve.forecast import figures_of
from tests.naive import learning_curve as naive


def rows_of(accuracy, step=64, n=50.0):
    """Return intervals with these accuracies."""
    first = np.arange(len(accuracy)) * float(step)
    n = np.broadcast_to(n, len(accuracy))
    return np.ascontiguousarray(np.stack((first, first + step, accuracy, n), axis=1).astype(np.float64))


def drawn(seed):
    """Return a curve with chance, of any length and number of labels."""
    draw = np.random.default_rng(seed)
    m, step = int(draw.integers(4, 17)), int(2 ** draw.integers(5, 14))
    n = draw.uniform(2.0, step, m)
    labels = (np.arange(m) + 0.5) * step
    drop, power = draw.uniform(0.0, 0.4), draw.uniform(0.1, 1.5)
    accuracy = draw.uniform(0.5, 1.0) - drop * (labels / labels[0]) ** -power
    judged = np.maximum(n, 1.0).astype(int)
    return rows_of(draw.binomial(judged, accuracy) / judged, step, n)


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_posterior_by_dense_linear_algebra(seed):
    rows = drawn(seed)
    labels = rows[-1, 1] + 17.0
    found = figures_of(rows, labels)
    assert len(found) == RESULTS
    accuracy, gain, last = naive.forecast(rows, labels)
    assert [found[MEAN], found[SPREAD]] == pytest.approx(accuracy, rel=1e-5)
    assert [found[GAIN], found[GAIN_SPREAD]] == pytest.approx(gain, rel=1e-5)
    assert [found[EXPECTED], found[EXPECTED_SPREAD]] == pytest.approx(last, rel=1e-5)


@pytest.mark.parametrize("exponent", [0.5, 1.0])
def test_with_many_labels_it_is_the_curve_of_least_squares(exponent):
    """Accuracies on a power law, almost without chance: the law itself goes on."""
    step, m = 1000, 12
    edges = np.arange(m + 1) * float(step)
    powers = np.array([naive.mean_power(a, b, exponent) for a, b in pairwise(edges)])
    accuracy = 0.9 - 2.0 * powers
    design = np.stack((np.ones(m), -powers), axis=1)
    (a, b), *_ = np.linalg.lstsq(design, accuracy, rcond=None)
    found = figures_of(rows_of(accuracy, step, 1e7), edges[-1])
    now, then = (a - b * (n + 1.0) ** -exponent for n in (edges[-1], edges[-1] + MORE))
    assert found[MEAN] == pytest.approx(then, abs=2e-3)
    assert found[GAIN] == pytest.approx(then - now, rel=0.2)


def test_a_flat_curve_promises_little_and_less_with_more_labels():
    gains = [figures_of(rows_of([0.8] * 12, step, step), 12.0 * step)[GAIN] for step in (64, 512, 4096)]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] < 0.001


def test_a_falling_curve_promises_no_loss_by_labels():
    found = figures_of(rows_of(np.linspace(0.9, 0.6, 12)), 768.0)
    assert 0.0 <= found[GAIN] < 0.02
    assert found[MEAN] < 0.7


def test_accuracies_of_all_or_nothing_have_a_forecast():
    for share in (0.0, 1.0):
        found = figures_of(rows_of([share] * 8), 512.0)
        assert np.isfinite(found).all()
        assert found[SPREAD] > 0.0


def test_a_drop_is_far_from_what_the_earlier_intervals_let_expect():
    steady = rows_of([0.7, 0.78, 0.8, 0.81, 0.82, 0.82, 0.83, 0.83], 512, 500.0)
    fallen = steady.copy()
    fallen[-1, 2] = 0.6
    for rows, is_far in ((steady, False), (fallen, True)):
        found = figures_of(rows, 4096.0)
        assert (rows[-1, 2] < found[EXPECTED] - 3.0 * found[EXPECTED_SPREAD]) == is_far
