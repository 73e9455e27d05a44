"""What a tree buys: its path, or with a known probability all of it."""

import numpy as np
import pytest

from core.active.acquirers import path
from core.active.acquirers.base import BUDGET, EXHAUSTED, ONE_REGION, Step, costs
from core.errors import ParameterError
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of

EVERY = np.ones(3, dtype=np.bool_)
NOTHING = np.full(3, np.nan)


def grown():
    """Return a model whose tree tests x0 alone."""
    x, y = halves(400)
    table = table_of(schema_of(None, None, None), spec_of(grace_period=50, delta=0.1, tau=0.2))
    answer(table, x, y)
    model = table.model(0)
    assert [branch.attribute for branch in model.explain(x[0])] == ["x0"]
    return model


def opened(plugin, model, number=5, unknown=EVERY, frozen=False):
    return plugin.open(model, NOTHING, unknown, number, frozen)


def test_it_buys_what_the_next_node_tests_and_no_more():
    model, plugin = grown(), path.Plugin(explore=0.001)
    words = opened(plugin, model)
    assert plugin.step(model, words, NOTHING, EVERY, np.inf).features == (0,)
    known = np.array([0.7, np.nan, np.nan])
    assert plugin.step(model, words, known, np.isnan(known), np.inf) == Step(stop=ONE_REGION)
    assert plugin.weight(words) == 1.0


def test_what_cannot_be_had_does_not_stop_it():
    """x0 is unavailable: the record goes the way that most went, and ends at a leaf."""
    model, plugin = grown(), path.Plugin(explore=0.001)
    rest = np.array([False, True, True])
    assert plugin.step(model, opened(plugin, model), NOTHING, rest, np.inf).stop == ONE_REGION


def test_what_costs_more_than_is_left_is_not_asked_for():
    model, plugin = grown(), path.Plugin(explore=0.001)
    assert plugin.step(model, opened(plugin, model), NOTHING, EVERY, 0.5) == Step(stop=BUDGET)


def test_an_explored_record_is_bought_whole_as_far_as_the_budget_reaches():
    model, plugin = grown(), path.Plugin(explore=1.0)
    words = opened(plugin, model)
    assert plugin.step(model, words, NOTHING, EVERY, np.inf).features == (0, 1, 2)
    assert plugin.step(model, words, NOTHING, EVERY, 2.0).features == (0, 1)
    assert plugin.step(model, words, NOTHING, EVERY, 0.5).stop == BUDGET
    assert plugin.step(model, words, np.ones(3), ~EVERY, 2.0).stop == EXHAUSTED


def test_a_share_of_the_records_is_explored_and_stands_for_the_others():
    """Draws are of the record's number: over many, the share and its inverse as the weight."""
    model, plugin, n = grown(), path.Plugin(explore=0.1), 4000
    weights = [plugin.weight(opened(plugin, model, number)) for number in range(n)]
    assert set(weights) == {1.0, 10.0}
    assert abs(weights.count(10.0) - 0.1 * n) < 4 * np.sqrt(0.09 * n)
    assert weights == [plugin.weight(opened(plugin, model, number)) for number in range(n)]


def test_a_frozen_model_and_a_record_that_is_known_are_not_explored():
    model, plugin = grown(), path.Plugin(explore=1.0)
    assert plugin.weight(opened(plugin, model, frozen=True)) == 1.0
    assert plugin.step(model, opened(plugin, model, frozen=True), NOTHING, EVERY, np.inf).features == (0,)
    known = opened(plugin, model, unknown=~EVERY)
    assert plugin.step(model, known, np.ones(3), ~EVERY, np.inf).stop == ONE_REGION


@pytest.mark.parametrize("learner", ["majority_class", "naive_bayes", "boct"])
def test_learners_without_paths_or_that_count_records_are_refused(learner):
    with pytest.raises(ParameterError, match="acquire='path' must go with a learner that routes records"):
        Spec.parse({"learner": learner, "acquire": "path"})


def test_costs_are_those_of_the_schema_and_1_without():
    schema = Schema.of([Attribute("bureau", cost=2.5), Attribute("income")], ("repaid", "default"))
    assert costs(schema).tolist() == [2.5, 1.0]


def test_a_spec_that_buys_nothing_is_written_as_before_there_were_acquirers():
    assert "acquire" not in Spec.parse({"learner": "h-tree", "acquire": "none"}).to_dict()
    body = Spec.parse({"learner": "h-tree", "acquire": "path"}).to_dict()
    assert body["acquire"]["name"] == "path"
    assert Spec.parse(body).acquirer == path.Plugin()
