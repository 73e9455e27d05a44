"""The prediction-powered interval covers the accuracy over all records, and is never wider than Hájek's.

The models, streams and strategies are those of the unbiased accuracy: 5 % of the labels of a concept that
moves half way.
"""

import numpy as np
import pytest

from core.evaluation import EvaluationDue
from core.model_table import ON_REQUEST
from tests.contract.test_unbiased_evaluation import LIMIT, WEIGHTED, stream
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

CASES = [*WEIGHTED, ("never", "count", 0.05), ("variable_uncertainty", "count", 0.05)]


def once(seed, query, budget, share, every=0):
    """Return hits of all records, the model after them, and its evaluations."""
    x, label = stream(seed)
    spec = spec_of(
        "nb",
        query=query,
        budget={"name": budget, "limit": LIMIT},
        evaluation={"share": share, "every": every},
        seed=seed,
        grace_period=20,
        delta=0.05,
        tau=0.2,
    )
    table = table_of(schema_of(None, None, None), spec)
    answers = answer(table, x, label, mode=ON_REQUEST)
    events = [event for event in answers.events if isinstance(event, EvaluationDue)]
    return answers.prediction == label, table.model(0), events


def coverage(runs, query, budget, share):
    """Return the shares of runs whose interval covers the truth, powered and Hájek's, and both widths."""
    covered, covered_before, widths = [], [], []
    for seed in range(runs):
        hits, model, _ = once(seed, query, budget, share)
        powered, unbiased = model.measures().accuracy.accuracy, model.evaluation()
        covered.append(powered.low <= hits.mean() <= powered.high)
        covered_before.append(
            unbiased.accuracy_unbiased_low <= hits.mean() <= unbiased.accuracy_unbiased_high
        )
        widths.append(
            (powered.high - powered.low, unbiased.accuracy_unbiased_high - unbiased.accuracy_unbiased_low)
        )
    return np.mean(covered), np.mean(covered_before), np.array(widths)


@pytest.mark.parametrize(("query", "budget", "share"), CASES)
def test_coverage_and_width(query, budget, share):
    """95 % nominally; 60 runs may fall short by four standard errors (0.113)."""
    covered, _, widths = coverage(60, query, budget, share)
    assert covered >= 0.838
    assert (widths[:, 0] <= widths[:, 1] + 1e-9).all()


@pytest.mark.nightly
@pytest.mark.parametrize(("query", "budget", "share"), CASES)
def test_coverage_in_a_thousand_runs(query, budget, share):
    """Where budgets close, Hájek's interval itself covers 94 %; the powered one covers as much."""
    covered, covered_before, widths = coverage(1000, query, budget, share)
    assert covered >= min(covered_before, 0.95) - 0.005
    assert covered >= 0.93
    assert widths[:, 0].mean() < widths[:, 1].mean()


def test_claims_that_tell_right_from_wrong_narrow_the_interval():
    """Half of the records are noise, which the claims show; without claims of any use nothing is gained."""
    widths = []
    for noise in (0.5, 0.0):
        draw = np.random.default_rng(1)
        x = draw.random((20_000, 2))
        label = (x[:, 0] > 0.5) ^ ((x[:, 1] > 0.5) & (draw.random(20_000) < noise))
        spec = spec_of("mc", query="random", budget={"limit": 0.1}, grace_period=20, delta=0.1, tau=0.2)
        table = table_of(schema_of(None, None), spec)
        answer(table, x, label, mode=ON_REQUEST)
        model = table.model(0)
        powered, unbiased = model.measures().accuracy.accuracy, model.evaluation()
        width = unbiased.accuracy_unbiased_high - unbiased.accuracy_unbiased_low
        widths.append((powered.high - powered.low) / width)
    assert widths[0] < 0.9
    assert widths[1] <= 1.0


def test_the_band_holds_at_all_times_together():
    """At most 5 % of the runs leave it at any time; 100 runs may exceed that by four standard errors."""
    left = 0
    for seed in range(100):
        hits, _, events = once(seed, "random", "count", 0.0, every=10)
        truth = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        bands = [(event.row, event.sums.read().accuracy) for event in events]
        left += any(not band.always_low <= truth[row] <= band.always_high for row, band in bands)
    assert left <= 14


def test_without_known_chances_there_is_no_estimate():
    _, model, _ = once(0, "variable_uncertainty", "count", 0.0)
    found = model.measures()
    assert found.basis == "labels"
    assert np.isnan(found.accuracy.accuracy.value) and np.isnan(found.accuracy.always_low)
    assert found.kappa.value > 0.0
