"""Routing: the way of a record from the root to a leaf."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel, words_at
from core.tree import layout as at
from core.tree import quirks

UNCOUNTED: Final = -1
"""No node: a value is missing, and the tree has not counted which child is the busiest."""


node_at = kernel(at.node_at)
leaf_at = kernel(at.leaf_at)


@kernel
def arrive(plan, ints, floats, t: int, x, frozen: bool, routed: int) -> int:
    """Return the record of the node where x (float64[d]) ends; UNCOUNTED: not decidable in a frozen model.

    A frozen model is not written to. ``routed``: address of the result of ``sum_paths``, 0: not computed yet.
    A value that a test cannot place (missing, or without a branch) follows the child with the largest routed
    weight, the lowest number of equal weights [D10]. With MOA's quirks the record ends at the inner node
    instead, or at an absent branch.
    """
    return arrive_from(plan, ints, floats, t, t + at.TREE_HEADER, x, frozen, routed)


@kernel
def arrive_from(plan, ints, floats, t: int, start: int, x, frozen: bool, routed: int) -> int:
    """Do ``arrive`` for the subtree whose root's record is at word ``start``."""
    stride = ints[t + at.TREE_NODE_STRIDE]
    first = t + at.TREE_HEADER
    node = start
    kind = ints[node + at.NODE_KIND]
    while kind != at.LEAF and kind != at.ABSENT:
        child = branch(kind, x[ints[node + at.NODE_ATTRIBUTE]], ints, floats, node)
        if child < 0:
            if plan[at.PLAN_QUIRKS] & quirks.STOPS_AT_MISSING != 0:
                break
            if ints[t + at.TREE_PATHS] == 0 and not frozen:
                count_paths(ints, floats, t)
            if ints[t + at.TREE_PATHS] != 0:
                child = busiest_child(ints, floats, t, node)
            elif routed != 0:
                child = busiest_of(ints, words_at(routed)[1], node)
            else:
                return UNCOUNTED
        node = first + (ints[node + at.NODE_CHILD] + child) * stride
        kind = ints[node + at.NODE_KIND]
    return node


@kernel
def count(ints, floats, t: int, node: int, weight: float) -> None:
    """Count weight that was routed to a node: there alone, or at all nodes from the root on."""
    floats[node + at.NODE_ROUTED] += weight
    if ints[t + at.TREE_PATHS] != 0:
        parent = ints[node + at.NODE_PARENT]
        while parent >= 0:
            above = node_at(ints, t, parent)
            floats[above + at.NODE_ROUTED] += weight
            parent = ints[above + at.NODE_PARENT]


@kernel
def route(plan, ints, floats, t: int, x, weight: float) -> int:
    """Return the record of the node where x (float64[d]) ends, and count it."""
    node = arrive(plan, ints, floats, t, x, False, 0)
    count(ints, floats, t, node, weight)
    return node


@kernel
def count_paths(ints, floats, t: int) -> None:
    """Let inner nodes count from now on: add up the weight that was counted below them so far.

    Most trees never meet a missing value and need not visit the path of every record.
    """
    for number in range(ints[t + at.TREE_NODES] - 1, 0, -1):  # children come after their parents
        node = node_at(ints, t, number)
        above = node_at(ints, t, ints[node + at.NODE_PARENT])
        floats[above + at.NODE_ROUTED] += floats[node + at.NODE_ROUTED]
    ints[t + at.TREE_PATHS] = 1


@kernel
def branch(kind: int, value: float, ints, floats, node: int) -> int:
    """Return the number of the child that a test sends a value to, -1 if it cannot place the value."""
    if kind == at.NUMERIC:
        if value <= floats[node + at.NODE_VALUE]:
            return 0
        return 1 if value > floats[node + at.NODE_VALUE] else -1
    if not value >= 0.0:  # missing: -1 or NaN
        return -1
    if kind == at.CATEGORY:
        return 0 if value == floats[node + at.NODE_VALUE] else 1
    return int(value) if value < ints[node + at.NODE_CHILDREN] else -1


@kernel
def busiest_child(ints, floats, t: int, node: int) -> int:
    """Return the number of the child with the largest routed weight, the lowest number of equal weights."""
    best = 0
    most = -1.0
    for child in range(ints[node + at.NODE_CHILDREN]):
        below = node_at(ints, t, ints[node + at.NODE_CHILD] + child)
        routed = floats[below + at.NODE_ROUTED]
        if routed > most:
            best, most = child, routed
    return best


@kernel
def busiest_of(ints, routed, node: int) -> int:
    """Return the same as ``busiest_child``, by weights in another array (float64[node])."""
    best = 0
    most = -1.0
    for child in range(ints[node + at.NODE_CHILDREN]):
        weight = routed[ints[node + at.NODE_CHILD] + child]
        if weight > most:
            best, most = child, weight
    return best


@kernel("void(int64, int64, float64[::1])")
def sum_paths(address: int, t: int, routed) -> None:
    """Write the weight routed through each node of a tree that counts at its leaves only: float64[node].

    The sums are added in the same order as in ``count_paths``, for models that must not be written to.
    """
    ints, floats = words_at(address)
    for number in range(len(routed)):
        routed[number] = floats[node_at(ints, t, number) + at.NODE_ROUTED]
    for number in range(len(routed) - 1, 0, -1):  # children come after their parents
        routed[ints[node_at(ints, t, number) + at.NODE_PARENT]] += routed[number]
