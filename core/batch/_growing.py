"""Growing of a C4.5 tree: sorted columns once, then one pass over a node's rows for each attribute.

    order[a]  rows by the value of attribute a, missing values last; every node owns the same segment of each
              ┌──────────── node ────────────┐            a split moves the rows of a child together,
              │ left child  │  right child   │            in each column, and keeps their order
              └─────────────┴────────────────┘

so that a level costs attributes × rows, with no sorting (as SLIQ: Mehta, Agrawal, Rissanen 1996).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from core.kernels.jit import kernel

ATTRIBUTE: Final = 0  # -1: a leaf
FIRST: Final = 1  # first child; the next children follow it
CHILDREN: Final = 2
CLASS: Final = 3  # predicted class
MISSING: Final = 4  # child that a row with a missing value follows, counted from the first
START: Final = 5  # segment of rows
END: Final = 6
FIELDS: Final = 7

LEAF: Final = -1

MIN_RECORDS: Final = 0
GAIN_RATIO: Final = 1
OPTIONS: Final = 2

MIN_GAIN: Final = 1e-10
"""Least gain of a split, in bits [D6]."""
EPSILON: Final = 1e-3
"""Constant of C4.5: allowed difference of a gain from the mean, and least split information of a ratio."""


@kernel
def count_classes(y, rows, start: int, end: int, counts) -> None:
    """Write the class counts of rows[start:end]; counts: int64[class]."""
    counts[:] = 0
    for i in range(start, end):
        counts[y[rows[i]]] += 1


@kernel
def majority(counts) -> int:
    """Return the class with most rows, the first of equal counts."""
    best = 0
    for c in range(1, len(counts)):
        if counts[c] > counts[best]:
            best = c
    return best


@kernel
def known_rows(column, order, start: int, end: int) -> int:
    """Return the end of the segment's rows whose value is known, by binary search: they come first."""
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        if np.isnan(column[order[middle]]):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def spread(counts, total: int, n_log_n) -> float:
    """Return n times the entropy in bits of class counts: n·lg n - Σ n_k·lg n_k."""
    within = 0.0
    for c in range(len(counts)):
        within += n_log_n[counts[c]]
    return n_log_n[total] - within


@kernel
def between(low: float, high: float) -> float:
    """Return the midpoint of two values, low where rounding would reach high."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


@kernel
def best_threshold(column, y, order, bounds, least: int, n_log_n, left, right) -> tuple[float, int, float]:
    """Return (gain in bits·rows, rows that go left, threshold) of the best midpoint; -1 rows: none.

    bounds: start and end of the known rows; left, right: int64[class], right with the counts of all known
    rows.
    """
    start, end = bounds
    before = spread(right, end - start, n_log_n)
    left[:] = 0
    best, cut, threshold = MIN_GAIN * (end - start), -1, 0.0
    for i in range(start, end - least):
        row = order[i]
        left[y[row]] += 1
        right[y[row]] -= 1
        n_left = i + 1 - start
        low, high = column[row], column[order[i + 1]]
        if n_left < least or not low < high:
            continue
        gain = before - (spread(left, n_left, n_log_n) + spread(right, end - i - 1, n_log_n))
        if gain > best:
            best, cut, threshold = gain, n_left, between(low, high)
    return best, cut, threshold


@kernel
def multiway_gain(column, y, order, bounds, least: int, n_log_n, branch, counts) -> tuple[float, int, float]:
    """Return (gain in bits·rows, large enough branches, Σ n·lg n over branches) of a nominal test.

    counts: int64[class] of all known rows; branch: int64[class], with any content.
    """
    start, end = bounds
    gain, sizes, large = spread(counts, end - start, n_log_n), 0.0, 0
    i = start
    while i < end:
        value, first = column[order[i]], i
        branch[:] = 0
        while i < end and column[order[i]] == value:
            branch[y[order[i]]] += 1
            i += 1
        gain -= spread(branch, i - first, n_log_n)
        sizes += n_log_n[i - first]
        large += int(i - first >= least)
    return gain, large, sizes


@kernel
def best_test(
    column,
    y,
    order,
    bounds,
    values: int,
    least: int,
    n_log_n,
    branches,
) -> tuple[float, float, float]:
    """Return (gain in bits, split information, threshold) of an attribute's best test; gain 0: none.

    bounds: start and end of the node's rows; values: number of nominal values, 0: numeric; branches: two
    arrays int64[class], with any content.
    """
    start, end = bounds
    left, right = branches
    total = end - start
    known = known_rows(column, order, start, end)
    count_classes(y, order, start, known, right)
    threshold, sizes = 0.0, 0.0
    if values == 0:
        gain, cut, threshold = best_threshold(column, y, order, (start, known), least, n_log_n, left, right)
        if cut < 0:
            return 0.0, 0.0, 0.0
        sizes = n_log_n[cut] + n_log_n[known - start - cut]
    else:
        gain, large, sizes = multiway_gain(column, y, order, (start, known), least, n_log_n, left, right)
        if large < 2 or gain <= MIN_GAIN * total:
            return 0.0, 0.0, 0.0
    return gain / total, (n_log_n[total] - sizes - n_log_n[end - known]) / total, threshold


@kernel
def choose(gains, infos, by_ratio: bool) -> int:
    """Return the attribute to split on, -1: none; the first of equal attributes.

    gains: float64[attribute] in bits, 0 where there is no test; infos: float64[attribute], split information.
    """
    possible, total = 0, 0.0
    for a in range(len(gains)):
        if gains[a] > 0.0:
            possible += 1
            total += gains[a]
    chosen, best = -1, 0.0
    for a in range(len(gains)):
        worth = gains[a]
        if by_ratio and worth > 0.0:
            enough = worth >= total / possible - EPSILON and infos[a] > EPSILON
            worth = worth / infos[a] if enough else 0.0
        if worth > best:
            chosen, best = a, worth
    return chosen


@kernel
def branch_of(value: float, values: int, threshold: float, missing: int) -> int:
    """Return the child that a value goes to; values: number of nominal values, 0: numeric."""
    if np.isnan(value):
        return missing
    if values == 0:
        return 0 if value <= threshold else 1
    return int(value)


@kernel
def begin_children(column, order, bounds, values: int, threshold: float, first_at) -> int:
    """Write where the rows of each child begin (int64[child + 1]); return the child with most known rows.

    Rows with a missing value follow that child.
    """
    start, end = bounds
    first_at[:] = 0
    known = known_rows(column, order, start, end)
    for i in range(start, known):
        first_at[1 + branch_of(column[order[i]], values, threshold, 0)] += 1
    children = len(first_at) - 1
    largest = 0
    for child in range(1, children):
        if first_at[1 + child] > first_at[1 + largest]:
            largest = child
    first_at[1 + largest] += end - known
    first_at[0] = start
    for child in range(children):
        first_at[1 + child] += first_at[child]
    return largest


@kernel
def distribute(columns, order, branch, tree, node: int, first_at, moved) -> None:
    """Move the rows of a node together by child, in every column of ``order``; branch: int64[row].

    first_at: int64[child + 1], where the rows of each child begin; moved: int64[row], with any content.
    """
    start, end, children = tree[node, START], tree[node, END], tree[node, CHILDREN]
    for a in range(len(order)):
        place = first_at[:children].copy()
        for i in range(start, end):
            row = order[a, i]
            moved[place[branch[row]]] = row
            place[branch[row]] += 1
        order[a, start:end] = moved[start:end]


@kernel(
    "int64(float64[:, ::1], int64[::1], int64[:, ::1], int64[::1], int64[::1], float64[::1], int64[:, ::1],"
    " float64[::1], int64[:, ::1])",
    alone=True,
)
def grow(
    columns,
    y,
    order,
    values,
    options,
    n_log_n,
    tree,
    threshold,
    counts,
) -> int:
    """Grow a tree until its leaves are pure or no test is left; return the number of nodes, -1: no room.

    columns: float64[attribute, row], codes of nominal values, NaN: missing; y: int64[row]; order:
    int64[attribute, row], is changed; values: int64[attribute], number of nominal values, 0: numeric;
    options: int64[OPTIONS]; n_log_n: float64[row + 1]; tree: int64[node, FIELDS], threshold: float64[node]
    and counts: int64[node, class] are written, parents before their children.
    """
    d, n = columns.shape
    room, classes = counts.shape
    least = options[MIN_RECORDS]
    left, right = np.zeros(classes, dtype=np.int64), np.zeros(classes, dtype=np.int64)
    gains, infos, cuts = np.zeros(d), np.zeros(d), np.zeros(d)
    branch, moved = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    most = 2
    for a in range(d):
        most = max(most, values[a])
    first_at = np.zeros(most + 1, dtype=np.int64)
    count_classes(y, order[0], 0, n, counts[0])
    tree[0, :] = 0
    tree[0, ATTRIBUTE], tree[0, CLASS], tree[0, END] = LEAF, majority(counts[0]), n
    nodes = 1
    node = 0
    while node < nodes:
        start, end = tree[node, START], tree[node, END]
        total = end - start
        if total < 2 * least or counts[node, tree[node, CLASS]] == total:
            node += 1
            continue
        for a in range(d):
            gains[a], infos[a], cuts[a] = best_test(
                columns[a], y, order[a], (start, end), values[a], least, n_log_n, (left, right)
            )
        chosen = choose(gains, infos, options[GAIN_RATIO] != 0)
        if chosen < 0:
            node += 1
            continue
        children = max(values[chosen], 2)
        if nodes + children > room:
            return -1
        tree[node, ATTRIBUTE], tree[node, FIRST], tree[node, CHILDREN] = chosen, nodes, children
        threshold[node] = cuts[chosen]
        largest = begin_children(
            columns[chosen],
            order[chosen],
            (start, end),
            values[chosen],
            cuts[chosen],
            first_at[: children + 1],
        )
        tree[node, MISSING] = largest
        for i in range(start, end):
            row = order[chosen, i]
            branch[row] = branch_of(columns[chosen, row], values[chosen], cuts[chosen], largest)
        distribute(columns, order, branch, tree, node, first_at, moved)
        for child in range(children):
            at = nodes + child
            tree[at, :] = 0
            tree[at, ATTRIBUTE], tree[at, START], tree[at, END] = LEAF, first_at[child], first_at[child + 1]
            count_classes(y, order[0], first_at[child], first_at[child + 1], counts[at])
            empty = first_at[child] == first_at[child + 1]
            tree[at, CLASS] = tree[node, CLASS] if empty else majority(counts[at])
        nodes += children
        node += 1
    return nodes
