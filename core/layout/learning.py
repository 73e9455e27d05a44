"""The values that kernels of learners exchange: a record to learn, workspace, places and outcomes."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from core.kernels.jit import kernel
from core.kernels.records import Record, name_tuple, word, words_after
from core.layout.model import ModelHeader

NO_CLASS: Final = -1
"""Class code of an answer without a class: the model has learned none."""


class Row(NamedTuple):
    """A row that is learned or answered."""

    x: Any
    """Its values, float64[column]; missing values are NaN."""
    xs: Any
    """Its numeric attributes, float64[numeric attribute]."""
    label: int
    """Code of its class, -1: unknown."""
    weight: float


name_tuple(Row, "CPointer(float64)", "CPointer(float64)", "int64", "float64")


class Work(NamedTuple):
    """Workspace of a run; the content does not matter.

    Leaf models may use the first max(4·attributes + LANES, 2·classes) words of either array (LANES of
    core/numeric/special.py). ``unused_scratch(plan)`` (core/tree/columns.py) is the first word of ``scratch``
    after these: from it on there are at least three words for each attribute, two for each class and
    SPARE_WORDS, for learners made of other learners.
    """

    scratch: Any
    votes: Any
    """Holds also the words of an event of growth: at least EVENT_WORDS and one for each class."""


name_tuple(Work, "CPointer(float64)", "CPointer(float64)")


class LeafRow(Record):
    """A row of a table of leaves; the learner updates its fields."""

    node: int = word("number of its node; among equal leaves the lowest comes first")
    size: float = word("W: number of records that the leaf represents")
    labels: float = word("T: number of labels that it has kept")
    errors: float = word("number of these labels that are not of the leaf's majority class")
    notes: Any = words_after(float, "NOTES words of the query strategy: zeros in a new row")


NOTES: Final = 4
"""Words of a row that the query strategy may use."""
NOTES_AT: Final = LeafRow.SIZE
"""First of these words in a row."""
LEAF_ROW: Final = NOTES_AT + NOTES
"""Words of a row of a table of leaves."""


class LeafTable(NamedTuple):
    """The leaves of a block as a table of words, and the row of the leaf where a record ended."""

    first: int
    """Word of the first row in the model."""
    stride: int
    """Words from row to row."""
    rows: int
    row: int


name_tuple(LeafTable, "int64", "int64", "int64", "int64")


@kernel
def leaf_row(model: ModelHeader, leaves: LeafTable, number: int) -> LeafRow:
    """Return a row of a table of leaves by its number."""
    return LeafRow(model.ints, model.floats, leaves.first + number * leaves.stride)


# Results of learning
LEARNED: Final = 0
DECISION_DUE: Final = 1
"""Learned; the learner has a decision to take before the next record."""
GROW_FIRST: Final = 2
"""Nothing was learned: the learner has to grow first, then it is tried again."""
GREW: Final = 3
"""Learned and grown; the growth is written to ``Work.votes``."""

# Values for the place of a record in a block that is not known
FORGOTTEN: Final = -1
"""The row was answered before and its place was not kept: it is routed again, without being counted."""
NOT_ANSWERED: Final = -2
"""The block meets the record for the first time."""
NO_ROOM: Final = -3
"""The block has to grow before it can answer; the hint is the place."""

COUNTS: Final = -1
"""An answer counts the record; else the address of the result of ``BlockLayout.prepare``, 0: none yet."""

# Columns of the uncertainty at a place, as bits
SHARE: Final = 1
LEAD: Final = 2
"""And the weight that it is based on."""
WEIGHT: Final = 4
LEAVES: Final = 8
"""A table of all leaves, instead of columns of one leaf."""
VOTES: Final = 16
"""The share, and with LEAD the lead, follow from the votes of a committee's members."""
