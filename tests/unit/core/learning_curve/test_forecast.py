"""The advice that follows from a learning curve."""

import numpy as np
import pytest

from core.layout.curve import CURVE_WORDS, INTERVAL, LearningCurve
from core.learning_curve.forecast import CurveThen


def curve_of(shares, n=64.0, step=64, began=0, restarts=0, worth=0.005, more=0):
    """Return a curve with these accuracies; more: labels after its last interval."""
    words = np.zeros(CURVE_WORDS, dtype=np.int64)
    curve = LearningCurve.over(words)
    curve.began, curve.step, curve.intervals, curve.restarts = began, step, len(shares), restarts
    for number, share in enumerate(shares):
        curve.cells[number * INTERVAL : (number + 1) * INTERVAL] = (10 * n, 10 * n * share, 100 * n)
    return CurveThen(words, began + len(shares) * step + more, worth)


RISING = [0.5, 0.6, 0.66, 0.7, 0.73, 0.75, 0.76, 0.77]
FLAT = [0.82] * 12


def test_a_curve_that_still_rises_goes_on():
    found = curve_of(RISING).read()
    assert found.advice == "go on"
    assert 0.76 < found.accuracy.value < 0.9
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high
    assert 0.0 <= found.gain.low <= found.gain.value <= found.gain.high


def test_a_flat_curve_stops_if_its_gain_is_below_the_worth():
    """The same curve, two worths: the advice compares the upper end of the gain with the worth alone."""
    gain = curve_of(FLAT, step=512, n=500.0).read().gain
    for worth, advice in ((gain.high * 1.01, "stop"), (gain.high * 0.99, "go on")):
        assert curve_of(FLAT, step=512, n=500.0, worth=worth).read().advice == advice


@pytest.mark.parametrize("curve", [curve_of([]), curve_of(FLAT[:3]), curve_of(FLAT[:6], n=8.0)])
def test_few_labels_go_on_without_a_forecast(curve):
    found = curve.read()
    assert found.advice == "go on"
    assert np.isnan([*found.accuracy, *found.gain]).all()


@pytest.mark.parametrize(("more", "advice"), [(0, "ask again after drift"), (300, "stop")])
def test_after_a_drift_labels_are_asked_for_again_until_the_curve_shows_what_they_buy(more, advice):
    found = curve_of([0.8] * 8, began=9000, restarts=1, step=32, n=3200.0, worth=0.05, more=more).read()
    assert found.advice == advice
    assert not np.isnan(found.accuracy.value)


def test_it_becomes_the_members_of_an_evaluation():
    members = curve_of([*FLAT, 0.7]).read().to_dict()
    assert members["learning_curve"]["labels"][1] == [64, 128]
    assert members["learning_curve"]["accuracy"][0][0] == pytest.approx(0.82)
    low, high = members["learning_curve"]["accuracy"][0][1:]
    assert low < 0.82 < high
    assert {"advice", "gain_forecast", "gain_forecast_low", "gain_forecast_high"} < set(members)


@pytest.mark.parametrize("empty", [0, 3, 7])
def test_an_interval_without_judged_labels_is_left_out(empty):
    then = curve_of(RISING)
    LearningCurve.over(then.words).cells[empty * INTERVAL : (empty + 1) * INTERVAL] = 0.0
    found = then.read()
    assert len(found.intervals) == len(RISING) - 1
    assert (64 * empty, 64 * empty + 64) not in [(part.first, part.last) for part in found.intervals]
    assert not np.isnan(found.accuracy.value)
