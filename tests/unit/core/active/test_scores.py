"""Scores of an answer: their formulas, and that strategies ask by the answer."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import entropy as scipy_entropy

from core.active import scores
from core.active.scores import SCORES, certainty_of, share_of
from core.errors import ParameterError
from core.kernels.jit import kernel
from core.model_table import ANSWER_ONLY, ON_REQUEST
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

KINDS = list(scores.KINDS.values())
THREE = schema_of(None, None, classes=("a", "b", "c"))


@kernel("UniTuple(float64, 2)(int64, float64[::1], float64)", alone=True)
def sure(kind, shares, known):
    """Return share and certainty by a score of the answer."""
    share = share_of(kind, shares, len(shares), known)
    return share, certainty_of(share, known)


@st.composite
def answers(draw):
    """Return normalised class shares of 2 to 9 classes; some are 0."""
    classes = draw(st.integers(2, 9))
    votes = draw(arrays.arrays(np.float64, classes, elements=st.sampled_from([0.0, 1e-300, 0.1, 1.0, 7.5])))
    votes[draw(st.integers(0, classes - 1))] += 1.0
    return votes / votes.sum()


@given(answers())
def test_scores_are_their_formulas(shares):
    k = len(shares)
    second, first = np.sort(shares)[-2:]
    widest = 1.0 - 1.0 / k
    expected = {
        scores.LEAST_CONFIDENCE: (first, 1.0 - (1.0 - first) / widest),
        scores.MARGIN: (1.0 - (1.0 - (first - second)) * widest, first - second),
        scores.ENTROPY: (1.0 - scipy_entropy(shares, base=k) * widest, 1.0 - scipy_entropy(shares, base=k)),
    }
    for kind, pair in expected.items():
        assert sure(kind, shares, float(k)) == pytest.approx(pair, abs=1e-12)


@given(answers())
def test_a_share_lies_between_even_and_certain(shares):
    for kind in KINDS:
        share, certainty = sure(kind, shares, float(len(shares)))
        assert 1.0 / len(shares) - 1e-12 <= share <= 1.0 + 1e-12
        assert -1e-12 <= certainty <= 1.0 + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 5])
def test_extremes(kind, classes):
    """Certain, even, and no class known yet, which is as unsure as even."""
    certain = np.eye(classes)[1]
    assert sure(kind, certain, float(classes)) == pytest.approx((1.0, 1.0))
    for shares in (np.full(classes, 1.0 / classes), np.zeros(classes)):
        assert sure(kind, shares, float(classes)) == pytest.approx((1.0 / classes, 0.0), abs=1e-12)


def test_for_two_classes_margin_and_least_confidence_are_the_same_share():
    for largest in np.linspace(0.5, 1.0, 41):
        shares = np.array([largest, 1.0 - largest])
        margin, least = (sure(kind, shares, 2.0)[0] for kind in (scores.MARGIN, scores.LEAST_CONFIDENCE))
        assert margin == pytest.approx(least, abs=1e-15)


def two_areas(n, seed=3):
    """Return records of one leaf in which naive Bayes is sure of the far ones and not of the middle."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    return rng.normal(2.0 * label, 1.0)[:, None], label


@pytest.mark.parametrize("score", ["least_confidence", "margin", "entropy"])
def test_a_tree_of_one_leaf_asks_where_its_naive_bayes_is_unsure(score):
    """All records of a leaf have one leaf share; the answers tell them apart."""
    x, label = two_areas(4000)
    query = {"name": "rate", "score": score, "explore": 0.0}
    spec = spec_of("nb", query=query, budget={"limit": 0.1}, grace_period=1e6)
    table = table_of(schema_of(None), spec)
    asked = answer(table, x, label, mode=ON_REQUEST).asked.astype(bool)
    distance = np.abs(x[1000:, 0] - 1.0)
    near = asked[1000:]
    assert near.mean() == pytest.approx(0.1, abs=0.01)
    assert np.median(distance[near]) < 0.25 < np.median(distance[~near])


def test_a_learner_without_members_refuses_votes():
    with pytest.raises(ParameterError, match=r"score='votes' of query='ask' must go with .*\(arf, .*h-tree"):
        Spec.parse({"query": {"name": "ask", "score": "votes"}})
    with pytest.raises(ParameterError, match=r"^score='gini' must be one of 'least_confidence'"):
        Spec.parse({"query": {"name": "ask", "score": "gini"}})


@pytest.mark.parametrize("score", SCORES)
def test_every_score_can_be_given_to_a_forest(score):
    spec = Spec.parse({"learner": "arf", "query": {"name": "variable_uncertainty", "score": score}})
    assert json.loads(spec.to_json())["query"]["score"] == score


def test_a_forest_of_votes_gives_its_score_to_strategies_that_name_none():
    """The parameter that forests had before strategies had scores."""
    learner = {"name": "arf", "uncertainty": "votes"}
    for query, score in (("rate", "votes"), ({"name": "rate", "score": "margin"}, "margin")):
        spec = Spec.parse({"learner": learner, "query": query})
        assert getattr(spec.query, "score") == score  # noqa: B009 - a parameter of this strategy only
    assert Spec.parse({"learner": learner, "query": "random"}).query.name == "random"


@pytest.mark.parametrize(
    ("spec", "strategy"),
    [
        ({}, "always"),
        ({"budget": {"limit": 1}}, "always"),
        ({"budget": {"limit": 0.1}}, "ask"),
        ({"budget": {"name": "window", "limit": 0.99}}, "ask"),
        ({"budget": {"limit": 0.1}, "query": "random"}, "random"),
        ({"budget": {"limit": 0.1}, "query": {"score": "margin"}}, "ask"),
    ],
)
def test_the_strategy_of_a_spec_that_names_none(spec, strategy):
    assert Spec.parse(spec).query.name == strategy


def test_ask_begins_at_random_and_ends_by_score():
    """The first labels represent all records alike; later labels of unsure records represent few."""
    x, label = two_areas(6000)
    ask = {"name": "ask", "anneal": 300}
    table = table_of(schema_of(None), spec_of("nb", query=ask, budget={"limit": 0.2}, grace_period=1e6))
    rows = answer(table, x, label, mode=ON_REQUEST)
    asked, represented = rows.asked.astype(bool), rows.importance
    distance = np.abs(x[:, 0] - 1.0)
    early, late = np.arange(len(x)) < 300, np.arange(len(x)) >= 3000
    assert np.median(distance[asked & early]) > 0.7 * np.median(distance[early])
    assert np.median(distance[asked & late]) < 0.5 * np.median(distance[late])
    assert (represented[asked] >= 1.0).all()


@pytest.mark.parametrize("dependence", [0.0, 0.3])
def test_labels_that_depend_on_their_time_are_requested_at_random(dependence):
    """Classes come in stretches of 25 records; the features do not tell when one ends."""
    rng = np.random.default_rng(8)
    x, stretches = rng.normal(size=(5000, 2)), np.arange(5000) // 25 % 2
    label = np.where(rng.random(5000) < 0.1, x[:, 0] > 0.0, stretches).astype(np.int32)
    ask = {"name": "ask", "dependence": dependence, "anneal": 0}
    evaluation = {"window": 500}
    spec = spec_of("nb", query=ask, budget={"limit": 0.2}, evaluation=evaluation, grace_period=1e6)
    rows = answer(table_of(schema_of(None), spec), x, label, mode=ON_REQUEST)
    represented = rows.importance[rows.asked & (np.arange(5000) > 3000)]
    if dependence:  # at random: a fifth of the records, somewhat more or less as the reserve grants
        assert np.median(represented) == pytest.approx(5.0, abs=1.0)
    else:  # by rank: the records of the highest scores
        assert np.median(represented) < 1.6
    assert 360 < rows.asked[3000:].sum() < 440


def test_independent_labels_leave_the_score_alone():
    x, label = two_areas(4000)
    shares = []
    for dependence in (0.0, 0.3):
        ask = {"name": "ask", "dependence": dependence, "anneal": 0}
        table = table_of(schema_of(None), spec_of("nb", query=ask, budget={"limit": 0.2}, grace_period=1e6))
        shares.append(answer(table, x, label, mode=ON_REQUEST).asked)
    assert np.array_equal(*shares)


def test_answers_of_a_frozen_model_are_not_asked_about():
    table = table_of(THREE, spec_of(query="ask", budget={"limit": 0.1}))
    assert not answer(table, np.zeros((5, 2)), mode=ANSWER_ONLY).asked.any()
