"""The compiled learner and the obvious one, record by record."""

import pytest

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

SPECS = {
    "mc": {"leaf_model": "mc"},
    "nb": {"leaf_model": "nb"},
    "nba": {"leaf_model": "nba"},
    "gini": {"criterion": "gini", "leaf_model": "nba"},
    "binary": {"binary_splits": True, "leaf_model": "mc"},
    "no_ties": {"tau": 0.0, "delta": 0.01, "leaf_model": "nba"},
    "two_epsilon": {"bound_factor": 2.0, "delta": 0.05, "tau": 0.0, "leaf_model": "mc"},
    "osm": {"schedule": "osm", "leaf_model": "mc"},
    "osm_gini": {"schedule": "osm", "criterion": "gini", "grace_period": 20, "leaf_model": "mc"},
    "cgd": {"schedule": "cgd", "leaf_model": "mc"},
    "cgd_no_ties": {"schedule": "cgd", "tau": 0.0, "bound_factor": 2.0, "leaf_model": "mc"},
    "imac": {"schedule": "imac", "check_period": 40, "leaf_model": "mc"},
    "imac_gini": {"schedule": "imac", "check_period": 30, "criterion": "gini", "leaf_model": "mc"},
    "imac_no_ties": {
        "schedule": "imac",
        "check_period": 25,
        "grace_period": 20,
        "tau": 0.0,
        "bound_factor": 2.0,
        "leaf_model": "mc",
    },
    "eager": {"grace_period": 25, "delta": 0.1, "tau": 0.15, "leaf_model": "nba"},
}


@pytest.mark.parametrize("compat", [None, "moa", "imac"])
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("stream", STREAMS)
def test_the_learner_and_its_twin(stream, name, compat):
    rows = STREAMS[stream]()
    learner = {"name": "h-tree", "grace_period": 50, "delta": 1e-3, "tau": 0.1} | SPECS[name]
    spec = {"learner": learner | {"compat": compat}}
    twin = twin_of(spec, rows)
    predictions, _, splits = naive_answers(twin, rows)
    model, ours, _, events = core_answers(spec, rows)
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_tree(model, twin.tree)


def test_the_comparison_has_something_to_compare():
    """Over all streams every kind of test is installed, and MOA's quirks change trees."""
    kinds, different = set(), 0
    for make in STREAMS.values():
        rows = make()
        learner = {"name": "h-tree", "grace_period": 50, "delta": 1e-3, "tau": 0.1, "leaf_model": "mc"}
        ours, moa, binary = (
            naive_answers(twin_of({"learner": learner | change}, rows), rows)[2]
            for change in ({}, {"compat": "moa"}, {"binary_splits": True})
        )
        kinds |= {split[2] for split in ours + moa + binary}
        different += ours != moa
    assert kinds == {"numeric", "binary", "multiway"}
    assert different >= 3
