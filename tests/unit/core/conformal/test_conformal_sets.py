"""The threshold of conformal sets: the published steps, and the reach of a heavy label."""

from __future__ import annotations

import numpy as np
import pytest

from core.conformal.conformal_sets import FIRST_THRESHOLD, HIGHEST, LOWEST, moved
from tests.naive.calibration import Threshold

ALPHA = 0.1


def scores(n, seed=1):
    """Return probabilities of the labels' classes; a fifth of them is 0: no model is right about these."""
    draw = np.random.default_rng(seed)
    return np.where(draw.random(n) < 0.2, 0.0, draw.random(n))


@pytest.mark.parametrize("decay", [0.0, 0.6])
def test_labels_of_weight_1_take_the_published_steps(decay):
    """Gibbs and Candès, and Angelopoulos and others, add ``step · (missed - alpha)`` without a bound."""
    threshold = published = FIRST_THRESHOLD
    missed = 0
    for number, share in enumerate(scores(4000), 1):
        step = 0.3 * number**-decay
        is_missed = not share >= 1.0 - published
        published += step * (is_missed - ALPHA)
        missed += not share >= 1.0 - threshold
        threshold = moved(threshold, share, step, 1.0, ALPHA)
        assert threshold == pytest.approx(published, abs=1e-12)
    assert missed / 4000 == pytest.approx(ALPHA, abs=0.01), "although a fifth of the labels has no chance"


@pytest.mark.parametrize("share", [0.0, -np.inf])
@pytest.mark.parametrize("start", [0.3, 0.95, 1.0])
def test_a_missed_label_of_any_weight_lets_sets_have_all_classes_for_a_few_labels(start, share):
    """``share`` -inf: the answer did not have the label's class."""
    step = 0.1
    threshold = moved(start, share if start < 1.0 else -np.inf, step, 10.0, ALPHA)
    following = 0
    while threshold > 1.0:
        threshold = moved(threshold, 0.0, step, 1.0, ALPHA)
        following += 1
    assert following <= (1.0 - ALPHA) / ALPHA + 1.0


def test_labels_of_unknown_classes_do_not_add_up():
    threshold = 1.0
    for _ in range(100):
        threshold = moved(threshold, -np.inf, 1.0, 10.0, ALPHA)
    assert threshold == 1.0 + (1.0 - ALPHA) <= HIGHEST


def test_a_covered_label_of_any_weight_leads_just_below_the_lowest_score():
    threshold = moved(0.05, 1.0, 1.0, 10.0, ALPHA)
    assert LOWEST <= threshold == -ALPHA
    assert moved(threshold, 1.0, 1.0, 1.0, ALPHA) > 0.0, "a missed label leads back"


def test_weighted_steps_are_those_of_the_naive_twin():
    draw = np.random.default_rng(2)
    twin, threshold = Threshold(alpha=ALPHA), FIRST_THRESHOLD
    for number, share in enumerate(scores(2000), 1):
        weight = float(draw.choice([0.2, 1.0, 10.0]))
        threshold = moved(threshold, share, number**-0.6, weight, ALPHA)
        twin.learn(share, weight)
        assert threshold == pytest.approx(twin.value, abs=1e-12)
        assert LOWEST <= threshold <= HIGHEST
