"""Children of a new inner node: the test and the nodes below it, written into the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import kernel, outlined, words_at
from core.layout.plan import plan_at
from core.layout.tree import ABSENT, LEAF, MULTIWAY, Node, Tree
from core.tree import quirks


@kernel("void(int64, int64, int64, int64, int64, int64, float64, float64[:, ::1], boolean)")
def connect(
    plan_address: int,
    address: int,
    t: int,
    number: int,
    attribute: int,
    test: int,
    value: float,
    masses,
    inherits: bool,
) -> None:
    """Give node ``number`` of the tree at word t a test, and a child for each row of masses.

    masses: float64[branch, class], -1 for a class that never reached a branch. With MOA's quirks a branch
    that no class reached is absent; all other branches are leaves, with leaf records that the learner has yet
    to initialise. The block must have room for them; the node's leaf record is not changed.
    """
    plan = plan_at(plan_address)
    ints, floats = words_at(address)
    tree = Tree(ints, floats, t)
    node, first = tree.node(number), tree.nodes
    branches, k = masses.shape
    depth = node.depth + 1
    node.kind, node.attribute, node.value = test, attribute, value
    node.child, node.children = first, branches
    tree.nodes = first + branches
    tree.leaves -= 1
    tree.splits += 1
    tree.depth = max(tree.depth, depth)
    may_be_absent = test == MULTIWAY and plan.has(quirks.ABSENT_BRANCHES)
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
        end_way(child, first + b, attribute)
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


@kernel("void(int64, int64, int64)")
def grow(address: int, t: int, number: int) -> None:
    """Make an absent branch a leaf; the block must have room for its record."""
    ints, floats = words_at(address)
    tree = Tree(ints, floats, t)
    take_record(tree, tree.node(number), number)


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
