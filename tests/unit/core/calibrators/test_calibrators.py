"""Calibrators beside their naive twins, scipy's optimum and scipy's isotonic regression."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize

from core import registry
from core.calibrators.isotonic import IsotonicState
from core.calibrators.platt import PlattState
from core.errors import ParameterError
from core.spec import Spec
from tests.naive import calibration as naive

TWINS: dict[str, Any] = {"platt": naive.Platt, "isotonic": naive.Isotonic}
STATES: dict[str, Any] = {"platt": PlattState, "isotonic": IsotonicState}


def labels_of(n, seed=1):
    """Return shares that claim too much, their labels, and weights."""
    draw = np.random.default_rng(seed)
    truth = draw.random(n)
    claims = truth**2 / (truth**2 + (1 - truth) ** 2)
    return claims, (draw.random(n) < truth).astype(float), draw.choice([0.5, 1.0, 4.0], n), truth


class Calibrator:
    """A plug-in with the state of one class."""

    def __init__(self, name, **parameters):
        plugin = registry.plugin("calibrators", name)(**parameters)
        self.module = importlib.import_module(type(plugin).__module__)
        words = np.array([*plugin.initial(), 0.0])
        state = STATES[name]
        self.p, self.state = plugin.numbers(), state.over(words)

    def calibrated(self, share):
        return float(self.module.calibrated(self.p, self.state, share))

    def learn(self, share, label, weight=1.0):
        self.module.learn(self.p, self.state, share, label, weight)

    @property
    def problem(self):
        return int(self.module.problem(self.p, self.state))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("platt", {}),
        ("platt", {"beta": 0.5, "prior": 0.0, "memory": 20}),
        ("isotonic", {}),
        ("isotonic", {"blocks": 3, "prior": 0.0, "memory": 0}),
        ("isotonic", {"blocks": 7, "prior": 2.0, "memory": 30}),
        ("platt", {"memory": 1}),
        ("isotonic", {"memory": 1}),
    ],
)
def test_it_is_its_naive_twin(name, parameters):
    ours, twin = Calibrator(name, **parameters), TWINS[name](**parameters)
    shares, labels, weights, _ = labels_of(150)
    for share, label, weight in zip(shares, labels, weights, strict=True):
        for asked in (0.0, share, 1.0):
            assert ours.calibrated(asked) == pytest.approx(twin.calibrated(asked), abs=1e-9)
        ours.learn(share, label, weight)
        twin.learn(share, label, weight)
        assert ours.problem == 0


@pytest.mark.parametrize("name", TWINS)
def test_before_the_first_label_it_changes_nothing(name):
    ours = Calibrator(name)
    for share in (0.001, 0.3, 0.5, 0.99):
        assert ours.calibrated(share) == pytest.approx(share, abs=1e-12)


def test_up_to_the_most_blocks_it_is_the_isotonic_regression_of_all_labels():
    """Scipy's implementation of pool adjacent violators, with weights and repeated shares."""
    ours = Calibrator("isotonic", blocks=40, prior=0.0, memory=0)
    shares, labels, weights, _ = labels_of(300)
    shares = shares.round(1) + shares.round(2) % 0.03  # about 30 different ones
    shares = np.minimum(shares, 1.0).round(6)
    places = np.unique(shares)
    assert len(places) <= 40
    for share, label, weight in zip(shares, labels, weights, strict=True):
        ours.learn(share, label, weight)
    total = np.array([weights[shares == place].sum() for place in places])
    hits = np.array([(weights * labels)[shares == place].sum() for place in places])
    expected = isotonic_regression(hits / total, weights=total).x
    assert [ours.calibrated(place) for place in places] == pytest.approx(expected.tolist(), abs=1e-12)


def test_the_curve_comes_to_that_of_the_least_log_loss():
    """The optimum by scipy, over the same labels: an offline logistic regression."""
    ours = Calibrator("platt", beta=1.0, memory=0)
    shares, labels, _, _ = labels_of(3000)
    for share, label in zip(shares, labels, strict=True):
        ours.learn(share, label)
    x = np.log(shares / (1 - shares))

    def loss(theta):
        y = theta[0] * x + theta[1]
        return np.logaddexp(0.0, -y)[labels == 1].sum() + np.logaddexp(0.0, y)[labels == 0].sum()

    best = minimize(loss, [1.0, 0.0]).x
    assert [ours.state.slope, ours.state.intercept] == pytest.approx(best.tolist(), abs=0.08)


@pytest.mark.parametrize("name", TWINS)
def test_claims_that_are_too_sure_become_right(name):
    ours = Calibrator(name)
    shares, labels, _, _ = labels_of(1500)
    for share, label in zip(shares, labels, strict=True):
        ours.learn(share, label)
    asked, _, _, truth = labels_of(400, seed=2)
    answers = np.array([ours.calibrated(share) for share in asked])
    assert np.abs(answers - truth).mean() < 0.8 * np.abs(asked - truth).mean()
    order = np.argsort(asked, kind="stable")
    if name == "isotonic":
        assert (np.diff(answers[order]) >= 0.0).all()


@pytest.mark.parametrize("memory", [1, 2])
@pytest.mark.parametrize("name", TWINS)
def test_hard_shares_and_weights_keep_it_sound(name, memory):
    ours = Calibrator(name, memory=memory)
    for weight in (1e-9, 10.0, 1.0):
        for share in (0.0, 1.0, 5e-324, 1.0 - 2.0**-53, 0.5):
            for label in (0.0, 1.0, 1.0):
                ours.learn(share, label, weight)
                assert ours.problem == 0
                assert all(0.0 <= ours.calibrated(one) <= 1.0 for one in (0.0, 1e-300, 0.5, share, 1.0))


def test_memory_follows_a_change():
    """With a memory the labels from before a change are forgotten; without, they still count."""
    answers = {}
    for memory in (200, 0):
        ours = Calibrator("isotonic", memory=memory)
        for label, n in ((1.0, 1000), (0.0, 1000)):
            for _ in range(n):
                ours.learn(0.7, label)
        answers[memory] = ours.calibrated(0.7)
    assert answers[200] < 0.05
    assert answers[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "platt", "beta": 1e-200}, "beta=1e-200 must be at least 1e-06"),
        ({"name": "platt", "prior": 1e308}, "prior=1e\\+308 must be at most 1000000000.0"),
        ({"name": "isotonic", "prior": 1e308}, "prior=1e\\+308 must be at most 1000000000.0"),
    ],
)
def test_parameters_whose_squares_and_sums_are_no_numbers_are_refused(spec, message):
    with pytest.raises(ParameterError, match=message):
        Spec.parse({"calibration": spec})


@pytest.mark.parametrize(
    "spec", [{"name": "platt", "beta": 1e-6, "prior": 1e9}, {"name": "isotonic", "prior": 1e9}]
)
def test_the_largest_and_smallest_parameters_keep_it_sound(spec):
    ours = Calibrator(**spec)
    for share, label in ((0.0, 1.0), (1.0, 0.0), (0.5, 1.0)) * 5:
        ours.learn(share, label, 10.0)
        assert ours.problem == 0
        assert all(0.0 <= ours.calibrated(one) <= 1.0 for one in (0.0, 0.5, 1.0))


@pytest.mark.parametrize("value", ["none", "", True, {"beta": 0.2}, {"name": "none"}])
def test_the_error_of_no_calibrator_names_null(value):
    with pytest.raises(ParameterError, match="must be null, 'isotonic', 'platt', or an object"):
        Spec.parse({"calibration": value})
