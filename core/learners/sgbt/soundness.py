"""Checks of the words of boosted trees that kernels rely on: trees, links, tests, leaf records."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.kernels.jit import called, kernel
from core.layout.plan import PlanRecord
from core.layout.tree import NO_NODE
from core.learners.sgbt.layout import (
    NO_LEAF,
    Boosting,
    BoostNode,
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
)
(LEARNED_LEAF, DRAWN, ROOT, CHILDREN, PARENT, TEST, LEAVES, SKETCH) = range(1, len(_LINKS) + 1)

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
        if node.parent != NO_NODE or node.tree != number or node.depth != 0:
            return at_place(root, ROOT)
        planted += 1
    return SOUND if planted == boosting.trees else ROOT


@called
def nodes_problem(plan: PlanRecord, boosting: Boosting) -> int:
    """Return a problem of nodes and leaf records."""
    is_taken = np.zeros(boosting.leaves, dtype=np.int8)
    n_taken = 0
    for number in range(boosting.nodes):
        node = boosting.node(plan, number)
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
    return SOUND if n_taken == boosting.leaves else LEAVES


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
    tree, parent, depth = node.tree, node.parent, node.depth
    if not 0 <= tree < committees_of(plan.classes) * places_of(plan).members or not 0 <= depth < nodes:
        return CHILDREN
    if parent == NO_NODE:
        if boosting.entry(plan, tree).root != number:
            return PARENT
    else:
        if not 0 <= parent < nodes:
            return PARENT
        above = boosting.node(plan, parent)
        if above.left != number and above.right != number:
            return PARENT
    if node.left == NO_NODE:
        return SOUND if node.right == NO_NODE else CHILDREN
    if not 0 <= node.left < nodes or not 0 <= node.right < nodes or node.left == node.right:
        return CHILDREN
    for child in (node.left, node.right):
        below = boosting.node(plan, child)
        if below.parent != number or below.tree != tree or below.depth != depth + 1:
            return CHILDREN
    if node.leaf != NO_LEAF:
        return LEAVES
    room = plan.nominal if node.is_category != 0 else plan.numeric
    if not 0 <= node.order < room or node.cut - node.cut != 0.0:
        return TEST
    return SOUND
