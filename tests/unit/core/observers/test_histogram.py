"""Bins: where their edges lie, what they count, what they propose [D3]."""

from types import SimpleNamespace

import numpy as np
import pytest

from core.errors import ParameterError
from core.events import Split
from core.kernels.records import offset
from core.layout.tree import Node
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from core.tree import views
from tests.naive.observers import Histogram
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of


def model_of(x, label, *, leaf_model="mc", **learner):
    kinds = (None,) * x.shape[1]
    table = table_of(
        schema_of(*kinds), spec_of(leaf_model, numeric_observer="histogram", grace_period=1e9, **learner)
    )
    answer(table, x, label)
    return table.model(0)


def shared(model):
    first, end = int(model.plan.record.shared), int(model.plan.record.blocks)
    return model.floats[first:end]


def counts(model):
    """Return float64[class, bin, attribute] of the root."""
    return views.tree_view(model.plan, model.ints, model.first).numeric[0]


def test_quantiles_cut_the_first_values_into_equal_parts():
    x = np.random.default_rng(1).permutation(1000.0 * np.arange(100)).reshape(-1, 1)
    model = model_of(x, np.zeros(100, np.int32), bins=4, warm_up=100)
    assert shared(model)[:4].tolist() == [100.0, 24_500.0, 49_500.0, 74_500.0]
    assert not shared(model)[4:].any()  # the values themselves are forgotten
    assert not counts(model).any()
    more = model_of(
        np.vstack([x, [[24_500.0], [24_501.0], [1e9], [-1e9]]]),
        np.array([0] * 100 + [0, 1, 1, 0], np.int32),
        bins=4,
        warm_up=100,
    )
    assert counts(more)[:, :, 0].tolist() == [[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]]


def test_equal_edges_are_merged_and_a_constant_has_none():
    x = np.column_stack([np.repeat([1.0, 2.0], [90, 10]), np.full(100, 7.0)])
    model = model_of(x, np.zeros(100, np.int32), bins=10, warm_up=100)
    words = 1 + 9 + 100
    first, second = shared(model)[:words], shared(model)[words:]
    assert first[1] == pytest.approx(1.0) or first[1] == 1.5
    assert np.isnan(first[3:10]).all()
    assert np.isnan(second[1:10]).all()


def test_a_range_is_cut_evenly_and_needs_no_warm_up():
    x = np.array([[-3.0], [0.0], [2.4], [2.5], [2.6], [9.9], [10.0], [77.0]])
    model = model_of(x, np.zeros(8, np.int32), bins=4, edges="range", low=0.0, high=10.0)
    assert shared(model).size == 0
    assert counts(model)[0, :, 0].tolist() == [4.0, 1.0, 0.0, 3.0]


def test_branch_masses_are_exact():
    """Unlike a normal distribution's: the weight on either side of a threshold is what was counted there."""
    x, label = halves(3000)
    table = table_of(
        schema_of(None, None, None), spec_of("mc", numeric_observer="histogram", warm_up=500, max_leaves=2)
    )
    events = [event for event in answer(table, x, label).events if isinstance(event, Split)]
    split = events[0]
    assert (split.attribute, split.test) == (0, "numeric")
    assert split.value == pytest.approx(0.5, abs=0.05)
    assert split.row >= 500
    tree = views.tree_view(table.model(0).plan, table.model(0).ints, table.model(0).first)
    behind = x[500 : split.row + 1, 0] <= split.value
    inherited = [
        np.bincount(label[500 : split.row + 1][side], minlength=2).tolist() for side in (behind, ~behind)
    ]
    masses = [tree.masses[1 + i] - tree.seen[tree.node_ints[1 + i, offset(Node, "slot")]] for i in range(2)]
    assert [mass.tolist() for mass in masses] == inherited


def test_missing_values_are_not_counted_and_delay_only_their_attribute():
    x = np.column_stack([np.arange(60.0), np.where(np.arange(60) % 2, np.nan, np.arange(60.0))])
    model = model_of(x, np.zeros(60, np.int32), bins=4, warm_up=40)
    assert counts(model)[0].sum(axis=0).tolist() == [20.0, 0.0]
    assert shared(model)[1 + 3 + 40] == 30.0


def test_a_range_must_be_one():
    with pytest.raises(ParameterError, match=r"low=2.0 must be below high=1.0"):
        Spec.parse({"learner": {"name": "h-tree", "numeric_observer": "histogram", "low": 2.0}})


def test_memory_is_what_the_docstring_says():
    observer = Spec.parse(
        {"learner": {"name": "h-tree", "numeric_observer": "histogram", "bins": 16}}
    ).learner.numeric_observer
    assert np.prod(observer.shape(3, 5, 0)) == 16 * 3 * 5
    assert observer.shared(5) == 5 * (1 + 15 + 1000)


def test_every_attribute_has_its_own_range():
    """[D3]: the schema's; of those it says nothing of, the observer's."""
    schema = Schema.of(
        [Attribute("a", range=(0.0, 4.0)), Attribute("b", range=(-100.0, 100.0)), Attribute("c")], "xy"
    )
    spec = spec_of("mc", numeric_observer="histogram", bins=4, edges="range", low=0.0, high=40.0)
    table = table_of(schema, spec)
    x = np.array(
        [[0.5, -99.0, 5.0], [1.5, -1.0, 15.0], [2.5, 1.0, 25.0], [3.5, 99.0, 35.0], [9.0, 999.0, 99.0]]
    )
    answer(table, x, [0, 1, 0, 1, 1])
    bins = views.tree_view(table.model(0).plan, table.model(0).ints, table.model(0).first).numeric[0]
    for attribute, ends in enumerate(((0.0, 4.0), (-100.0, 100.0), None)):
        twin = Histogram(SimpleNamespace(bins=4, edges="range", low=0.0, high=40.0, warm_up=0), [], ends)
        for row, label in zip(x[:, attribute].tolist(), (0, 1, 0, 1, 1), strict=True):
            twin.observe(row, label, 1.0)
        theirs = [[sum(twin.counts[c][b : b + 1]) for b in range(4)] for c in (0, 1)]
        assert bins[:, :, attribute].tolist() == theirs == [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 2.0]]
