"""The trees ``last``, ``efhat`` and ``plastic`` and the obvious ones, record by record."""

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

EAGER = {"delta": 0.1, "tau": 0.15, "grace_period": 25}
LAST = {"name": "last", "change_confidence": 0.5}
REARRANGES = {"name": "plastic", **EAGER, "revisit_period": 40}
SPECS: dict[str, dict[str, Any]] = {
    "last": LAST,
    "last, mc": {**LAST, "leaf_model": "mc"},
    "last, nb, gini": {**LAST, "leaf_model": "nb", "criterion": "gini"},
    "last, hddm_a": {**LAST, "change_detector": "hddm_a", "binary_splits": True},
    "last, idbd": {**LAST, "leaf_model": "idbd"},
    "last, proof": {**LAST, "delta": 0.1, "tau": 0.1, "grace_period": 60},
    "last, moa": {**LAST, "change_confidence": 0.9, "compat": "moa"},
    # Without alternate trees EFHAT is a tree that splits as EFDT does.
    "efhat": {"name": "efhat", **EAGER, "bootstrap": False, "drift_confidence": 1e-300},
    "plastic": REARRANGES,
    "plastic, mc, binary": {**REARRANGES, "leaf_model": "mc", "binary_splits": True},
    "plastic, short branches": {**REARRANGES, "max_branch_length": 2, "leaf_model": "mc"},
    "plastic, gini": {**REARRANGES, "criterion": "gini", "delta": 0.3, "leaf_model": "mc"},
    "plastic, none kept": {**REARRANGES, "max_branch_length": 1},
}


@pytest.mark.parametrize(("stream", "name"), pairwise((stream, name) for stream in STREAMS for name in SPECS))
def test_the_learner_and_its_twin(stream, name):
    rows = STREAMS[stream]()
    if name == "last, moa":
        rows.weight[:] = 1.0  # it counts records
    spec = {"learner": SPECS[name]}
    twin = twin_of(spec, rows)
    predictions, _, splits = naive_answers(twin, rows)
    model, ours, _, events = core_answers(spec, rows)
    validate.check(model)
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    if name != "efhat":  # whose nodes have detectors
        assert_same_tree(model, twin.tree)


@pytest.mark.parametrize("name", ["last", "last, hddm_a", "plastic", "plastic, mc, binary"])
def test_the_comparison_has_something_to_compare(name):
    """Over all streams leaves of ``last`` split, and tests of ``plastic`` are replaced."""
    changes = 0
    for make in STREAMS.values():
        _, _, _, events = core_answers({"learner": SPECS[name]}, make())
        action = "replaced" if "plastic" in name else "split"
        changes += sum(isinstance(event, Split) and event.action == action for _, event in events)
    assert changes >= 5
