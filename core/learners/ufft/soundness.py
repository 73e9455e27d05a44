"""Checks of the words of a forest that kernels rely on: rings and pages, trees and links, the free nodes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.drift import base as drift
from core.kernels.jit import called, kernel
from core.kernels.records import offset
from core.layout.plan import PlanRecord
from core.layout.tree import NO_NODE
from core.learners.ufft.layout import (
    FREED,
    LEAF,
    AttributeStep,
    ClassEntry,
    PairForest,
    PairNode,
    places_of,
)
from core.learners.ufft.memory import ring_capacity, row_at
from core.problems import MOST, SOUND, at_place, of_plugin, range_problem, range_rules

_LINKS: Final = (
    "words of a learned node record must be from 1 to 2**53 once they are computed",
    "labels of a class must be at most the labels of the forest",
    "each page in use must belong to one ring",
    "the number of rows of a ring must be from 0 to the room for rows, and the next row after them",
    "rows must have arrived before the next label, with a weight above 0",
    "a root must be a node of its pair without a parent, made before the next label",
    "a node must be the parent of its two children, which have the next depth and the same pair",
    "a node without parent must be its pair's root",
    "a test must be of a column, with a finite cut",
    "each node must belong to a tree, or be once in the chain of free nodes",
    "a warning must have begun before the next label",
)
(
    LEARNED_NODE,
    LABELS,
    PAGES,
    RING,
    ROWS,
    ROOT,
    CHILDREN,
    PARENT,
    TEST,
    FREE,
    WARNING,
) = range(1, len(_LINKS) + 1)

_FOREST_RULES: Final = (*_LINKS, *range_rules(PairForest))
_STEP_RULES: Final = (*_FOREST_RULES, *range_rules(AttributeStep))
_CLASS_RULES: Final = (*_STEP_RULES, *range_rules(ClassEntry))
PROBLEMS: Final = (*_CLASS_RULES, *range_rules(PairNode))

forest_ranges = range_problem(PairForest, len(_LINKS))
step_ranges = range_problem(AttributeStep, len(_FOREST_RULES))
class_ranges = range_problem(ClassEntry, len(_STEP_RULES))
node_ranges = range_problem(PairNode, len(_CLASS_RULES))

NODE_DETECTOR: Final = offset(PlanRecord, "node_detector")

detector_problem = drift.problem_dispatcher()


@kernel
def block_problem(plan: PlanRecord, forest: PairForest, blank_address: int) -> int:
    """Return a problem of a forest, or SOUND."""
    problem = forest_ranges(forest)
    if problem == SOUND and forest.reckoned != 0 and not 1 <= forest.learned_node <= MOST:
        problem = LEARNED_NODE
    if problem == SOUND:
        problem = steps_problem(plan, forest)
    if problem == SOUND:
        problem = rings_problem(plan, forest)
    if problem == SOUND:
        problem = trees_problem(plan, forest)
    return problem


@kernel
def steps_problem(plan: PlanRecord, forest: PairForest) -> int:
    """Return a problem of the steps of numeric attributes; the last value may be any number or NaN."""
    for attribute in range(plan.numeric):
        problem = step_ranges(forest.step(plan, attribute))
        if problem != SOUND:
            return at_place(attribute, problem)
    return SOUND


@called
def rings_problem(plan: PlanRecord, forest: PairForest) -> int:
    """Return a problem of classes and rows."""
    is_taken = np.zeros(forest.pages, dtype=np.int8)
    n_taken = 0
    for c in range(plan.classes):
        entry = forest.class_entry(plan, c)
        problem = class_ranges(entry)
        if problem != SOUND:
            return at_place(c, problem)
        if entry.records > forest.arrivals:
            return at_place(c, LABELS)
        if not 0 <= entry.ring_pages <= places_of(plan).ring_pages:
            return at_place(c, PAGES)
        for i in range(entry.ring_pages):
            page = entry.pages[i]
            if not 0 <= page < forest.pages or is_taken[page] != 0:
                return at_place(c, PAGES)
            is_taken[page] = 1
            n_taken += 1
        rows, capacity = entry.ring_rows, ring_capacity(plan, entry)
        if not 0 <= rows <= min(capacity, entry.records):
            return at_place(c, RING)
        position = entry.ring_next
        if position != rows and not (rows == capacity and 0 <= position < max(capacity, 1)):
            return at_place(c, RING)
        if position == capacity and capacity > 0:
            return at_place(c, RING)
        for i in range(rows):
            row = row_at(plan, forest, entry, i)
            if not 0 <= row.arrival < forest.arrivals or not 0.0 < row.weight < math.inf:
                return at_place(c, ROWS)
    return SOUND if n_taken == forest.pages else PAGES


@called
def trees_problem(plan: PlanRecord, forest: PairForest) -> int:
    """Return a problem of pairs, nodes and the chain of free nodes."""
    nodes, k = forest.nodes, plan.classes
    planted = 0
    for pair in range(k * (k - 1) // 2):
        entry = forest.pair(pair)
        root = entry.root
        if root == NO_NODE:
            continue
        if not 0 <= root < nodes or not 0 <= entry.planted < forest.arrivals:
            return ROOT
        node = forest.node(plan, root)
        if node.parent != NO_NODE or node.pair != pair or node.depth != 0 or node.left == FREED:
            return at_place(root, ROOT)
        planted += 1
    free = 0
    for number in range(nodes):
        node = forest.node(plan, number)
        if node.left == FREED:
            free += 1
            continue
        problem = links_problem(plan, forest, number)
        if problem == SOUND:
            problem = node_problem(plan, forest, node)
        if problem != SOUND:
            return at_place(number, problem)
    if planted != forest.trees or nodes - free != forest.live:
        return FREE
    following = forest.free
    for _ in range(free):
        if not 0 <= following < nodes:
            return FREE
        node = forest.node(plan, following)
        if node.left != FREED:
            return FREE
        following = node.parent
    return SOUND if following == NO_NODE else FREE


@kernel
def links_problem(plan: PlanRecord, forest: PairForest, number: int) -> int:
    """Return a problem of the links of a node of a tree, in both directions, or of its test."""
    node, nodes, k = forest.node(plan, number), forest.nodes, plan.classes
    pair, parent, depth = node.pair, node.parent, node.depth
    if not 0 <= pair < k * (k - 1) // 2 or not 0 <= depth < nodes:
        return CHILDREN
    if parent == NO_NODE:
        if forest.pair(pair).root != number:
            return PARENT
    else:
        if not 0 <= parent < nodes:
            return PARENT
        above = forest.node(plan, parent)
        if above.left != number and above.right != number:
            return PARENT
    left, right = node.left, node.right
    if left == LEAF:
        if right != LEAF:
            return CHILDREN
    else:
        if not 0 <= left < nodes or not 0 <= right < nodes or left == right:
            return CHILDREN
        for child in (left, right):
            below = forest.node(plan, child)
            if below.parent != number or below.pair != pair:
                return CHILDREN
            if below.depth != depth + 1 or below.left == FREED:
                return CHILDREN
        if not 0 <= node.column < places_of(plan).columns or node.cut - node.cut != 0.0:
            return TEST
    return SOUND


@kernel
def node_problem(plan: PlanRecord, forest: PairForest, node: PairNode) -> int:
    """Return a problem of the weights of a node or of its detector."""
    problem = node_ranges(node)
    if problem != SOUND:
        return problem
    if node.warning >= forest.arrivals:
        return WARNING
    p = plan.parameters(plan.node_detector_at)
    return of_plugin(NODE_DETECTOR, detector_problem(plan.node_detector, p, node.detector))
