"""Checks of the words of a BOCT block that kernels rely on: its tree, extents of leaves and labels."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.kernels.jit import called, kernel, words_at
from core.layout.plan import PlanRecord
from core.layout.tree import Tree
from core.learners.boct import leaf_rows as rows
from core.learners.hoeffding import soundness as trees
from core.problems import MOST, SOUND, at_place
from core.tree import layout as at
from core.tree.byoffset.routing import leaf_at, node_at

PROBLEMS: Final = (
    *trees.PROBLEMS,
    "the number of rows must be from 0 to the room for rows, and the sum of the leaves' rows",
    "a tree has numeric tests and tests for one value, and every leaf record is a leaf's",
    "extents of rows must lie inside of the block, each row in one of them at most",
    "rows of a leaf are positive, labelled, kept, and have room, from fewer to more",
    "labelled rows come first, with class 0 or 1, and the count of positive rows must be their number",
    "counters of a search must be from 0 to 2**53",
    "labels a leaf has seen, and its class counts, must be numbers of at least 0",
)
COUNTS, SHAPE, EXTENT, ORDER, LABELS, SEARCH, SEEN = range(len(trees.PROBLEMS) + 1, len(PROBLEMS) + 1)


@kernel
def block_problem(plan, params, ints, floats, t: int, blank_address: int) -> int:
    """Return a problem of the block at word t, or SOUND; blank_address: words of an unused leaf record."""
    blank, _ = words_at(blank_address)
    found = trees.nodes_problem(PlanRecord(plan, params, 0), Tree(ints, floats, t))
    if found == SOUND:
        found = rows_problem(plan, ints, floats, t)
    if found == SOUND:
        found = trees.unused_problem(Tree(ints, floats, t), blank)
    return found


@called
def rows_problem(plan, ints, floats, t: int) -> int:
    """Return a problem of leaf records and rows of a tree whose nodes are sound."""
    header = rows.rows_at(ints, t)
    capacity, used = ints[header + rows.ROWS_CAPACITY], ints[header + rows.ROWS_USED]
    if not 0 <= used <= capacity or not 0 <= ints[header + rows.ROWS_LIMIT] <= MOST:
        return COUNTS
    if not 0 <= ints[header + rows.ROWS_TIDY] <= 1:
        return COUNTS
    if ints[t + at.TREE_SLOTS] != ints[t + at.TREE_LEAVES] or ints[t + at.TREE_FREE] != -1:
        return SHAPE
    taken = np.zeros(used, dtype=np.int8)
    live = 0
    for number in range(ints[t + at.TREE_NODES]):
        node = node_at(ints, t, number)
        kind, slot = ints[node + at.NODE_KIND], ints[node + at.NODE_SLOT]
        if kind != at.LEAF:
            if slot != -1 or (kind != at.NUMERIC and kind != at.CATEGORY):
                return at_place(number, SHAPE)
            continue
        if not 0 <= slot < ints[t + at.TREE_SLOTS] or ints[leaf_at(ints, t, slot) + at.LEAF_NODE] != number:
            return at_place(number, SHAPE)
        found = leaf_problem(plan, ints, floats, t, node, taken)
        if found != SOUND:
            return at_place(number, found)
        live += ints[rows.own_at(plan, ints, t, node) + rows.COUNT]
    return SOUND if live == ints[header + rows.ROWS_LIVE] else COUNTS


@kernel
def leaf_problem(plan, ints, floats, t: int, node: int, taken) -> int:
    """Return a problem of a leaf's words and rows; taken: rows of the leaves before it."""
    own, used = rows.own_at(plan, ints, t, node), len(taken)
    leaf = leaf_at(ints, t, ints[node + at.NODE_SLOT])
    first, room, n = ints[own + rows.FIRST], ints[own + rows.ROOM], ints[own + rows.COUNT]
    labels, positives = ints[own + rows.LABELS], ints[own + rows.POSITIVES]
    if not 0 <= first <= used or not 0 <= room <= used - first:
        return EXTENT
    if not 0 <= positives <= labels <= n <= room:
        return ORDER
    for word in (rows.HORIZON, rows.SWAPS, rows.SEARCHED, rows.SINCE, rows.SWAPPED, rows.GONE):
        if not 0 <= ints[own + word] <= MOST:
            return SEARCH
    if not 0.0 <= floats[leaf + at.LEAF_OBSERVED] < math.inf:
        return SEEN
    for c in range(plan[at.PLAN_CLASSES]):
        if not 0.0 <= floats[node + at.NODE_FIELDS + c] < math.inf:
            return SEEN
    for i in range(room):
        if taken[first + i] != 0:
            return EXTENT
        taken[first + i] = 1
    ones = 0
    for i in range(n):
        label = ints[rows.row_at(plan, ints, t, first + i)]
        if (i < labels and not 0 <= label < min(2, plan[at.PLAN_CLASSES])) or (i >= labels and label != -1):
            return LABELS
        ones += 1 if label == 1 else 0
    return SOUND if ones == positives else LABELS
