"""IMAC's candidates at a leaf: tests whose impurity is updated record by record.

State of a leaf, in the sections that ``axes`` names:

    header      number of candidates; the observed weight at the last check (0: no attempt yet), and the
                weight before which they need not be measured; the square of the merit's range
    attribute   its state (AWAY: not considered, CANDIDATE, POTENTIAL, ILLEGAL), and its last merit
    rows        one column for each candidate: the words below
    counts      [candidate][branch][class]: class masses of two branches; of a multiway test the class masses
                of all its branches together, in branch 0
    value       mass and moment (core/criteria/base.py) of each value that a multiway candidate tests

The class masses of a multiway test belong to the nominal observer, and are exact. Rows lie side by side so
that the loops over candidates run in vectors; the last words of a column belong to the present record.

Every record is counted at once. The merits are computed from the counts only when they can matter: a record
of weight w adds at most w·steepest (core/criteria/base.py) to mass times impurity, and subtracts nothing, so
that a gap that is far too small stays too small for a known weight (QUIET). IMAC's code updates the
impurities record by record, and raises masses below 1 to 1; so does ``compat`` (core/tree/quirks.py).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.criteria import base as criteria
from core.kernels.jit import WORDS, kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Tree
from core.learners.hoeffding.branch_masses import divide_leaf, nominal_number
from core.learners.hoeffding.schedules import _waiting as waiting
from core.tree import layout as at
from core.tree import quirks

# Header
COUNT: Final = 0
CHECKED: Final = 1
QUIET: Final = 2  # observed weight up to which no gap can suffice
CLASSES: Final = 3  # known classes when SQUARE was computed
SQUARE: Final = 4  # R² of the merit
HEADER: Final = 5

AHEAD: Final = 0.25
"""Maximum of weight to look ahead, as a share of the leaf's weight."""

# State of an attribute
AWAY: Final = 0
CANDIDATE: Final = 1
POTENTIAL: Final = 2
ILLEGAL: Final = 3

# Rows
ATTRIBUTE: Final = 0
TEST: Final = 1
VALUE: Final = 2
WHOLE: Final = 3  # 1: no record has lacked the attribute, so that its classes are the leaf's
MIXED: Final = 4  # mass times impurity, over the branches
BEFORE: Final = 5  # mass times impurity of all branches together
WEIGHT: Final = 6  # mass of all branches together
MERIT: Final = 7
BRANCH_WEIGHT: Final = 8  # weight of branch 0 and 1, unless multiway
BRANCH_MOMENT: Final = 10
STEP: Final = 12  # the record's weight, 0 if it lacks the attribute
N: Final = 13  # before the record: mass of its branch, of its class there, moment of the branch
CELL: Final = 14
MOMENT: Final = 15
PLACE: Final = 16  # where the moment of the record's branch is kept; 0 outside a record
ENTRY: Final = 17  # nominal attribute: where its entry lies in the plan's table
ROWS: Final = 18

impurity = criteria.dispatcher()
moment_of, increment = criteria.increment_dispatcher()
steepest = criteria.steepness_dispatcher()


def most_candidates(attributes: int) -> int:
    """Return how many candidates there is room for [D34]; the authors count "no split" as an attribute."""
    return min(attributes, min(max((attributes + 1) // 10, 5), 10))


# Only for kernels: a call from Python would compile it once more, in the middle of a stream.
capacity = kernel(most_candidates)


def axes(attributes: int) -> tuple[tuple[str | int, ...], ...]:
    room = most_candidates(attributes)
    return ((HEADER,), ("attribute", 2), (ROWS, room), (room, 2, "class"), ("value", 2))


@kernel
def attributes_at(plan, leaf: int) -> int:
    """Return where the attributes' section begins: (state, last merit) of each."""
    return leaf + plan[at.PLAN_SCHEDULE_AT] + HEADER


@kernel
def rows_at(plan, leaf: int) -> int:
    return attributes_at(plan, leaf) + 2 * plan[at.PLAN_ATTRIBUTES]


@kernel
def counts_at(plan, leaf: int, room: int, q: int) -> int:
    return rows_at(plan, leaf) + ROWS * room + 2 * q * plan[at.PLAN_CLASSES]


@kernel
def values_at(plan, leaf: int, room: int) -> int:
    return counts_at(plan, leaf, room, room)


@kernel(f"void({WORDS}, int64, int64, int64, int64, int64, float64)", alone=True)
def load(
    plan, params, ints, floats, t: int, leaf: int, q: int, attribute: int, test: int, value: float
) -> None:
    """Make a test candidate q, with the class masses of its branches by the observers."""
    room = capacity(plan[at.PLAN_ATTRIBUTES])
    column = rows_at(plan, leaf) + q
    k, criterion = ints[at.MODEL_CLASSES], plan[at.PLAN_CRITERION]
    ints[column + ATTRIBUTE * room] = attribute
    ints[column + TEST * room] = test
    floats[column + VALUE * room] = value
    counts, classes = counts_at(plan, leaf, room, q), plan[at.PLAN_CLASSES]
    if test != at.NUMERIC:
        ints[column + ENTRY * room] = (
            nominal_number(PlanRecord(plan, params, 0), attribute) * at.NOMINAL_FIELDS
        )
    if test == at.MULTIWAY:
        load_values(plan, ints, floats, t, leaf, room, q, attribute)
    else:
        branches = np.empty((2, k))
        divide_leaf(
            PlanRecord(plan, params, 0),
            Tree(ints, floats, t),
            Leaf(ints, floats, leaf),
            attribute,
            test,
            value,
            branches,
        )
        for b in range(2):
            weight = squares = 0.0
            for c in range(k):
                mass = max(branches[b, c], 0.0)
                floats[counts + b * classes + c] = mass
                weight += mass
                squares += mass * mass
            floats[column + (BRANCH_WEIGHT + b) * room] = weight
            floats[column + (BRANCH_MOMENT + b) * room] = moment_of(criterion, weight, squares)
    measure_here(plan, params, ints, floats, t, leaf, room, q)
    observed = floats[leaf + at.LEAF_OBSERVED]
    ints[column + WHOLE * room] = abs(floats[column + WEIGHT * room] - observed) <= 1e-9 * observed


load_here: Any = outlined(load)


@kernel
def load_values(plan, ints, floats, t: int, leaf: int, room: int, q: int, attribute: int) -> None:
    """Sum up the observer's counts of the values of a multiway candidate."""
    record = PlanRecord(plan, floats, 0)
    nominal = record.nominal_column(nominal_number(record, attribute))
    first, n = nominal.first, nominal.room
    masses, values = leaf + ints[t + at.TREE_NOMINAL_AT], values_at(plan, leaf, room)
    counts, classes = counts_at(plan, leaf, room, q), plan[at.PLAN_CLASSES]
    for v in range(first, first + n):
        floats[values + 2 * v], floats[values + 2 * v + 1] = 0.0, 0.0
    for c in range(ints[at.MODEL_CLASSES]):
        total = 0.0
        for v in range(first, first + n):
            mass = floats[masses + c * plan[at.PLAN_VALUES] + v]
            floats[values + 2 * v] += mass
            floats[values + 2 * v + 1] += mass * mass
            total += mass
        floats[counts + c], floats[counts + classes + c] = total, 0.0
    for v in range(first, first + n):
        word = values + 2 * v
        floats[word + 1] = moment_of(plan[at.PLAN_CRITERION], floats[word], floats[word + 1])


@kernel(f"void({WORDS}, int64, int64, int64, int64)", alone=True)
def measure(plan, params, ints, floats, t: int, leaf: int, room: int, q: int) -> None:
    """Compute the impurities of candidate q from its class masses."""
    column, k = rows_at(plan, leaf) + q, ints[at.MODEL_CLASSES]
    counts, classes = counts_at(plan, leaf, room, q), plan[at.PLAN_CLASSES]
    first, n, stride = counts, 2, classes
    step = 1
    if ints[column + TEST * room] == at.MULTIWAY:
        record = PlanRecord(plan, floats, 0)
        nominal = record.nominal_column(nominal_number(record, ints[column + ATTRIBUTE * room]))
        first = leaf + ints[t + at.TREE_NOMINAL_AT] + nominal.first
        n, stride, step = nominal.room, 1, plan[at.PLAN_VALUES]
    masses, all_masses = np.empty((k, n)), np.zeros((k, 1))
    for c in range(k):
        for b in range(n):
            masses[c, b] = floats[first + c * step + b * stride]
            all_masses[c, 0] += masses[c, b]
    mixed, weight, before, total = np.empty(n), np.empty(n), np.empty(1), np.empty(1)
    impurity(plan[at.PLAN_CRITERION], masses, k, n, mixed, weight)
    impurity(plan[at.PLAN_CRITERION], all_masses, k, 1, before, total)
    mixed_all = 0.0
    for b in range(n):
        mixed_all += mixed[b]
    floats[column + MIXED * room] = mixed_all
    floats[column + BEFORE * room] = before[0]
    floats[column + WEIGHT * room] = total[0]
    floats[column + MERIT * room] = merit_of(plan, before[0], mixed_all, total[0])


measure_here: Any = outlined(measure)


@kernel
def merit_of(plan, before: float, mixed: float, weight: float) -> float:
    """Return the gain of a test; IMAC's code leaves out the term that all tests have in common."""
    if plan[at.PLAN_QUIRKS] & quirks.FOLLOWED_IMPURITY == 0:
        return (before - mixed) / weight
    return (1.0 if plan[at.PLAN_NULL_MERIT] != 0 else 0.0) - mixed / weight


@kernel
def count_in(plan, ints, floats, leaf: int, room: int, x, label: int, weight: float) -> None:
    """Count a record (x: float64[attribute]) in its branch of every candidate."""
    rows = rows_at(plan, leaf)
    classes = plan[at.PLAN_CLASSES]
    for q in range(ints[leaf + plan[at.PLAN_SCHEDULE_AT] + COUNT]):
        column = rows + q
        test, value = ints[column + TEST * room], x[ints[column + ATTRIBUTE * room]]
        if test == at.NUMERIC:
            known = value - value == 0.0
            branch = 0 if value <= floats[column + VALUE * room] else 1
        else:
            entry = plan[at.PLAN_NOMINAL_TABLE] + ints[column + ENTRY * room]
            known = 0.0 <= value < plan[entry + at.NOMINAL_ROOM]
            branch = 0 if value == floats[column + VALUE * room] else 1
        if not known:
            ints[column + WHOLE * room] = 0
            floats[leaf + plan[at.PLAN_SCHEDULE_AT] + QUIET] = 0.0
        elif test != at.MULTIWAY:  # the observer has counted a multiway test
            floats[counts_at(plan, leaf, room, q) + branch * classes + label] += weight


@kernel(f"float64({WORDS}, int64, int64, int64)", alone=True)
def evaluate(plan, params, ints, floats, t: int, leaf: int, room: int) -> float:
    """Compute the gains of all candidates at once.

    Returns the largest ratio of a branch's mass, at the weight AHEAD, to the mass of a class in it; NaN if a
    candidate has missed a record.
    """
    rows, k = rows_at(plan, leaf), ints[at.MODEL_CLASSES]
    count, kept = ints[leaf + plan[at.PLAN_SCHEDULE_AT] + COUNT], plan[at.PLAN_CLASSES]
    columns = 1
    for q in range(rows, rows + count):
        branches = 2
        if ints[q + TEST * room] == at.MULTIWAY:
            entry = plan[at.PLAN_NOMINAL_TABLE] + ints[q + ENTRY * room]
            branches = plan[entry + at.NOMINAL_ROOM]
        columns += branches if ints[q + WHOLE * room] != 0 else branches + 1
    masses, mixed, weight = np.empty((k, columns)), np.empty(columns), np.empty(columns)
    for c in range(k):
        masses[c, 0] = floats[leaf + at.LEAF_FIELDS + c]
    column = 1
    for q in range(count):
        first, n, stride, step = counts_at(plan, leaf, room, q), 2, kept, 1
        if ints[rows + TEST * room + q] == at.MULTIWAY:
            entry = plan[at.PLAN_NOMINAL_TABLE] + ints[rows + ENTRY * room + q]
            first = leaf + ints[t + at.TREE_NOMINAL_AT] + plan[entry + at.NOMINAL_FIRST]
            n, stride, step = plan[entry + at.NOMINAL_ROOM], 1, plan[at.PLAN_VALUES]
        whole = ints[rows + WHOLE * room + q] != 0
        for c in range(k):
            total = 0.0
            for b in range(n):
                mass = floats[first + c * step + b * stride]
                masses[c, column + b] = mass
                total += mass
            if not whole:
                masses[c, column + n] = total
        column += n if whole else n + 1
    impurity(plan[at.PLAN_CRITERION], masses, k, columns, mixed, weight)
    ratio = 0.0
    more = AHEAD * floats[leaf + at.LEAF_OBSERVED]
    for b in range(columns):
        least = masses[0, b]
        for c in range(1, k):
            least = min(least, masses[c, b])
        ratio = max(ratio, (weight[b] + more) / least if least > 0.0 else math.inf)
    column = 1
    for q in range(rows, rows + count):
        n = 2
        if ints[q + TEST * room] == at.MULTIWAY:
            n = plan[plan[at.PLAN_NOMINAL_TABLE] + ints[q + ENTRY * room] + at.NOMINAL_ROOM]
        whole = ints[q + WHOLE * room] != 0
        own = 0 if whole else column + n
        together = 0.0
        for b in range(column, column + n):
            together += mixed[b]
        floats[q + MIXED * room] = together
        floats[q + BEFORE * room] = mixed[own]
        floats[q + WEIGHT * room] = weight[own]
        floats[q + MERIT * room] = (mixed[own] - together) / weight[own]
        if not whole:
            ratio = math.nan
        column += n if whole else n + 1
    return ratio


evaluate_here: Any = outlined(evaluate)


@kernel
def known_range(plan, ints, floats, node: int, leaf: int, classes: int) -> float:
    """Return R² of the merit for this number of classes, as stored; a new number ends the quiet weight."""
    state = leaf + plan[at.PLAN_SCHEDULE_AT]
    if ints[state + CLASSES] != classes:
        ints[state + CLASSES] = classes
        floats[state + QUIET] = 0.0
        floats[state + SQUARE] = waiting.squared_range(plan, ints, node)
    return floats[state + SQUARE]


@kernel
def quiet_weight(plan, gap: float, needed: float, n: float, ratio: float, head: float) -> float:
    """Return the weight that has to come before a gap of merits that is too small can suffice.

    n: the mass that the merits come from; inherited weight in ε makes ε fall even more slowly.

    A unit of weight changes the difference of two impurities, times the mass, by no more than ``steepest``,
    while the gap needed, times the mass, grows. ratio: result of ``evaluate``; head: the part of the gap that
    no record changes, if it is above 0: times the mass, it grows too.
    """
    if plan[at.PLAN_INCREMENTAL] == 0 or math.isnan(ratio) or not gap <= needed:
        return 0.0
    slope = steepest(plan[at.PLAN_CRITERION], (1.0 + AHEAD) * n, ratio) + head
    return min(AHEAD * n, (needed - gap) * n / slope)


@kernel
def quiet_leaf(
    plan, ints, floats, leaf: int, room: int, gap: float, needed: float, n: float, ratio: float
) -> float:
    """Return ``quiet_weight`` of a leaf whose gap comes from ``rivals``."""
    if plan[at.PLAN_REVISION] == 0:
        return quiet_weight(plan, gap, needed, n, ratio, 0.0)
    rows, section = rows_at(plan, leaf), leaf + plan[at.PLAN_REVISION]
    head = 0.0
    for q in range(ints[leaf + plan[at.PLAN_SCHEDULE_AT] + COUNT]):
        head = max(head, floats[section + at.REVISION_FIELDS + ints[rows + ATTRIBUTE * room + q]])
    evaluations = floats[section + at.REVISION_EVALUATIONS] + 1.0
    return quiet_weight(plan, gap * evaluations, needed * evaluations, n, ratio, head)


@kernel
def follow(plan, params, ints, floats, t: int, leaf: int, room: int, x, label: int, weight: float) -> None:
    """Take in a record as IMAC's code does: impurities are updated, and masses below 1 are raised to 1."""
    rows = rows_at(plan, leaf)
    count = ints[leaf + plan[at.PLAN_SCHEDULE_AT] + COUNT]
    for q in range(count):
        place(plan, ints, floats, t, leaf, room, q, x, label, weight)
        if floats[rows + STEP * room + q] == 0.0:
            ints[rows + WHOLE * room + q] = 0
    criterion = plan[at.PLAN_CRITERION]
    if plan[at.PLAN_INCREMENTAL] == 0:
        for q in range(count):
            measure_here(plan, params, ints, floats, t, leaf, room, q)
            ints[rows + PLACE * room + q] = 0
        return
    for q in range(rows, rows + count):
        n, cell, moment = floats[q + N * room], floats[q + CELL * room], floats[q + MOMENT * room]
        step = floats[q + STEP * room]
        _, after = increment(criterion, n, cell, moment, step)
        moment = moment if n >= 1.0 else moment_of(criterion, 1.0, moment)
        added, _ = increment(criterion, max(n, 1.0), max(cell, 1.0), moment, step)
        floats[q + MIXED * room] += added
        floats[q + WEIGHT * room] += step
        floats[q + MOMENT * room] = after
    for q in range(rows, rows + count):
        if floats[q + STEP * room] > 0.0:
            floats[ints[q + PLACE * room]] = floats[q + MOMENT * room]
            ints[q + PLACE * room] = 0
        if floats[q + MERIT * room] > -math.inf:
            floats[q + MERIT * room] = merit_of(
                plan, 0.0, floats[q + MIXED * room], floats[q + WEIGHT * room]
            )


@kernel
def place(plan, ints, floats, t: int, leaf: int, room: int, q: int, x, label: int, weight: float) -> None:
    """Count a record in its branch of candidate q, and keep the counts from before."""
    column = rows_at(plan, leaf) + q
    attribute, test = ints[column + ATTRIBUTE * room], ints[column + TEST * room]
    value = x[attribute]
    counts, classes = counts_at(plan, leaf, room, q), plan[at.PLAN_CLASSES]
    for row in range(STEP, PLACE):
        floats[column + row * room] = 0.0
    if test == at.NUMERIC:
        if value - value != 0.0:
            return
        branch = 0 if value <= floats[column + VALUE * room] else 1
    else:
        entry = plan[at.PLAN_NOMINAL_TABLE] + ints[column + ENTRY * room]
        if not 0.0 <= value < plan[entry + at.NOMINAL_ROOM]:
            return
        branch = 0 if value == floats[column + VALUE * room] else 1
        if test == at.MULTIWAY:
            v = plan[entry + at.NOMINAL_FIRST] + int(value)
            cell = floats[leaf + ints[t + at.TREE_NOMINAL_AT] + label * plan[at.PLAN_VALUES] + v] - weight
            word = values_at(plan, leaf, room) + 2 * v
            store_step(ints, floats, column, room, weight, floats[word], cell, word + 1)
            floats[word] += weight
            floats[counts + label] += weight
            return
    word = counts + branch * classes + label
    n = column + (BRANCH_WEIGHT + branch) * room
    store_step(ints, floats, column, room, weight, floats[n], floats[word], n + 2 * room)
    floats[word] += weight
    floats[n] += weight


@kernel
def store_step(ints, floats, column: int, room: int, step: float, n: float, cell: float, moment: int) -> None:
    """Write the counts of a record's branch before it, and where the branch's moment is kept."""
    floats[column + STEP * room] = step
    floats[column + N * room] = n
    floats[column + CELL * room] = cell
    floats[column + MOMENT * room] = floats[moment]
    ints[column + PLACE * room] = moment


@kernel
def leaders(plan, ints, floats, leaf: int, room: int, null: float) -> tuple[float, float]:
    """Return the best merit of the candidates and the second best; "do not split" is one of them."""
    row = rows_at(plan, leaf) + MERIT * room
    best, second = -math.inf, null
    for q in range(ints[leaf + plan[at.PLAN_SCHEDULE_AT] + COUNT]):
        merit = floats[row + q]
        if merit >= best:
            second = max(second, best)
            best = merit
        elif merit > second:
            second = merit
    return best, second


@kernel
def rivals(plan, ints, floats, leaf: int, room: int, null: float) -> tuple[float, float]:
    """Return the two merits that an attempt would compare; where splits are final, those of ``leaders``.

    Where splits are revised, the best average over the evaluations of the leaf, including the present one,
    and 0 for "do not split" (core/learners/hoeffding/reevaluation.py) [D39]; the candidates' merits are
    gains.
    """
    if plan[at.PLAN_REVISION] == 0 or plan[at.PLAN_QUIRKS] & quirks.FOLLOWED_IMPURITY != 0:
        return leaders(plan, ints, floats, leaf, room, null)
    rows, section = rows_at(plan, leaf), leaf + plan[at.PLAN_REVISION]
    best = -math.inf
    for q in range(ints[leaf + plan[at.PLAN_SCHEDULE_AT] + COUNT]):
        sums = section + at.REVISION_FIELDS + ints[rows + ATTRIBUTE * room + q]
        best = max(best, floats[sums] + floats[rows + MERIT * room + q])
    return best / (floats[section + at.REVISION_EVALUATIONS] + 1.0), 0.0
