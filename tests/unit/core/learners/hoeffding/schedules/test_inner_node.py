"""IMAC at the inner nodes of EFDT: when a node is evaluated, and which attributes it watches [D39]."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.errors import GroveError, ParameterError
from core.events import Split
from core.learners.hoeffding.schedules._imac.state import VALUE
from core.model import validate
from core.spec import Spec
from core.tree import views
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

BOTH = {"name": "efdt-imac", "watched_nodes": "both", "leaf_model": "mc"}


def view(table):
    model = table.model(0)
    return views.tree_view(model.plan, model.ints, model.first)


def two_valued(n, columns, seed=0):
    """Two-valued attributes of which one decides, after a sixth of the stream another one."""
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 2, (n, columns)).astype(np.float64)
    which = np.where(np.arange(n) < n // 6, 0, 1)
    return x, (x[np.arange(n), which] != (draw.random(n) < 0.15)).astype(np.int32)


def wide(n, before, after, turn, d=60, seed=1):
    """Numeric attributes of which one decides up to record ``turn``, and another one later."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(n, d))
    which = np.where(np.arange(n) < turn, before, after)
    return x, ((x[np.arange(n), which] > 0.0) != (draw.random(n) < 0.1)).astype(np.int32)


def gain(counts):
    """Return the information gain of two-valued attributes: counts float64[class, value]."""

    def bits(masses):
        shares = masses[masses > 0.0] / masses.sum()
        return -(shares * np.log2(shares)).sum()

    parts = [column.sum() * bits(column) for column in counts.T if column.sum() > 0.0]
    return bits(counts.sum(axis=1)) - sum(parts) / counts.sum()


def overdue(tree, delta):
    """Return the inner nodes where another attribute leads by more than ε, and that wait for no check."""
    late, block = [], tree.block
    for number in np.flatnonzero(tree.nodes.children[: block.nodes] > 0).tolist():
        node = block.node(number)
        leaf, counts = block.leaf(node.slot), tree.nominal[node.slot].reshape(2, -1, 2)
        above, parent = set(), int(node.parent)
        while parent >= 0:
            above.add(int(block.node(parent).attribute))
            parent = int(block.node(parent).parent)
        gains = [0.0 if a in above else gain(counts[:, a]) for a in range(counts.shape[1])]
        epsilon = math.sqrt(math.log(1.0 / delta) / (2.0 * leaf.observed))
        lead = max(gains) - gains[node.attribute]
        if lead > epsilon and leaf.next <= leaf.observed:
            late.append((number, lead, epsilon))
    return late


@pytest.mark.parametrize("seed", range(3))
def test_where_all_attributes_are_watched_no_evaluation_comes_late(seed):
    """Two-valued attributes, all of them candidates: to look at all gains at every record does no more."""
    x, y = two_valued(2400, 4, seed)
    table = table_of(schema_of(2, 2, 2, 2), spec_of(**BOTH, delta=1e-4, tau=0.0, min_branch_frac=0.0))
    replaced = 0
    for row in range(len(x)):
        events = answer(table, x[row : row + 1], y[row : row + 1]).events
        replaced += any(isinstance(event, Split) and event.action == "replaced" for event in events)
        assert overdue(view(table), 1e-4) == []
    assert replaced > 0
    assert table.model(0).summary().attempts < len(x) / 10


def test_a_node_with_the_right_test_is_not_evaluated_again():
    """One test decides for good: the root is evaluated every 2,000 records by EFDT, by IMAC hardly."""
    draw = np.random.default_rng(3)
    x = draw.random((20_000, 3))
    y = (x[:, 1] > 0.5).astype(np.int32)
    attempts = {}
    for where in ("leaves", "both"):
        table = table_of(schema_of(None, None, None), spec_of(**(BOTH | {"watched_nodes": where})))
        answer(table, x, y)
        tree = view(table)
        attempts[where] = int(tree.leaf_records.attempts[tree.nodes.slot[0]])
        validate.check(table.model(0))
    assert attempts["leaves"] >= 9
    assert attempts["both"] <= 3


def test_another_attribute_is_seen_sooner_than_after_a_revisit_period():
    x, y = wide(6_000, 0, 1, 600, d=4)
    rows = {}
    for where in ("leaves", "both"):
        table = table_of(schema_of(*[None] * 4), spec_of(**(BOTH | {"watched_nodes": where})))
        events = answer(table, x, y).events
        at_root = [e for e in events if isinstance(e, Split) and e.action == "replaced" and e.node == 0]
        rows[where] = at_root[0].row if at_root else len(x)
    assert rows["both"] < rows["leaves"]


@pytest.mark.parametrize("hidden", [17, 41, 59])
def test_every_attribute_has_its_turn(hidden):
    """Six of sixty are candidates; any other one that comes to decide is found within ten checks."""
    x, y = wide(8_000, 0, hidden, 1_000)
    y[1_000:] = (x[1_000:, hidden] > 0.0).astype(np.int32)
    table = table_of(schema_of(*[None] * 60), spec_of(**BOTH, check_period=100))
    events = answer(table, x, y).events
    replaced = [e for e in events if isinstance(e, Split) and e.action == "replaced" and e.node == 0]
    assert [e.attribute for e in replaced] == [hidden]
    # Its average has to outgrow what the old test has been worth, of which the node has few evaluations.
    assert replaced[0].row < 1_000 + 3_000
    validate.check(table.model(0))


def test_a_threshold_moves_where_there_is_one_attribute_alone():
    draw = np.random.default_rng(1)
    x = draw.random((6_000, 1))
    y = np.where(np.arange(6_000) < 300, x[:, 0] > 0.3, x[:, 0] > 0.6).astype(np.int32)
    table = table_of(schema_of(None), spec_of(**BOTH, delta=0.05, grace_period=50))
    moved = [e for e in answer(table, x, y).events if isinstance(e, Split) and e.action == "moved"]
    assert moved[-1].value == pytest.approx(0.6, abs=0.1)
    validate.check(table.model(0))


@pytest.mark.parametrize("size", [1, 37, 800])
def test_the_cut_of_runs_changes_nothing(size):
    x, y = wide(2_400, 0, 3, 900, d=7)
    whole, cut = (table_of(schema_of(*[None] * 7), spec_of(**BOTH, tau=0.2)) for _ in range(2))
    answer(whole, x, y)
    for first in range(0, len(x), size):
        answer(cut, x[first : first + size], y[first : first + size])
    assert cut.model(0).snapshot() == whole.model(0).snapshot()


def test_a_revision_that_the_caps_forbid_is_tried_once_a_check():
    """A test with six branches where there is room for two leaves more: not at every record."""
    draw = np.random.default_rng(5)
    n = 6_000
    x = np.column_stack([draw.random(n), draw.integers(0, 6, n)])
    y = (x[:, 0] > 0.5).astype(np.int32)
    y[1_000:] = np.isin(x[1_000:, 1], (1, 4))
    table = table_of(schema_of(None, 6), spec_of(**BOTH, max_leaves=3))
    answer(table, x, y)
    tree = view(table)
    assert tree.nodes.attribute[0] == 0
    evaluations = tree.leaf_records.attempts[tree.nodes.slot[0]]
    assert 5 <= evaluations <= n / 200 + 2


def test_a_damaged_watch_is_found():
    x, y = wide(1_000, 0, 0, 1_000, d=8)
    table = table_of(schema_of(*[None] * 8), spec_of(**BOTH))
    answer(table, x, y)
    tree = view(table)
    assert tree.block.splits > 0
    validate.check(table.model(0))
    rows = tree.schedule[2][tree.nodes.slot[0]]
    rows[VALUE, 0] += 1.0
    with pytest.raises(GroveError, match="candidate 0 must be the test of the node"):
        validate.check(table.model(0))


def test_only_imac_watches():
    with pytest.raises(ParameterError, match="watched_nodes='both' must be 'leaves' with the schedule 'osm'"):
        Spec.parse({"learner": {"name": "efdt-imac", "watched_nodes": "both", "schedule": "osm"}})
    with pytest.raises(ParameterError, match="watched_nodes='inner' must be one of 'leaves', 'both'"):
        Spec.parse({"learner": {"name": "efdt-imac", "watched_nodes": "inner"}})
    assert Spec.parse({"learner": {"name": "efdt-imac"}}).to_dict()["learner"]["watched_nodes"] == "leaves"
