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
from typing import Any, Final

from core.kernels.jit import kernel
from core.kernels.records import Record, word, words_after
from core.layout.learning import LEAF_ROW, LeafRow
from core.layout.plan import PlanRecord
from core.layout.tree import LEAF_FIELDS, NUMERIC, Node, Tree
from core.learners.boct.parameters import parameters_of
from core.numeric import rng
from core.problems import MOST

# Kinds of the size W
STREAM: Final = 0
POOL: Final = 1
LABELLED: Final = 2
TOY: Final = 3
SIZE_KINDS: Final = {"stream": STREAM, "pool": POOL, "labelled": LABELLED, "toy": TOY}


class KeptRow(Record):
    """A row: a record that a leaf keeps."""

    label: int = word("code of its class, -1: none")
    values: Any = words_after(float, "values of all attributes [column]; missing values are NaN")

    def further(self, number: int, stride: int) -> KeptRow:
        """Return the row that comes ``number`` rows later; stride: words from row to row."""
        return KeptRow(self.ints, self.floats, self.start + number * stride)


class RowsHeader(Record):
    """The header of rows."""

    capacity: int = word("number of rows that there is room for")
    used: int = word("extents end before this row", low=0, high="capacity")
    live: int = word("number of rows that leaves keep")
    tidy: int = word(
        "1: extents follow each other in the order of leaf records, without spare room", low=0, high=1
    )
    limit: int = word(
        "number of rows that fit into the bytes of the block in addition to its nodes; 0: not computed",
        low=0,
        high=MOST,
    )


ROWS_HEADER: Final = RowsHeader.SIZE


class BoctLeaf(Record):
    """The words of a leaf record that only BOCT uses; before them is the leaf's row in the table of leaves.

    From ``horizon`` on: the limits that the last search for a cut has set for the next search, and the cut
    that has won, until it is installed (core/learners/boct/cut_search.py).
    """

    first: int = word("first row of its extent", low=0)
    room: int = word("number of rows that its extent has room for", low=0)
    count: int = word("number of rows that the leaf keeps", high="room")
    labels: int = word("number of rows with label", high="count")
    positives: int = word("number of rows of class 1", low=0, high="labels")
    horizon: int = word("maximum of labels until the next search", low=0, high=MOST)
    swaps: int = word("maximum of labels until the next search that replace other labels", low=0, high=MOST)
    shift: float = word("maximal change of the shares of rows")
    floor: float = word("within these limits no cut scores below this value")
    searched: int = word("number of rows at the time of the search", low=0, high=MOST)
    since: int = word("number of labels since the search", low=0, high=MOST)
    swapped: int = word("number of labels since the search that replaced other labels", low=0, high=MOST)
    gone: int = word("number of rows replaced since the search", low=0, high=MOST)
    cut_kind: int = word("kind of test of the cut; 0: none")
    cut_attribute: int = word("attribute of the cut")
    cut_value: float = word("threshold or value of the cut")
    cut_score: float = word("upper bound of the branches of the cut")
    cut_lower: float = word("lower bound of the leaf")

    @property
    def table_row(self) -> LeafRow:
        """The leaf's row in the table of leaves."""
        return LeafRow(self.ints, self.floats, self.start - LEAF_ROW)


BOCT_WORDS: Final = LEAF_ROW + BoctLeaf.SIZE
"""Words of a leaf record that BOCT adds to those of all trees."""


class RowCounts(Record):
    """Counts of some rows of a leaf."""

    rows: int = word("number of rows")
    labels: int = word("number of rows with label")
    positives: int = word("number of rows of class 1")

    def clear(self) -> None:
        """Set all counts to 0."""
        self.rows, self.labels, self.positives = 0, 0, 0

    def add(self, label: int) -> None:
        """Count a row with this label, -1: none."""
        self.rows += 1
        self.labels += 1 if label >= 0 else 0
        self.positives += 1 if label == 1 else 0


ANY: Final = 1 << 40
"""Limit of the rows of a leaf where only bytes limit them."""

LABEL_DRAW: Final = 1 << (rng.DRAW_BITS - 1)
"""First random number of a label; the numbers before it are for a record."""


@kernel
def header_of(tree: Tree) -> RowsHeader:
    """Return the header of the rows of a tree."""
    return RowsHeader(tree.ints, tree.floats, tree.end_of_leaves)


@kernel
def stride_of(plan: PlanRecord) -> int:
    """Return the words from row to row."""
    return 1 + plan.attributes


@kernel
def row_of(plan: PlanRecord, tree: Tree, number: int) -> KeptRow:
    """Return a row by its number in the block."""
    first = tree.end_of_leaves + ROWS_HEADER
    return KeptRow(tree.ints, tree.floats, first + number * stride_of(plan))


@kernel
def leaf_of(plan: PlanRecord, tree: Tree, node: Node) -> BoctLeaf:
    """Return the words that only BOCT uses, for the leaf at a node."""
    leaf = tree.leaf_of(node)
    return BoctLeaf(tree.ints, tree.floats, leaf.start + LEAF_FIELDS + plan.classes + LEAF_ROW)


@kernel
def is_full(plan: PlanRecord, tree: Tree, leaf: BoctLeaf) -> bool:
    """Return whether a leaf has reached its limit of rows."""
    p = parameters_of(plan)
    most = ANY if p.sizes == POOL else int(p.capacity)
    header = header_of(tree)
    return leaf.count >= most or header.live >= header.limit


@kernel
def needs_room(leaf: BoctLeaf) -> bool:
    """Return whether the block has to grow for another row of a leaf that is not full."""
    return leaf.count >= leaf.room


@kernel
def has_limit(tree: Tree) -> bool:
    """Return whether the number of rows that fit into the bytes of the block has been computed."""
    return bool(header_of(tree).limit > 0)


@kernel
def is_nominal(plan: PlanRecord, column: int) -> bool:
    """Return whether a column belongs to a nominal attribute."""
    for j in range(plan.nominal):
        entry = plan.nominal_column(j)
        if entry.column == column:
            return True
    return False


@kernel
def write_row(plan: PlanRecord, row: KeptRow, x, label: int) -> None:
    """Write a record into a row; every form of a missing value becomes NaN."""
    row.label = label
    for column in range(plan.attributes):
        value = x[column]
        row.values[column] = value if value - value == 0.0 else math.nan
    for j in range(plan.nominal):
        column = plan.nominal_column(j).column
        if not x[column] >= 0.0:
            row.values[column] = math.nan


@kernel
def move_row(plan: PlanRecord, source: KeptRow, target: KeptRow) -> None:
    """Copy a row to another place."""
    for number in range(stride_of(plan)):
        target.ints[target.start + number] = source.ints[source.start + number]


@kernel
def is_same(plan: PlanRecord, row: KeptRow, x) -> bool:
    """Return whether a row holds this record."""
    for column in range(plan.attributes):
        kept, value = row.values[column], x[column]
        if kept != value:
            missing = value - value != 0.0 or (value < 0.0 and is_nominal(plan, column))
            if kept == kept or not missing:
                return False
    return True


@kernel
def size_of_leaf(plan: PlanRecord, node: Node, leaf: BoctLeaf) -> float:
    """Return W of a leaf, its size in all records (BCI, section III)."""
    kind = parameters_of(plan).sizes
    if kind == TOY:
        return 0.5**node.depth
    if kind == STREAM and node.routed > 0.0:
        return node.routed
    return float(leaf.count)


@kernel
def write_table_row(plan: PlanRecord, node: Node, leaf: BoctLeaf) -> None:
    """Update a leaf's row in the table of leaves, except its number and the strategy's words."""
    row = leaf.table_row
    row.size = size_of_leaf(plan, node, leaf)
    row.labels = float(leaf.labels)
    row.errors = float(min(leaf.positives, leaf.labels - leaf.positives))


@kernel
def draw_below(plan: PlanRecord, counter: int, total: float) -> float:
    """Return a random number (float64) from 0 to below ``total``."""
    return rng.uniform(plan.reservoir_key, counter) * total


@kernel
def keep_unlabelled(plan: PlanRecord, tree: Tree, node: Node, x) -> bool:
    """Keep a record without label, or not; return whether the block has to grow first (nothing was done).

    The record is not yet counted at its node.
    """
    kind = parameters_of(plan).sizes
    if kind == LABELLED or kind == TOY:  # noqa: SIM109
        return False
    if not has_limit(tree):
        return True
    leaf = leaf_of(plan, tree, node)
    unlabelled = leaf.count - leaf.labels
    if not is_full(plan, tree, leaf):
        if needs_room(leaf):
            return True
        write_row(plan, row_of(plan, tree, leaf.first + leaf.count), x, -1)
        leaf.count += 1
        header_of(tree).live += 1
    elif unlabelled > 0:
        came = node.routed + 1.0 - tree.leaf_of(node).observed
        drawn = draw_below(plan, tree.model.records << rng.DRAW_BITS, max(came, float(unlabelled)))
        if drawn < unlabelled:
            write_row(plan, row_of(plan, tree, leaf.first + leaf.labels + int(drawn)), x, -1)
            leaf.gone += 1
    return False


@kernel
def unlabelled_row(plan: PlanRecord, tree: Tree, leaf: BoctLeaf, x) -> int:
    """Return the position in its extent of the last row without label that holds a record; -1: none."""
    position = leaf.count - 1
    while position >= leaf.labels:
        if is_same(plan, row_of(plan, tree, leaf.first + position), x):
            return position
        position -= 1
    return -1


@kernel
def keep_labelled(plan: PlanRecord, tree: Tree, node: Node, x, label: int) -> bool:
    """Keep a record with its label; return whether the block has to grow first (nothing was done)."""
    if not has_limit(tree):
        return True
    leaf = leaf_of(plan, tree, node)
    unlabelled, labels = leaf.count - leaf.labels, leaf.labels
    extent, stride = row_of(plan, tree, leaf.first), stride_of(plan)
    counter = (tree.model.labels << rng.DRAW_BITS) + LABEL_DRAW
    position = unlabelled_row(plan, tree, leaf, x)
    if position < 0:
        if not is_full(plan, tree, leaf):
            if needs_room(leaf):
                return True
            position = leaf.count
            leaf.count += 1
            header_of(tree).live += 1
        elif unlabelled > 0:
            position = labels + int(draw_below(plan, counter, float(unlabelled)))
            leaf.gone += 1
    observed = tree.leaf_of(node).observed + 1.0
    tree.leaf_of(node).observed = observed
    tree.labels += 1
    if position >= 0:
        target = extent.further(labels, stride)
        if position > labels:
            move_row(plan, target, extent.further(position, stride))
        write_row(plan, target, x, label)
        leaf.labels += 1
    else:
        drawn = draw_below(plan, counter, max(observed, float(labels)))
        if not drawn < labels:
            return False
        replaced = extent.further(int(drawn), stride)
        leaf.positives -= replaced.label
        node.masses[replaced.label] -= 1.0
        write_row(plan, replaced, x, label)
        leaf.swapped += 1
        leaf.gone += 1
    leaf.positives += label
    node.masses[label] += 1.0
    node.reach = max(node.reach, label + 1)
    return False


@kernel("void(PlanRecord, Tree, BoctLeaf, int64)", alone=True)
def move_extent(plan: PlanRecord, tree: Tree, leaf: BoctLeaf, room: int) -> None:
    """Give a leaf an extent of this room at the end of the extents in use, where it fits."""
    header = header_of(tree)
    source, target = row_of(plan, tree, leaf.first), row_of(plan, tree, header.used)
    for position in range(leaf.count * stride_of(plan)):
        target.ints[target.start + position] = source.ints[source.start + position]
    leaf.first, leaf.room = header.used, room
    header.used += room
    header.tidy = 0


@kernel
def goes_left(kind: int, value: float, cut: float, missing_left: bool) -> bool:
    """Return whether a row goes to the first branch of a test; missing_left: rows without value do."""
    if value != value:
        return missing_left
    return value <= cut if kind == NUMERIC else value == cut
