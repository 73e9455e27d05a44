"""Checks of the words of boosted trees that kernels rely on: trees, links, tests, free records."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.kernels.jit import called, kernel
from core.layout.plan import PlanRecord
from core.layout.tree import NO_NODE
from core.learners.sgbt.layout import (
    FREED,
    NO_LEAF,
    Boosting,
    BoostNode,
    LeafRecord,
    committees_of,
    places_of,
    sketch_of,
)
from core.problems import MOST, SOUND, at_place, range_problem, range_rules

_LINKS: Final = (
    "words of a learned leaf record must be from 1 to 2**53 once they are computed",
    "subsets must be drawn from at most the attributes of the schema",
    "a root must be a node of its tree without a parent",
    "a node must be the parent of its two children, which have the next depth and the same tree",
    "a node without parent must be its tree's root",
    "a test must be of an attribute of the schema, with a finite cut",
    "each leaf must have a leaf record of its own, and an inner node must have none",
    "a sketch must have at most as many thresholds as there is room for",
    "an alternate tree must stand beside an inner node of its tree that is in none, at its depth",
    "the chains of free records must hold all records that no tree uses, each once",
)
(LEARNED_LEAF, DRAWN, ROOT, CHILDREN, PARENT, TEST, LEAVES, SKETCH, BESIDE, FREE) = range(1, len(_LINKS) + 1)

_HEADER_RULES: Final = (*_LINKS, *range_rules(Boosting))
PROBLEMS: Final = (*_HEADER_RULES, *range_rules(BoostNode))

header_ranges = range_problem(Boosting, len(_LINKS))
node_ranges = range_problem(BoostNode, len(_HEADER_RULES))


@kernel
def block_problem(plan: PlanRecord, boosting: Boosting, blank_address: int) -> int:
    """Return a problem of boosted trees, or SOUND."""
    problem = header_ranges(boosting)
    if problem == SOUND and boosting.reckoned != 0 and not 1 <= boosting.learned_leaf <= MOST:
        problem = LEARNED_LEAF
    if problem == SOUND and boosting.drawn > plan.attributes:
        problem = DRAWN
    if problem == SOUND:
        problem = roots_problem(plan, boosting)
    if problem == SOUND:
        problem = nodes_problem(plan, boosting)
    return problem


@kernel
def roots_problem(plan: PlanRecord, boosting: Boosting) -> int:
    """Return a problem of the roots of trees."""
    trees, planted = committees_of(plan.classes) * places_of(plan).members, 0
    for number in range(trees):
        root = boosting.entry(plan, number).root
        if root == NO_NODE:
            continue
        if not 0 <= root < boosting.nodes:
            return ROOT
        node = boosting.node(plan, root)
        is_root = node.parent == NO_NODE and node.depth == 0 and node.beside == 0
        if not is_root or node.tree != number or node.left == FREED:
            return at_place(root, ROOT)
        planted += 1
    return SOUND if planted == boosting.trees else ROOT


@called
def nodes_problem(plan: PlanRecord, boosting: Boosting) -> int:
    """Return a problem of nodes and leaf records."""
    is_taken = np.zeros(boosting.leaves, dtype=np.int8)
    n_taken, free, alternates, nodes_beside = 0, 0, 0, 0
    for number in range(boosting.nodes):
        node = boosting.node(plan, number)
        if node.left == FREED:
            free += 1
            continue
        alternates += 1 if node.alternate != NO_NODE else 0
        nodes_beside += 1 if node.beside == 1 else 0
        problem = node_ranges(node)
        if problem == SOUND:
            problem = links_problem(plan, boosting, number)
        if problem == SOUND and node.left == NO_NODE:
            record = node.leaf
            if not 0 <= record < boosting.leaves or is_taken[record] != 0:
                problem = LEAVES
            else:
                is_taken[record] = 1
                n_taken += 1
                problem = sketches_problem(plan, boosting, record)
        if problem != SOUND:
            return at_place(number, problem)
    if n_taken != boosting.live_leaves:
        return LEAVES
    if alternates != boosting.alternates or nodes_beside != boosting.nodes_beside:
        return BESIDE
    if boosting.nodes - free != boosting.live_nodes or not are_chained(plan, boosting, is_taken):
        return FREE
    return SOUND


@kernel
def are_chained(plan: PlanRecord, boosting: Boosting, is_taken) -> bool:
    """Return whether each record that is not in use is in its chain; is_taken: int8[leaf record], changed."""
    number = boosting.free_node
    for _ in range(boosting.nodes - boosting.live_nodes):
        if not 0 <= number < boosting.nodes or boosting.node(plan, number).left != FREED:
            return False
        number = boosting.node(plan, number).parent
    is_chained = number == NO_NODE
    number = boosting.free_leaf
    for _ in range(boosting.leaves - boosting.live_leaves):
        if not 0 <= number < boosting.leaves or is_taken[number] != 0:
            return False
        is_taken[number] = 1
        record = boosting.leaf(plan, number)
        number = LeafRecord(record.ints, record.floats, record.start).following
    return is_chained and number == NO_NODE


@kernel
def sketches_problem(plan: PlanRecord, boosting: Boosting, record: int) -> int:
    """Return a problem of the sketches of a leaf record."""
    leaf, bins = boosting.leaf(plan, record), places_of(plan).bins
    for i in range(plan.numeric):
        if not 0 <= sketch_of(plan, leaf, i).used <= bins:
            return SKETCH
    return SOUND


@kernel
def links_problem(plan: PlanRecord, boosting: Boosting, number: int) -> int:
    """Return a problem of the links of a node, in both directions, or of its test."""
    node, nodes = boosting.node(plan, number), boosting.nodes
    trees = committees_of(plan.classes) * places_of(plan).members
    if not 0 <= node.tree < trees or not 0 <= node.depth < nodes:
        return CHILDREN
    problem = parent_problem(plan, boosting, number)
    if problem == SOUND and node.alternate != NO_NODE:
        problem = alternate_problem(plan, boosting, number)
    if problem != SOUND:
        return problem
    if node.left == NO_NODE:
        return SOUND if node.right == NO_NODE else CHILDREN
    if not 0 <= node.left < nodes or not 0 <= node.right < nodes or node.left == node.right:
        return CHILDREN
    for child in (node.left, node.right):
        below = boosting.node(plan, child)
        is_below = below.parent == number and below.tree == node.tree and below.depth == node.depth + 1
        if not is_below or below.beside != node.beside:
            return CHILDREN
    if node.leaf != NO_LEAF:
        return LEAVES
    room = plan.nominal if node.is_category != 0 else plan.numeric
    if not 0 <= node.order < room or node.cut - node.cut != 0.0:
        return TEST
    return SOUND


@kernel
def parent_problem(plan: PlanRecord, boosting: Boosting, number: int) -> int:
    """Return a problem of the link from a node to its parent, or to the node that it stands beside."""
    node = boosting.node(plan, number)
    parent = node.parent
    if parent == NO_NODE:
        return SOUND if boosting.entry(plan, node.tree).root == number else PARENT
    if not 0 <= parent < boosting.nodes:
        return PARENT
    above = boosting.node(plan, parent)
    is_linked = above.left == number or above.right == number or above.alternate == number
    return SOUND if is_linked and above.left >= 0 else PARENT


@kernel
def alternate_problem(plan: PlanRecord, boosting: Boosting, number: int) -> int:
    """Return a problem of the link from a node to the alternate tree beside it."""
    node = boosting.node(plan, number)
    alternate = node.alternate
    if not 0 <= alternate < boosting.nodes or node.left < 0 or node.beside != 0:
        return BESIDE
    root = boosting.node(plan, alternate)
    is_beside = root.parent == number and root.beside == 1 and root.left != FREED
    return SOUND if is_beside and root.tree == node.tree and root.depth == node.depth else BESIDE
