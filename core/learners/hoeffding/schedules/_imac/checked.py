"""Checks of the counts and positions of IMAC's candidates that kernels rely on."""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.layout.plan import NOMINAL_FIELDS, PlanRecord
from core.layout.tree import CATEGORY, MULTIWAY, NUMERIC, Leaf, Node, Tree
from core.learners.hoeffding.branch_masses import is_numeric, nominal_number
from core.learners.hoeffding.schedules._imac.state import (
    CANDIDATE,
    AttributeState,
    attribute_state,
    capacity,
    columns_of,
    state_of,
)
from core.problems import SOUND, range_problem, range_rules

_RULES: Final = (
    "the number of candidates must be from 0 to the room for candidates",
    "each candidate must be another attribute, with the state of a candidate",
    "tests of candidates must have the kind of their attributes",
    "classes in the range of merits must be from 0 to the number of classes in the schema",
)
COUNT, CANDIDATES, TESTS, CLASSES = range(1, len(_RULES) + 1)

PROBLEMS: Final = (*_RULES, *range_rules(AttributeState))

attribute_ranges = range_problem(AttributeState, len(_RULES))


@kernel
def problem(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf) -> int:
    d, state, columns = plan.attributes, state_of(plan, leaf), columns_of(plan, leaf)
    if not 0 <= state.count <= capacity(d):
        return COUNT
    if not 0 <= state.classes <= plan.classes:
        return CLASSES
    chosen = 0
    for a in range(d):
        attribute = attribute_state(plan, leaf, a)
        number = attribute_ranges(attribute)
        if number != SOUND:
            return number
        chosen += 1 if attribute.standing == CANDIDATE else 0
    for q in range(state.count):
        a, test = columns.attribute[q], columns.test[q]
        if not 0 <= a < d or attribute_state(plan, leaf, a).standing != CANDIDATE:
            return CANDIDATES
        for earlier in range(q):
            if columns.attribute[earlier] == a:
                return CANDIDATES
        if test != NUMERIC and test != CATEGORY and test != MULTIWAY:
            return TESTS
        if is_numeric(plan, a) != (test == NUMERIC):
            return TESTS
        if test != NUMERIC and columns.entry[q] != nominal_number(plan, a) * NOMINAL_FIELDS:
            return TESTS
    return CANDIDATES if chosen != state.count else SOUND
