"""Cut search: the cut of a leaf with the lowest upper bound of its branches, and when it may be due again.

Every midpoint between neighbouring values of labelled rows is a cut, and so is every value of a nominal
attribute that some labelled rows have and some have not [D59]. A cut scores ``Σ W_c·U(T_c, k_c) / W``, and
wins if its score is below the leaf's lower bound ``L(T, k)`` (Collet and Pietquin 2015, figure 3). A missing
value counts on the larger side, where routing sends it.

A search costs O(d·n·log n). Most labels need none:

- Without a label of the other class no cut wins: U falls with every label of the same class, so that no
  branch has a lower bound than U of the leaf, which is not below its L.
- A search that finds no winner leaves a horizon h, a shift s and a floor: within h labels, and while the
  shares of rows below any value have changed by at most s, no cut scores below the floor. The reason: after
  m <= h labels a cut divides the rows of the search as one of the gaps between labelled values does, or puts
  all of them on one side. Each of its branches has got at most h labels, and U is smallest if all of them are
  of the branch's larger class. The size of a branch is linear in its share, which lies in the gap's range
  widened by s. Where labels replace other labels, each of the h labels may also have removed one of the
  rarer class from either branch. L of the leaf is known at each label: the search is due when L comes near
  the floor, or when horizon or shift is exceeded.

The horizon is the longest, in steps, for which the floor is a fifth of the way from L to the lowest score.
All this needs no exact U but only a value below it, ``rough_bound``, which shows that most cuts cannot win;
only the rest are scored exactly. Rounding may decide between two scores that are equal in exact arithmetic;
MARGIN allows for that.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from core.kernels.jit import called, kernel, outlined, part, start_of
from core.kernels.records import Record, Words, word
from core.layout.plan import PlanRecord
from core.layout.tree import CATEGORY, NUMERIC, Node, Tree
from core.learners.boct import leaf_rows as rows
from core.learners.boct.bound_table import bound_of, rough_bound, table_of
from core.learners.boct.leaf_rows import BoctLeaf, RowCounts
from core.learners.boct.parameters import BoctParameters, parameters_of
from core.numeric.sorting import sort_pairs

MARGIN: Final = 1e-9
LEAD: Final = 0.2
"""Position of the floor between L and the lowest score: the part by which L may rise within the horizon."""
STEP: Final = 0.8
"""Factor by which the horizon grows until the floor is there; with LEAD the best of the values tried."""
TOY_DEPTH: Final = 6
"""Maximum of tests on a path of the toy problem."""


class SearchState(Record):
    """The state of a search: the best cut so far, limits, and the counts on both sides of the present cut."""

    best: float = word("score of the best cut")
    kind: int = word("its kind of test")
    attribute: int = word("its attribute")
    value: float = word("its threshold or value")
    lower: float = word("lower bound of the leaf")
    upper: float = word("upper bound of the leaf as it is, without a cut")
    near: float = word("lowest score by rough bounds")
    floor: float = word("within the horizon no cut scores below this value")
    horizon: float = word("labels for which the floor holds")
    rows: float = word("rows of the leaf")
    replaces: int = word("1: labels replace other labels")
    steady: int = word("1: shares do not change, since all rows are known")
    exhaustive: int = word("1: score all cuts exactly")
    column: int = word("attribute whose cuts are scored")

    @property
    def left(self) -> RowCounts:
        """Rows whose value is at most the cut, or equal to it."""
        return RowCounts(self.ints, self.floats, self.start + LEFT)

    @property
    def right(self) -> RowCounts:
        """Rows with another value."""
        return RowCounts(self.ints, self.floats, self.start + RIGHT)

    @property
    def missing(self) -> RowCounts:
        """Rows without value."""
        return RowCounts(self.ints, self.floats, self.start + MISSING)

    def clear_counts(self) -> None:
        """Set the counts of all sides to 0."""
        self.left.clear()
        self.right.clear()
        self.missing.clear()


LEFT: Final = SearchState.SIZE
RIGHT: Final = LEFT + RowCounts.SIZE
MISSING: Final = RIGHT + RowCounts.SIZE
SEARCH_WORDS: Final = MISSING + RowCounts.SIZE
COUNTS: Final = RowCounts.SIZE


class Search(NamedTuple):
    """A search: its parameters, the table of bounds, and its state."""

    p: BoctParameters
    table: Words
    state: SearchState


@kernel
def rarer(labels: int, positives: int) -> int:
    """Return how many labels are of the rarer class."""
    return min(positives, labels - positives)


@kernel
def shift_within(state: SearchState, labels: float, horizon: float) -> float:
    """Return the change of shares that a horizon allows for: each label comes with its part of the rows."""
    if state.steady != 0:
        return 0.0
    return min(1.25 * horizon / (labels + horizon) + 1.0 / max(state.rows, 1.0), 1.0)


@kernel
def lowest_bound(search: Search, labels: int, positives: int) -> float:
    """Return a value not above the lowest U that a branch may have within the horizon."""
    horizon = int(search.state.horizon)
    fewer = rarer(labels, positives)
    more = labels - fewer + horizon
    if search.state.replaces != 0:
        fewer = max(fewer - horizon, 0)
    return rough_bound(search.p, search.table, fewer, more)


@kernel
def lowest_score(
    search: Search,
    labels: int,
    positives: int,
    other_labels: int,
    other_positives: int,
    low: float,
    high: float,
    shift: float,
) -> float:
    """Return the lowest score of cuts in a gap within the horizon; low, high: rows on the first side."""
    state = search.state
    left = lowest_bound(search, labels, positives)
    right = lowest_bound(search, other_labels, other_positives)
    low = max(low / state.rows - shift, 0.0)
    high = min(high / state.rows + shift, 1.0)
    return right + (low if left > right else high) * (left - right)


@called
def guard_gap(search: Search, low: float, high: float) -> None:
    """Lower floor and horizon to what cuts between two labelled values may score.

    low, high: the minimum and the maximum of rows on the first side whose value is known.
    """
    state = search.state
    left, right, missing = state.left, state.right, state.missing
    threshold = state.lower + LEAD * (min(state.near, state.upper) - state.lower)
    labels = float(left.labels + right.labels + missing.labels)
    while state.horizon >= 1.0:
        shift = shift_within(state, labels, state.horizon)
        score = lowest_score(
            search,
            left.labels,
            left.positives,
            right.labels + missing.labels,
            right.positives + missing.positives,
            low,
            high,
            shift,
        )
        if missing.rows > 0:
            away = float(missing.rows)
            with_first = lowest_score(
                search,
                left.labels + missing.labels,
                left.positives + missing.positives,
                right.labels,
                right.positives,
                low + away,
                high + away,
                shift,
            )
            score = min(score, with_first)
        if score > threshold:
            state.floor = min(state.floor, score)
            return
        state.horizon = math.floor(STEP * state.horizon)


@called
def score_cut(search: Search, kind: int, value: float) -> None:
    """Score a cut whose sides are counted, exactly if it may win; keep the best cut so far."""
    p, table, state = search.p, search.table, search.state
    side_rows, other_rows = state.left.rows, state.right.rows
    labels, positives = state.left.labels, state.left.positives
    other_labels, other_positives = state.right.labels, state.right.positives
    if side_rows >= other_rows:
        side_rows += state.missing.rows
        labels += state.missing.labels
        positives += state.missing.positives
    else:
        other_rows += state.missing.rows
        other_labels += state.missing.labels
        other_positives += state.missing.positives
    fewer, other_fewer = rarer(labels, positives), rarer(other_labels, other_positives)
    left = rough_bound(p, table, fewer, labels - fewer)
    right = rough_bound(p, table, other_fewer, other_labels - other_fewer)
    score = (side_rows * left + other_rows * right) / (side_rows + other_rows)
    state.near = min(state.near, score)
    if score > state.lower + MARGIN * abs(state.lower) and state.exhaustive == 0:
        return
    left = bound_of(p, table, labels, fewer, False)
    right = bound_of(p, table, other_labels, other_fewer, False)
    score = (side_rows * left + other_rows * right) / (side_rows + other_rows)
    if score < state.best:
        state.best, state.kind, state.value = score, kind, value
        state.attribute = state.column


@called
def search_numbers(search: Search, value, code, n: int) -> None:
    """Score all cuts of a numeric attribute; all rows with a value are counted on the right side.

    value, code: float64[n], int64[n], sorted by value; code: the row's class, -1: none.
    """
    state = search.state
    left, right = state.left, state.right
    guards = state.horizon >= 1.0
    i, below, cut_rows, last = 0, 0, 0, 0.0
    while i < n:
        here, j, labels, positives = value[i], i, 0, 0
        while j < n and value[j] == here:
            if code[j] >= 0:
                labels += 1
                positives += code[j]
            j += 1
        if labels > 0:
            if left.labels > 0:
                middle = last * 0.5 + here * 0.5
                cut = middle if last <= middle < here else last
                while cut_rows < n and value[cut_rows] <= cut:
                    cut_rows += 1
                left.rows, right.rows = cut_rows, n - cut_rows
                score_cut(search, NUMERIC, cut)
            if guards:
                guard_gap(search, float(below), float(i))
            left.labels += labels
            right.labels -= labels
            left.positives += positives
            right.positives -= positives
            last, below = here, j
        i = j
    if guards:
        guard_gap(search, float(below), float(n))


@called
def search_values(search: Search, by_value: RowCounts, room: int) -> None:
    """Score the tests for each value of a nominal attribute.

    All rows with a value are counted on the right side. by_value: the first of ``room`` counts, one for each
    value.
    """
    state = search.state
    left, right = state.left, state.right
    guards = state.horizon >= 1.0
    n, labels, positives = right.rows, right.labels, right.positives
    for v in range(room):
        counts = counts_of(by_value, v)
        left.rows, left.labels, left.positives = counts.rows, counts.labels, counts.positives
        right.rows = n - left.rows
        right.labels, right.positives = labels - left.labels, positives - left.positives
        if left.labels > 0 and right.labels > 0:
            score_cut(search, CATEGORY, float(v))
        if guards:
            share = float(left.rows)
            guard_gap(search, share, share)


@kernel
def counts_of(by_value: RowCounts, value: int) -> RowCounts:
    """Return the counts of a value; by_value: those of the first value, the other values follow."""
    return RowCounts(by_value.ints, by_value.floats, by_value.start + value * COUNTS)


@called
def search_halves(plan: PlanRecord, tree: Tree, node: Node, search: Search) -> float:
    """Count the labelled rows in the halves of a leaf's cell; return the value at which the cell is halved.

    NaN: the toy problem has no test here. Cells of [0, 1]² are halved along x₁, x₂, x₁, …
    """
    column = node.depth % 2
    if node.depth >= TOY_DEPTH or plan.attributes < 2 or plan.nominal > 0:
        return math.nan
    low, high, below = 0.0, 1.0, node
    while below.parent >= 0:
        parent = tree.node(below.parent)
        if parent.attribute == column:
            if below.start == tree.node(parent.child).start:
                high = min(high, parent.value)
            else:
                low = max(low, parent.value)
        below = parent
    cut = 0.5 * (low + high)
    state, leaf = search.state, rows.leaf_of(plan, tree, node)
    for i in range(leaf.count):
        row = rows.row_of(plan, tree, leaf.first + i)
        side = state.left if row.values[column] <= cut else state.right
        side.add(row.label)
    state.left.rows, state.right.rows = 1, 1
    state.column = column
    return cut


@called
def search_columns(plan: PlanRecord, tree: Tree, leaf: BoctLeaf, search: Search) -> int:
    """Score the cuts of all attributes, in their order; return the number of words of its arrays."""
    state, n = search.state, leaf.count
    extent, stride = rows.row_of(plan, tree, leaf.first), rows.stride_of(plan)
    # References to arrays with an owner are counted at every call that takes them.
    floats_space, ints_space = np.empty(2 * n), np.empty(2 * n, dtype=np.int64)
    values_space = np.empty(COUNTS * max(plan.values, 1))
    value, code = start_of(floats_space), start_of(ints_space)
    other_value, other_code = part(value, n, n), part(code, n, n)
    by_value = RowCounts(start_of(values_space.view(np.int64)), start_of(values_space), 0)
    nominal = 0
    for column in range(plan.attributes):
        room = -1  # a numeric attribute
        if nominal < plan.nominal and plan.nominal_column(nominal).column == column:
            room = plan.nominal_column(nominal).room
            nominal += 1
        state.clear_counts()
        for v in range(room):
            counts_of(by_value, v).clear()
        n_known = 0
        for i in range(n):
            row = extent.further(i, stride)
            x, label = row.values[column], row.label
            side = state.right
            if x != x:
                side = state.missing
            elif room < 0:
                value[n_known], code[n_known] = x, label
                n_known += 1
            elif 0.0 <= x < room:  # other values are in no test
                counts_of(by_value, int(x)).add(label)
            side.add(label)
        state.column = column
        if room >= 0:
            search_values(search, by_value, room)
        else:
            sort_pairs(value, code, n_known, other_value, other_code)
            search_numbers(search, value, code, n_known)
    return len(floats_space) + len(ints_space) + len(values_space)  # keeps the spaces alive up to here


@kernel("boolean(PlanRecord, Tree, Node)", alone=True)
def search(plan: PlanRecord, tree: Tree, node: Node) -> bool:
    """Search for the best cut of the leaf at a node; return whether it wins.

    A winning cut is written into the leaf's words. If none wins, these words hold when the next search is
    due.
    """
    p, leaf = parameters_of(plan), rows.leaf_of(plan, tree, node)
    if rarer(leaf.labels, leaf.positives) == 0 and p.exhaustive == 0.0:
        return False
    space = np.zeros(SEARCH_WORDS)
    state = SearchState(start_of(space.view(np.int64)), start_of(space), 0)
    here = Search(p, table_of(plan), state)
    begin(plan, tree, leaf, here)
    if p.sizes == rows.TOY:
        cut = search_halves(plan, tree, node, here)
        if cut == cut:
            score_cut(here, NUMERIC, cut)
    else:
        search_columns(plan, tree, leaf, here)
    has_won = finish(leaf, state)
    return has_won and len(space) > 0  # keeps the space alive up to here


@kernel
def begin(plan: PlanRecord, tree: Tree, leaf: BoctLeaf, search: Search) -> None:
    """Write the state of a search before the first cut."""
    p, table, state = search.p, search.table, search.state
    fewer = rarer(leaf.labels, leaf.positives)
    state.best, state.near, state.floor, state.rows = math.inf, math.inf, math.inf, float(leaf.count)
    state.exhaustive = 1 if p.exhaustive != 0.0 else 0
    state.lower = bound_of(p, table, leaf.labels, fewer, True)
    state.upper = bound_of(p, table, leaf.labels, fewer, False)
    state.steady = 1 if p.sizes == rows.POOL else 0
    state.replaces = 1 if leaf.labels == leaf.count and rows.is_full(plan, tree, leaf) else 0
    if p.exhaustive == 0.0 and p.sizes != rows.TOY:
        state.horizon = float(max(leaf.labels, 4))


@kernel
def finish(leaf: BoctLeaf, state: SearchState) -> bool:
    """Write the cut that wins into the leaf's words, or the limits of the search; return whether one wins."""
    leaf.cut_kind = 0
    if state.best < state.lower:
        leaf.cut_kind, leaf.cut_attribute, leaf.cut_value = state.kind, state.attribute, state.value
        leaf.cut_score, leaf.cut_lower = state.best, state.lower
        return True
    leaf.horizon = int(state.horizon)
    leaf.swaps = leaf.horizon if state.replaces != 0 else 0
    leaf.shift = shift_within(state, float(leaf.labels), state.horizon)
    leaf.floor = state.floor
    leaf.searched = leaf.count
    leaf.since, leaf.swapped, leaf.gone = 0, 0, 0
    return False


search_here: Any = outlined(search)
"""``search`` for other kernels: a call, not inlined."""


@kernel
def is_due(plan: PlanRecord, leaf: BoctLeaf) -> bool:
    """Return whether some cut of a leaf that has got a label may win."""
    p = parameters_of(plan)
    if p.exhaustive != 0.0:
        return leaf.labels > 1
    fewer = rarer(leaf.labels, leaf.positives)
    if fewer == 0:
        return False
    if leaf.since > leaf.horizon or leaf.swapped > leaf.swaps:
        return True
    common = 1.0 - (leaf.searched - leaf.gone) / max(leaf.searched, leaf.count, 1)
    if not common <= leaf.shift + MARGIN * MARGIN:
        return True
    lower = bound_of(p, table_of(plan), leaf.labels, fewer, True)
    return not lower < leaf.floor - MARGIN * abs(leaf.floor)
