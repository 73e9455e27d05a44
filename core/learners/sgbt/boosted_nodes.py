"""Node and leaf records of boosted trees: taken from the free ones or the arenas, and freed by subtree."""

from __future__ import annotations

import math

from core.kernels.jit import called, kernel
from core.layout.plan import PlanRecord
from core.learners.sgbt.layout import (
    FREED,
    NO_LEAF,
    NODE_WORDS,
    Boosting,
    LeafRecord,
    parameters_of,
    places_of,
)


@kernel
def stop(boosting: Boosting) -> None:
    """Note that bytes are lacking; the first time, an event follows."""
    if boosting.stopped == 0:
        boosting.stopped = 1
        boosting.unreported = 1


@kernel
def take_record(plan: PlanRecord, boosting: Boosting) -> int:
    """Return the number of a leaf record, the one that was freed last or the next of the arena."""
    number = boosting.free_leaf
    if number >= 0:
        record = boosting.leaf(plan, number)
        boosting.free_leaf = LeafRecord(record.ints, record.floats, record.start).following
    else:
        number = boosting.leaves
        boosting.leaves += 1
    boosting.live_leaves += 1
    return number


@called
def take_leaf(plan: PlanRecord, boosting: Boosting, tree: int, parent: int, leaf: int) -> int:
    """Return the number of a new leaf node that has seen nothing; leaf: its leaf record, -1: another one."""
    number = boosting.free_node
    if number >= 0:
        boosting.free_node = boosting.node(plan, number).parent
    else:
        number = boosting.nodes
        boosting.nodes += 1
    boosting.live_nodes += 1
    if leaf < 0:
        leaf = take_record(plan, boosting)
    node = boosting.node(plan, number)
    for i in range(NODE_WORDS):
        node.ints[node.start + i] = 0
    node.parent = parent
    node.tree = tree
    node.left = -1
    node.right = -1
    node.leaf = leaf
    node.lowest = math.inf
    node.alternate = -1
    if parent < 0:
        node.watched = 1 if parameters_of(plan).watches != 0.0 else 0
    else:
        above = boosting.node(plan, parent)
        node.depth = above.depth + 1
        node.watched = above.watched
        node.beside = above.beside
        boosting.nodes_beside += above.beside
    record = boosting.leaf(plan, leaf)
    for i in range(places_of(plan).leaf_words):
        record.numbers[i] = 0
    return number


@kernel
def free_record(plan: PlanRecord, boosting: Boosting, number: int) -> None:
    """Clear a leaf record, and chain it to the free ones."""
    record = boosting.leaf(plan, number)
    for i in range(places_of(plan).leaf_words):
        record.numbers[i] = 0
    LeafRecord(record.ints, record.floats, record.start).following = boosting.free_leaf
    boosting.free_leaf = number
    boosting.live_leaves -= 1


@called
def free_subtree(plan: PlanRecord, boosting: Boosting, top: int) -> None:
    """Free a node and all nodes below it, with the alternate trees beside them.

    A node that waits to be freed is chained by its parent word, like free nodes.
    """
    waiting = top
    boosting.node(plan, top).parent = -1
    while waiting >= 0:
        number = waiting
        node = boosting.node(plan, number)
        waiting = node.parent
        if node.left < 0:
            free_record(plan, boosting, node.leaf)
        else:
            boosting.node(plan, node.left).parent = waiting
            boosting.node(plan, node.right).parent = node.left
            waiting = node.right
        if node.alternate >= 0:
            boosting.node(plan, node.alternate).parent = waiting
            waiting = node.alternate
            boosting.alternates -= 1
        boosting.nodes_beside -= node.beside
        for i in range(NODE_WORDS):
            node.ints[node.start + i] = 0
        node.left = FREED
        node.right = FREED
        node.leaf = NO_LEAF
        node.alternate = -1
        node.parent = boosting.free_node
        boosting.free_node = number
        boosting.live_nodes -= 1
