"""IMAC's candidates at a leaf: tests whose impurity is updated record by record.

Every record is counted at once. The merits are computed from the counts only when they can matter
(core/learners/hoeffding/schedules/_imac/rivals.py). IMAC's code updates the impurities record by record
(core/learners/hoeffding/schedules/_imac/following.py).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from core.criteria import base as criteria
from core.kernels.jit import kernel, outlined, part
from core.layout.learning import Row
from core.layout.plan import NOMINAL_FIELDS, PlanRecord
from core.layout.tree import MULTIWAY, NUMERIC, Leaf, Tree
from core.learners.hoeffding.branch_masses import divide_leaf, nominal_number
from core.learners.hoeffding.schedules._imac.state import (
    CandidateColumns,
    columns_of,
    counts_of,
    nominal_of,
    state_of,
    tested_value,
)
from core.tree import quirks

AHEAD: Final = 0.25
"""Maximum of weight to look ahead, as a share of the leaf's weight."""

impurity = criteria.dispatcher()
moment_of = criteria.increment_dispatcher()[0]


class BranchMasses(NamedTuple):
    """The class masses of a candidate's branches.

    Class c of branch b is word ``b * branch_stride + c * class_stride`` of ``masses``.
    """

    masses: Any
    branches: int
    branch_stride: int
    class_stride: int


@kernel
def branch_masses(
    plan: PlanRecord, tree: Tree, leaf: Leaf, columns: CandidateColumns, q: int
) -> BranchMasses:
    """Return the class masses of the branches of candidate q: its own, or the nominal observer's."""
    masses, branches, branch_stride, class_stride = counts_of(plan, leaf, q), 2, plan.classes, 1
    if columns.test[q] == MULTIWAY:
        nominal = nominal_of(plan, columns, q)
        branches, branch_stride, class_stride = nominal.room, 1, plan.values
        n = plan.classes * plan.values - nominal.first
        masses = part(tree.nominal_statistics(leaf).cells, nominal.first, n)
    return BranchMasses(masses, branches, branch_stride, class_stride)


@kernel
def branches_of(plan: PlanRecord, columns: CandidateColumns, q: int) -> int:
    """Return the number of branches of candidate q: two, or the room for values of its attribute."""
    return nominal_of(plan, columns, q).room if columns.test[q] == MULTIWAY else 2


@kernel("void(PlanRecord, Tree, Leaf, int64, int64, int64, float64)", alone=True)
def load(plan: PlanRecord, tree: Tree, leaf: Leaf, q: int, attribute: int, test: int, value: float) -> None:
    """Make a test candidate q, with the class masses of its branches by the observers."""
    columns, k = columns_of(plan, leaf), tree.model.classes
    columns.attribute[q] = attribute
    columns.test[q] = test
    columns.value[q] = value
    if test != NUMERIC:
        columns.entry[q] = nominal_number(plan, attribute) * NOMINAL_FIELDS
    if test == MULTIWAY:
        load_values(plan, tree, leaf, columns, q)
    else:
        counts = counts_of(plan, leaf, q)
        branches = np.empty((2, k))
        divide_leaf(plan, tree, leaf, attribute, test, value, branches)
        for b in range(2):
            weight = squares = 0.0
            for c in range(k):
                mass = max(branches[b, c], 0.0)
                counts[b * plan.classes + c] = mass
                weight += mass
                squares += mass * mass
            columns.branch_weight[b * columns.room + q] = weight
            columns.branch_moment[b * columns.room + q] = moment_of(plan.criterion, weight, squares)
    measure_here(plan, tree, leaf, q)
    columns.whole[q] = abs(columns.weight[q] - leaf.observed) <= 1e-9 * leaf.observed


load_here: Any = outlined(load)


@kernel
def load_values(plan: PlanRecord, tree: Tree, leaf: Leaf, columns: CandidateColumns, q: int) -> None:
    """Sum up the observer's counts of the values of a multiway candidate."""
    nominal, statistics = nominal_of(plan, columns, q), tree.nominal_statistics(leaf)
    first, end = nominal.first, nominal.first + nominal.room
    counts, masses = counts_of(plan, leaf, q), statistics.cells
    for v in range(first, end):
        tested = tested_value(plan, leaf, v)
        tested.mass = 0.0
        tested.moment = 0.0
    for c in range(tree.model.classes):
        total = 0.0
        for v in range(first, end):
            mass = masses[c * plan.values + v]
            tested = tested_value(plan, leaf, v)
            tested.mass += mass
            tested.moment += mass * mass
            total += mass
        counts[c] = total
        counts[plan.classes + c] = 0.0
    for v in range(first, end):
        tested = tested_value(plan, leaf, v)
        tested.moment = moment_of(plan.criterion, tested.mass, tested.moment)


@kernel("void(PlanRecord, Tree, Leaf, int64)", alone=True)
def measure(plan: PlanRecord, tree: Tree, leaf: Leaf, q: int) -> None:
    """Compute the impurities of candidate q from its class masses."""
    columns, k = columns_of(plan, leaf), tree.model.classes
    counted = branch_masses(plan, tree, leaf, columns, q)
    n = counted.branches
    masses, all_masses = np.empty((k, n)), np.zeros((k, 1))
    for c in range(k):
        for b in range(n):
            masses[c, b] = counted.masses[c * counted.class_stride + b * counted.branch_stride]
            all_masses[c, 0] += masses[c, b]
    mixed, weight, before, total = np.empty(n), np.empty(n), np.empty(1), np.empty(1)
    impurity(plan.criterion, masses, k, n, mixed, weight)
    impurity(plan.criterion, all_masses, k, 1, before, total)
    mixed_all = 0.0
    for b in range(n):
        mixed_all += mixed[b]
    columns.mixed[q] = mixed_all
    columns.before[q] = before[0]
    columns.weight[q] = total[0]
    columns.merit[q] = merit_of(plan, before[0], mixed_all, total[0])


measure_here: Any = outlined(measure)


@kernel
def merit_of(plan: PlanRecord, before: float, mixed: float, weight: float) -> float:
    """Return the gain of a test; IMAC's code leaves out the term that all tests have in common."""
    if not plan.has(quirks.FOLLOWED_IMPURITY):
        return (before - mixed) / weight
    return (1.0 if plan.null_merit != 0 else 0.0) - mixed / weight


@kernel
def count_in(plan: PlanRecord, leaf: Leaf, row: Row) -> None:
    """Count a record in its branch of every candidate."""
    state, columns = state_of(plan, leaf), columns_of(plan, leaf)
    for q in range(state.count):
        test, value = columns.test[q], row.x[columns.attribute[q]]
        if test == NUMERIC:
            is_known = value - value == 0.0
            branch = 0 if value <= columns.value[q] else 1
        else:
            is_known = 0.0 <= value < nominal_of(plan, columns, q).room
            branch = 0 if value == columns.value[q] else 1
        if not is_known:
            columns.whole[q] = 0
            state.quiet = 0.0
        elif test != MULTIWAY:  # the observer has counted a multiway test
            counts_of(plan, leaf, q)[branch * plan.classes + row.label] += row.weight


@kernel("float64(PlanRecord, Tree, Leaf)", alone=True)
def evaluate(plan: PlanRecord, tree: Tree, leaf: Leaf) -> float:
    """Compute the gains of all candidates at once.

    Returns the largest ratio of a branch's mass, at the weight AHEAD, to the mass of a class in it; NaN if a
    candidate has missed a record.
    """
    columns, k = columns_of(plan, leaf), tree.model.classes
    count = state_of(plan, leaf).count
    # One column for the leaf, one for each branch, and one for all branches of a candidate that is not whole
    n = 1
    for q in range(count):
        n += branches_of(plan, columns, q) + (0 if columns.whole[q] != 0 else 1)
    masses, mixed, weight = np.empty((k, n)), np.empty(n), np.empty(n)
    for c in range(k):
        masses[c, 0] = leaf.seen[c]
    column = 1
    for q in range(count):
        counted = branch_masses(plan, tree, leaf, columns, q)
        branches, whole = counted.branches, columns.whole[q] != 0
        for c in range(k):
            total = 0.0
            for b in range(branches):
                mass = counted.masses[c * counted.class_stride + b * counted.branch_stride]
                masses[c, column + b] = mass
                total += mass
            if not whole:
                masses[c, column + branches] = total
        column += branches if whole else branches + 1
    impurity(plan.criterion, masses, k, n, mixed, weight)
    ratio = 0.0
    more = AHEAD * leaf.observed
    for b in range(n):
        least = masses[0, b]
        for c in range(1, k):
            least = min(least, masses[c, b])
        ratio = max(ratio, (weight[b] + more) / least if least > 0.0 else math.inf)
    column = 1
    for q in range(count):
        branches, whole = branches_of(plan, columns, q), columns.whole[q] != 0
        before = 0 if whole else column + branches
        mixed_all = 0.0
        for b in range(column, column + branches):
            mixed_all += mixed[b]
        columns.mixed[q] = mixed_all
        columns.before[q] = mixed[before]
        columns.weight[q] = weight[before]
        columns.merit[q] = (mixed[before] - mixed_all) / weight[before]
        if not whole:
            ratio = math.nan
        column += branches if whole else branches + 1
    return ratio


evaluate_here: Any = outlined(evaluate)
