"""Removal of nodes: a subtree is cut, and the node records after the gap move up.

Parents stay before their children, and the leaf records of removed nodes are chained to the free records.
"""

from __future__ import annotations

import numpy as np

from core.layout.model import Ints
from core.layout.tree import ABSENT, LEAF, NO_NODE, NO_SLOT
from core.learners.hoeffding.decision import HasState
from core.learners.hoeffding.growth import splitting
from core.tree import views
from core.tree.views import TreeView


def nodes_below(tree: TreeView, node: int) -> Ints:
    """Return the numbers of the nodes below a node, ascending."""
    numbers: list[int] = []
    waiting = [node]
    while waiting:
        record = tree.block.node(waiting.pop())
        if record.kind not in (LEAF, ABSENT):
            children = range(record.child, record.child + record.children)
            numbers += children
            waiting += children
    return np.array(sorted(numbers), dtype=np.int64)


def cut_subtree(model: HasState, tree: TreeView, node: int) -> None:
    """Make an inner node a leaf that keeps its leaf record; close the gap that its subtree leaves."""
    gone, nodes = nodes_below(tree, node), tree.nodes
    slots = nodes.slot[gone]
    for slot in slots[slots >= 0].tolist():
        splitting.free_slot(model, tree, slot)
    record = tree.block.node(node)
    if not tree.block.paths:  # only leaves count routed records
        record.routed += nodes.routed[gone].sum()
    record.kind, record.children = LEAF, 0
    views.end_here(tree, node)
    close_gap(tree, gone)


def close_gap(tree: TreeView, gone: Ints) -> None:
    """Remove nodes from a tree, by number, that no remaining node leads to, and free their leaf records."""
    count, nodes = int(tree.block.nodes), tree.nodes
    stays = np.ones(count, dtype=np.bool_)
    stays[gone] = False
    number_now = np.cumsum(stays) - 1
    n_left = int(np.count_nonzero(stays))
    tree.node_ints[:n_left] = tree.node_ints[:count][stays]
    tree.node_ints[n_left:count] = 0
    nodes.parent[n_left:count], nodes.slot[n_left:count] = NO_NODE, NO_SLOT
    kept = nodes[:n_left]
    kept.child = number_now[kept.child]
    has_parent = kept.parent >= 0
    kept.parent[has_parent] = number_now[kept.parent[has_parent]]
    if tree.shape.subtree:
        states = tree.subtree_states[:n_left]
        has_alternate, is_beside = states.alternate != 0, states.beside != 0
        states.alternate[has_alternate] = number_now[states.alternate[has_alternate]]
        states.beside[is_beside] = number_now[states.beside[is_beside] - 1] + 1
    recorded = np.flatnonzero(kept.slot >= 0)
    tree.leaf_records.node[kept.slot[recorded]] = recorded
    tree.block.nodes = n_left
    tree.block.leaves = int(np.count_nonzero(kept.kind == LEAF))
    tree.block.splits = int(np.count_nonzero((kept.kind != LEAF) & (kept.kind != ABSENT)))
    tree.block.depth = kept.depth.max()
