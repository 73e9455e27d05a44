"""Deactivation: a leaf gives up its record, counts classes, and gets an empty one again."""

import numpy as np
import pytest

from core.errors import SnapshotError
from core.layout.tree import LEAF
from core.learners.forest.member_state import MemberState, own_part
from core.learners.hoeffding.growth import deactivation
from core.model import validate
from core.model.model import Model
from core.spec import Spec
from core.tree import views
from tests.unit.core.builders import answer, schema_of, table_of


def grown(**member):
    """Return a table with a forest of one tree of several leaves, and the records that it has learned."""
    draw = np.random.default_rng(1)
    x = draw.random((3000, 2))
    y = ((np.floor(3 * x[:, 0]) + np.floor(3 * x[:, 1])) % 2).astype(np.int32)
    member = {"name": "h-tree", "grace_period": 20, "delta": 0.3, "tau": 0.3} | member
    learner = {"name": "leveraging-bagging", "members": 1, "drift_confidence": 0, "member": member}
    table = table_of(schema_of(None, None), Spec.parse({"learner": learner, "evaluation": {"every": 0}}))
    answer(table, x, y)
    return table, x, y


def tree_of(table):
    model = table.model(0)
    layout = model.plan.blocks
    state = MemberState(layout, model, model.first, 0, own_part(layout, model, model.first))
    return state, views.tree_view(state.plan, state.ints, state.t)


def test_an_inactive_leaf_counts_classes_and_the_records_of_others_stay_theirs():
    table, x, y = grown()
    state, tree = tree_of(table)
    active, none = tree.leaves
    assert len(active) > 4
    assert not len(none)
    kept = {int(n): tree.leaf_records.observed[tree.nodes.slot[n]] for n in active}
    gone = active[::2].tolist()
    before = tree.masses[: tree.block.nodes].copy()
    deactivation.deactivate(state, tree, gone)
    validate.check(table.model(0))
    assert tree.leaves[1].tolist() == gone
    assert tree.block.slots == len(active) - len(gone)
    for node in active[1::2].tolist():
        slot = tree.nodes.slot[node]
        assert tree.leaf_records.observed[slot] == kept[node]
        assert tree.leaf_records.node[slot] == node
    answer(table, x[:500], y[:500])
    _, tree = tree_of(table)
    assert tree.masses[gone].sum() > before[gone].sum()
    assert (tree.nodes.kind[gone] == LEAF).all()


def test_a_leaf_that_is_activated_begins_anew_and_its_votes_are_no_evidence():
    table, _, _ = grown()
    state, tree = tree_of(table)
    active, _ = tree.leaves
    leaf, leaves = int(active[2]), int(tree.block.leaves)
    votes = tree.masses[leaf].copy()
    deactivation.deactivate(state, tree, [leaf])
    deactivation.activate(state, tree, state.t, leaf)
    validate.check(table.model(0))
    assert tree.block.leaves == leaves
    record = tree.block.leaf_of(tree.block.node(leaf))
    assert record.observed == 0.0
    assert record.next == 20.0
    assert record.left_out == votes.sum()
    assert np.array_equal(tree.masses[leaf], votes)


def test_promise_is_the_weight_of_all_classes_but_the_heaviest():
    table, _, _ = grown()
    _, tree = tree_of(table)
    masses, classes = tree.masses[: tree.block.nodes], table.model(0).header.classes
    others = [sum(sorted(each)[:-1]) for each in masses.tolist()]
    assert deactivation.promises(tree, classes) == pytest.approx(others)


@pytest.mark.parametrize("member", [{}, {"compat": "moa"}])
def test_only_a_forest_that_is_reviewed_takes_over_a_snapshot_with_an_inactive_leaf(member):
    table, _, _ = grown(**member)
    state, tree = tree_of(table)
    deactivation.deactivate(state, tree, tree.leaves[0][:1].tolist())
    words = table.model(0).snapshot()
    if not member:
        assert Model.restore(words).snapshot() == words
        return
    with pytest.raises(SnapshotError, match="leaf record must be the node's own"):
        Model.restore(words)
