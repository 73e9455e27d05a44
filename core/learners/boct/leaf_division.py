"""Division of a leaf: its rows in two neighbouring extents, and the first content of its two branches."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.kernels.jit import kernel, words_at
from core.learners.boct import leaf_rows as rows
from core.tree import layout as at
from core.tree.byoffset.routing import leaf_at, node_at

# Counts of one branch: int64
ROWS: Final = 0
LABELS: Final = 1
POSITIVES: Final = 2
PART: Final = 3


@kernel("void(int64, int64, int64, int64, int64[::1])", alone=True)
def part_rows(plan_address: int, address: int, t: int, node: int, out) -> None:
    """Move the rows of the first branch of a leaf's cut to the front of its extent; out: int64[2·PART].

    In each branch the labelled rows come first; the order of rows stays the same otherwise.
    """
    plan, _ = words_at(plan_address)
    ints, floats = words_at(address)
    own, stride = rows.own_at(plan, ints, t, node), 1 + plan[at.PLAN_ATTRIBUTES]
    n, extent = ints[own + rows.COUNT], rows.row_at(plan, ints, t, ints[own + rows.FIRST])
    kind, column = ints[own + rows.CUT_KIND], 1 + ints[own + rows.CUT_ATTRIBUTE]
    cut = floats[own + rows.CUT_VALUE]
    one, other = 0, 0
    for i in range(n):
        value = floats[extent + i * stride + column]
        if value == value:
            if rows.goes_left(kind, value, cut, False):
                one += 1
            else:
                other += 1
    missing_left = one >= other
    copy = np.empty(n * stride, dtype=np.int64)
    for branch in range(2):
        for word in range(PART):
            out[branch * PART + word] = 0
    target = 0
    for branch in range(2):
        for part in range(2):  # labelled, then not
            for i in range(n):
                row = extent + i * stride
                left = rows.goes_left(kind, floats[row + column], cut, missing_left)
                if left != (branch == 0) or (ints[row] >= 0) != (part == 0):
                    continue
                for word in range(stride):
                    copy[target * stride + word] = ints[row + word]
                target += 1
                out[branch * PART + ROWS] += 1
                out[branch * PART + LABELS] += 1 if ints[row] >= 0 else 0
                out[branch * PART + POSITIVES] += 1 if ints[row] == 1 else 0
    for word in range(n * stride):
        ints[extent + word] = copy[word]
    ints[rows.rows_at(ints, t) + rows.ROWS_TIDY] = 0


@kernel("void(int64, int64, int64, int64, int64, int64, float64, float64, int64[::1])", alone=True)
def begin_leaf(
    plan_address: int,
    address: int,
    t: int,
    number: int,
    first: int,
    room: int,
    observed: float,
    routed: float,
    part,
) -> None:
    """Write the words of a new leaf: its extent, its counts (int64[PART]), labels seen, and W."""
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    node = node_at(ints, t, number)
    own = rows.own_at(plan, ints, t, node)
    ints[own + rows.FIRST], ints[own + rows.ROOM] = first, room
    ints[own + rows.COUNT] = part[ROWS]
    ints[own + rows.LABELS], ints[own + rows.POSITIVES] = part[LABELS], part[POSITIVES]
    floats[leaf_at(ints, t, ints[node + at.NODE_SLOT]) + at.LEAF_OBSERVED] = observed
    floats[node + at.NODE_ROUTED] = routed
    ints[own + at.ROW_NODE] = number
    rows.write_table_row(plan, params, ints, floats, node, own)
