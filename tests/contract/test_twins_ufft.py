"""UFFT and its obvious twin: the same forests from the same records."""

from typing import Any

import numpy as np
import pytest

from core.active.queries import rate
from core.events import Drift
from core.learners.ufft.blocks import forest_at
from core.learners.ufft.reading import node_rows
from core.model import validate
from core.model_table import ON_REQUEST
from tests.contract.test_twins_model import assert_same_evaluation, drifting
from tests.naive.compare import (
    assert_same_splits,
    core_answers,
    first_difference,
    naive_answers,
    splits_of,
    twin_of,
)
from tests.naive.rows import STREAMS, mixed, open_values

EAGER = {"delta": 0.01, "tau": 0.05}
VARIANTS: dict[str, dict[str, Any]] = {
    "nb": EAGER,
    "mc": {**EAGER, "leaf_model": "mc"},
    "idbd": {**EAGER, "leaf_model": "idbd"},
    "slide": {"delta": 0.2, "nmin": "slide"},
    "short-memory": {**EAGER, "memory": 40},
    "plain": {**EAGER, "memory": 0, "drift": "none"},
    "page-hinkley": {**EAGER, "drift": {"name": "page_hinkley", "threshold": 5.0}, "memory": 90},
    "eddm": {**EAGER, "drift": "eddm"},
}


def rows_of(name, n=700):
    """Return the beginning of a stream."""
    return (open_values() if name == "open_values" else STREAMS[name]()).first(n)


def assert_same_forest(model, twin):
    """Compare the trees node by node: tests, weights, statistics by column and class, and the memory."""
    blocks, t = model.plan.blocks, model.first
    records = blocks.nodes_of(model.ints, t)
    nodes = node_rows(records)
    roots = blocks.pairs(model.ints, t).root
    trees = twin.tree.trees
    assert {(i, j) for (i, j) in trees} == {
        (i, j) for j in range(len(model.schema.classes)) for i in range(j) if roots[j * (j - 1) // 2 + i] >= 0
    }
    compared = 0
    for (i, j), tree in trees.items():
        waiting = [(int(roots[j * (j - 1) // 2 + i]), tree.root)]
        while waiting:
            number, node = waiting.pop()
            ours = nodes[number]
            compared += 1
            assert [ours.first_weight, ours.second_weight] == node.weight
            assert ours.routed == node.routed
            statistics = blocks.statistics(records[number : number + 1])[0]
            for column, place in columns_of(model, twin):
                for side, moments in enumerate(node.moments(column)):
                    expected = [moments.n, moments.mean, moments.m2]
                    assert statistics[place, side].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert (ours.left < 0) == (not node.children)
            if node.children:
                assert ours.cut == pytest.approx(node.test[1], rel=1e-9, abs=1e-9)
                waiting += zip((int(ours.left), int(ours.right)), node.children, strict=True)
    assert model.summary().nodes == compared
    assert model.summary().splits == twin.tree.splits
    assert model.summary().attempts == twin.tree.attempts
    assert forest_at(model.ints, t).restarts == twin.tree.restarts


def columns_of(model, twin):
    """Yield the twin's columns, and their numbers in core."""
    numeric = model.plan.words.dims.numeric
    for column in twin.tree.columns():
        if isinstance(column, tuple):
            yield column, len(numeric) + model.plan.words.dims.value_places[column[0]][0] + column[1]
        else:
            yield column, numeric.index(column)


def run_both(spec, rows, label=None, on_request=False):
    """Run model and twin; compare answers, splits, evaluation and trees; return the model and its events."""
    twin = twin_of(spec, rows)
    predictions, asked, splits = naive_answers(twin, rows, label, on_request)
    mode = {"mode": ON_REQUEST} if on_request else {}
    model, ours, ours_asked, events = core_answers(spec, rows, label, **mode)
    assert first_difference(ours_asked, asked) is None
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_evaluation(model, twin)
    assert_same_forest(model, twin)
    validate.check(model)
    return model, events


@pytest.mark.parametrize("stream", [*STREAMS, "open_values"])
def test_the_forest_and_its_twin(stream):
    run_both({"learner": {"name": "ufft", **EAGER}}, rows_of(stream))


@pytest.mark.parametrize("stream", ["mixed", "late_classes"])
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "nb"])
def test_variants(variant, stream):
    run_both({"learner": {"name": "ufft", **VARIANTS[variant]}}, rows_of(stream))


@pytest.mark.parametrize("variant", ["nb", "idbd", "short-memory"])
def test_nodes_drift(variant):
    """The concept turns round: nodes are pruned, and learn anew what the memory holds of the warning."""
    rows = drifting(1800)
    turned = (np.arange(1800) // 600) % 2 == 1
    rows.y = ((rows.x[:, 0] > 4.0) ^ turned).astype(np.int32)  # one attribute decides: others do not rival it
    _, events = run_both({"learner": {"name": "ufft", **VARIANTS[variant]}}, rows)
    actions = {event.action for _, event in events if isinstance(event, Drift)}
    assert actions == {"subtree pruned", "leaf began anew"}


def test_a_drift_of_the_model_begins_another_forest():
    rows = drifting(2400)
    spec = {"learner": {"name": "ufft", **EAGER}, "drift": "ddm", "evaluation": {"window": 200}}
    model, _ = run_both(spec, rows)
    assert model.summary().rebuilds > 0


@pytest.mark.parametrize("stream", ["mixed", "late_classes"])
@pytest.mark.parametrize("score", rate.scored())
def test_ranks_of_every_score(score, stream):
    """Chances are steps of the score: a share must be the twin's, as exactly as its rounding allows."""
    query = {"name": "rate", "score": score, "window": 60, "explore": 0.3}
    spec = {"learner": {"name": "ufft", **EAGER}, "query": query, "budget": {"limit": 0.5}}
    run_both(spec, rows_of(stream, 500), on_request=True)


@pytest.mark.parametrize("query", ["fixed_uncertainty", "variable_uncertainty", "randomised_uncertainty"])
def test_active_learning(query):
    spec = {"learner": {"name": "ufft", **EAGER}, "query": query, "budget": {"limit": 0.5}}
    run_both(spec, mixed(900), on_request=True)
