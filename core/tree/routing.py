"""Routing: the way of a record from the root to a leaf."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel, words_at
from core.layout.plan import PlanRecord
from core.layout.tree import ABSENT, CATEGORY, LEAF, NUMERIC, Node, Tree
from core.tree import quirks

UNCOUNTED: Final = -1
"""Place of no node: a value is missing, and the tree has not counted which child is the busiest."""


@kernel
def arrive(plan: PlanRecord, tree: Tree, x, frozen: bool, routed: int) -> Node:
    """Return the node where x (float64[d]) ends; one at UNCOUNTED: not decidable in a frozen model.

    A frozen model is not written to. ``routed``: address of the result of ``sum_paths``, 0: not computed yet.
    A value that a test cannot place (missing, or without a branch) follows the child with the largest routed
    weight, the lowest number of equal weights [D10]. With MOA's quirks the record ends at the inner node
    instead, or at an absent branch.
    """
    return arrive_from(plan, tree, tree.root, x, frozen, routed)


@kernel
def arrive_from(plan: PlanRecord, tree: Tree, start: Node, x, frozen: bool, routed: int) -> Node:
    """Do ``arrive`` for the subtree below a node."""
    node = start
    while node.kind != LEAF and node.kind != ABSENT:
        child = branch(node, x[node.attribute])
        if child < 0:
            if plan.has(quirks.STOPS_AT_MISSING):
                break
            if tree.paths == 0 and not frozen:
                count_paths(tree)
            if tree.paths != 0:
                child = busiest_child(tree, node)
            elif routed != 0:
                child = busiest_of(node, words_at(routed)[1])
            else:
                return tree.node_of(UNCOUNTED)
        node = tree.node(node.child + child)
    return node


@kernel
def count(tree: Tree, node: Node, weight: float) -> None:
    """Count weight that was routed to a node: there alone, or at all nodes from the root on."""
    node.routed += weight
    if tree.paths != 0:
        parent = node.parent
        while parent >= 0:
            above = tree.node(parent)
            above.routed += weight
            parent = above.parent


@kernel
def route(plan: PlanRecord, tree: Tree, x, weight: float) -> Node:
    """Return the node where x (float64[d]) ends, and count it."""
    node = arrive(plan, tree, x, False, 0)
    count(tree, node, weight)
    return node


@kernel
def count_paths(tree: Tree) -> None:
    """Let inner nodes count from now on: add up the weight that was counted below them so far.

    Most trees never meet a missing value and need not visit the path of every record.
    """
    for number in range(tree.nodes - 1, 0, -1):  # children come after their parents
        node = tree.node(number)
        above = tree.node(node.parent)
        above.routed += node.routed
    tree.paths = 1


@kernel
def branch(node: Node, value: float) -> int:
    """Return the number of the child that a test sends a value to, -1 if it cannot place the value."""
    if node.kind == NUMERIC:
        if value <= node.value:
            return 0
        return 1 if value > node.value else -1
    if not value >= 0.0:  # missing: -1 or NaN
        return -1
    if node.kind == CATEGORY:
        return 0 if value == node.value else 1
    return int(value) if value < node.children else -1


@kernel
def busiest_child(tree: Tree, node: Node) -> int:
    """Return the number of the child with the largest routed weight, the lowest number of equal weights."""
    best = 0
    most = -1.0
    for child in range(node.children):
        routed = tree.node(node.child + child).routed
        if routed > most:
            best, most = child, routed
    return best


@kernel
def busiest_of(node: Node, routed) -> int:
    """Return the same as ``busiest_child``, by weights in another array (float64[node])."""
    best = 0
    most = -1.0
    for child in range(node.children):
        weight = routed[node.child + child]
        if weight > most:
            best, most = child, weight
    return best


@kernel("void(int64, int64, float64[::1])")
def sum_paths(address: int, t: int, routed) -> None:
    """Write the weight routed through each node of a tree that counts at its leaves only: float64[node].

    t: the tree's first word. The sums are added in the same order as in ``count_paths``, for models that must
    not be written to.
    """
    ints, floats = words_at(address)
    tree = Tree(ints, floats, t)
    for number in range(len(routed)):
        routed[number] = tree.node(number).routed
    for number in range(len(routed) - 1, 0, -1):  # children come after their parents
        routed[tree.node(number).parent] += routed[number]
