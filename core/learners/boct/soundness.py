"""Checks of the words of a BOCT block that kernels rely on: its tree, extents of leaves and labels."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.kernels.jit import called, kernel, words_at
from core.layout.plan import PlanRecord
from core.layout.tree import CATEGORY, LEAF, NO_SLOT, NUMERIC, Node, Tree
from core.learners.boct import leaf_rows as rows
from core.learners.boct.leaf_rows import BoctLeaf, RowsHeader
from core.learners.hoeffding import soundness as trees
from core.problems import SOUND, at_place, range_problem, range_rules

_RULES: Final = (
    "the number of rows must be the sum of the leaves' rows",
    "a tree has numeric tests and tests for one value, and every leaf record is a leaf's",
    "extents of rows must lie inside of the block, each row in one of them at most",
    "labelled rows come first, with class 0 or 1, and the count of positive rows must be their number",
    "class counts of a leaf must be numbers of at least 0",
)
COUNTS, SHAPE, EXTENT, LABELS, MASSES = range(len(trees.PROBLEMS) + 1, len(trees.PROBLEMS) + len(_RULES) + 1)

_FIXED_RULES: Final = (*trees.PROBLEMS, *_RULES)
_HEADER_RULES: Final = (*_FIXED_RULES, *range_rules(RowsHeader))
PROBLEMS: Final = (*_HEADER_RULES, *range_rules(BoctLeaf))

header_ranges = range_problem(RowsHeader, len(_FIXED_RULES))
leaf_ranges = range_problem(BoctLeaf, len(_HEADER_RULES))


@kernel
def block_problem(plan: PlanRecord, tree: Tree, blank_address: int) -> int:
    """Return a problem of a block, or SOUND; blank_address: words of an unused leaf record."""
    blank, _ = words_at(blank_address)
    problem = trees.nodes_problem(plan, tree)
    if problem == SOUND:
        problem = rows_problem(plan, tree)
    if problem == SOUND:
        problem = trees.unused_problem(tree, blank)
    return problem


@called
def rows_problem(plan: PlanRecord, tree: Tree) -> int:
    """Return a problem of leaf records and rows of a tree whose nodes are sound."""
    header = rows.header_of(tree)
    problem = header_ranges(header)
    if problem != SOUND:
        return problem
    if tree.slots != tree.leaves or tree.free != NO_SLOT:
        return SHAPE
    is_taken = np.zeros(header.used, dtype=np.int8)
    live = 0
    for number in range(tree.nodes):
        node = tree.node(number)
        if node.kind != LEAF:
            if node.slot != NO_SLOT or (node.kind != NUMERIC and node.kind != CATEGORY):
                return at_place(number, SHAPE)
            continue
        if not 0 <= node.slot < tree.slots or tree.leaf_of(node).node != number:
            return at_place(number, SHAPE)
        problem = leaf_problem(plan, tree, node, is_taken)
        if problem != SOUND:
            return at_place(number, problem)
        live += rows.leaf_of(plan, tree, node).count
    return SOUND if live == header.live else COUNTS


@kernel
def leaf_problem(plan: PlanRecord, tree: Tree, node: Node, is_taken) -> int:
    """Return a problem of a leaf's words and rows.

    taken: int8[row], 1: a row of the leaves before it; the leaf's rows are added.
    """
    problem = trees.leaf_ranges(tree.leaf_of(node))
    if problem != SOUND:
        return problem
    leaf = rows.leaf_of(plan, tree, node)
    problem = leaf_ranges(leaf)
    if problem != SOUND:
        return problem
    if not leaf.first <= len(is_taken) or not leaf.room <= len(is_taken) - leaf.first:
        return EXTENT
    for c in range(plan.classes):
        if not 0.0 <= node.masses[c] < math.inf:
            return MASSES
    for i in range(leaf.room):
        if is_taken[leaf.first + i] != 0:
            return EXTENT
        is_taken[leaf.first + i] = 1
    positives = 0
    for i in range(leaf.count):
        label = rows.row_of(plan, tree, leaf.first + i).label
        is_labelled = i < leaf.labels
        if (is_labelled and not 0 <= label < min(2, plan.classes)) or (not is_labelled and label != -1):
            return LABELS
        positives += 1 if label == 1 else 0
    return SOUND if positives == leaf.positives else LABELS
