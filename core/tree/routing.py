"""The way of a record from the root to a leaf."""

from __future__ import annotations

from typing import Any

from core.jit import kernel
from core.tree import layout as at


@kernel
def node_at(ints: Any, t: int, node: int) -> int:
    """Return the first word of a node's record."""
    return t + at.TREE_HEADER + node * ints[t + at.TREE_NODE_STRIDE]


@kernel
def leaf_at(ints: Any, t: int, slot: int) -> int:
    """Return the first word of a leaf's record."""
    return t + ints[t + at.TREE_LEAVES_AT] + slot * ints[t + at.TREE_LEAF_STRIDE]


@kernel
def route(plan: Any, ints: Any, floats: Any, t: int, x: Any, weight: float) -> int:
    """Return the record of the node where x (float64[d]) ends, counting ``weight`` on its way.

    A value that a test cannot place (missing, or no branch of its own) follows the child with the largest
    routed weight, the lowest of equals [D10]. With MOA's quirks it ends at the inner node instead, or at an
    absent branch.
    """
    stride = ints[t + at.TREE_NODE_STRIDE]
    first = t + at.TREE_HEADER
    node = first
    floats[node + at.NODE_ROUTED] += weight
    kind = ints[node + at.NODE_KIND]
    while kind != at.LEAF and kind != at.ABSENT:
        child = branch(kind, x[ints[node + at.NODE_ATTRIBUTE]], ints, floats, node)
        if child < 0:
            if plan[at.PLAN_MOA] != 0:
                break
            child = busiest_child(ints, floats, first, stride, node)
        node = first + (ints[node + at.NODE_CHILD] + child) * stride
        floats[node + at.NODE_ROUTED] += weight
        kind = ints[node + at.NODE_KIND]
    return node


@kernel
def branch(kind: int, value: float, ints: Any, floats: Any, node: int) -> int:
    """Return the number of the child that a test sends a value to, -1 if it cannot tell."""
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
def busiest_child(ints: Any, floats: Any, first: int, stride: int, node: int) -> int:
    """Return the number of the child with the largest routed weight, the lowest of equals."""
    best = 0
    most = -1.0
    for child in range(ints[node + at.NODE_CHILDREN]):
        routed = floats[first + (ints[node + at.NODE_CHILD] + child) * stride + at.NODE_ROUTED]
        if routed > most:
            best, most = child, routed
    return best
