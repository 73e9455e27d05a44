"""Class weights: their rules, and that a model with them leaves the majority class."""

import json
import math

import numpy as np
import pytest

from core.errors import ParameterError
from core.model import validate
from core.model_table import ON_REQUEST
from core.schema.schema import Schema
from core.spec import Spec
from tests.unit.core.builders import answer, schema_of, table_of

TWO = schema_of(None, None)


def rare(n, seed=2, share=0.04):
    """Return records whose rare class lies in the middle of the frequent one."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < share).astype(int)
    spread = np.where(label == 1, 0.35, 1.0)[:, None]
    return rng.normal(0.0, 1.0, (n, 2)) * spread, label


def spec_of(weights=None, learner="h-tree", **parts):
    body = {"learner": learner, "evaluation": {"every": 0}, "seed": 1, **parts}
    return Spec.parse(body | ({} if weights is None else {"class_weights": weights}))


def test_the_masses_of_a_leaf_are_the_sums_of_the_weights():
    """A label before the first of its class counts as the rule says with one label added to each class."""
    label = [0, 0, 0, 1, 0, 1]
    expected = {"balanced": [0.0, 0.0], "sqrt_balanced": [0.0, 0.0], "given": [4.0, 6.0]}
    counts = [0, 0]
    for c in label:
        counts[c] += 1
        weight = (sum(counts) + 2) / (2 * (counts[c] + 1))
        expected["balanced"][c] += weight
        expected["sqrt_balanced"][c] += math.sqrt(weight)
    for rule, masses_expected in expected.items():
        weights = {"b": 3.0, "no such class": 9.0} if rule == "given" else rule
        table = table_of(TWO, spec_of(weights, {"name": "h-tree", "leaf_model": "mc"}))
        answer(table, np.zeros((6, 2)), label)
        assert table.model(0).predict([0.0, 0.0]).probabilities == pytest.approx(
            dict(zip("ab", np.array(masses_expected) / sum(masses_expected), strict=True))
        )


@pytest.mark.parametrize("rule", ["balanced", "sqrt_balanced"])
def test_a_rule_adds_hardly_any_weight_in_total(rule):
    """Bounds must not see more labels than there are."""
    for share in (0.01, 0.2, 0.5):
        _, label = rare(3000, share=share)
        counts, total = np.zeros(2), 0.0
        for c in label:
            counts[c] += 1
            weight = (counts.sum() + 2) / (2 * (counts[c] + 1))
            total += math.sqrt(weight) if rule == "sqrt_balanced" else weight
        assert total < 1.1 * len(label)


@pytest.mark.parametrize("learner", ["h-tree", {"name": "leveraging-bagging", "members": 3}])
def test_a_model_with_weights_finds_the_rare_class(learner):
    x, label = rare(6000)
    recall = {}
    for weights in (None, "sqrt_balanced", "balanced"):
        spec = spec_of(weights, learner, query="ask", budget={"limit": 0.2})
        prediction = answer(table_of(TWO, spec), x, label, mode=ON_REQUEST).prediction
        recall[weights] = (prediction[3000:] == 1)[label[3000:] == 1].mean()
    assert recall[None] < recall["sqrt_balanced"] < recall["balanced"]
    assert recall["balanced"] > 0.3


def test_a_spec_keeps_the_weights_it_was_given():
    for weights in ("balanced", "sqrt_balanced", {"fraud": 20.0, "other": 0.5}):
        spec = spec_of(weights)
        assert json.loads(spec.to_json())["class_weights"] == weights
        assert Spec.parse(spec.to_json()) == spec
    assert "class_weights" not in spec_of().to_dict()
    assert spec_of({"b": 2, "a": 1}) == spec_of({"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("even", "class_weights='even' must be null, 'balanced', 'sqrt_balanced', or an object"),
        ([1, 2], "class_weights=[1, 2] must be null"),
        ({"a": 0}, "class_weights['a']=0 must be a number from 1e-06 to 1e+06"),
        ({"a": "much"}, "class_weights['a']='much' must be a number"),
        ({"a": True}, "class_weights['a']=True must be a number"),
        ({"a" * (1 << 20): 2, "b": 2}, "class_weights={…} has 1048577 characters in the names of 2 classes"),
    ],
)
def test_weights_that_are_refused(weights, message):
    with pytest.raises(ParameterError) as error:
        spec_of(weights)
    assert str(error.value).startswith(message)


def test_a_learner_that_counts_records_refuses_weights():
    with pytest.raises(ParameterError, match="class_weights='balanced' must go with a learner that weighs"):
        spec_of("balanced", "boct")


def test_a_class_that_the_schema_takes_in_later_gets_its_weight():
    """The order in which classes come is no matter."""
    schema = Schema.infer(["x"], ["numeric"])
    spec = spec_of({"late": 5.0}, {"name": "h-tree", "leaf_model": "mc"})
    table = table_of(schema, spec)
    for name in ("early", "late"):
        grown = table.model(0).schema.with_class(name)
        table.model(0).adopt(grown)
        table.refresh(0)
        answer(table, np.zeros((1, 1)), [grown.class_code(name)])
    assert table.model(0).predict([0.0]).probabilities == pytest.approx({"early": 1 / 6, "late": 5 / 6})


def test_a_living_model_can_be_given_weights():
    table = table_of(TWO, spec_of(None, {"name": "h-tree", "leaf_model": "mc"}))
    answer(table, np.zeros((2, 2)), [0, 1])
    table.model(0).configure(spec_of({"b": 2.0}, {"name": "h-tree", "leaf_model": "mc"}))
    table.refresh(0)
    answer(table, np.zeros((1, 2)), [1])
    assert table.model(0).predict([0.0, 0.0]).probabilities == pytest.approx({"a": 0.25, "b": 0.75})


@pytest.mark.parametrize("learner", ["h-tree", "naive-bayes", "ufft", "idbd"])
def test_a_label_of_tiny_weights_does_not_harm_the_model(learner):
    """Their product would round to 0, and the snapshot of a forest of ufft would be refused."""
    body = {"name": "h-tree", "leaf_model": "idbd"} if learner == "idbd" else learner
    table = table_of(TWO, spec_of({"a": 1e-6}, body))
    answer(table, np.ones((1, 2)), [0], weight=np.array([5e-324]))
    answer(table, np.array([[1.0, 2.0], [3.0, 5.0]]), [0, 1])
    shares = table.model(0).predict([1.0, 2.0]).probabilities
    assert sum(shares.values()) == pytest.approx(1.0)
    validate.check(table.model(0))
