"""The interval of the unbiased accuracy covers the accuracy that all labels would give.

A model sees 5 % of the labels of a concept that moves half way; the test knows them all. In each run the
accuracy over every record is compared with what the model says of itself from the labels it asked for.
"""

import numpy as np
import pytest

from core.model_table import ON_REQUEST
from core.numeric.proportions import wilson
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

RECORDS = 4000
LIMIT = 0.05
CASES = [
    ("conf_tree", "count", 0.02),
    ("variable_uncertainty", "count", 0.02),
    ("variable_uncertainty", "window", 0.02),
    ("fixed_uncertainty", "count", 0.02),
    ("randomised_uncertainty", "count", 0.02),
    ("selective_sampling", "window", 0.02),
    ("split", "count", 0.02),
    ("split_conf_tree", "count", 0.01),
    ("never", "count", 0.05),
    ("always", "count", 0.02),
]
WEIGHTED = [
    *[
        (query, budget, 0.0)
        for query in ("random", "split", "split_conf_tree")
        for budget in ("count", "window")
    ],
    ("conf_tree", "count", 0.0),
    ("rate", "count", 0.0),
    ("selective_sampling", "count", 0.0),
    ("randomised_uncertainty", "window", 0.0),
]
CASES += WEIGHTED
"""Without a reserved share: strategies that know how likely they ask."""


def stream(seed):
    """Return x and labels: a threshold that moves half way, and noise in a part of the space."""
    draw = np.random.default_rng(seed)
    x = draw.random((RECORDS, 3))
    threshold = np.where(np.arange(RECORDS) < RECORDS // 2, 0.5, 0.7)
    noisy = draw.random(RECORDS) < 0.1 * (x[:, 1] > 0.3)
    return x, ((x[:, 0] > threshold) ^ noisy).astype(np.int32)


def once(seed, query, budget, share):
    """Return the accuracy over all records, and the evaluation of a model that asked for some labels."""
    x, label = stream(seed)
    spec = spec_of(
        "mc",
        query=query,
        budget={"name": budget, "limit": LIMIT},
        evaluation={"share": share, "every": 0},
        seed=seed,
        grace_period=20,
        delta=0.05,
        tau=0.2,
    )
    table = table_of(schema_of(None, None, None), spec)
    answers = answer(table, x, label, mode=ON_REQUEST)
    return float(np.mean(answers.prediction == label)), table.model(0).evaluation()


def coverage(runs, query, budget, share):
    """Return the share of runs whose interval covers the truth, and that of the naive interval."""
    covered, naive = [], []
    for seed in range(runs):
        truth, evaluation = once(seed, query, budget, share)
        assert evaluation.drawn_labels >= 38
        covered.append(evaluation.accuracy_unbiased_low <= truth <= evaluation.accuracy_unbiased_high)
        low, high = wilson(round(evaluation.accuracy * evaluation.labels), evaluation.labels)
        naive.append(low <= truth <= high)
    return np.mean(covered), np.mean(naive)


@pytest.mark.parametrize(("query", "budget", "share"), CASES)
def test_coverage(query, budget, share):
    """95 % nominally; 100 runs may fall short by four standard errors (0.087)."""
    assert coverage(100, query, budget, share)[0] >= 0.865


@pytest.mark.nightly
@pytest.mark.parametrize(("query", "budget", "share"), CASES)
def test_coverage_in_many_runs(query, budget, share):
    assert coverage(400, query, budget, share)[0] >= 0.925


def test_the_naive_interval_misses():
    """Where hard records are preferred, accuracy over the labels asked for is too low, and sure of it."""
    query = {"name": "fixed_uncertainty", "cold_start": 0}
    covered, naive = coverage(100, query, "count", 0.02)
    assert naive < 0.8 < covered
    gaps = [
        evaluation.accuracy - truth for truth, evaluation in (once(s, query, "count", 0) for s in range(60))
    ]
    assert np.mean(gaps) < -0.02


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        (81, 263, 0.255295, 0.366210),
        (375, 400, 0.909366, 0.957311),
    ],
)
def test_wilson(hits, n, low, high):
    """81 of 263: the example of Newcombe (1998), table I, method 3: 0.2553 to 0.3662."""
    assert wilson(hits, n) == pytest.approx((low, high), abs=1e-5)


def test_nothing_drawn_nothing_said():
    assert all(np.isnan(value) for value in wilson(0, 0))
    _, evaluation = once(0, "variable_uncertainty", "count", 0.0)
    assert evaluation.drawn_labels == 0
    assert np.isnan(evaluation.accuracy_unbiased)
