"""EFDT's worked streams, its memory, and the one change no stream brings about: pruning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.events import GrowthStopped, NodeTest, Pruned, Split
from core.export import to_text
from core.layout.model import WORD
from core.layout.tree import CATEGORY, LEAF, NUMERIC
from core.learners.hoeffding import reevaluation
from core.learners.hoeffding.decision import Decision, tree_of
from core.learners.hoeffding.growth import removal, revision
from core.model import validate
from core.model.model import Model
from core.model_table import ModelTable
from core.tree import views
from tests.unit.core.builders import answer, schema_of, spec_of, table_of

BOTH = {"name": "efdt-imac", "watched_nodes": "both"}
EAGER = {"grace_period": 50, "delta": 1e-3, "tau": 0.1}


def drifting(n, period, seed=0, columns=4):
    """Return records whose class is decided by one column, and after every period by the next one."""
    x = np.random.default_rng(seed).random((n, columns))
    which = (np.arange(n) // period) % columns
    return x, (x[np.arange(n), which] > 0.5).astype(np.int32)


def noisy(n, seed=0, columns=3, share=0.2):
    """Return records whose first column decides, but for a share of the labels."""
    draw = np.random.default_rng(seed)
    x = draw.random((n, columns))
    return x, ((x[:, 0] > 0.5) ^ (draw.random(n) < share)).astype(np.int32)


def grown(x, y, name="efdt", kinds=None, **parameters):
    """Return the table and the events after a stream."""
    table = table_of(schema_of(*(kinds or [None] * x.shape[1])), spec_of(name=name, **(EAGER | parameters)))
    return table, answer(table, x, y).events


def splits(events, action="split"):
    return [event for event in events if isinstance(event, Split) and event.action == action]


def view(table):
    model = table.model(0)
    return views.tree_view(model.plan, model.ints, model.first)


@pytest.mark.parametrize("seed", range(8))
def test_the_root_splits_no_later_than_that_of_vfdt(seed):
    """With one evaluation the average is the merit, and a gain is at least its lead over another one."""
    x, y = noisy(6000, seed)
    x[:, 1] = np.where(np.random.default_rng(seed).random(6000) < 0.9, x[:, 0], x[:, 1])  # nearly as good
    for period in (100, 400, 1600):
        first = {"grace_period": period, "tau": 0.0, "delta": 1e-7}
        _, ours = grown(x[:period], y[:period], **first)
        _, vfdt = grown(x[:period], y[:period], "h-tree", **first)
        assert len(splits(ours)) >= len(splits(vfdt))
    rows = [splits(grown(x, y, name, tau=0.0)[1])[:1] for name in ("efdt", "h-tree")]
    assert rows[0]
    assert not rows[1] or rows[0][0].row <= rows[1][0].row


def test_it_converges_to_the_root_of_vfdt():
    """A nominal attribute looks best at first; the one that is best in the long run gets the root."""
    draw = np.random.default_rng(3)
    n = 30_000
    x = draw.random((n, 2))
    y = (x[:, 1] > 0.5) ^ (draw.random(n) < 0.15)
    x[:300, 0] = y[:300] + 0.2 * draw.random(300)  # for a while the other column tells all
    y = y.astype(np.int32)
    _, vfdt = grown(x[300:], y[300:], "h-tree")
    table, ours = grown(x, y, revisit_period=200)
    assert splits(ours)[0].attribute == 0
    tree = view(table)
    assert tree.nodes.attribute[0] == splits(vfdt)[0].attribute == 1
    assert any(event.node == 0 for event in splits(ours, "replaced"))


def test_a_replacement_leaves_the_statistics_of_its_node_alone():
    x, y = noisy(8_000)
    y[1_000:] = x[1_000:, 1] > 0.5
    table, _ = grown(x[:1], y[:1], revisit_period=100)
    replaced = 0
    for row in range(1, len(x)):
        before = float(view(table).leaf_records.observed[0])  # the root's record, which it always keeps
        events = answer(table, x[row : row + 1], y[row : row + 1]).events
        after = view(table)
        if any(event.node == 0 for event in splits(events, "replaced")):
            replaced += 1
            assert after.leaf_records.observed[0] == before + 1.0 == row + 1
            assert after.seen[0].sum() == row + 1
            assert after.numeric[0][:, 0, :].sum(axis=0) == pytest.approx([row + 1.0] * 3)
    assert replaced >= 1


def test_the_average_is_over_the_evaluations_of_the_node():
    x, y = noisy(2000)
    x = (x > 0.5).astype(np.float64)
    table, _ = grown(x, y, kinds=(2, 2, 2), tau=0.0, delta=1e-300)
    tree = view(table)
    revisions = tree.revisions
    assert tree.block.splits == 0
    assert revisions.evaluations[0] == tree.block.attempts == 40.0
    merits = revisions.merits[0] / 40.0
    assert merits[0] == pytest.approx(0.28, abs=0.06)  # 1 - H(0.2) = 0.278 bits
    assert (merits[1:] < 0.02).all()


def test_endless_replacement_takes_no_more_room_than_the_largest_tree():
    """Ten times the stream, ten times the revisions, the same buffer."""
    x, y = drifting(40_000, 500, columns=8)
    eager = {"grace_period": 20, "delta": 0.5, "tau": 0.02, "revisit_period": 10}
    table = table_of(schema_of(*[None] * 8), spec_of(name="efdt", **eager))
    sizes, taken, revisions = [], 0, 0
    for start in range(0, len(x), 4_000):
        events = answer(table, x[start : start + 4000], y[start : start + 4000]).events
        revisions += len(splits(events, "replaced"))
        validate.check(table.model(0))
        block = view(table).block
        taken = max(taken, int(block.leaves + block.splits))
        sizes.append(table.model(0).nbytes)
    assert revisions > 20
    block = view(table).block
    assert block.slots <= 2 * taken
    assert block.slot_capacity <= 4 * taken
    assert max(sizes[5:]) <= 2 * max(sizes[:5])


def prune(table, number):
    model = table.model(0)
    decision = Decision(-1, LEAF, 0.0, (0.0, -1.0), 0.1, 1000.0, "gap", "pruned")
    event = revision.carry_out(model, model.first, number, decision, 7, 0)
    table.refresh(0)
    return event


@pytest.mark.parametrize("which", ["root", "first", "deepest", "last"])
def test_counts_survive_pruning(which):
    x, y = drifting(9_000, 3_000, seed=5)
    table, _ = grown(x, y, revisit_period=500)
    tree = view(table)
    inner = np.flatnonzero(tree.nodes.children > 0)
    depth = tree.nodes.depth[inner]
    number = {"root": 0, "first": inner[1], "deepest": inner[depth.argmax()], "last": inner[-1]}[which]
    below = removal.nodes_below(tree, int(number))
    leaves = np.count_nonzero(tree.nodes.kind[below] == LEAF)
    before, seen = table.model(0).summary(), tree.seen[tree.nodes.slot[number]].copy()
    node = tree.block.node(int(number))
    kind: Any = {NUMERIC: "numeric", CATEGORY: "category"}[int(node.kind)]
    expected = NodeTest(int(node.attribute), kind, float(node.value))
    event = prune(table, int(number))
    validate.check(table.model(0))
    after, tree = table.model(0).summary(), view(table)
    assert event.node == number
    assert event.former == expected
    assert after.leaves == before.leaves - leaves + 1
    assert after.nodes == before.nodes - len(below)
    assert after.splits == after.nodes - after.leaves
    assert tree.nodes.kind[number] == LEAF
    assert np.array_equal(tree.seen[tree.nodes.slot[number]], seen)
    assert Model.restore(table.model(0).snapshot()).snapshot() == table.model(0).snapshot()
    answer(table, x, y)
    validate.check(table.model(0))
    assert table.model(0).summary().splits > 0


def test_a_node_whose_test_is_worse_than_none_becomes_a_leaf():
    """Gains are never negative: only a memory that was tampered with makes not to split the best."""
    x, y = noisy(3000)
    table, _ = grown(x, y, revisit_period=500)
    tree = view(table)
    assert tree.nodes.kind[0] == NUMERIC
    tree.revisions.own[0] = -1e6
    tree.revisions.merits[0] = -1e6
    events = answer(table, x[:500], y[:500]).events
    pruned = [event for event in events if type(event).__name__ == "Pruned"]
    assert [event.node for event in pruned] == [0]
    assert pruned[0].merits[0] == 0.0 > pruned[0].merits[1]
    assert table.model(0).summary().nodes == 1
    validate.check(table.model(0))


@pytest.mark.parametrize("learner", [{"name": "efdt"}, {"name": "efdt-imac"}, BOTH])
def test_a_tree_that_has_stopped_grows_on_when_a_subtree_has_gone(learner):
    """Its leaves were told never to attempt again: they do, and the cap is what it was."""
    x, y = drifting(9_000, 3_000, seed=5)
    table, events = grown(x, y, **learner, max_leaves=8, revisit_period=1e9)
    assert isinstance(events[-1], GrowthStopped)
    tree = view(table)
    kinds = tree.nodes.kind[: tree.block.nodes]
    slots = tree.nodes.slot[np.flatnonzero(kinds == LEAF)]
    assert np.isinf(tree.leaf_records.next[slots]).any()
    inner = np.flatnonzero(tree.nodes.children > 0)
    prune(table, int(inner[-1]))
    tree = view(table)
    assert not table.model(0).summary().growth_stopped
    assert np.isfinite(tree.leaf_records.next[: tree.block.slots]).all()
    validate.check(table.model(0))
    copy = ModelTable()
    copy.add(Model.restore(table.model(0).snapshot()))
    again, same = (answer(each, x, y).events for each in (table, copy))
    assert splits(again)
    assert again == same
    assert table.model(0).summary().leaves == 8
    validate.check(table.model(0))


def test_a_moved_threshold_keeps_the_subtree():
    draw = np.random.default_rng(1)
    n = 6000
    x = draw.random((n, 1))
    y = np.where(np.arange(n) < 300, x[:, 0] > 0.3, x[:, 0] > 0.6).astype(np.int32)
    table, events = grown(x, y, revisit_period=100, delta=0.05)
    moved = splits(events, "moved")
    assert moved
    assert moved[-1].value == pytest.approx(0.6, abs=0.1)
    assert all(event.merits[0] - event.merits[1] > 0.0 for event in moved)
    assert all(event.former.attribute == event.attribute for event in moved)
    assert moved[-1].former.value not in (moved[-1].value, 0.0)
    validate.check(table.model(0))


def test_a_nominal_attribute_is_tested_once_on_a_path():
    draw = np.random.default_rng(2)
    n = 20_000
    x = np.column_stack([draw.integers(0, 6, n), draw.random(n)])
    y = ((x[:, 0] == 1) | (x[:, 0] == 4) | ((x[:, 1] > 0.7) & (x[:, 0] == 2))).astype(np.int32)
    table, events = grown(x, y, kinds=(6, None), binary_splits=True, revisit_period=500)
    tree = view(table)
    nominal = np.flatnonzero(tree.nodes.kind[:] == CATEGORY)
    assert len(nominal) >= 1
    for node in nominal:
        parent = tree.nodes.parent[node]
        while parent >= 0:
            assert tree.nodes.kind[parent] != CATEGORY
            parent = tree.nodes.parent[parent]
    assert splits(events)


@pytest.mark.parametrize("cap", [{"max_leaves": 6}, {"max_bytes": 5600.0}])
@pytest.mark.parametrize("learner", [{"revisit_period": 50}, BOTH | {"max_bytes": 9600.0}])
def test_caps_stop_growth_but_not_revisions(learner, cap):
    """Bytes count the records of inner nodes too. What a revision takes away is room to grow again."""
    if "max_bytes" in learner and "max_bytes" in cap:
        cap = {}
    x, y = drifting(30_000, 3_000)
    table, events = grown(x, y, **(learner | cap))
    stopped = [event for event in events if isinstance(event, GrowthStopped)]
    assert stopped
    assert splits(events, "replaced")[-1].row > stopped[0].row
    is_full = False
    for event in events:
        assert not (is_full and splits([event])), "a tree that has stopped does not split"
        if isinstance(event, GrowthStopped):
            is_full = True
        elif isinstance(event, Pruned) or splits([event], "replaced"):
            is_full = False
    model, tree = table.model(0), view(table)
    records = int(tree.block.leaves + tree.block.splits)
    assert tree.block.leaves <= cap.get("max_leaves", 10**6)
    assert records * tree.shape.leaf_stride * WORD <= cap.get("max_bytes", 1e9)
    assert model.nbytes <= cap.get("max_bytes", 1e9)
    assert not view(table).revisions.due[:].any(), "it is set while a record is at hand"
    validate.check(model)


@pytest.mark.parametrize("learner", [{"name": "efdt"}, {"name": "efdt-imac"}, BOTH])
def test_a_revised_tree_goes_on_from_its_snapshot_and_is_drawn_as_it_is(learner):
    x, y = drifting(24_000, 3_000)
    table, events = grown(x[:12_000], y[:12_000], **learner, revisit_period=50)
    assert splits(events, "replaced")
    copy = ModelTable()
    copy.add(Model.restore(table.model(0).snapshot()))
    ours, theirs = (answer(each, x[12_000:], y[12_000:]) for each in (table, copy))
    assert splits(ours.events, "replaced")
    assert ours.events == theirs.events
    assert np.array_equal(ours.prediction, theirs.prediction)
    assert copy.model(0).snapshot() == table.model(0).snapshot()
    text = to_text(table.model(0))
    summary = table.model(0).summary()
    assert sum(": a (" in line or ": b (" in line for line in text.splitlines()) == summary.leaves
    assert len(text.splitlines()) == summary.nodes


def test_its_root_follows_a_drift_that_of_vfdt_does_not():
    x, y = noisy(12_000, seed=9, share=0.05)
    y[2_000:] = x[2_000:, 1] > 0.5
    ours, theirs = (
        grown(x, y, name, **more) for name, more in (("efdt", {"revisit_period": 100}), ("h-tree", {}))
    )
    assert view(ours[0]).nodes.attribute[0] == 1
    assert view(theirs[0]).nodes.attribute[0] == 0


def test_a_path_on_which_nothing_changes_is_gone_through_to_its_end():
    """Two inner nodes are due and keep their tests: compiled code counts both, and nothing is left to do."""
    x = np.random.default_rng(4).random((4000, 2))
    y = ((x[:, 0] > 0.5) + 2 * (x[:, 1] > 0.5)).astype(np.int32)
    spec = spec_of(name="efdt", **EAGER, revisit_period=1e9)
    table = table_of(schema_of(None, None, classes=list("abcd")), spec)
    answer(table, x, y)
    model, tree = table.model(0), view(table)
    nodes = tree.nodes[: tree.block.nodes]
    inner = np.flatnonzero(nodes.kind != LEAF)
    child = next(int(node) for node in inner if nodes.parent[node] == 0)
    path = nodes.slot[[0, child]]
    tree.leaf_records.next[path] = 0.0
    before = tree.revisions.evaluations[path].copy()
    block = tree_of(model, model.first)
    assert reevaluation.finish_failed_path(model.plan.record, block, block.node(int(nodes.child[child])))
    assert (tree.revisions.evaluations[path] == before + 1.0).all()
    assert (tree.leaf_records.next[path] >= 1e9).all()


@pytest.mark.parametrize(("others", "is_worth"), [(599, True), (600, False)])
def test_a_branch_of_exactly_the_least_share_is_too_small(others, is_worth):
    """200 of 800 records are no more than a quarter: the node's own test is then worth nothing."""
    values = np.r_[np.zeros(200), 1 + np.arange(others) % 3]
    first = np.random.default_rng(1).permutation(400)  # while the classes are even the root splits
    x = np.r_[values[:400][first], values[400:]].reshape(-1, 1)
    y = (x[:, 0] == 0).astype(np.int32)
    parameters = {"min_branch_frac": 0.25, "binary_splits": True, "max_leaves": 2, "revisit_period": 1e9}
    table, events = grown(x, y, kinds=(4,), **parameters)
    assert [(event.attribute, event.value) for event in splits(events)] == [(0, 0.0)]
    model, tree = table.model(0), view(table)
    own, slot = tree.revisions.own, tree.nodes.slot[0]
    before = float(own[slot])
    block = tree_of(model, model.first)
    reevaluation.reevaluate(model.plan.record, block, block.root, False)
    assert (own[slot] > before) == is_worth
