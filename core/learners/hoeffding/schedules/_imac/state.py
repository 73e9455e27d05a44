"""State of IMAC's schedule at a leaf: the words that hold its candidates.

The sections of ``axes``, one after the other:

    header      ImacState
    attribute   AttributeState of each attribute
    rows        one column for each candidate: CandidateColumns
    counts      [candidate][branch][class]: class masses of two branches; of a multiway test the class masses
                of all its branches together, in branch 0
    value       ValueState of each value of a nominal attribute, used where a multiway candidate tests it

The class masses of a multiway test belong to the nominal observer, and are exact. Rows lie side by side so
that the loops over candidates run in vectors; the last words of a column belong to the present record.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from core.kernels.jit import kernel, part
from core.kernels.records import Record, offset, word
from core.layout.plan import NominalColumn, PlanRecord
from core.layout.tree import Leaf


class ImacState(Record):
    """The first words of the state of a leaf."""

    count: int = word("number of candidates")
    checked: float = word("observed weight at the last check, 0: no attempt yet")
    quiet: float = word("observed weight up to which no gap can suffice")
    classes: int = word("known classes when ``square`` was computed")
    square: float = word("R² of the merit")


HEADER: Final = ImacState.SIZE

# Standing of an attribute
AWAY: Final = 0
CANDIDATE: Final = 1
POTENTIAL: Final = 2
ILLEGAL: Final = 3


class AttributeState(Record):
    """The state of an attribute."""

    standing: int = word("AWAY (not considered), CANDIDATE, POTENTIAL or ILLEGAL", low=AWAY, high=ILLEGAL)
    merit: float = word("last merit")


ATTRIBUTE_WORDS: Final = AttributeState.SIZE


class ValueState(Record):
    """A value that a multiway candidate tests."""

    mass: float = word("mass of the value's branch")
    moment: float = word("moment of the branch (core/criteria/base.py)")


VALUE_WORDS: Final = ValueState.SIZE
MOMENT_OF_VALUE: Final = offset(ValueState, "moment")

# Rows of the candidates' columns
ATTRIBUTE: Final = 0
TEST: Final = 1
VALUE: Final = 2
WHOLE: Final = 3
MIXED: Final = 4
BEFORE: Final = 5
WEIGHT: Final = 6
MERIT: Final = 7
BRANCH_WEIGHT: Final = 8
"""First of two rows, one for each branch."""
BRANCH_MOMENT: Final = 10
"""First of two rows."""
STEP: Final = 12
BRANCH_MASS: Final = 13
CLASS_MASS: Final = 14
MOMENT: Final = 15
PLACE: Final = 16
ENTRY: Final = 17
ROWS: Final = 18


class CandidateColumns(NamedTuple):
    """The words of the candidates, each part [candidate]."""

    room: int
    """Number of candidates that there is room for."""
    attribute: Any
    test: Any
    """Kind of the test."""
    value: Any
    """Threshold or category."""
    whole: Any
    """1: no record has lacked the attribute, so that its classes are the leaf's."""
    mixed: Any
    """Mass times impurity, summed over the branches."""
    before: Any
    """Mass times impurity of all branches together."""
    weight: Any
    """Mass of all branches together."""
    merit: Any
    branch_weight: Any
    """Mass of branch b, unless multiway: word ``b * room + candidate``."""
    branch_moment: Any
    """The same for the moment of branch b."""
    step: Any
    """Weight of the present record, 0 if it lacks the attribute."""
    branch_mass: Any
    """Before the record: mass of its branch."""
    class_mass: Any
    """Before the record: mass of its class in its branch."""
    moment: Any
    """Moment of its branch."""
    place: Any
    """Word of the model that holds the moment of the record's branch; 0 outside a record."""
    entry: Any
    """Position of the NominalColumn of a nominal attribute in the plan's nominal table."""


def most_candidates(attributes: int) -> int:
    """Return the number of candidates that there is room for [D34].

    The authors count "no split" as an attribute.
    """
    return min(attributes, min(max((attributes + 1) // 10, 5), 10))


# Only for kernels: a call from Python would compile it once more, in the middle of a stream.
capacity = kernel(most_candidates)


def axes(attributes: int) -> tuple[tuple[str | int, ...], ...]:
    """Return the axes of the sections of a leaf's state."""
    room = most_candidates(attributes)
    return (
        (HEADER,),
        ("attribute", ATTRIBUTE_WORDS),
        (ROWS, room),
        (room, 2, "class"),
        ("value", VALUE_WORDS),
    )


@kernel
def state_of(plan: PlanRecord, leaf: Leaf) -> ImacState:
    """Return the header of the state of a leaf."""
    return ImacState(leaf.ints, leaf.floats, leaf.start + plan.schedule_state)


@kernel
def attribute_state(plan: PlanRecord, leaf: Leaf, attribute: int) -> AttributeState:
    """Return the state of an attribute at a leaf."""
    first = leaf.start + plan.schedule_state + HEADER
    return AttributeState(leaf.ints, leaf.floats, first + ATTRIBUTE_WORDS * attribute)


@kernel
def put(plan: PlanRecord, leaf: Leaf, attribute: int, standing: int, merit: float) -> None:
    """Set the state of an attribute at a leaf."""
    state = attribute_state(plan, leaf, attribute)
    state.standing = standing
    state.merit = merit


@kernel
def rows_at(plan: PlanRecord, leaf: Leaf) -> int:
    """Return the word of the model at which the rows of a leaf begin."""
    return leaf.start + plan.schedule_state + HEADER + ATTRIBUTE_WORDS * plan.attributes


@kernel
def columns_of(plan: PlanRecord, leaf: Leaf) -> CandidateColumns:
    """Return the columns of the candidates at a leaf."""
    ints, floats, first = leaf.ints, leaf.floats, rows_at(plan, leaf)
    room = capacity(plan.attributes)
    return CandidateColumns(
        room,
        part(ints, first + ATTRIBUTE * room, room),
        part(ints, first + TEST * room, room),
        part(floats, first + VALUE * room, room),
        part(ints, first + WHOLE * room, room),
        part(floats, first + MIXED * room, room),
        part(floats, first + BEFORE * room, room),
        part(floats, first + WEIGHT * room, room),
        part(floats, first + MERIT * room, room),
        part(floats, first + BRANCH_WEIGHT * room, 2 * room),
        part(floats, first + BRANCH_MOMENT * room, 2 * room),
        part(floats, first + STEP * room, room),
        part(floats, first + BRANCH_MASS * room, room),
        part(floats, first + CLASS_MASS * room, room),
        part(floats, first + MOMENT * room, room),
        part(ints, first + PLACE * room, room),
        part(ints, first + ENTRY * room, room),
    )


@kernel
def counts_at(plan: PlanRecord, leaf: Leaf, q: int) -> int:
    """Return the word of the model at which the counts of candidate q begin."""
    return rows_at(plan, leaf) + ROWS * capacity(plan.attributes) + 2 * q * plan.classes


@kernel
def counts_of(plan: PlanRecord, leaf: Leaf, q: int) -> Any:
    """Return the counts of candidate q: class c of branch b is word ``b * plan.classes + c``."""
    return part(leaf.floats, counts_at(plan, leaf, q), 2 * plan.classes)


@kernel
def tested_value(plan: PlanRecord, leaf: Leaf, value: int) -> ValueState:
    """Return a value of a nominal attribute, by its place on the value axis."""
    first = counts_at(plan, leaf, capacity(plan.attributes))
    return ValueState(leaf.ints, leaf.floats, first + VALUE_WORDS * value)


@kernel
def nominal_of(plan: PlanRecord, columns: CandidateColumns, q: int) -> NominalColumn:
    """Return the plan's entry of the nominal attribute that candidate q tests."""
    return NominalColumn(plan.ints, plan.floats, plan.nominal_table + columns.entry[q])
