"""A living model takes another strategy or budget; its tree and what it learned stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import SpecError
from core.model.model import Model
from core.model_table import ON_REQUEST, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

SCHEMA = Schema.of([Attribute("a"), Attribute("b")], ["x", "y"])


def spec(**parts: Any) -> Spec:
    return Spec.parse({"learner": {"name": "h-tree", "grace_period": 50}, "drift": "ddm"} | parts)


def trained(given: Spec, rows: int) -> ModelTable:
    table = ModelTable()
    table.add(Model.create(given, SCHEMA))
    x = np.random.default_rng(5).normal(size=(rows, 2))
    label = (x[:, 0] > 0).astype(np.int32)
    label[::3] = -1
    table.answer(np.zeros(rows, dtype=np.int64), x, label, np.ones(rows))
    return table


def test_the_new_strategy_decides_and_the_tree_stays() -> None:
    before = spec(query="always", budget={"name": "count", "limit": 1.0})
    table = trained(before, 1500)
    model = table.model(0)
    summary, evaluation = model.summary(), model.evaluation()
    model.configure(spec(query="never", budget={"name": "count", "limit": 1.0}))
    table.refresh(0)
    assert model.summary() == summary
    assert model.evaluation() == evaluation
    assert summary.splits > 0
    x = np.random.default_rng(6).normal(size=(500, 2))
    unlabelled = np.full(500, -1, dtype=np.int32)
    asked = table.answer(np.zeros(500, dtype=np.int64), x, unlabelled, np.ones(500)).asked
    assert not asked.any()
    model.configure(before)
    table.refresh(0)
    assert table.answer(np.zeros(500, dtype=np.int64), x, unlabelled, np.ones(500)).asked.all()


def test_a_strategy_that_stays_keeps_its_state() -> None:
    table = trained(spec(query={"name": "variable_uncertainty", "step": 0.01}), 900)
    model = table.model(0)
    state = model.ints.copy()
    model.configure(spec(query={"name": "variable_uncertainty", "step": 0.02}))
    assert np.array_equal(model.ints, state)
    assert model.spec.query.to_dict()["step"] == 0.02


def test_ranks_go_on_between_ask_and_rate_unless_the_score_changes() -> None:
    """A window of scores means the same under both; scores of another measure are other numbers."""
    table = trained(spec(query={"name": "rate", "window": 50}), 900)
    model = table.model(0)
    state = model.ints.copy()
    model.configure(spec(query={"name": "ask", "window": 50}))
    assert np.array_equal(model.ints, state)
    model.configure(spec(query={"name": "ask", "window": 50, "score": "entropy"}))
    assert not np.array_equal(model.ints, state)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"learner": {"name": "h-tree", "grace_period": 60}}, "learner"),
        ({"drift": "none"}, "drift detector"),
        ({"evaluation": {"window": 10}}, "evaluation.window"),
        ({"max_classes": 5}, "max_classes"),
    ],
)
def test_what_the_tree_depends_on_cannot_change(change: dict[str, Any], what: str) -> None:
    model = Model.create(spec(), SCHEMA)
    state = model.ints.copy()
    with pytest.raises(SpecError, match=f"{what} must stay as it is"):
        model.configure(spec(**change))
    assert np.array_equal(model.ints, state)


def test_a_share_that_is_taken_away_leaves_no_estimate_and_no_error() -> None:
    """What was drawn before stands for a slice that is no more; the next evaluation stopped a partition."""
    spec = {"query": "never", "evaluation": {"every": 0, "share": 0.5, "window": 20}}
    table = ModelTable()
    model = Model.create(Spec.parse(spec), Schema.of([Attribute("a")], "xy"))
    which, x = np.full(60, table.add(model)), np.random.default_rng(0).random((60, 1))
    table.answer(which, x, (x[:, 0] > 0.5).astype(np.int32), np.ones(60), ON_REQUEST)
    assert model.evaluation().accuracy_unbiased > 0.0
    model.configure(Spec.parse(spec | {"evaluation": {"every": 0, "share": 0.0, "window": 20}}))
    found = model.evaluation()
    assert found.drawn_labels > 0
    assert np.isnan(
        [found.accuracy_unbiased, found.accuracy_unbiased_low, found.accuracy_unbiased_high]
    ).all()
