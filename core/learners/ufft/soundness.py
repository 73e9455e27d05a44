"""Checks of the words of a forest that kernels rely on: rings and pages, trees and links, the free nodes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.drift import base as drift
from core.kernels.jit import called, kernel
from core.kernels.records import Words
from core.learners.ufft import layout as of
from core.learners.ufft.memory import ring_capacity, row_at
from core.problems import MOST, SOUND, at_place, of_plugin
from core.tree import layout as at

PROBLEMS: Final = (
    "counters of the forest must be from 0 to 2**53, and no event waits",
    "nodes and pages must be from 0 to the room for them",
    "growth has stopped (1) or not (0)",
    "labels of a class must be a number of at least 0, and so must their weight",
    "each page in use must belong to one ring",
    "the number of rows of a ring must be from 0 to the room for rows, and the next row after them",
    "rows must have arrived before the next label, with a weight above 0",
    "a root must be a node of its pair without a parent, made before the next label",
    "a node must be the parent of its two children, which have the next depth and the same pair",
    "a node without parent must be its pair's root",
    "a test must be of a column, with a finite cut",
    "each node must belong to a tree, or be once in the chain of free nodes",
    "weights of a node must be numbers of at least 0, and a warning have begun before the next label",
    "the step of an attribute must be a number of at least 0",
)
(
    COUNTERS,
    SIZES,
    STOPPED,
    LABELS,
    PAGES,
    RING,
    ROWS,
    ROOT,
    CHILDREN,
    PARENT,
    TEST,
    FREE,
    WEIGHTS,
    STEP,
) = range(1, len(PROBLEMS) + 1)

detector_problem = drift.problem_dispatcher()


@kernel
def block_problem(plan, params, ints, floats, t: int, blank_address: int) -> int:
    """Return a problem of the block at word t, or SOUND."""
    found = header_problem(ints, t)
    if found == SOUND:
        found = steps_problem(plan, floats, t)
    if found == SOUND:
        found = rings_problem(plan, params, ints, floats, t)
    if found == SOUND:
        found = trees_problem(plan, params, ints, floats, t)
    return found


@kernel
def header_problem(ints, t: int) -> int:
    """Return a problem of the counts of the forest."""
    for word in (of.ARRIVALS, of.TREES, of.SPLITS, of.ATTEMPTS, of.RESTARTS, of.RECKONED, of.LIMIT):
        if not 0 <= ints[t + word] <= MOST:
            return COUNTERS
    for word in (of.VISITS, of.REPLAYS):
        if not 0 <= ints[t + word] <= MOST:
            return COUNTERS
    if ints[t + of.RECKONED] != 0 and not 1 <= ints[t + of.LEARNED_NODE] <= MOST:
        return COUNTERS
    if ints[t + of.EVENTS] != 0:
        return COUNTERS
    if not 0 <= ints[t + of.NODES] <= ints[t + of.NODE_CAPACITY]:
        return SIZES
    if not 0 <= ints[t + of.PAGES] <= ints[t + of.PAGE_CAPACITY]:
        return SIZES
    return SOUND if 0 <= ints[t + of.STOPPED] <= 1 else STOPPED


@kernel
def steps_problem(plan, floats, t: int) -> int:
    """Return a problem of the steps of numeric attributes; the last value may be any number or NaN."""
    for attribute in range(plan[at.PLAN_NUMERIC]):
        if not 0.0 <= floats[of.step_at(plan, t, attribute) + of.STEP_SMALLEST] < math.inf:
            return at_place(attribute, STEP)
    return SOUND


@called
def rings_problem(plan, params, ints, floats, t: int) -> int:
    """Return a problem of classes and rows."""
    taken = np.zeros(ints[t + of.PAGES], dtype=np.int8)
    most = place_pages(plan)
    given = 0
    for c in range(plan[at.PLAN_CLASSES]):
        entry = of.class_at(plan, t, c)
        if not 0.0 <= floats[entry + of.CLASS_WEIGHT] < math.inf:
            return at_place(c, LABELS)
        if not 0 <= ints[entry + of.CLASS_RECORDS] <= ints[t + of.ARRIVALS]:
            return at_place(c, LABELS)
        pages = ints[entry + of.RING_PAGES]
        if not 0 <= pages <= most:
            return at_place(c, PAGES)
        for i in range(pages):
            page = ints[entry + of.CLASS_FIELDS + i]
            if not 0 <= page < len(taken) or taken[page] != 0:
                return at_place(c, PAGES)
            taken[page] = 1
            given += 1
        rows, capacity = ints[entry + of.RING_ROWS], ring_capacity(plan, params, ints, entry)
        position = ints[entry + of.RING_NEXT]
        if not 0 <= rows <= min(capacity, ints[entry + of.CLASS_RECORDS]):
            return at_place(c, RING)
        if position != rows and not (rows == capacity and 0 <= position < max(capacity, 1)):
            return at_place(c, RING)
        if position == capacity and capacity > 0:
            return at_place(c, RING)
        for i in range(rows):
            row = row_at(plan, ints, t, entry, i)
            if not 0 <= ints[row + of.ROW_ARRIVAL] < ints[t + of.ARRIVALS]:
                return at_place(c, ROWS)
            if not 0.0 < floats[row + of.ROW_WEIGHT] < math.inf:
                return at_place(c, ROWS)
    return SOUND if given == len(taken) else PAGES


@kernel
def place_pages(plan) -> int:
    """Return the maximum of pages of a ring."""
    return of.place(plan, of.CLASS_WORDS) - of.CLASS_FIELDS


@called
def trees_problem(plan, params, ints, floats, t: int) -> int:
    """Return a problem of pairs, nodes and the chain of free nodes."""
    nodes, k = ints[t + of.NODES], plan[at.PLAN_CLASSES]
    planted = 0
    for pair in range(k * (k - 1) // 2):
        entry = of.pair_at(t, pair)
        root = ints[entry + of.ROOT]
        if root == -1:
            continue
        if not 0 <= root < nodes or not 0 <= ints[entry + of.PLANTED] < ints[t + of.ARRIVALS]:
            return ROOT
        node = of.node_at(plan, t, root)
        if ints[node + of.NODE_PARENT] != -1 or ints[node + of.NODE_PAIR] != pair:
            return at_place(root, ROOT)
        if ints[node + of.NODE_DEPTH] != 0 or ints[node + of.NODE_LEFT] == of.FREED:
            return at_place(root, ROOT)
        planted += 1
    free = 0
    for number in range(nodes):
        node = of.node_at(plan, t, number)
        if ints[node + of.NODE_LEFT] == of.FREED:
            free += 1
            continue
        found = links_problem(plan, ints, floats, t, number)
        if found == SOUND:
            found = node_problem(plan, params, ints, floats, t, node)
        if found != SOUND:
            return at_place(number, found)
    if planted != ints[t + of.TREES] or nodes - free != ints[t + of.LIVE]:
        return FREE
    here = ints[t + of.FREE]
    for _ in range(free):
        if not 0 <= here < nodes or ints[of.node_at(plan, t, here) + of.NODE_LEFT] != of.FREED:
            return FREE
        here = ints[of.node_at(plan, t, here) + of.NODE_PARENT]
    return SOUND if here == -1 else FREE


@kernel
def links_problem(plan, ints, floats, t: int, number: int) -> int:
    """Return a problem of the links of a node of a tree, in both directions, or of its test."""
    node, nodes = of.node_at(plan, t, number), ints[t + of.NODES]
    pair, k = ints[node + of.NODE_PAIR], plan[at.PLAN_CLASSES]
    parent, depth = ints[node + of.NODE_PARENT], ints[node + of.NODE_DEPTH]
    if not 0 <= pair < k * (k - 1) // 2 or not 0 <= depth < nodes:
        return CHILDREN
    if parent == -1:
        if ints[of.pair_at(t, pair) + of.ROOT] != number:
            return PARENT
    else:
        if not 0 <= parent < nodes:
            return PARENT
        above = of.node_at(plan, t, parent)
        if ints[above + of.NODE_LEFT] != number and ints[above + of.NODE_RIGHT] != number:
            return PARENT
    left, right = ints[node + of.NODE_LEFT], ints[node + of.NODE_RIGHT]
    if left == of.LEAF:
        if right != of.LEAF:
            return CHILDREN
    else:
        if not 0 <= left < nodes or not 0 <= right < nodes or left == right:
            return CHILDREN
        for child in (left, right):
            record = of.node_at(plan, t, child)
            if ints[record + of.NODE_PARENT] != number or ints[record + of.NODE_PAIR] != pair:
                return CHILDREN
            if ints[record + of.NODE_DEPTH] != depth + 1 or ints[record + of.NODE_LEFT] == of.FREED:
                return CHILDREN
        cut = floats[node + of.NODE_CUT]
        if not 0 <= ints[node + of.NODE_COLUMN] < of.place(plan, of.COLUMNS) or cut - cut != 0.0:
            return TEST
    return SOUND


@kernel
def node_problem(plan, params, ints, floats, t: int, node: int) -> int:
    """Return a problem of the weights of a node (its first word) or of its detector."""
    for word in (of.NODE_ROUTED, of.NODE_WEIGHT, of.NODE_WEIGHT + 1):
        if not 0.0 <= floats[node + word] < math.inf:
            return WEIGHTS
    if not -1 <= ints[node + of.NODE_WARNING] < ints[t + of.ARRIVALS]:
        return WEIGHTS
    if not 0 <= ints[node + of.NODE_ERRORS] <= ints[node + of.NODE_INPUTS] <= MOST:
        return WEIGHTS
    kind, first = plan[at.PLAN_NODE_DETECTOR], plan[at.PLAN_NODE_DETECTOR + 1]
    problem = detector_problem(kind, Words(plan, params, first), Words(ints, floats, node + of.NODE_FIELDS))
    return of_plugin(at.PLAN_NODE_DETECTOR, problem)
