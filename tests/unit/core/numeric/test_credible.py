"""Credible bounds: values of BCI, section III, mpmath's values, calibration."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from core.errors import ParameterError
from core.numeric import credible
from core.numeric.credible import half_width, heterogeneity_bounds, risk_bound

GOLDEN = json.loads((Path(__file__).parents[3] / "golden/credible_bounds.json").read_text())
DRAWS = 40_000


@pytest.mark.parametrize(
    ("labels", "positives", "narrow", "wide"),
    [
        (0, 0, 0.025000, 0.475000),
        (1, 0, 0.025000, 0.475000),
        (2, 0, 0.033284, 0.483049),
        (2, 1, 0.016673, 0.405701),
        (10, 3, 0.019365, 0.364935),
        (50, 10, 0.190136, 0.374072),
    ],
)
def test_half_widths(labels, positives, narrow, wide):
    assert half_width(labels, positives, 0.05) == pytest.approx(narrow, abs=1e-6)
    assert half_width(labels, positives, 0.95) == pytest.approx(wide, abs=1e-6)


@pytest.mark.parametrize("q", [0.01, 0.2, 0.5, 0.9, 0.999])
def test_closed_forms(q):
    """P(|µ - ½| <= r) is 2r up to one label, 1.5r + 2r³ for two alike, 3r - 4r³ for two that differ."""
    for labels, positives in ((0, 0), (1, 0), (1, 1)):
        assert 2.0 * half_width(labels, positives, q) == pytest.approx(q, rel=1e-13)
    r = float(half_width(2, 0, q))
    assert 1.5 * r + 2.0 * r**3 == pytest.approx(q, rel=1e-13)
    r = float(half_width(2, 1, q))
    assert 3.0 * r - 4.0 * r**3 == pytest.approx(q, rel=1e-13)


# Upper and lower bound at δ = 0.05: entropy, variance, standard deviation
BOUNDS = [
    (0, 0, (0.691897, 0.116907), (0.249375, 0.024375), (0.499375, 0.156125)),
    (1, 1, (0.691897, 0.116907), (0.249375, 0.024375), (0.499375, 0.156125)),
    (2, 2, (0.690930, 0.085922), (0.248892, 0.016663), (0.498891, 0.129087)),
    (2, 1, (0.692591, 0.312374), (0.249722, 0.085407), (0.499722, 0.292245)),
    (10, 10, (0.549233, 0.029625), (0.181568, 0.004631), (0.426107, 0.068048)),
    (10, 8, (0.688216, 0.275878), (0.247538, 0.072607), (0.497532, 0.269458)),
    (100, 90, (0.443225, 0.233220), (0.135860, 0.058409), (0.368593, 0.241680)),
    (1000, 500, (0.693145, 0.691232), (0.249999, 0.249043), (0.499999, 0.499042)),
]


@pytest.mark.parametrize(("labels", "positives", "entropy", "variance", "stddev"), BOUNDS)
def test_bounds(labels, positives, entropy, variance, stddev):
    for kind, expected in (("entropy", entropy), ("variance", variance), ("stddev", stddev)):
        bounds = heterogeneity_bounds(labels, positives, 0.05, kind)
        assert bounds == (pytest.approx(expected[0], abs=1e-6), pytest.approx(expected[1], abs=1e-6))
        assert bounds == heterogeneity_bounds(labels, labels - positives, 0.05, kind)
    squares = tuple(math.sqrt(bound) for bound in heterogeneity_bounds(labels, positives, 0.05, "variance"))
    assert heterogeneity_bounds(labels, positives, 0.05, "stddev") == pytest.approx(squares, rel=1e-14)


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3, 0.5])
def test_without_labels(delta):
    upper, lower = heterogeneity_bounds(0, 0, delta, "variance")
    assert upper == pytest.approx((1.0 - delta**2) / 4.0, rel=1e-14)
    assert lower == pytest.approx((1.0 - (1.0 - delta) ** 2) / 4.0, rel=1e-13)


def test_the_upper_bound_falls_with_delta_and_meets_the_lower_one_at_a_half():
    labels, positives = np.array([3.0, 20.0, 300.0]), np.array([1.0, 9.0, 12.0])
    deltas = np.linspace(0.01, 0.99, 50)
    uppers = np.array([heterogeneity_bounds(labels, positives, delta)[0] for delta in deltas])
    lowers = np.array([heterogeneity_bounds(labels, positives, delta)[1] for delta in deltas])
    assert (np.diff(uppers, axis=0) < 0.0).all()
    assert ((uppers >= lowers).all(axis=1) == (deltas <= 0.5)).all()


@pytest.mark.parametrize(
    ("labels", "positives", "expected"),
    [
        (0, 0, 0.950000),
        (10, 0, 0.238404),
        (10, 3, 0.564374),
        (10, 5, 0.728750),
        (10, 8, 0.470087),
        (100, 30, 0.380650),
    ],
)
def test_risks(labels, positives, expected):
    assert risk_bound(labels, positives, 0.05) == pytest.approx(expected, abs=1e-6)
    if positives == 0 and labels:
        assert risk_bound(labels, 0, 0.05) == pytest.approx(1.0 - 0.05 ** (1.0 / 11.0), rel=1e-13)


def test_mpmath():
    """Eighty digits say the same, up to a million labels and down to the least δ."""
    rows = np.array(GOLDEN)
    assert rows[:, 0].max() == 1_000_000
    for delta in np.unique(rows[:, 2]).tolist():
        labels, fewer, _, low, high, risk = rows[rows[:, 2] == delta].T
        assert 0.5 - half_width(labels, fewer, delta) == pytest.approx(low, rel=1e-13)
        tails = np.array(
            [credible.middle_tail(t, k, delta, credible.OUTSIDE) for t, k in zip(labels, fewer, strict=True)]
        )
        assert tails == pytest.approx(high, rel=1e-12)
        assert risk_bound(labels, fewer, delta) == pytest.approx(risk, rel=1e-12)


def test_deltas_without_digits_are_refused():
    """The least one is among mpmath's rows; what is smaller has a value, a rule and a remedy."""
    assert min(row[2] for row in GOLDEN) == credible.LEAST_DELTA
    for delta in (9e-26, 1e-300, 0.0, -0.1, 1.0, math.nan):
        for bound in (heterogeneity_bounds, risk_bound):
            with pytest.raises(ParameterError, match=rf"delta={delta} must be at least 1e-25 .*take 1e-25"):
                bound(10, 3, delta)


@pytest.mark.parametrize("kind", credible.HETEROGENEITIES)
@pytest.mark.parametrize("labels", [0, 1, 7, 60])
@pytest.mark.parametrize("delta", [0.1, 0.4])
def test_calibration(labels, delta, kind):
    """Under the uniform prior a bound is exceeded with probability δ exactly."""
    draw = np.random.default_rng(labels)
    share = draw.random(DRAWS)
    positives = draw.binomial(labels, share).astype(np.float64)
    bounds = np.array([heterogeneity_bounds(labels, k, delta, kind) for k in range(labels + 1)])
    upper, lower = bounds[positives.astype(np.int64)].T
    true = np.array([credible.heterogeneity(credible.HETEROGENEITIES[kind], min(s, 1.0 - s)) for s in share])
    tolerance = 4.0 * math.sqrt(delta * (1.0 - delta) / DRAWS)
    assert np.mean(true >= upper) == pytest.approx(delta, abs=tolerance)
    assert np.mean(true <= lower) == pytest.approx(delta, abs=tolerance)


@pytest.mark.parametrize("labels", [0, 1, 10, 41])
def test_calibration_of_risks(labels):
    draw = np.random.default_rng(labels)
    share = draw.random(DRAWS)
    positives = draw.binomial(labels, share)
    risk = np.where(2 * positives >= labels, 1.0 - share, share)
    bounds = np.array([risk_bound(labels, k, 0.05) for k in range(labels + 1)])[positives]
    assert np.mean(risk >= bounds) == pytest.approx(0.05, abs=4.0 * math.sqrt(0.05 * 0.95 / DRAWS))


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.01, 0.3, 0.5])
def test_very_many_labels(share):
    """Up to a thousand million: finite, and the interval closes around H of the share."""
    labels = np.array([10.0**6, 10.0**7, 10.0**8, 10.0**9])
    upper, lower = heterogeneity_bounds(labels, np.floor(share * labels), 0.05)
    assert np.isfinite(upper).all()
    assert (lower > 0.0).all()
    assert (lower < upper).all()
    assert (np.diff(upper - lower) < 0.0).all()
    true = credible.heterogeneity(credible.ENTROPY, share)
    assert (upper[:3] >= true - 1e-12).all() if share < 0.5 else (upper <= math.log(2.0)).all()
    assert upper[-1] == pytest.approx(true, abs=1e-4)
    risk = risk_bound(labels, np.floor(share * labels), 0.05)
    assert (risk > share).all()
    assert (np.diff(risk) < 0.0).all()


def test_a_label_of_the_larger_class_lowers_bounds_and_one_of_the_rarer_raises_them():
    """What the search for cuts relies on (core/learners/boct/cut_search.py)."""
    labels = np.repeat(np.arange(1, 90), 2).astype(np.float64)
    fewer = np.floor(labels * np.tile([0.1, 0.5], len(labels) // 2))
    for delta in (0.001, 0.2, 0.49):
        for side in (0, 1):
            here = heterogeneity_bounds(labels, fewer, delta)[side]
            assert (heterogeneity_bounds(labels + 1, fewer, delta)[side] <= here * (1.0 + 1e-12)).all()
            rising = 2 * fewer < labels
            more = heterogeneity_bounds(labels + 1, fewer + 1, delta)[side]
            assert (more >= here * (1.0 - 1e-12))[rising].all()
