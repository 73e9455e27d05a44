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
from typing import Any, Final

import numpy as np

from core.kernels.jit import called, kernel, outlined, part, start_of, words_at
from core.learners.boct import leaf_rows as rows
from core.learners.boct.bound_table import EXHAUSTIVE, SIZES, bound_of, rough_bound
from core.numeric.sorting import sort_pairs
from core.tree import layout as at
from core.tree.byoffset.routing import node_at

MARGIN: Final = 1e-9
LEAD: Final = 0.2
"""Position of the floor between L and the lowest score: the part by which L may rise within the horizon."""
STEP: Final = 0.8
"""Factor by which the horizon grows until the floor is there; with LEAD the best of the values tried."""
TOY_DEPTH: Final = 6
"""Maximum of tests on a path of the toy problem."""

# The state of a search, float64
BEST: Final = 0
KIND: Final = 1
ATTRIBUTE: Final = 2
VALUE: Final = 3
LOWER: Final = 4
UPPER: Final = 5  # the leaf as it is, without a cut
NEAR: Final = 12  # the lowest score by rough bounds
EVERY: Final = 13  # 1: score all cuts exactly
FLOOR: Final = 6
HORIZON: Final = 7
ALL: Final = 8  # rows of the leaf
SWAPS: Final = 9  # 1: labels replace other labels
STEADY: Final = 10  # 1: shares do not change, since all rows are known
COLUMN: Final = 11
STATE: Final = 14

# Counts of one side of a cut, int64
ROWS: Final = 0
LABELS: Final = 1
POSITIVES: Final = 2
SIDE: Final = 3
# The sides: at most the cut, above it, missing
LEFT: Final = 0
RIGHT: Final = SIDE
MISSING: Final = 2 * SIDE
SIDES: Final = 3 * SIDE


@kernel
def rarer(labels: int, positives: int) -> int:
    """Return how many labels are of the rarer class."""
    return min(positives, labels - positives)


@kernel
def shift_within(state, labels: float, horizon: float) -> float:
    """Return the change of shares that a horizon allows for: each label comes with its part of the rows."""
    if state[STEADY] != 0.0:
        return 0.0
    return min(1.25 * horizon / (labels + horizon) + 1.0 / max(state[ALL], 1.0), 1.0)


@kernel
def lowest_bound(
    params, first: int, words, values, state, labels: int, positives: int, horizon: int
) -> float:
    """Return a value not above the lowest U that a branch may have within a horizon."""
    fewer = rarer(labels, positives)
    more = labels - fewer + horizon
    if state[SWAPS] != 0.0:
        fewer = max(fewer - horizon, 0)
    return rough_bound(params, first, words, values, fewer, more)


@kernel
def lowest_score(
    params,
    first: int,
    words,
    values,
    state,
    one: int,
    one_positive: int,
    other: int,
    other_positive: int,
    low: float,
    high: float,
    shift: float,
) -> float:
    """Return the lowest score of cuts in a gap within the horizon; low, high: rows on the first side."""
    horizon = int(state[HORIZON])
    left = lowest_bound(params, first, words, values, state, one, one_positive, horizon)
    right = lowest_bound(params, first, words, values, state, other, other_positive, horizon)
    low = max(low / state[ALL] - shift, 0.0)
    high = min(high / state[ALL] + shift, 1.0)
    return right + (low if left > right else high) * (left - right)


@called
def guard_gap(params, first: int, words, values, state, counts, low: float, high: float) -> None:
    """Lower floor and horizon to what cuts between two labelled values may score.

    low, high: the minimum and the maximum of rows on the first side whose value is known.
    """
    threshold = state[LOWER] + LEAD * (min(state[NEAR], state[UPPER]) - state[LOWER])
    labels = float(counts[LEFT + LABELS] + counts[RIGHT + LABELS] + counts[MISSING + LABELS])
    while state[HORIZON] >= 1.0:
        shift = shift_within(state, labels, state[HORIZON])
        missing, missing_positive = counts[MISSING + LABELS], counts[MISSING + POSITIVES]
        found = lowest_score(
            params,
            first,
            words,
            values,
            state,
            counts[LEFT + LABELS],
            counts[LEFT + POSITIVES],
            counts[RIGHT + LABELS] + missing,
            counts[RIGHT + POSITIVES] + missing_positive,
            low,
            high,
            shift,
        )
        if counts[MISSING + ROWS] > 0:
            away = float(counts[MISSING + ROWS])
            with_first = lowest_score(
                params,
                first,
                words,
                values,
                state,
                counts[LEFT + LABELS] + missing,
                counts[LEFT + POSITIVES] + missing_positive,
                counts[RIGHT + LABELS],
                counts[RIGHT + POSITIVES],
                low + away,
                high + away,
                shift,
            )
            found = min(found, with_first)
        if found > threshold:
            state[FLOOR] = min(state[FLOOR], found)
            return
        state[HORIZON] = math.floor(STEP * state[HORIZON])


@called
def score_cut(params, first: int, words, values, state, counts, kind: int, value: float) -> None:
    """Score a cut whose sides are counted, exactly if it may win; keep the best cut so far."""
    one, other = counts[LEFT + ROWS], counts[RIGHT + ROWS]
    labels, positives = counts[LEFT + LABELS], counts[LEFT + POSITIVES]
    others, other_positives = counts[RIGHT + LABELS], counts[RIGHT + POSITIVES]
    if one >= other:
        one += counts[MISSING + ROWS]
        labels += counts[MISSING + LABELS]
        positives += counts[MISSING + POSITIVES]
    else:
        other += counts[MISSING + ROWS]
        others += counts[MISSING + LABELS]
        other_positives += counts[MISSING + POSITIVES]
    fewer, other_fewer = rarer(labels, positives), rarer(others, other_positives)
    left = rough_bound(params, first, words, values, fewer, labels - fewer)
    right = rough_bound(params, first, words, values, other_fewer, others - other_fewer)
    score = (one * left + other * right) / (one + other)
    state[NEAR] = min(state[NEAR], score)
    if score > state[LOWER] + MARGIN * abs(state[LOWER]) and state[EVERY] == 0.0:
        return
    left = bound_of(params, first, words, values, labels, fewer, False)
    right = bound_of(params, first, words, values, others, other_fewer, False)
    score = (one * left + other * right) / (one + other)
    if score < state[BEST]:
        state[BEST], state[KIND], state[VALUE] = score, float(kind), value
        state[ATTRIBUTE] = state[COLUMN]


@called
def search_numbers(
    params,
    first: int,
    words,
    values,
    state,
    counts,
    value,
    code,
    n: int,
) -> None:
    """Score all cuts of a numeric attribute; value, code: float64[n], int64[n], sorted; counts: all RIGHT."""
    guards = state[HORIZON] >= 1.0
    inside = float(n)
    i, below, cut_rows, last = 0, 0, 0, 0.0
    while i < n:
        here, j, labels, positives = value[i], i, 0, 0
        while j < n and value[j] == here:
            if code[j] >= 0:
                labels += 1
                positives += code[j]
            j += 1
        if labels > 0:
            if counts[LEFT + LABELS] > 0:
                middle = last * 0.5 + here * 0.5
                cut = middle if last <= middle < here else last
                while cut_rows < n and value[cut_rows] <= cut:
                    cut_rows += 1
                counts[LEFT + ROWS], counts[RIGHT + ROWS] = cut_rows, n - cut_rows
                score_cut(params, first, words, values, state, counts, at.NUMERIC, cut)
            if guards:
                guard_gap(params, first, words, values, state, counts, float(below), float(i))
            counts[LEFT + LABELS] += labels
            counts[RIGHT + LABELS] -= labels
            counts[LEFT + POSITIVES] += positives
            counts[RIGHT + POSITIVES] -= positives
            last, below = here, j
        i = j
    if guards:
        guard_gap(params, first, words, values, state, counts, float(below), inside)


@called
def search_values(params, first: int, words, values, state, counts, by_value, room: int) -> None:
    """Score the tests for each value of a nominal attribute; by_value: int64[SIDE·room], counts: RIGHT."""
    guards = state[HORIZON] >= 1.0
    n, labels, positives = counts[RIGHT + ROWS], counts[RIGHT + LABELS], counts[RIGHT + POSITIVES]
    for v in range(room):
        for word in range(SIDE):
            counts[LEFT + word] = by_value[SIDE * v + word]
        counts[RIGHT + ROWS] = n - counts[LEFT + ROWS]
        counts[RIGHT + LABELS] = labels - counts[LEFT + LABELS]
        counts[RIGHT + POSITIVES] = positives - counts[LEFT + POSITIVES]
        if counts[LEFT + LABELS] > 0 and counts[RIGHT + LABELS] > 0:
            score_cut(params, first, words, values, state, counts, at.CATEGORY, float(v))
        if guards:
            own = float(counts[LEFT + ROWS])
            guard_gap(params, first, words, values, state, counts, own, own)


@called
def search_halves(plan, params, ints, floats, t: int, node: int, state, counts, value) -> float:
    """Write for each labelled row the half of its cell (0 or 1) to value; return where the cell is halved.

    NaN: the toy problem has no test here. Cells of [0, 1]² are halved along x₁, x₂, x₁, …
    """
    depth = ints[node + at.NODE_DEPTH]
    column = depth % 2
    if depth >= TOY_DEPTH or plan[at.PLAN_ATTRIBUTES] < 2 or plan[at.PLAN_NOMINAL] > 0:
        return math.nan
    low, high, below = 0.0, 1.0, node
    while ints[below + at.NODE_PARENT] >= 0:
        parent = node_at(ints, t, ints[below + at.NODE_PARENT])
        if ints[parent + at.NODE_ATTRIBUTE] == column:
            threshold = floats[parent + at.NODE_VALUE]
            if below == node_at(ints, t, ints[parent + at.NODE_CHILD]):
                high = min(high, threshold)
            else:
                low = max(low, threshold)
        below = parent
    cut = 0.5 * (low + high)
    own = rows.own_at(plan, ints, t, node)
    for i in range(ints[own + rows.COUNT]):
        row = rows.row_at(plan, ints, t, ints[own + rows.FIRST] + i)
        side = LEFT if floats[row + 1 + column] <= cut else RIGHT
        counts[side + LABELS] += 1
        counts[side + POSITIVES] += ints[row]
    counts[LEFT + ROWS], counts[RIGHT + ROWS] = 1, 1
    state[COLUMN] = float(column)
    return cut


@called
def search_columns(
    plan,
    params,
    ints,
    floats,
    t: int,
    own: int,
    words,
    values,
    state,
    counts,
) -> int:
    """Score the cuts of all attributes, in their order; return the number of words of its arrays."""
    first, n = plan[at.PLAN_LEARNER + 1], ints[own + rows.COUNT]
    extent, stride = rows.row_at(plan, ints, t, ints[own + rows.FIRST]), 1 + plan[at.PLAN_ATTRIBUTES]
    # References to arrays with an owner are counted at every call that takes them.
    floats_space, ints_space = np.empty(2 * n), np.empty(2 * n, dtype=np.int64)
    values_space = np.empty(SIDE * max(plan[at.PLAN_VALUES], 1), dtype=np.int64)
    value, code, by_value = start_of(floats_space), start_of(ints_space), start_of(values_space)
    other_value, other_code = part(value, n, n), part(code, n, n)
    entry, nominal = plan[at.PLAN_NOMINAL_TABLE], 0
    for column in range(plan[at.PLAN_ATTRIBUTES]):
        room = -1  # a numeric attribute
        if nominal < plan[at.PLAN_NOMINAL] and plan[entry + at.NOMINAL_COLUMN] == column:
            room = plan[entry + at.NOMINAL_ROOM]
            entry, nominal = entry + at.NOMINAL_FIELDS, nominal + 1
        for word in range(SIDES):
            counts[word] = 0
        for word in range(SIDE * room):
            by_value[word] = 0
        known = 0
        for i in range(n):
            row = extent + i * stride
            x, label = floats[row + 1 + column], ints[row]
            side = RIGHT
            if room >= 0:
                if x != x:
                    side = MISSING
                elif 0.0 <= x < room:  # other values are in no test
                    v = SIDE * int(x)
                    by_value[v + ROWS] += 1
                    by_value[v + LABELS] += 1 if label >= 0 else 0
                    by_value[v + POSITIVES] += 1 if label == 1 else 0
            elif x != x:
                side = MISSING
            else:
                value[known], code[known] = x, label
                known += 1
            counts[side + ROWS] += 1
            counts[side + LABELS] += 1 if label >= 0 else 0
            counts[side + POSITIVES] += 1 if label == 1 else 0
        state[COLUMN] = float(column)
        if room >= 0:
            search_values(params, first, words, values, state, counts, by_value, room)
        else:
            sort_pairs(value, code, known, other_value, other_code)
            search_numbers(params, first, words, values, state, counts, value, code, known)
    return len(floats_space) + len(ints_space) + len(values_space)  # keeps the spaces alive up to here


@kernel("boolean(int64, int64, int64, int64)", alone=True)
def search(plan_address: int, address: int, t: int, node: int) -> bool:
    """Search for the best cut of the leaf with the node record at word ``node``; return whether it wins.

    A winning cut is written into the leaf's words. If none wins, these words hold when the next search is
    due.
    """
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    words, values = words_at(plan[plan[at.PLAN_ARRAYS]])
    first, own = plan[at.PLAN_LEARNER + 1], rows.own_at(plan, ints, t, node)
    n, labels, positives = ints[own + rows.COUNT], ints[own + rows.LABELS], ints[own + rows.POSITIVES]
    fewer, sizes = rarer(labels, positives), int(params[first + SIZES])
    if fewer == 0 and params[first + EXHAUSTIVE] == 0.0:
        return False
    state_space, counts_space = np.zeros(STATE), np.zeros(SIDES, dtype=np.int64)
    state, counts = start_of(state_space), start_of(counts_space)
    state[BEST], state[NEAR], state[FLOOR], state[ALL] = math.inf, math.inf, math.inf, float(n)
    state[EVERY] = params[first + EXHAUSTIVE]
    state[LOWER] = bound_of(params, first, words, values, labels, fewer, True)
    state[UPPER] = bound_of(params, first, words, values, labels, fewer, False)
    state[STEADY] = 1.0 if sizes == rows.POOL else 0.0
    state[SWAPS] = 1.0 if labels == n and rows.is_full(plan, params, ints, t, own) else 0.0
    if params[first + EXHAUSTIVE] == 0.0 and sizes != rows.TOY:
        state[HORIZON] = float(max(labels, 4))
    if sizes == rows.TOY:
        cut = search_halves(plan, params, ints, floats, t, node, state, counts, values)
        if cut == cut:
            score_cut(params, first, words, values, state, counts, at.NUMERIC, cut)
    else:
        search_columns(plan, params, ints, floats, t, own, words, values, state, counts)
    counts_space[0], state = 0, start_of(state_space)  # the spaces are alive up to here
    ints[own + rows.CUT_KIND] = 0
    if state[BEST] < state[LOWER]:
        ints[own + rows.CUT_KIND] = int(state[KIND])
        ints[own + rows.CUT_ATTRIBUTE] = int(state[ATTRIBUTE])
        floats[own + rows.CUT_VALUE] = state[VALUE]
        floats[own + rows.CUT_SCORE] = state[BEST]
        floats[own + rows.CUT_LOWER] = state_space[LOWER]
        return True
    horizon = state_space[HORIZON]
    ints[own + rows.HORIZON] = int(horizon)
    ints[own + rows.SWAPS] = int(horizon) if state[SWAPS] != 0.0 else 0
    floats[own + rows.SHIFT] = shift_within(state, float(labels), horizon)
    floats[own + rows.FLOOR] = state_space[FLOOR]
    ints[own + rows.SEARCHED] = n
    ints[own + rows.SINCE], ints[own + rows.SWAPPED], ints[own + rows.GONE] = 0, 0, 0
    return False


search_here: Any = outlined(search)
"""``search`` for other kernels: a call, not inlined."""


@kernel
def is_due(plan, params, ints, floats, own: int) -> bool:
    """Return whether some cut of a leaf that has got a label may win."""
    first = plan[at.PLAN_LEARNER + 1]
    labels, positives = ints[own + rows.LABELS], ints[own + rows.POSITIVES]
    if params[first + EXHAUSTIVE] != 0.0:
        return labels > 1
    fewer = rarer(labels, positives)
    if fewer == 0:
        return False
    if ints[own + rows.SINCE] > ints[own + rows.HORIZON] or ints[own + rows.SWAPPED] > ints[own + rows.SWAPS]:
        return True
    searched = ints[own + rows.SEARCHED]
    common = 1.0 - (searched - ints[own + rows.GONE]) / max(searched, ints[own + rows.COUNT], 1)
    if not common <= floats[own + rows.SHIFT] + MARGIN * MARGIN:
        return True
    words, values = words_at(plan[plan[at.PLAN_ARRAYS]])
    lower = bound_of(params, first, words, values, labels, fewer, True)
    floor = floats[own + rows.FLOOR]
    return not lower < floor - MARGIN * abs(floor)
