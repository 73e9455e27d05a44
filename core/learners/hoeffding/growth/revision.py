"""Revision of splits (EFDT): changes of the due nodes of a path, and the removal of subtrees.

Inner nodes keep their leaf records and keep learning, so memory grows with all nodes, not only with the
leaves; the caps count all of them [D1]. A revision that removes a subtree leaves no gap
(core/learners/hoeffding/growth/removal.py). So a tree needs no more room than its largest state did, however
often it was revised.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from core.events import Event, NodeTest, Pruned, Split
from core.layout.tree import ABSENT, LEAF
from core.learners.hoeffding import reevaluation, split_attempt
from core.learners.hoeffding.decision import FORGET, Decision, HasState, tree_of
from core.learners.hoeffding.growth import restructuring, splitting
from core.learners.hoeffding.growth.removal import cut_subtree, nodes_below
from core.tree.views import TreeView, tree_view


def revise_path(model: HasState, t: int, end: int, row: int, index: int) -> list[Event]:
    """Evaluate the due nodes of a path from the root down; return the events of the tree that answers.

    A record that ends below a replaced subtree's root is counted there: the new leaves take the statistics of
    the root, which include this record. t and end are the first words of the tree and of the node record
    where the path ends.
    """
    events: list[Event] = []
    learner, plan, tree = model.spec.learner, model.plan.record, tree_of(model, t)
    is_first = t == model.block_places[0]
    depth = reevaluation.ABOVE_ROOT
    while (due := int(reevaluation.next_due(plan, tree, tree.node_of(end), depth))) >= 0:
        node = tree.node_of(due)
        leaf, number, depth = tree.leaf_of(node), int(tree.number(node)), int(node.depth)
        is_leaf = node.kind == LEAF
        if is_leaf and tree.stopped:
            leaf.next = math.inf
            tree.revision(plan, leaf).due = 0.0
            break
        decide = learner.decide if is_leaf else learner.revise
        decision = decide(model, tree, node, leaf)
        if is_leaf or learner.watches_inner_nodes:
            split_attempt.reschedule(plan, tree, node)
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
        block = tree_of(model, t)
        block.revision(model.plan.record, block.leaf_of(block.node(node))).forgets = 1.0
        return None
    if decision.action == "split":
        return splitting.install(model, t, node, decision, row, index)
    tree = tree_view(model.plan, model.ints, t)
    former, depth = test_of(tree, node), int(tree.block.node(node).depth)
    if decision.action == "moved":
        move_threshold(model, tree, node, decision)
        splitting.watch_again(model, t, node)
        had = splitting.masses_of(model, t, node)
        return replace(splitting.event_of(decision, node, row, index, depth, had), former=former)
    if decision.action == "pruned":
        cut_subtree(model, tree, node)
        model.spec.learner.resume(tree, int(tree.block.node(node).slot))
        grow_again(model, tree)
        grounds = decision.merits, decision.bound, decision.n, decision.reason
        return Pruned(row, index, node, *grounds, former, depth)
    number = model.block_places.index(t)
    if model.spec.learner.restructures:
        event = restructuring.replace_test(model, t, node, decision, row, index)
    else:
        cut_subtree(model, tree, node)
        event = splitting.install(model, t, node, decision, row, index)
    t = model.block_places[number]  # making room may have moved it
    grow_again(model, tree_view(model.plan, model.ints, t))
    return replace(event, former=former) if isinstance(event, Split) else event


def test_of(tree: TreeView, node: int) -> NodeTest:
    record = tree.block.node(node)
    return NodeTest(int(record.attribute), splitting.TESTS[int(record.kind)], float(record.value))


def move_threshold(model: HasState, tree: TreeView, node: int, decision: Decision) -> None:
    """Give a numeric test another threshold; the subtrees below it stay."""
    record = tree.block.node(node)
    record.value = decision.value
    revision = tree.block.revision(model.plan.record, tree.block.leaf_of(record))
    revision.own = revision.merits[decision.attribute]


def fits(model: HasState, t: int, node: int, decision: Decision) -> bool:
    """Return whether the tree is within its caps if the leaves of a test replace a subtree."""
    tree = tree_view(model.plan, model.ints, t)
    block, gone = tree.block, nodes_below(tree, node)
    kinds = tree.nodes.kind[gone]
    leaves = int(block.leaves) - np.count_nonzero(kinds == LEAF)
    inner = int(block.splits) - np.count_nonzero((kinds != LEAF) & (kinds != ABSENT))
    masses, present = splitting.divided(model, t, node, decision)
    nodes = int(block.nodes) - len(gone) + len(masses)
    return not splitting.exceeds_cap(model, int(leaves) + present, int(inner), nodes)


def grow_again(model: HasState, tree: TreeView) -> None:
    """Let a tree that had stopped grow again, if a test of two branches fits into its caps by now.

    Leaves that became due since then are due again after another first wait.
    """
    block, nodes = tree.block, tree.nodes[: tree.block.nodes]
    leaves, inner = int(block.leaves), int(block.splits)
    if not block.stopped or splitting.exceeds_cap(model, leaves + 1, inner + 1, len(nodes) + 2):
        return
    block.stopped = 0
    slots = nodes.slot[nodes.kind == LEAF]
    for slot in slots[np.isinf(tree.leaf_records.next[slots])].tolist():
        model.spec.learner.resume(tree, slot)
