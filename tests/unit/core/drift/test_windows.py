"""Windows of detectors: their samples, their bounds, and specs that keep or lose a state."""

import math

import numpy as np
import pytest

from core.drift import kswin, seed
from core.drift.base import DRIFT
from core.errors import ParameterError
from core.spec import Spec
from tests.unit.core.builders import detector_of


def test_a_sample_has_as_many_errors_as_a_draw_without_replacement():
    """Mean and variance of the errors in samples of the older part are those of the hypergeometric."""
    plugin = kswin.Plugin(window=100, recent=20, confidence=1e-9)
    older = np.arange(80) % 4 == 0
    p = plugin.record().over(np.array(plugin.constants()))
    words = np.array(plugin.initial())
    state = kswin.KswinState.over(words)
    state.older_errors = float(older.sum())
    samples = []
    for number in range(4000):
        state.inputs = float(number)
        samples.append(kswin.sampled_errors(p, state))
    share, n = 0.25, 20
    variance = n * share * (1 - share) * (80 - n) / (80 - 1)
    assert abs(np.mean(samples) - n * share) < 5 * math.sqrt(variance / 4000)
    assert abs(np.var(samples) / variance - 1) < 5 * math.sqrt(2 / 4000)


@pytest.mark.parametrize(
    ("difference", "n", "chance"),
    [(12, 30, 0.015643390496754332), (13, 30, 0.006548396368058784), (5, 5, 2 / 252)],
)
def test_the_limit_is_that_of_the_exact_test(difference, n, chance):
    """The chances are scipy's: ks_2samp(..., method="exact")."""
    assert kswin.p_value(difference, n) == pytest.approx(chance, rel=1e-12)
    limit = kswin.Plugin(window=2 * n, recent=n, confidence=chance * 1.001).limit()
    assert limit == difference


def test_no_difference_is_a_drift_if_the_samples_are_too_small():
    plugin = kswin.Plugin(window=10, recent=2, confidence=0.001)
    assert plugin.limit() == 3
    level, _ = detector_of(plugin)
    assert all(level(error) != DRIFT for error in [0] * 20 + [1] * 20)


def test_a_full_window_of_blocks_merges_the_oldest_two():
    """Without merging, blocks of one input fill the window; no input is lost."""
    plugin = seed.Plugin(block=1, merge_below=0.0, confidence=1e-12)
    level, words = detector_of(plugin)
    errors = np.random.default_rng(4).random(700) < 0.5
    for error in errors:
        level(error)
    window = seed.SeedState.over(words)
    assert window.blocks == seed.MOST_BLOCKS
    assert (window.width, window.total) == (700, errors.sum())
    oldest = window.block(0)
    assert (oldest.n, oldest.total) == (700 - 255, errors[: 700 - 255].sum())


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        ({"name": "stepd"}, {"name": "stepd", "drift": 0.001}, True),
        ({"name": "stepd"}, {"name": "stepd", "window": 31}, False),
        ({"name": "rddm"}, {"name": "rddm", "warm_up": 10}, True),
        ({"name": "rddm"}, {"name": "rddm", "stable": 100}, False),
        ({"name": "kswin"}, {"name": "kswin", "confidence": 0.1}, True),
        ({"name": "kswin"}, {"name": "kswin", "recent": 20}, False),
        ({"name": "seed"}, {"name": "seed", "confidence": 0.1}, True),
        ({"name": "seed"}, {"name": "seed", "block": 16}, False),
        ({"name": "seed", "two_sided": True}, {"name": "seed", "two_sided": True, "compat": "moa"}, False),
    ],
)
def test_a_state_is_kept_if_it_means_the_same(before, after, holds):
    assert Spec.parse({"drift": after}).drift.continues(Spec.parse({"drift": before}).drift) is holds


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "kswin", "window": 50}, "recent=30 must be at most half of window=50"),
        ({"name": "hddm_a", "drift": 0.1}, "drift=0.1 must be at most warning=0.005"),
        ({"name": "hddm_w", "drift": 0.1}, "drift=0.1 must be at most warning=0.005"),
        ({"name": "stepd", "drift": 0.1}, "drift=0.1 must be at most warning=0.05"),
        ({"name": "rddm", "warning": 3.0}, "warning=3.0 must be at most drift=2.258"),
        ({"name": "stepd", "window": 1001}, "window=1001 must be at most 1000"),
        ({"name": "rddm", "stable": 20_001}, "stable=20001 must be at most 20000"),
        ({"name": "seed", "merge_every": 255}, "merge_every=255 must be at most 254"),
        (["none", {"name": "input", "least": 1.5}], "least=1.5 must be at most 1 with distance='ks'.*'psi'"),
        (
            ["none", {"name": "input", "least": 2, "distance": "hellinger"}],
            "least=2.0 must be at most 1 with",
        ),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(spec, message):
    with pytest.raises(ParameterError, match=message):
        Spec.parse({"drift": spec})


IDLE = [
    (
        {"name": "rddm", "longest": 5000},
        "longest=5000 must be above stable=7000, .*raise it, or lower stable",
    ),
    ({"name": "rddm", "longest": 7000}, "longest=7000 must be above stable=7000"),
    (
        {"name": "rddm", "longest": 100, "stable": 50},
        "longest=100 must be above warm_up=129, .* lower warm_up",
    ),
    ({"name": "hddm_w", "weight": 0.3}, "weight=0.3 must be below 0.253 with drift=0.001.*raise drift"),
    ({"name": "hddm_w", "weight": 0.253, "fall": "drift"}, "weight=0.253 must be below 0.253 with"),
    ({"name": "kswin", "recent": 3}, "confidence=0.005 must be at least 0.1 with recent=3.*raise recent"),
    ({"name": "kswin", "confidence": 1e-20}, "confidence=1e-20 must be at least 1.69e-17 with recent=30"),
    ({"name": "cusum", "tolerance": 1}, "tolerance=1.0 must be below 1.*lower it"),
    (
        {"name": "page_hinkley", "memory": 0.9},
        "threshold=50.0 must be below 20 with memory=0.9.*raise memory",
    ),
    ({"name": "seed", "block": 10_001}, "block=10001 must be at most 10000.*lower it"),
    ({"name": "seed", "block": 1_000_000}, "block=1000000 must be at most 10000"),
    (
        {"name": "seed", "block": 2, "merge_every": 1, "merge_below": 2},
        "merge_below=2.0 must be at most 1.25 with growth=0.8.*lower it, or growth",
    ),
    ({"name": "seed", "merge_below": 0.5, "growth": 2.5}, "merge_below=0.5 must be at most 0.4 with"),
]
"""Detectors that release 0.1.0 accepted, and that do nothing or forget nothing."""


@pytest.mark.parametrize(("spec", "message"), IDLE)
def test_parameters_that_keep_a_detector_from_its_work_are_refused(spec, message):
    with pytest.raises(ParameterError, match=message):
        Spec.parse({"drift": spec})
    with pytest.raises(ParameterError, match=message):
        Spec.parse({"learner": {"name": "ufft", "drift": spec}})
    assert Spec.parse({"drift": spec}, 9).drift.name == spec["name"], "of a stored model"


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "rddm", "longest": 7001},
        {"name": "rddm", "longest": 130, "stable": 129},
        {"name": "hddm_w", "weight": 0.25},
        {"name": "hddm_w", "weight": 0.9, "drift": 0.4, "warning": 0.5},
        {"name": "kswin", "recent": 3, "confidence": 0.1},
        {"name": "cusum", "tolerance": 0.99},
        {"name": "page_hinkley", "memory": 0.97},
        {"name": "page_hinkley", "memory": 1.0, "threshold": 1e6},
        {"name": "seed", "block": 10_000},
        {"name": "seed", "merge_below": 1.25},
        {"name": "seed", "merge_below": 1e6, "growth": 0},
        ["none", {"name": "input", "least": 1.5, "distance": "psi"}],
    ],
)
def test_parameters_near_the_rules_are_accepted(spec):
    Spec.parse({"drift": spec})


@pytest.mark.parametrize(("spec", "_"), [*IDLE[3:8], *IDLE[9:12]])
def test_refused_detectors_raise_no_alarm_when_all_answers_become_wrong(spec, _):
    level, _words = detector_of(Spec.parse({"drift": spec}, 9).drift)
    assert all(level(error) != DRIFT for error in [0] * 3000 + [1] * 3000)


@pytest.mark.parametrize("errors", [[0] * 3000 + [1] * 3000, [1] * 30 + [0] * 300 + [1] * 300])
def test_a_sum_that_forgets_fast_does_not_reach_the_threshold(errors):
    for memory, threshold in ((0.9, 20.0), (0.96, 50.0), (0.5, 4.0)):
        spec = {"name": "page_hinkley", "memory": memory, "threshold": threshold}
        level, _words = detector_of(Spec.parse({"drift": spec}, 9).drift)
        assert all(level(error) != DRIFT for error in errors)


@pytest.mark.parametrize("weight", [0.2, 0.24])
def test_the_largest_weight_of_hddm_w_still_raises_an_alarm(weight):
    level, _words = detector_of(Spec.parse({"drift": {"name": "hddm_w", "weight": weight}}).drift)
    assert any(level(error) == DRIFT for error in [0] * 3000 + [1] * 3000)
