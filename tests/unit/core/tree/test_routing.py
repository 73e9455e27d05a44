import math

import numpy as np
import pytest

from core import table_calls
from core.layout.tree import LEAF, Tree
from core.model import validate
from core.model.model import Model
from core.model.prediction import preparation
from core.model_table import ANSWER_ONLY, ModelTable
from core.tree import views
from core.tree.prefetch import THRESHOLDS, WIDTH, route_ahead
from core.tree.routing import count_paths
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

THREE = schema_of(None, None, None)


def grown(n=6000, weights=None, **learner):
    """Return a table whose model has a tree of many leaves, and the rows that made it."""
    x = np.random.default_rng(4).random((n, 3))
    label = ((4 * x[:, 0]).astype(int) + (4 * x[:, 1]).astype(int)) % 2
    table = table_of(THREE, spec_of(**{"grace_period": 100, "tau": 0.3, **learner}))
    answer(table, x, label, weights)
    assert table.model(0).summary().leaves > 10
    return table, x


def view(table):
    model = table.model(0)
    return views.tree_view(model.plan, model.ints, model.first)


def by_hand(tree, x):
    """Return the number of the leaf of a record without missing values."""
    node = 0
    while tree.nodes.kind[node] != LEAF:
        above = x[tree.nodes.attribute[node]] > tree.nodes.value[node]
        node = int(tree.nodes.child[node]) + int(above)
    return node


def test_records_that_go_together_end_where_each_would():
    table, _ = grown()
    tree = view(table)
    x = np.random.default_rng(8).random((400, 3))
    x[5, 1], x[6, 2] = math.inf, -math.inf
    majority = [int(np.argmax(tree.masses[by_hand(tree, row)])) for row in x]
    together = answer(table, x, mode=ANSWER_ONLY).prediction
    alone = [int(answer(table, row, mode=ANSWER_ONLY).prediction[0]) for row in x]
    assert together.tolist() == alone == majority


@pytest.mark.parametrize("missing", range(WIDTH))
def test_records_with_a_missing_value_are_left_to_others(missing):
    table, _ = grown()
    model = table.model(0)
    x = np.random.default_rng(9).random((WIDTH, 3))
    tree = Tree(model.ints, model.floats, model.first)
    ends = np.zeros(WIDTH, dtype=np.int64)
    route_ahead(THRESHOLDS, tree, x.reshape(-1), 3, ends)
    numbers = [tree.number(tree.node_of(end)) for end in ends.tolist()]
    assert numbers == [by_hand(view(table), row) for row in x]
    x[missing] = math.nan
    route_ahead(THRESHOLDS, tree, x.reshape(-1), 3, ends)
    assert (ends == -1).all()
    together = answer(table, x, mode=ANSWER_ONLY)
    alone = [answer(table, row, mode=ANSWER_ONLY).probability[0].tolist() for row in x]
    assert together.probability.tolist() == alone


def test_a_tree_counts_at_its_leaves_until_it_misses_a_value():
    weights = np.random.default_rng(1).integers(1, 5, 6000).astype(float)
    table, x = grown(weights=weights)
    tree = view(table)
    assert not tree.block.paths
    assert tree.routed[0] == weights.sum()
    before = tree.routed
    inner = np.flatnonzero(tree.nodes.kind[: tree.block.nodes] != LEAF)
    assert (tree.nodes.routed[inner] < before[inner]).any()
    answer(table, [[math.nan] * 3], mode=ANSWER_ONLY)
    assert not tree.block.paths  # a frozen model stays as it is
    answer(table, [[math.nan] * 3], weight=[2.0])
    tree = view(table)
    assert tree.block.paths
    assert tree.routed[0] == weights.sum() + 2.0
    assert (tree.routed >= before).all()
    answer(table, x[:50])
    assert view(table).routed[0] == weights.sum() + 52.0
    validate.check(table.model(0))


def test_a_frozen_model_sends_missing_values_where_the_living_one_would():
    table, _ = grown()
    rows = np.random.default_rng(3).random((200, 3))
    rows[np.random.default_rng(5).random((200, 3)) < 0.4] = math.nan
    before = table.model(0).snapshot()
    frozen = answer(table, rows, mode=ANSWER_ONLY, weight=np.full(200, 1e-9))
    assert table.model(0).snapshot() == before
    living = answer(table, rows, weight=np.full(200, 1e-9))  # too little to make another child busier
    assert living.probability.tolist() == frozen.probability.tolist()


def test_the_paths_of_a_frozen_tree_are_counted_once_until_it_changes(monkeypatch):
    """Not for each record that misses a value, nor for each run; the answers are those of a fresh count."""
    counted = []

    def count(plan, ints):
        counted.append(len(ints))
        return preparation(plan, ints)

    monkeypatch.setattr(table_calls, "preparation", count)
    weights = np.random.default_rng(2).uniform(0.1, 3.0, 6000)  # sums that depend on their order
    table, x = grown(weights=weights)
    rows = np.random.default_rng(3).random((300, 3))
    answer(table, rows, mode=ANSWER_ONLY)
    assert not counted  # nothing is missing
    rows[np.random.default_rng(5).random((300, 3)) < 0.4] = math.nan

    def fresh():
        """Return what the model answers that has just come into another table."""
        other = ModelTable()
        other.add(Model.restore(table.model(0).snapshot()))
        return answer(other, rows, mode=ANSWER_ONLY).probability

    for changes in range(1, 5):
        runs = [answer(table, part, mode=ANSWER_ONLY).probability for part in (rows, rows[:7], rows[7:])]
        assert np.array_equal(runs[0], np.vstack(runs[1:]))
        here = len(counted)
        assert np.array_equal(runs[0], fresh())
        assert here == 2 * changes - 1, "once, and once in the other table"
        if changes == 1:  # it learns, it splits
            answer(table, x[:3000], (x[:3000, 2] > 0.5).astype(int), weights[:3000])
        elif changes == 2:  # it answers records that count
            answer(table, x[:50])
        elif changes == 3:  # another model takes its place
            table.vacate(0)
            table.occupy(0, grown(4000, grace_period=60)[0].model(0))


def test_counting_paths_carries_up_what_leaves_counted():
    table, _ = grown()
    routed = view(table).routed
    model = table.model(0)
    count_paths(Tree(model.ints, model.floats, model.first))
    assert view(table).nodes.routed.tolist() == routed.tolist()
