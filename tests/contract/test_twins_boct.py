"""BOCT and its obvious twin: the same trees from the same records, whatever is skipped on the way."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.events import Drift
from core.learners.boct import boct
from core.model import validate
from core.model.model import Model
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
from tests.naive.rows import STREAMS, open_values

VARIANTS: dict[str, dict[str, Any]] = {
    "stream": {},
    "variance": {"heterogeneity": "variance", "delta": 0.3},
    "stddev": {"heterogeneity": "stddev", "delta": 0.1},
    "labelled": {"sizes": "labelled"},
    "pool": {"sizes": "pool"},
    "few-rows": {"capacity": 25},
    "few-labels": {"capacity": 25, "sizes": "labelled"},
    "hoeffding": {"bound": "hoeffding", "delta": 0.001},
    "three-interval": {"bound": "three-interval", "delta": 0.05},
    "exhaustive": {"exhaustive": True},
}


def rows_of(name, n=200):
    """Return the beginning of a stream, without weights."""
    rows = open_values() if name == "open_values" else STREAMS[name]()
    rows = rows.first(n)
    return replace(rows, weight=np.ones(n))


def assert_same_leaves(model, twin):
    """Compare the leaves: size, labels, class 1; and which records are in which."""
    own_leaves = boct.leaves(model)
    leaves = [(number, node) for number, node in enumerate(twin.tree.numbers) if not node.children]
    assert own_leaves.node.tolist() == [number for number, _ in leaves]
    assert own_leaves.labels.tolist() == [len(leaf.labelled) for _, leaf in leaves]
    assert own_leaves.positives.tolist() == [leaf.positives for _, leaf in leaves]
    if model.spec.learner.sizes == "stream":
        assert own_leaves.size == pytest.approx([leaf.routed for _, leaf in leaves], rel=1e-12)
    else:
        sizes = [len(leaf.labelled) + len(leaf.unlabelled) for _, leaf in leaves]
        assert own_leaves.size.tolist() == sizes


def run_both(spec, rows, label=None, on_request=False):
    """Run model and twin; compare answers, splits, evaluation and leaves; return the model."""
    twin = twin_of(spec, rows)
    predictions, asked, splits = naive_answers(twin, rows, label, on_request)
    mode = {"mode": ON_REQUEST} if on_request else {}
    model, ours, ours_asked, events = core_answers(spec, rows, label, **mode)
    assert first_difference(ours_asked, asked) is None
    assert_same_splits(splits_of(events), splits)
    assert first_difference(ours, predictions) is None
    assert_same_evaluation(model, twin)
    assert_same_leaves(model, twin)
    validate.check(model)
    again = Model.restore(model.snapshot())
    assert again.snapshot() == model.snapshot()
    return model


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stream", ["numeric", "two_classes", "unknown_codes", "degenerate", "open_values"])
def test_the_learner_and_its_twin(stream, variant):
    run_both({"learner": {"name": "boct", **VARIANTS[variant]}}, rows_of(stream))


@pytest.mark.parametrize("variant", VARIANTS)
def test_few_of_the_records_have_labels(variant):
    rows = rows_of("two_classes", 300)
    label = np.where(np.random.default_rng(3).random(300) < 0.3, rows.y, -1).astype(np.int32)
    run_both({"learner": {"name": "boct", **VARIANTS[variant]}}, rows, label)


@pytest.mark.parametrize("query", ["boct_al", "conf_tree", "split", "rate"])
def test_active_learning(query):
    rows = rows_of("numeric", 500)
    spec = {
        "learner": {"name": "boct", "delta": 0.3},
        "query": query,
        "budget": {"limit": 0.3},
        "evaluation": {"share": 0.05 if query == "split" else 0.0},
        "seed": 5,
    }
    model = run_both(spec, rows, on_request=True)
    assert model.summary().leaves > 2


@pytest.mark.parametrize("reaction", ["rebuild", "reset", "alert"])
def test_drifts(reaction):
    """A block of its own learns from the warning on and takes over; what it has learned is the twin's."""
    rows = drifting(600)
    rows = replace(rows, weight=np.ones(len(rows.y)), y=np.minimum(rows.y, 1), classes=2)
    spec = {
        "learner": {"name": "boct", "capacity": 60},
        "drift": {"name": "ddm", "reaction": reaction},
        "evaluation": {"window": 200},
    }
    twin = twin_of(spec, rows)
    predictions, _, _ = naive_answers(twin, rows)
    model, ours, _, events = core_answers(spec, rows)
    assert first_difference(ours, predictions) is None
    assert twin.rebuilds == model.summary().rebuilds
    assert_same_leaves(model, twin)
    assert {"warning", "drift"} <= {event.level for _, event in events if isinstance(event, Drift)}
