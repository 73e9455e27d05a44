"""The compiled EFDT and the obvious one, record by record: changes, predictions, what nodes remember."""

from typing import Any

import pytest

from core.events import Split
from core.model import validate
from tests.naive.compare import (
    assert_same_splits,
    assert_same_tree,
    core_answers,
    first_difference,
    naive_answers,
    splits_of,
    twin_of,
)
from tests.naive.rows import STREAMS
from tests.tiers import pairwise

BASE = {"name": "efdt", "grace_period": 50, "delta": 1e-3, "tau": 0.1, "revisit_period": 75}
BOTH = {"name": "efdt-imac", "watched_nodes": "both"}
SPECS: dict[str, dict[str, Any]] = {
    "mc": {"leaf_model": "mc"},
    "nba": {"leaf_model": "nba"},
    "gini": {"criterion": "gini", "leaf_model": "nba"},
    "binary": {"binary_splits": True, "leaf_model": "mc"},
    "no_ties": {"tau": 0.0, "delta": 0.01, "leaf_model": "nba"},
    "two_epsilon": {"bound_factor": 2.0, "delta": 0.05, "leaf_model": "mc"},
    "every_record": {"revisit_period": 1, "leaf_model": "mc"},
    "imac": {"name": "efdt-imac", "leaf_model": "mc"},
    "imac_gini": {"name": "efdt-imac", "criterion": "gini", "check_period": 30, "leaf_model": "mc"},
    "both": {**BOTH, "leaf_model": "mc"},
    "both_eager": {**BOTH, "check_period": 40, "delta": 0.05, "tau": 0.15, "leaf_model": "mc"},
    "both_gini": {**BOTH, "criterion": "gini", "check_period": 50, "leaf_model": "nba"},
    "both_binary": {**BOTH, "binary_splits": True, "bound_factor": 2.0, "leaf_model": "mc"},
    "eager": {"grace_period": 25, "delta": 0.1, "tau": 0.15, "leaf_model": "mc"},
}


@pytest.mark.parametrize(
    ("stream", "name", "compat"),
    pairwise(
        (stream, name, compat)
        for stream in STREAMS
        for name in SPECS
        for compat in (None, "moa")
        if not (compat and "imac" in SPECS[name].get("name", ""))
    ),
)
def test_the_learner_and_its_twin(stream, name, compat):
    rows = STREAMS[stream]()
    follow(rows.first(1500) if name == "every_record" else rows, name, compat)


@pytest.mark.nightly
@pytest.mark.parametrize("compat", [None, "moa"])
@pytest.mark.parametrize("stream", STREAMS)
def test_every_node_evaluated_at_every_record_of_whole_streams(stream, compat):
    follow(STREAMS[stream](), "every_record", compat)


def follow(rows, name, compat):
    """Compare core and its twin on a stream."""
    if compat == "moa":
        rows.weight[:] = 1.0  # it counts records
    spec = {"learner": BASE | SPECS[name] | {"compat": compat}}
    twin = twin_of(spec, rows)
    predictions, _, splits = naive_answers(twin, rows)
    model, ours, _, events = core_answers(spec, rows)
    validate.check(model)
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_tree(model, twin.tree)


@pytest.mark.parametrize("name", ["eager", "both_eager"])
def test_the_comparison_has_something_to_compare(name):
    """Over all streams splits are replaced, and thresholds move."""
    actions = set()
    for make in STREAMS.values():
        _, _, _, events = core_answers({"learner": BASE | SPECS[name]}, make())
        actions |= {event.action for _, event in events if isinstance(event, Split)}
    assert actions == {"split", "replaced", "moved"}


@pytest.mark.parametrize("name", ["eager", "both_eager"])
def test_a_background_tree_revises_too(name):
    rows = STREAMS["late_classes"]()
    rows.y[2000:] = (rows.y[2000:] + 1) % 5
    spec = {"learner": BASE | SPECS[name], "drift": {"name": "ddm"}}
    twin = twin_of(spec, rows)
    predictions, _, _ = naive_answers(twin, rows)
    model, ours, _, _ = core_answers(spec, rows)
    assert model.summary().rebuilds > 0
    assert first_difference(ours, predictions) is None
    assert_same_tree(model, twin.tree)


def test_an_attribute_that_has_no_test_at_first_becomes_a_candidate_of_an_inner_node():
    """All but two are constant for a while: there is room for them at checks, without another's place."""
    rows = STREAMS["numeric"]()
    rows.x[: len(rows.y) // 3, 2:] = 1.0
    follow(rows, "both_eager", None)
