"""Rows of leaves: the records that each leaf keeps, with and without label, and their counts.

They lie after the tree's leaf records, one contiguous extent for each leaf, the labelled rows first:

    tree header | nodes | leaf records | header of rows | row × capacity
    row = label (-1: none), then the values of all attributes (float64, missing NaN)

An extent that is full moves to the end of the extents in use, where there is room; its hole stays until the
block is laid out again. A leaf that has reached its limit replaces rows: the rows without label are a uniform
sample of the records without label (reservoir sampling, Vitter 1985), and once all rows have labels, they are
a uniform sample of all labels. A row without label is replaced before a row with one. Random numbers are
numbered by the model's records or labels.

A branch begins with the rows that its leaf has kept, and takes in every label until it is full. If the leaf
was full, older labels of the branch were kept at a lower rate than newer labels. Which rows are kept does not
depend on their labels: old or new, they are independent samples of the leaf's class share, and bounds hold.
For a sample that is also uniform in time, a branch would have to drop labels that it has room for.
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel, words_at
from core.learners.boct.bound_table import CAPACITY, SIZES
from core.numeric import rng
from core.tree import layout as at
from core.tree.byoffset.routing import leaf_at

# Kinds of the size W
STREAM: Final = 0
POOL: Final = 1
LABELLED: Final = 2
TOY: Final = 3
SIZE_KINDS: Final = {"stream": STREAM, "pool": POOL, "labelled": LABELLED, "toy": TOY}

# Header of rows
ROWS_CAPACITY: Final = 0
ROWS_USED: Final = 1  # extents end before this row
ROWS_LIVE: Final = 2  # rows that leaves keep
ROWS_TIDY: Final = 3  # 1: extents follow each other in the order of leaf records, without spare room
ROWS_LIMIT: Final = 4  # rows that fit into the bytes of the block in addition to its nodes; 0: not computed
ROWS_HEADER: Final = 5

# A leaf's words after the class counts of its leaf record; first its row in the table of leaves
FIRST: Final = at.ROW_NOTES + at.NOTES  # first row of its extent
ROOM: Final = FIRST + 1
COUNT: Final = FIRST + 2  # rows that the leaf keeps
LABELS: Final = FIRST + 3  # rows with label
POSITIVES: Final = FIRST + 4  # rows of class 1
# Limits that the last search for a cut has set for the next one (core/learners/boct/cut_search.py)
HORIZON: Final = FIRST + 5  # maximum of labels
SWAPS: Final = FIRST + 6  # maximum of labels that replace other labels
SHIFT: Final = FIRST + 7  # maximal change of the shares of rows (float64)
FLOOR: Final = FIRST + 8  # within these limits no cut scores below this (float64)
SEARCHED: Final = FIRST + 9  # rows at the time of the search
SINCE: Final = FIRST + 10  # labels since the search
SWAPPED: Final = FIRST + 11  # labels since the search that replaced other labels
GONE: Final = FIRST + 12  # rows replaced since the search
CUT_KIND: Final = FIRST + 13  # kind of test of the cut that has won, until it is installed; 0: none
CUT_ATTRIBUTE: Final = FIRST + 14
CUT_VALUE: Final = FIRST + 15  # (float64)
CUT_SCORE: Final = FIRST + 16  # upper bound of the branches (float64)
CUT_LOWER: Final = FIRST + 17  # lower bound of the leaf (float64)
OWN_WORDS: Final = FIRST + 18

ANY: Final = 1 << 40
"""Limit of the rows of a leaf where only bytes limit them."""

LABEL_DRAW: Final = 1 << (rng.DRAW_BITS - 1)
"""First random number of a label; the numbers before it are for a record."""


@kernel
def rows_at(ints, t: int) -> int:
    """Return the first word of the header of rows."""
    leaves = t + ints[t + at.TREE_LEAVES_AT]
    return leaves + ints[t + at.TREE_SLOT_CAPACITY] * ints[t + at.TREE_LEAF_STRIDE]


@kernel
def row_at(plan, ints, t: int, number: int) -> int:
    """Return the first word of a row."""
    return rows_at(ints, t) + ROWS_HEADER + number * (1 + plan[at.PLAN_ATTRIBUTES])


@kernel
def own_at(plan, ints, t: int, node: int) -> int:
    """Return the first of the words that only BOCT uses, for the leaf with its node record at ``node``."""
    return leaf_at(ints, t, ints[node + at.NODE_SLOT]) + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]


@kernel
def is_full(plan, params, ints, t: int, own: int) -> bool:
    """Return whether a leaf has reached its limit of rows."""
    first = plan[at.PLAN_LEARNER + 1]
    most = ANY if params[first + SIZES] == POOL else int(params[first + CAPACITY])
    rows = rows_at(ints, t)
    return ints[own + COUNT] >= most or ints[rows + ROWS_LIVE] >= ints[rows + ROWS_LIMIT]


@kernel
def needs_room(ints, t: int, own: int) -> bool:
    """Return whether the block has to grow for another row of a leaf that is not full."""
    return ints[own + COUNT] >= ints[own + ROOM]


@kernel
def knows_limit(ints, t: int) -> bool:
    """Return whether the number of rows that fit into the bytes of the block has been computed."""
    return bool(ints[rows_at(ints, t) + ROWS_LIMIT] > 0)


@kernel
def is_nominal(plan, column: int) -> bool:
    """Return whether a column belongs to a nominal attribute."""
    for j in range(plan[at.PLAN_NOMINAL]):
        if plan[plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS + at.NOMINAL_COLUMN] == column:
            return True
    return False


@kernel
def write_row(plan, ints, floats, row: int, x, label: int) -> None:
    """Write a record into a row; every form of a missing value becomes NaN."""
    ints[row] = label
    for column in range(plan[at.PLAN_ATTRIBUTES]):
        value = x[column]
        floats[row + 1 + column] = value if value - value == 0.0 else math.nan
    for j in range(plan[at.PLAN_NOMINAL]):
        column = plan[plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS + at.NOMINAL_COLUMN]
        if not x[column] >= 0.0:
            floats[row + 1 + column] = math.nan


@kernel
def move_row(plan, ints, source: int, target: int) -> None:
    """Copy a row to another place; source and target are first words of rows."""
    for word in range(1 + plan[at.PLAN_ATTRIBUTES]):
        ints[target + word] = ints[source + word]


@kernel
def is_same(plan, floats, row: int, x) -> bool:
    """Return whether a row holds this record."""
    for column in range(plan[at.PLAN_ATTRIBUTES]):
        kept, value = floats[row + 1 + column], x[column]
        if kept != value:
            missing = value - value != 0.0 or (value < 0.0 and is_nominal(plan, column))
            if kept == kept or not missing:
                return False
    return True


@kernel
def size_of_leaf(plan, params, ints, floats, node: int, own: int) -> float:
    """Return W of a leaf (ALGORITHMS section 12.3)."""
    kind = params[plan[at.PLAN_LEARNER + 1] + SIZES]
    if kind == TOY:
        return 0.5 ** ints[node + at.NODE_DEPTH]
    if kind == STREAM and floats[node + at.NODE_ROUTED] > 0.0:
        return floats[node + at.NODE_ROUTED]
    return float(ints[own + COUNT])


@kernel
def write_table_row(plan, params, ints, floats, node: int, own: int) -> None:
    """Update a leaf's row in the table of leaves, except its number and the strategy's words."""
    labels, positives = ints[own + LABELS], ints[own + POSITIVES]
    floats[own + at.ROW_SIZE] = size_of_leaf(plan, params, ints, floats, node, own)
    floats[own + at.ROW_LABELS] = float(labels)
    floats[own + at.ROW_ERRORS] = float(min(positives, labels - positives))


@kernel
def draw_below(plan, counter: int, total: float) -> float:
    """Return a random number (float64) from 0 to below ``total``."""
    return rng.uniform(plan[at.PLAN_RESERVOIR_KEY], counter) * total


@kernel
def keep_unlabelled(plan, params, ints, floats, t: int, node: int, x) -> bool:
    """Keep a record without label, or not; return whether the block has to grow first (nothing was done).

    The record is not yet counted at its node.
    """
    kind = params[plan[at.PLAN_LEARNER + 1] + SIZES]
    if kind == LABELLED or kind == TOY:  # noqa: SIM109
        return False
    if not knows_limit(ints, t):
        return True
    own = own_at(plan, ints, t, node)
    n, labels, rows = ints[own + COUNT], ints[own + LABELS], rows_at(ints, t)
    if not is_full(plan, params, ints, t, own):
        if needs_room(ints, t, own):
            return True
        write_row(plan, ints, floats, row_at(plan, ints, t, ints[own + FIRST] + n), x, -1)
        ints[own + COUNT] += 1
        ints[rows + ROWS_LIVE] += 1
    elif n > labels:
        leaf = own - at.LEAF_FIELDS - plan[at.PLAN_CLASSES]
        came = floats[node + at.NODE_ROUTED] + 1.0 - floats[leaf + at.LEAF_OBSERVED]
        place = draw_below(plan, ints[at.MODEL_RECORDS] << rng.DRAW_BITS, max(came, float(n - labels)))
        if place < n - labels:
            row = row_at(plan, ints, t, ints[own + FIRST] + labels + int(place))
            write_row(plan, ints, floats, row, x, -1)
            ints[own + GONE] += 1
    return False


@kernel
def unlabelled_row(plan, ints, floats, t: int, own: int, x) -> int:
    """Return the position in its extent of the last row without label that holds a record; -1: none."""
    position = ints[own + COUNT] - 1
    while position >= ints[own + LABELS]:
        if is_same(plan, floats, row_at(plan, ints, t, ints[own + FIRST] + position), x):
            return position
        position -= 1
    return -1


@kernel
def keep_labelled(plan, params, ints, floats, t: int, node: int, x, label: int) -> bool:
    """Keep a record with its label; return whether the block has to grow first (nothing was done)."""
    if not knows_limit(ints, t):
        return True
    own = own_at(plan, ints, t, node)
    leaf = own - at.LEAF_FIELDS - plan[at.PLAN_CLASSES]
    n, labels, rows = ints[own + COUNT], ints[own + LABELS], rows_at(ints, t)
    first = row_at(plan, ints, t, ints[own + FIRST])
    stride = 1 + plan[at.PLAN_ATTRIBUTES]
    counter = (ints[at.MODEL_LABELS] << rng.DRAW_BITS) + LABEL_DRAW
    place = unlabelled_row(plan, ints, floats, t, own, x)
    if place < 0:
        if not is_full(plan, params, ints, t, own):
            if needs_room(ints, t, own):
                return True
            place = n
            ints[own + COUNT] += 1
            ints[rows + ROWS_LIVE] += 1
        elif n > labels:
            place = labels + int(draw_below(plan, counter, float(n - labels)))
            ints[own + GONE] += 1
    observed = floats[leaf + at.LEAF_OBSERVED] + 1.0
    floats[leaf + at.LEAF_OBSERVED] = observed
    ints[t + at.TREE_LABELS] += 1
    if place >= 0:
        if place > labels:
            move_row(plan, ints, first + labels * stride, first + place * stride)
        write_row(plan, ints, floats, first + labels * stride, x, label)
        ints[own + LABELS] += 1
    else:
        drawn = draw_below(plan, counter, max(observed, float(labels)))
        if not drawn < labels:
            return False
        row = first + int(drawn) * stride
        ints[own + POSITIVES] -= ints[row]
        floats[node + at.NODE_FIELDS + ints[row]] -= 1.0
        write_row(plan, ints, floats, row, x, label)
        ints[own + SWAPPED] += 1
        ints[own + GONE] += 1
    ints[own + POSITIVES] += label
    floats[node + at.NODE_FIELDS + label] += 1.0
    ints[node + at.NODE_REACH] = max(ints[node + at.NODE_REACH], label + 1)
    return False


@kernel("void(int64, int64, int64, int64, int64)", alone=True)
def move_extent(plan_address: int, address: int, t: int, slot: int, room: int) -> None:
    """Give a leaf record an extent of this room at the end of the extents in use, where it fits."""
    plan, _ = words_at(plan_address)
    ints, _ = words_at(address)
    own = leaf_at(ints, t, slot) + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    rows, stride = rows_at(ints, t), 1 + plan[at.PLAN_ATTRIBUTES]
    source = row_at(plan, ints, t, ints[own + FIRST])
    target = row_at(plan, ints, t, ints[rows + ROWS_USED])
    for word in range(ints[own + COUNT] * stride):
        ints[target + word] = ints[source + word]
    ints[own + FIRST], ints[own + ROOM] = ints[rows + ROWS_USED], room
    ints[rows + ROWS_USED] += room
    ints[rows + ROWS_TIDY] = 0


@kernel
def goes_left(kind: int, value: float, cut: float, missing_left: bool) -> bool:
    """Return whether a row goes to the first branch of a test; missing_left: rows without value do."""
    if value != value:
        return missing_left
    return value <= cut if kind == at.NUMERIC else value == cut
