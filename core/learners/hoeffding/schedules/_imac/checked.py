"""Checks of the counts and positions of IMAC's candidates that kernels rely on."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.layout.plan import NOMINAL_FIELDS, PlanRecord
from core.learners.hoeffding.branch_masses import is_numeric, nominal_number
from core.learners.hoeffding.schedules._imac import candidates
from core.tree import layout as at

PROBLEMS: Final = (
    "the number of candidates must be from 0 to the room for candidates",
    "each candidate must be another attribute, with the state of a candidate",
    "tests of candidates must have the kind of their attributes",
    "an attribute must be away, a candidate, potential or illegal",
    "classes in the range of merits must be from 0 to the number of classes in the schema",
)


@kernel
def problem(plan, params, ints, floats, t: int, node: int, leaf: int) -> int:
    d, k = plan[at.PLAN_ATTRIBUTES], plan[at.PLAN_CLASSES]
    state, room, rows = (
        leaf + plan[at.PLAN_SCHEDULE_AT],
        candidates.capacity(d),
        candidates.rows_at(plan, leaf),
    )
    count = ints[state + candidates.COUNT]
    if not 0 <= count <= room:
        return 1
    if not 0 <= ints[state + candidates.CLASSES] <= k:
        return 5
    first, chosen = candidates.attributes_at(plan, leaf), 0
    for a in range(d):
        where = ints[first + 2 * a]
        if not candidates.AWAY <= where <= candidates.ILLEGAL:
            return 4
        chosen += 1 if where == candidates.CANDIDATE else 0
    for q in range(rows, rows + count):
        attribute, test = ints[q + candidates.ATTRIBUTE * room], ints[q + candidates.TEST * room]
        if not 0 <= attribute < d or ints[first + 2 * attribute] != candidates.CANDIDATE:
            return 2
        for earlier in range(rows, q):
            if ints[earlier + candidates.ATTRIBUTE * room] == attribute:
                return 2
        if test != at.NUMERIC and test != at.CATEGORY and test != at.MULTIWAY:
            return 3
        if is_numeric(PlanRecord(plan, params, 0), attribute) != (test == at.NUMERIC):
            return 3
        if test != at.NUMERIC:
            entry = nominal_number(PlanRecord(plan, params, 0), attribute) * NOMINAL_FIELDS
            if ints[q + candidates.ENTRY * room] != entry:
                return 3
    return 2 if chosen != count else 0
