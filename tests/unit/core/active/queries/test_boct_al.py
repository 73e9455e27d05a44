"""BOCT-AL: water filling by number, over leaves that are given and over those of a tree that grows."""

import numpy as np
import pytest

from core.active.queries.boct_al import chances, excess_of, sort_leaves
from core.errors import ParameterError
from core.learners.boct import boct
from core.model.model import Model
from core.model_table import ON_REQUEST, ModelTable
from core.numeric.credible import risk_bound
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of

SCORES, SIZES = [0.30, 0.20, 0.05], [0.5, 0.3, 0.2]


def table_of(query="boct_al", limit=0.3, seed=1, share=0.0, **learner):
    spec = {
        "learner": {"name": "boct", "delta": 0.3, **learner},
        "query": query,
        "budget": {"limit": limit},
        "evaluation": {"every": 0, "share": share},
        "seed": seed,
    }
    table = ModelTable()
    table.add(Model.create(Spec.parse(spec), schema_of(None, None)))
    return table


def records(n, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.random((n, 2))
    return x, ((x[:, 0] > 0.4) ^ (draw.random(n) < np.where(x[:, 1] > 0.5, 0.35, 0.02))).astype(np.int32)


@pytest.mark.parametrize(
    ("rate", "bare", "with_floor"),
    [
        (0.3, [0.6, 0.0, 0.0], [0.570000, 0.030000, 0.030000]),
        (0.6, [1.0, 0.333333, 0.0], [1.0, 0.293333, 0.060000]),
        (0.9, [1.0, 1.0, 0.5], [1.0, 1.0, 0.5]),
    ],
)
def test_water_filling(rate, bare, with_floor):
    """Chances by leaf, computed by hand [D30]; the expected rate is B exactly."""
    for explore, expected in ((0.0, bare), (0.1, with_floor)):
        found = chances(SCORES, SIZES, rate, explore)
        assert found == pytest.approx(expected, abs=1e-6)
        assert np.dot(found, SIZES) == pytest.approx(rate, rel=1e-14)


def test_water_filling_of_many_leaves():
    draw = np.random.default_rng(0)
    for n in (1, 2, 17, 5000):
        scores, sizes = draw.random(n).round(2), draw.random(n) * 100
        for rate in (0.01, 0.3, 1.0):
            found = chances(scores, sizes, rate)
            assert np.dot(found, sizes) / sizes.sum() == pytest.approx(rate, rel=1e-9)
            assert (found >= 0.1 * rate * (1 - 1e-12)).all()
            assert (np.diff(found[np.lexsort((np.arange(n), -scores))]) <= 1e-12).all()


def test_before_the_first_split_it_asks_as_random_does():
    x, y = records(400)
    asked = []
    for query in ("boct_al", "random"):
        table = table_of(query, delta=0.001)
        found = answer(table, x, y, mode=ON_REQUEST)
        first = next((e.row for e in found.events), 400)
        asked.append((found.asked, first, found.importance))
    until = min(asked[0][1], asked[1][1])
    assert until > 60
    assert (asked[0][0][:until] == asked[1][0][:until]).all()
    assert (asked[0][2][:until] == asked[1][2][:until]).all()


def test_chances_are_those_of_the_leaves():
    """What it asked with is the water filling over the leaves as they were when it was shared out last."""
    x, y = records(3000)
    table = table_of(limit=0.2)
    found = answer(table, x, y, mode=ON_REQUEST)
    model = table.model(0)
    leaves = boct.leaves(model)
    assert len(leaves.node) > 3
    expected = chances(leaves.size * risk_bound(leaves.labels, leaves.positives, 0.05), leaves.size, 0.2)
    later = answer(table, records(400, 9)[0])
    weights = later.importance[later.asked]
    assert (weights > 0.0).all()
    assert set(np.unique((1.0 / weights).round(2))) & set(expected.round(2))
    assert found.asked.mean() == pytest.approx(0.2, abs=0.03)


def test_an_excess_is_what_the_other_label_may_be_better_by():
    """max(0, 2q - 1) [D32], δ = 0.05."""
    bounds = risk_bound(np.full(3, 10), np.array([10, 3, 5]), 0.05)
    assert [excess_of(q) for q in bounds] == pytest.approx([0.0, 0.128748, 0.457500], abs=1e-6)


def test_mbinomial_asks_less_where_no_label_lowers_the_risk():
    """In one half both classes are even: its risk is the largest, and nobody's label is better there."""
    draw = np.random.default_rng(4)
    x = draw.random((6000, 2))
    even = x[:, 0] < 0.5
    y = (draw.random(6000) < np.where(even, 0.5, 0.1 + 0.3 * (x[:, 1] > 0.5))).astype(np.int32)
    shares = []
    for risk in ("total", "mbinomial"):
        table = table_of({"name": "boct_al", "risk": risk}, limit=0.2, delta=0.2)
        asked = answer(table, x, y, mode=ON_REQUEST).asked
        assert asked.mean() == pytest.approx(0.2, abs=0.03)
        shares.append(float(asked[even].sum() / asked.sum()))
    assert shares[0] > 0.6
    assert shares[1] < shares[0] - 0.1


def test_a_risk_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="risk='excess' must be one of 'total', 'mbinomial'"):
        Spec.parse({"learner": "boct", "query": {"name": "boct_al", "risk": "excess"}})


def test_labels_go_where_the_risk_is():
    """The noisy half gets more of the labels than of the records."""
    x, y = records(8000, 3)
    table = table_of(limit=0.1)
    asked = answer(table, x, y, mode=ON_REQUEST).asked
    noisy = x[2000:, 1] > 0.5
    assert asked[2000:][noisy].mean() > 1.5 * asked[2000:][~noisy].mean()


def test_the_weighted_accuracy_is_that_of_all_records():
    """Over many seeds the unbiased estimate hits the accuracy over all answers."""
    gaps = []
    for seed in range(12):
        x, y = records(2500, seed)
        table = table_of(limit=0.2, seed=seed)
        found = answer(table, x, y, mode=ON_REQUEST)
        judged = (found.prediction == y)[found.prediction >= 0]
        gaps.append(table.model(0).evaluation().accuracy_unbiased - judged.mean())
    assert abs(np.mean(gaps)) < 4.0 * np.std(gaps) / np.sqrt(len(gaps)) + 0.005


def test_a_delta_that_has_no_digits_is_refused():
    with pytest.raises(ParameterError, match="delta=1e-26 must be at least 1e-25"):
        Spec.parse({"learner": "boct", "query": {"name": "boct_al", "delta": 1e-26}})


@pytest.mark.parametrize("n", [1, 2, 9, 300])
def test_leaves_are_sorted_by_score_and_then_by_node(n):
    draw = np.random.default_rng(n)
    score, node, order = draw.integers(0, 5, n) / 4.0, draw.permutation(n), np.arange(n)
    sort_leaves(order, score, node, n)
    assert order.tolist() == np.lexsort((node, -score)).tolist()


def test_a_learner_without_a_table_of_leaves_is_refused():
    for learner in ("h-tree", "naive-bayes"):
        with pytest.raises(
            ParameterError, match=rf"query='boct_al'.*\(boct\), not with '{learner}'.*conf_tree"
        ):
            Spec.parse({"learner": learner, "query": "boct_al"})
