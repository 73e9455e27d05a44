"""Sorted values: every threshold, exact masses, bounded room (ALGORITHMS section 2.4c)."""

import numpy as np
import pytest

from core import arena
from core.events import Split
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of


def table_with(x, label, weight=None, **learner):
    kinds = (None,) * x.shape[1]
    table = table_of(schema_of(*kinds), spec_of("mc", numeric_observer="exact", **learner))
    return table, answer(table, x, label, weight).events


def test_values_are_kept_in_order_until_there_is_no_room():
    x = np.array([[3.0], [1.0], [np.nan], [2.0], [1.0], [0.0]])
    table, _ = table_with(x, [0, 1, 0, 1, 0, 1], [1.0, 2.0, 9.0, 4.0, 5.0, 6.0], capacity=4)
    model = table.model(0)
    kept = arena.tree_view(model.plan, model.ints, model.main).numeric[0][:, 0]
    assert kept.tolist() == [4.0, 1.0, 1.0, 2.0, 3.0, 1.0, 0.0, 1.0, 0.0, 2.0, 5.0, 4.0, 1.0]


def test_a_threshold_is_the_midpoint_of_neighbours():
    """One perfect cut between 2 and 5; children inherit exactly what lies on either side."""
    x = np.column_stack([[1.0, 2.0, 5.0, 8.0] * 25, np.zeros(100)])
    table, events = table_with(x, [0, 0, 1, 1] * 25, grace_period=100, delta=0.05)
    (split,) = (event for event in events if isinstance(event, Split))
    assert (split.attribute, split.value, split.merits[0]) == (0, 3.5, pytest.approx(1.0))
    model = table.model(0)
    assert arena.tree_view(model.plan, model.ints, model.main).masses[1:3].tolist() == [[50, 0], [0, 50]]


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
