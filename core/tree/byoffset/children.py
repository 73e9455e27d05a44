"""Children of a new inner node: the test and the nodes below it, written into the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.kernels.jit import kernel, outlined, words_at
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.routing import leaf_at, node_at


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
    plan, _ = words_at(plan_address)
    ints, floats = words_at(address)
    node, first = node_at(ints, t, number), ints[t + at.TREE_NODES]
    branches, k = masses.shape
    depth = ints[node + at.NODE_DEPTH] + 1
    ints[node + at.NODE_KIND], ints[node + at.NODE_ATTRIBUTE] = test, attribute
    floats[node + at.NODE_VALUE] = value
    ints[node + at.NODE_CHILD], ints[node + at.NODE_CHILDREN] = first, branches
    ints[t + at.TREE_NODES] = first + branches
    ints[t + at.TREE_LEAVES] -= 1
    ints[t + at.TREE_SPLITS] += 1
    ints[t + at.TREE_DEPTH] = max(ints[t + at.TREE_DEPTH], depth)
    may_be_absent = test == at.MULTIWAY and plan[at.PLAN_QUIRKS] & quirks.ABSENT_BRANCHES != 0
    if not inherits:
        for c in range(plan[at.PLAN_CLASSES]):
            floats[node + at.NODE_FIELDS + c] = 0.0
    for b in range(branches):
        child = node_at(ints, t, first + b)
        ints[child + at.NODE_PARENT], ints[child + at.NODE_DEPTH] = number, depth
        reach = 0
        for c in range(k):
            if masses[b, c] >= 0.0:
                reach = c + 1
        end_way(ints, floats, child, first + b, attribute)
        if reach == 0 and may_be_absent:
            ints[child + at.NODE_KIND] = at.ABSENT
            continue
        if inherits:
            ints[child + at.NODE_REACH] = reach
            for c in range(k):
                floats[child + at.NODE_FIELDS + c] = max(masses[b, c], 0.0)
        take_record(ints, t, child, first + b)


connect_here: Any = outlined(connect)
"""``connect`` for other kernels: called, not inlined."""


@kernel("void(int64, int64, int64)")
def grow(address: int, t: int, number: int) -> None:
    """Make an absent branch a leaf; the block must have room for its record."""
    ints, _ = words_at(address)
    take_record(ints, t, node_at(ints, t, number), number)


@kernel
def end_way(ints, floats, node: int, number: int, attribute: int) -> None:
    """Make a node an end of the way of records (see layout.end_here)."""
    ints[node + at.NODE_ATTRIBUTE], ints[node + at.NODE_CHILD] = attribute, number
    floats[node + at.NODE_VALUE] = np.inf


@kernel
def take_record(ints, t: int, node: int, number: int) -> None:
    """Give a node an empty leaf record: the record that was freed last, else a new record."""
    slot = ints[t + at.TREE_FREE]
    if slot >= 0:
        ints[t + at.TREE_FREE] = ints[leaf_at(ints, t, slot) + at.LEAF_NODE]
    else:
        slot = ints[t + at.TREE_SLOTS]
        ints[t + at.TREE_SLOTS] += 1
    ints[t + at.TREE_LEAVES] += 1
    ints[node + at.NODE_KIND], ints[node + at.NODE_SLOT] = at.LEAF, slot
    ints[leaf_at(ints, t, slot) + at.LEAF_NODE] = number
