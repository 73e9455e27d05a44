"""The compiled learners and the obvious ones where streams and parameters are unlike the usual ones."""

import pytest

from core.model import validate
from tests.naive import rows as streams
from tests.naive.compare import (
    assert_same_splits,
    assert_same_tree,
    core_answers,
    first_difference,
    naive_answers,
    splits_of,
    twin_of,
)

OBSERVED = {"evidence": "observed"}
EAGER = {"grace_period": 40, "delta": 1e-2, "tau": 0.1}
IMAC = {"schedule": "imac", "check_period": 50, "leaf_model": "mc"}
REVISING = {"name": "efdt", "revisit_period": 75, "leaf_model": "mc"}
WATCHING = {"name": "efdt-imac", "watched_nodes": "both", "check_period": 60, "leaf_model": "mc"}


def follow(rows, learner):
    """Compare core and its twin on a stream; return the model of core and the twin's tree."""
    spec = {"learner": {"name": "h-tree"} | EAGER | learner}
    twin = twin_of(spec, rows)
    predictions, _, splits = naive_answers(twin, rows)
    model, ours, _, events = core_answers(spec, rows)
    validate.check(model)
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_tree(model, twin.tree)
    return model, twin.tree


@pytest.mark.parametrize("compat", [None, "moa"])
@pytest.mark.parametrize("candidates", [1, 3, 37])
def test_other_numbers_of_thresholds(candidates, compat):
    learner = {"candidates": candidates, "leaf_model": "mc", "compat": compat}
    model, _ = follow(streams.numeric(1500), learner)
    assert model.summary().splits > 0


def test_the_number_of_thresholds_is_that_of_tests_in_a_bound():
    learner = {"name": "c-tree", "c": 0.2, "tau": 0.0, "candidates": 40, "leaf_model": "mc"}
    model, _ = follow(streams.numbers(streams.two_classes(2500)), learner)
    assert model.summary().splits > 0


@pytest.mark.parametrize(
    "learner",
    [
        OBSERVED | {"leaf_model": "nba"},
        OBSERVED | {"leaf_model": "nb", "criterion": "gini"},
        {"leaf_model": "nb", "binary_splits": True},
        IMAC,
        IMAC | {"criterion": "gini"},
        {"name": "c-tree", "c": 0.2, "tau": 0.05, "leaf_model": "nba"},
        REVISING,
        WATCHING,
    ],
    ids=["nba", "gini", "binary", "imac", "imac_gini", "c-tree", "efdt", "efdt-imac"],
)
def test_values_that_come_late(learner):
    model, tree = follow(streams.open_values().first(1000 if learner is WATCHING else 2000), learner)
    assert model.summary().splits > 1
    assert tree.options.attributes[2] > 8


@pytest.mark.parametrize(
    ("stream", "learner"),
    [
        ("mixed", {"leaf_model": "mc"}),
        ("open_values", {"criterion": "gini", "leaf_model": "nba"}),
        ("mixed", IMAC),
        ("open_values", REVISING),
    ],
    ids=["info_gain", "gini", "imac", "efdt"],
)
def test_no_more_branches_than_allowed(stream, learner):
    rows = {"mixed": streams.mixed, "open_values": streams.open_values}[stream]().first(800)
    branches = set()
    for most in (2, 4):
        _, tree = follow(rows, learner | {"max_branches": most})
        inner = [node for node in tree.nodes() if node.test is not None]
        assert all(len(node.children) <= most for node in inner)
        branches |= {(node.test.kind, len(node.children)) for node in inner}
    assert {"multiway"} < {kind for kind, _ in branches}


@pytest.mark.parametrize("leaf_model", ["nb", "nba"])
def test_attributes_of_two_values_alone(leaf_model):
    model, _ = follow(streams.halves(), {"leaf_model": leaf_model})
    assert model.summary().splits > 0


@pytest.mark.parametrize(
    "learner",
    [OBSERVED | IMAC, OBSERVED | IMAC | {"criterion": "gini"}, WATCHING],
    ids=["imac", "gini", "efdt"],
)
def test_more_than_a_hundred_attributes(learner):
    model, tree = follow(streams.wide().first(500 if learner is WATCHING else 900), learner)
    assert model.summary().splits > 0
    leaves = [node for node in tree.nodes() if node.test is None and node.imac is not None]
    assert max(len(leaf.imac.candidates) for leaf in leaves) == 10


@pytest.mark.parametrize(
    "learner",
    [
        {"leaf_model": "nba"},
        {"leaf_model": "nb", "criterion": "gini"},
        {"leaf_model": "mc", "compat": "moa"},
        IMAC,
        REVISING,
    ],
    ids=["nba", "gini", "moa", "imac", "efdt"],
)
def test_weights_of_eighteen_orders_of_magnitude(learner):
    model, _ = follow(streams.extreme_weights(), learner)
    assert model.summary().splits > 0
