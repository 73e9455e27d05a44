"""Division of a leaf: its rows in two neighbouring extents, and the first content of its two branches."""

from __future__ import annotations

import numpy as np

from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.layout.tree import Node, Tree
from core.learners.boct import leaf_rows as rows
from core.learners.boct.leaf_rows import RowCounts


@kernel("void(PlanRecord, Tree, Node, RowCounts, RowCounts)", alone=True)
def part_rows(plan: PlanRecord, tree: Tree, node: Node, left: RowCounts, right: RowCounts) -> None:
    """Move the rows of the first branch of a leaf's cut to the front of its extent.

    left, right: counts of the branches' rows, zeros on entry. In each branch the labelled rows come first;
    the order of rows stays the same otherwise.
    """
    leaf, stride = rows.leaf_of(plan, tree, node), rows.stride_of(plan)
    n, extent = leaf.count, rows.row_of(plan, tree, leaf.first)
    kind, column, cut = leaf.cut_kind, leaf.cut_attribute, leaf.cut_value
    going_left, going_right = 0, 0
    for i in range(n):
        value = extent.further(i, stride).values[column]
        if value == value:
            if rows.goes_left(kind, value, cut, False):
                going_left += 1
            else:
                going_right += 1
    missing_left = going_left >= going_right
    copy = np.empty(n * stride, dtype=np.int64)
    target = 0
    for branch in range(2):
        counts = left if branch == 0 else right
        for part in range(2):  # labelled, then not
            for i in range(n):
                row = extent.further(i, stride)
                is_left = rows.goes_left(kind, row.values[column], cut, missing_left)
                if is_left != (branch == 0) or (row.label >= 0) != (part == 0):
                    continue
                for number in range(stride):
                    copy[target * stride + number] = row.ints[row.start + number]
                target += 1
                counts.add(row.label)
    for number in range(n * stride):
        extent.ints[extent.start + number] = copy[number]
    rows.header_of(tree).tidy = 0


@kernel("void(PlanRecord, Tree, int64, int64, int64, float64, float64, RowCounts)", alone=True)
def begin_leaf(
    plan: PlanRecord,
    tree: Tree,
    number: int,
    first: int,
    room: int,
    observed: float,
    routed: float,
    counts: RowCounts,
) -> None:
    """Write the words of a new leaf, by the number of its node: its extent, its counts, and W.

    observed: number of labels that it has seen; routed: number of records.
    """
    node = tree.node(number)
    leaf = rows.leaf_of(plan, tree, node)
    leaf.first, leaf.room = first, room
    leaf.count, leaf.labels, leaf.positives = counts.rows, counts.labels, counts.positives
    tree.leaf_of(node).observed = observed
    node.routed = routed
    leaf.table_row.node = number
    rows.write_table_row(plan, node, leaf)
