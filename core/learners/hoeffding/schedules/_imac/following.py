"""IMAC's code: it updates the impurities of candidates record by record, and raises masses below 1 to 1.

``compat`` does the same (core/tree/quirks.py:FOLLOWED_IMPURITY).
"""

from __future__ import annotations

import math

from core.criteria import base as criteria
from core.kernels.jit import kernel
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import MULTIWAY, NUMERIC, Leaf, Tree
from core.learners.hoeffding.schedules._imac.candidates import measure_here, merit_of
from core.learners.hoeffding.schedules._imac.state import (
    BRANCH_MOMENT,
    MOMENT_OF_VALUE,
    CandidateColumns,
    columns_of,
    counts_of,
    nominal_of,
    rows_at,
    state_of,
    tested_value,
)

moment_of, increment = criteria.increment_dispatcher()


@kernel
def follow(plan: PlanRecord, tree: Tree, leaf: Leaf, row: Row) -> None:
    """Take in a record as IMAC's code does: impurities are updated, and masses below 1 are raised to 1."""
    columns, count = columns_of(plan, leaf), state_of(plan, leaf).count
    for q in range(count):
        count_in_branch(plan, tree, leaf, columns, q, row)
        if columns.step[q] == 0.0:
            columns.whole[q] = 0
    if plan.incremental == 0:
        for q in range(count):
            measure_here(plan, tree, leaf, q)
            columns.place[q] = 0
        return
    for q in range(count):
        mass, class_mass, moment = columns.branch_mass[q], columns.class_mass[q], columns.moment[q]
        step = columns.step[q]
        _, after = increment(plan.criterion, mass, class_mass, moment, step)
        moment = moment if mass >= 1.0 else moment_of(plan.criterion, 1.0, moment)
        added, _ = increment(plan.criterion, max(mass, 1.0), max(class_mass, 1.0), moment, step)
        columns.mixed[q] += added
        columns.weight[q] += step
        columns.moment[q] = after
    for q in range(count):
        if columns.step[q] > 0.0:
            leaf.floats[columns.place[q]] = columns.moment[q]
            columns.place[q] = 0
        if columns.merit[q] > -math.inf:
            columns.merit[q] = merit_of(plan, 0.0, columns.mixed[q], columns.weight[q])


@kernel
def count_in_branch(
    plan: PlanRecord, tree: Tree, leaf: Leaf, columns: CandidateColumns, q: int, row: Row
) -> None:
    """Count a record in its branch of candidate q, and keep the counts from before."""
    test, value = columns.test[q], row.x[columns.attribute[q]]
    counts, label, weight = counts_of(plan, leaf, q), row.label, row.weight
    store_step(columns, q, 0.0, 0.0, 0.0, 0.0)
    if test == NUMERIC:
        if value - value != 0.0:
            return
        branch = 0 if value <= columns.value[q] else 1
    else:
        nominal = nominal_of(plan, columns, q)
        if not 0.0 <= value < nominal.room:
            return
        branch = 0 if value == columns.value[q] else 1
        if test == MULTIWAY:
            v = nominal.first + int(value)
            tested, masses = tested_value(plan, leaf, v), tree.nominal_statistics(leaf).cells
            before = masses[label * plan.values + v] - weight  # the observer has counted the record
            store_step(columns, q, weight, tested.mass, before, tested.moment)
            columns.place[q] = tested.start + MOMENT_OF_VALUE
            tested.mass += weight
            counts[label] += weight
            return
    cell, word = branch * plan.classes + label, branch * columns.room + q
    store_step(columns, q, weight, columns.branch_weight[word], counts[cell], columns.branch_moment[word])
    columns.place[q] = rows_at(plan, leaf) + BRANCH_MOMENT * columns.room + word
    counts[cell] += weight
    columns.branch_weight[word] += weight


@kernel
def store_step(
    columns: CandidateColumns, q: int, step: float, mass: float, class_mass: float, moment: float
) -> None:
    """Write the weight of a record, and the counts of its branch before it."""
    columns.step[q] = step
    columns.branch_mass[q] = mass
    columns.class_mass[q] = class_mass
    columns.moment[q] = moment
