"""Children of a new inner node: the test and the nodes below it, written into the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import ABSENT, LEAF, MULTIWAY, Node, SplitTest, Tree
from core.tree import quirks


@kernel("void(PlanRecord, Tree, Node, SplitTest, float64[:, ::1], boolean)")
def connect(plan: PlanRecord, tree: Tree, node: Node, test: SplitTest, masses, inherits: bool) -> None:
    """Give a node a test, and a child for each row of masses.

    masses: float64[branch, class], -1 for a class that never reached a branch. With MOA's quirks a branch
    that no class reached is absent; all other branches are leaves, with leaf records that the learner has yet
    to initialise. The block must have room for them; the node's leaf record is not changed.
    """
    number, first = tree.number(node), tree.nodes
    branches, k = masses.shape
    depth = node.depth + 1
    node.kind, node.attribute, node.value = test.kind, test.attribute, test.value
    node.child, node.children = first, branches
    tree.nodes = first + branches
    tree.leaves -= 1
    tree.splits += 1
    tree.depth = max(tree.depth, depth)
    may_be_absent = test.kind == MULTIWAY and plan.has(quirks.ABSENT_BRANCHES)
    if not inherits:
        for c in range(plan.classes):
            node.masses[c] = 0.0
    for b in range(branches):
        child = tree.node(first + b)
        child.parent, child.depth = number, depth
        reach = 0
        for c in range(k):
            if masses[b, c] >= 0.0:
                reach = c + 1
        end_way(child, first + b, test.attribute)
        if reach == 0 and may_be_absent:
            child.kind = ABSENT
            continue
        if inherits:
            child.reach = reach
            for c in range(k):
                child.masses[c] = max(masses[b, c], 0.0)
        take_record(tree, child, first + b)


connect_here: Any = outlined(connect)
"""``connect`` for other kernels: called, not inlined."""


@kernel("void(Tree, Node)")
def grow(tree: Tree, node: Node) -> None:
    """Make an absent branch a leaf; the block must have room for its record."""
    take_record(tree, node, tree.number(node))


@kernel
def end_way(node: Node, number: int, attribute: int) -> None:
    """Make a node an end of the way of records (core/tree/views.py:end_here)."""
    node.attribute, node.child = attribute, number
    node.value = np.inf


@kernel
def take_record(tree: Tree, node: Node, number: int) -> None:
    """Give a node an empty leaf record: the record that was freed last, else a new record."""
    slot = tree.free
    if slot >= 0:
        tree.free = tree.leaf(slot).node
    else:
        slot = tree.slots
        tree.slots += 1
    tree.leaves += 1
    node.kind, node.slot = LEAF, slot
    tree.leaf(slot).node = number
