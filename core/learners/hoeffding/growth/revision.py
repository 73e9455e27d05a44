"""Revision of splits (EFDT): changes of the due nodes of a path, and the removal of subtrees.

Inner nodes keep their leaf records and keep learning, so memory grows with all nodes, not only with the
leaves; the caps count all of them [D1]. A revision that removes a subtree closes the gap: the node records
after it move up, with parents still before their children, and the leaf records are chained to the free
records. So a tree needs no more room than its largest state did, however often it was revised.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from core.events import Event, NodeTest, Pruned, Split
from core.learners.hoeffding import reevaluation, split_attempt
from core.learners.hoeffding.decision import FORGET, Decision, HasState
from core.learners.hoeffding.growth import splitting
from core.tree import layout as at
from core.tree import views
from core.tree.views import TreeView, tree_view


def revise_path(model: HasState, t: int, node: int, row: int, index: int) -> list[Event]:
    """Evaluate the due nodes of a path from the root down; return the events of the tree that answers.

    A record that ends below a replaced subtree's root is counted there: the new leaves take the statistics of
    the root, which include this record. t and node are the first words of the tree and of the node record
    where the path ends.
    """
    events: list[Event] = []
    ints, learner, plan = model.ints, model.spec.learner, model.plan.address
    is_first = t == model.block_places[0]
    depth = reevaluation.ABOVE_ROOT
    while (due := int(reevaluation.next_due(plan, model.address, t, node, depth))) >= 0:
        depth = ints.item(due + at.NODE_DEPTH)
        leaf, number = at.leaf_of(ints, t, due), at.number_of(ints, t, due)
        is_leaf = ints[due + at.NODE_KIND] == at.LEAF
        if is_leaf and ints[t + at.TREE_STOPPED]:
            model.floats[leaf + at.LEAF_NEXT] = math.inf
            model.floats[leaf + int(model.plan.ints[at.PLAN_REVISION]) + at.REVISION_DUE] = 0.0
            break
        decision = learner.decide(model, t, due, leaf) if is_leaf else learner.revise(model, t, due, leaf)
        if is_leaf or learner.watches_inner_nodes:
            split_attempt.reschedule(plan, model.address, t, due)
        if decision is None:
            continue
        if decision.action == "replaced" and not fits(model, t, number, decision):
            continue
        event = carry_out(model, t, number, decision, row, index)
        if event is not None and is_first:
            events.append(event)
        if decision.action != "moved":
            break  # the path has changed
    return events


def carry_out(model: HasState, t: int, node: int, decision: Decision, row: int, index: int) -> Event | None:
    """Apply a decision to node number ``node``; return the event if the tree has changed."""
    if decision.test == FORGET and decision.action == "split":
        splitting.forget(model, t, node)
        tree = tree_view(model.plan, model.ints, t)
        tree.revision[int(tree.node_ints[node, at.NODE_SLOT]), at.REVISION_FORGETS] = 1.0
        return None
    if decision.action == "split":
        return splitting.install(model, t, node, decision, row, index)
    tree = tree_view(model.plan, model.ints, t)
    former, depth = test_of(tree, node), int(tree.node_ints[node, at.NODE_DEPTH])
    if decision.action == "moved":
        move_threshold(tree, node, decision)
        splitting.watch_anew(model, t, node)
        had = splitting.masses_of(model, t, node)
        return replace(splitting.event_of(decision, node, row, index, depth, had), former=former)
    cut_subtree(model, tree, node)
    if decision.action == "pruned":
        model.spec.learner.resume(tree, int(tree.node_ints[node, at.NODE_SLOT]))
        grow_again(model, tree)
        what = decision.merits, decision.bound, decision.n, decision.reason
        return Pruned(row, index, node, *what, former, depth)
    block = model.block_places.index(t)
    event = splitting.install(model, t, node, decision, row, index)
    t = model.block_places[block]  # making room may have moved it
    grow_again(model, tree_view(model.plan, model.ints, t))
    return replace(event, former=former) if isinstance(event, Split) else event


def test_of(tree: TreeView, node: int) -> NodeTest:
    record = tree.node_ints[node]
    kind, value = splitting.TESTS[int(record[at.NODE_KIND])], float(tree.node_floats[node, at.NODE_VALUE])
    return NodeTest(int(record[at.NODE_ATTRIBUTE]), kind, value)


def move_threshold(tree: TreeView, node: int, decision: Decision) -> None:
    """Give a numeric test another threshold; the subtrees below it stay."""
    tree.node_floats[node, at.NODE_VALUE] = decision.value
    section = tree.revision[int(tree.node_ints[node, at.NODE_SLOT])]
    section[at.REVISION_OWN] = section[at.REVISION_FIELDS + decision.attribute]


def fits(model: HasState, t: int, node: int, decision: Decision) -> bool:
    """Return whether the tree is within its caps if the leaves of a test replace a subtree."""
    tree = tree_view(model.plan, model.ints, t)
    gone = below(tree, node)
    kinds = tree.node_ints[gone, at.NODE_KIND]
    leaves = int(tree.header[at.TREE_LEAVES]) - np.count_nonzero(kinds == at.LEAF)
    inner = int(tree.header[at.TREE_SPLITS]) - np.count_nonzero((kinds != at.LEAF) & (kinds != at.ABSENT))
    masses, present = splitting.divided(model, t, node, decision)
    nodes = int(tree.header[at.TREE_NODES]) - len(gone) + len(masses)
    return not splitting.exceeds_cap(model, int(leaves) + present, int(inner), nodes)


def grow_again(model: HasState, tree: TreeView) -> None:
    """Let a tree that had stopped grow again, if a test of two branches fits into its caps by now.

    Leaves that became due since then are due again after another first wait.
    """
    leaves, inner, nodes = tree.header[[at.TREE_LEAVES, at.TREE_SPLITS, at.TREE_NODES]].tolist()
    if not tree.header[at.TREE_STOPPED] or splitting.exceeds_cap(model, leaves + 1, inner + 1, nodes + 2):
        return
    tree.header[at.TREE_STOPPED] = 0
    kinds = tree.node_ints[: int(tree.header[at.TREE_NODES]), at.NODE_KIND]
    slots = tree.node_ints[np.flatnonzero(kinds == at.LEAF), at.NODE_SLOT]
    for slot in slots[np.isinf(tree.leaf_floats[slots, at.LEAF_NEXT])].tolist():
        model.spec.learner.resume(tree, slot)


def below(tree: TreeView, node: int) -> at.Ints:
    """Return the numbers of the nodes below a node, ascending."""
    found: list[int] = []
    waiting = [node]
    while waiting:
        record = tree.node_ints[waiting.pop()]
        if record[at.NODE_KIND] not in (at.LEAF, at.ABSENT):
            first = int(record[at.NODE_CHILD])
            children = range(first, first + int(record[at.NODE_CHILDREN]))
            found += children
            waiting += children
    return np.array(sorted(found), dtype=np.int64)


def cut_subtree(model: HasState, tree: TreeView, node: int) -> None:
    """Make an inner node a leaf that keeps its leaf record; close the gap that its subtree leaves."""
    gone = below(tree, node)
    for number in gone.tolist():
        slot = int(tree.node_ints[number, at.NODE_SLOT])
        if slot >= 0:
            splitting.free_slot(model, tree, slot)
    if not tree.header[at.TREE_PATHS]:  # only leaves count routed records
        tree.node_floats[node, at.NODE_ROUTED] += tree.node_floats[gone, at.NODE_ROUTED].sum()
    tree.node_ints[node, [at.NODE_KIND, at.NODE_CHILDREN]] = at.LEAF, 0
    views.end_here(tree, node)
    close_gap(tree, gone)


def close_gap(tree: TreeView, gone: at.Ints) -> None:
    """Remove nodes from a tree, by number, that no remaining node leads to, and free their leaf records."""
    n = int(tree.header[at.TREE_NODES])
    stays = np.ones(n, dtype=np.bool_)
    stays[gone] = False
    number_now = np.cumsum(stays) - 1
    kept = tree.node_ints[:n][stays]
    m = len(kept)
    inner = (kept[:, at.NODE_KIND] != at.LEAF) & (kept[:, at.NODE_KIND] != at.ABSENT)
    kept[:, at.NODE_CHILD] = number_now[kept[:, at.NODE_CHILD]]
    below_root = np.flatnonzero(kept[:, at.NODE_PARENT] >= 0)
    kept[below_root, at.NODE_PARENT] = number_now[kept[below_root, at.NODE_PARENT]]
    if tree.shape.subtree:
        state = kept[:, tree.shape.subtree_at :]
        has = np.flatnonzero(state[:, at.SUBTREE_ALTERNATE])
        state[has, at.SUBTREE_ALTERNATE] = number_now[state[has, at.SUBTREE_ALTERNATE]]
        has = np.flatnonzero(state[:, at.SUBTREE_BESIDE])
        state[has, at.SUBTREE_BESIDE] = number_now[state[has, at.SUBTREE_BESIDE] - 1] + 1
    tree.node_ints[:m] = kept
    tree.node_ints[m:n] = 0
    tree.node_ints[m:n, [at.NODE_PARENT, at.NODE_SLOT]] = -1
    recorded = np.flatnonzero(kept[:, at.NODE_SLOT] >= 0)
    tree.leaf_ints[kept[recorded, at.NODE_SLOT], at.LEAF_NODE] = recorded
    tree.header[at.TREE_NODES] = m
    tree.header[at.TREE_LEAVES] = np.count_nonzero(kept[:, at.NODE_KIND] == at.LEAF)
    tree.header[at.TREE_SPLITS] = np.count_nonzero(inner)
    tree.header[at.TREE_DEPTH] = kept[:, at.NODE_DEPTH].max()
