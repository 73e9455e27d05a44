"""Sorted values: every threshold, exact masses, bounded room."""

import numpy as np
import pytest

from core.events import Split
from core.kernels.records import offset
from core.layout.tree import Leaf, Tree
from core.tree import views
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of


def table_with(x, label, weight=None, **learner):
    kinds = (None,) * x.shape[1]
    table = table_of(schema_of(*kinds), spec_of("mc", numeric_observer="exact", **learner))
    return table, answer(table, x, label, weight).events


def test_values_are_kept_in_order_until_there_is_no_room():
    x = np.array([[3.0], [1.0], [np.nan], [2.0], [1.0], [0.0]])
    table, _ = table_with(x, [0, 1, 0, 1, 0, 1], [1.0, 2.0, 9.0, 4.0, 5.0, 6.0], capacity=4)
    model = table.model(0)
    kept = views.tree_view(model.plan, model.ints, model.first).numeric[0][:, 0]
    assert kept.tolist() == [4.0, 1.0, 1.0, 2.0, 3.0, 1.0, 0.0, 1.0, 0.0, 2.0, 5.0, 4.0, 1.0]


def test_a_threshold_is_the_midpoint_of_neighbours():
    """One perfect cut between 2 and 5; children inherit exactly what lies on either side."""
    x = np.column_stack([[1.0, 2.0, 5.0, 8.0] * 25, np.zeros(100)])
    table, events = table_with(x, [0, 0, 1, 1] * 25, grace_period=100, delta=0.05)
    (split,) = (event for event in events if isinstance(event, Split))
    assert (split.attribute, split.value) == (0, 3.5)
    assert split.merits[0] == pytest.approx(1.0)
    model = table.model(0)
    assert views.tree_view(model.plan, model.ints, model.first).masses[1:3].tolist() == [[50, 0], [0, 50]]


def test_neighbours_without_a_third_between_them():
    above = float(np.nextafter(1.0, 2.0))
    x = np.array([[1.0], [above]] * 50)
    _, events = table_with(x, [0, 1] * 50, grace_period=100, delta=0.05)
    (split,) = (event for event in events if isinstance(event, Split))
    assert split.value == 1.0


def test_a_full_leaf_decides_on_what_it_has():
    x, label = halves(2000)
    table, events = table_with(x, label, capacity=50, grace_period=100, tau=0.3)
    assert any(isinstance(event, Split) for event in events)
    assert table.model(0).evaluation().accuracy > 0.9


def epsilon(n, delta=0.05):
    return float(np.sqrt(-np.log(delta) / (2.0 * n)))


def test_values_that_are_left_out_make_no_leaf_surer():
    """The lead is 0.2 whatever comes: enough for n = 50 at no time, for the n of all records soon."""
    draw = np.random.default_rng(5)
    label = (draw.random(4000) < 0.5).astype(np.int32)
    x = np.column_stack([np.where(draw.random(4000) < 0.75, label, 1 - label), draw.random(4000)])
    options = {"grace_period": 50, "tau": 0.0, "delta": 0.05, "min_branch_frac": 0.0}
    table, events = table_with(x, label, capacity=50, **options)
    assert not events
    leaf = Tree(table.model(0).ints, table.model(0).floats, table.model(0).first).leaf(0).start
    observed, left_out = table.model(0).floats[
        [leaf + offset(Leaf, "observed"), leaf + offset(Leaf, "left_out")]
    ]
    assert (observed, left_out) == (4000.0, 3950.0)
    _, events = table_with(x, label, capacity=4000, **options)
    assert any(isinstance(event, Split) for event in events)


@pytest.mark.parametrize("schedule", ["grace_period", "imac", "osm", "cgd"])
def test_the_bound_knows_the_weight_of_what_is_ranked(schedule):
    x, label = halves(3000, seed=3)
    _, events = table_with(x, label, capacity=80, schedule=schedule, grace_period=60, delta=0.05, tau=0.0)
    splits = [event for event in events if isinstance(event, Split)]
    assert splits
    for split in splits:
        assert split.n <= 80.0
        assert split.bound == pytest.approx(epsilon(split.n))


def test_a_tie_needs_evidence_too():
    """ε = 0.3 at n = 16.6: a leaf with room for 16 values never comes to it, one for 17 does."""
    x = np.random.default_rng(1).random((2000, 2))
    x[:, 1] = x[:, 0]
    label = (x[:, 0] > 0.5).astype(np.int32)
    for capacity, ties in ((16, False), (17, True)):
        _, events = table_with(x, label, capacity=capacity, grace_period=100, delta=0.05, tau=0.3)
        assert any(isinstance(event, Split) for event in events) is ties
