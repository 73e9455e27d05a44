"""Layout of a forest's block: a header, a record for each member, and their trees.

    header | member record × (members, then their background trees) | tree | tree | …

A tree is a block of the Hoeffding family (core/tree/layout.py) and lies where its record says, relative to
the forest: trees lie one behind the other in the order of their records. A member record is MEMBER_FIELDS
words, then the states of the member's drift detector and of its warning detector, as many as it has, then
words for what a split says of itself, zeros but while a record is learned.
"""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.tree import layout as at

# Header, behind BLOCK_WORDS
NEXT: Final = 1  # while a record is being learned: the step to go on with, plus one; else 0
REPLACED: Final = 2  # trees that took the place of another
RANKED: Final = (
    3  # 1: a tree has reached its part; leaves are ranked at reviews (core/learners/forest/memory.py)
)
HEADER: Final = 4

# Member record
TREE: Final = 0  # the tree's first word, relative to the forest; 0: there is none
SERIAL: Final = 1  # number of the tree: its random draws are its own
MADE: Final = 2  # trees that were made for the member so far, background trees among them
SEEN: Final = 3  # weight of the records since the tree took its place (float64),
RIGHT: Final = 4  # and of those that it predicted right
PLACE: Final = 5  # of the last record answered: number of the node where it ended,
VOTE: Final = 6  # class that the tree predicted,
HINT: Final = 7  # and the leaf model's hint
DUE: Final = 8  # node that is due for a decision, relative to the tree; 0: none, TOLD: a split was made
ALARM: Final = 9  # what the detectors say of the last record: one of the following
MEMBER_FIELDS: Final = 10

TOLD: Final = -1
"""What it says of itself lies at OF_EVENT until Python has read it."""

QUIET: Final = 0
WARNED: Final = 1
DRIFTED: Final = 2

# What a plan says of a forest, from plan[PLAN_ARRAYS] on
OF_MEMBERS: Final = 0
OF_STRIDE: Final = 1  # words of a member record
OF_SLOTS: Final = (
    2  # member records: one for each member, and one for its background tree where there are some
)
OF_DRIFT: Final = 3  # the drift detector's state, relative to a member record; 0: there is none
OF_WARNING: Final = 4
OF_ATTRIBUTES: Final = 5  # attributes that a leaf, or a member, may see; 0: all
OF_SUBSPACES: Final = 6  # they are drawn for a member, not for each leaf; APART: see there
OF_WORST: Final = 7  # after an alarm of any member the one with the largest error is replaced
OF_WEIGHTED: Final = 8  # votes are weighted by accuracy
OF_MOA: Final = 9  # MOA's quirks hold
OF_EVENT: Final = (
    10  # words for a split, relative to a member record (core/learners/hoeffding/plain_split.py)
)
OF_ONCE: Final = 11  # a background tree learns a record once, however often its member does
OF_ENTROPY: Final = 12  # query strategies go by the entropy of the members' votes
OF_FIELDS: Final = 13

APART: Final = 2
"""Of few attributes the first trees of the members have different subsets, as long as there are some."""


@kernel
def of(plan, word: int) -> int:
    """Return what a plan says of its forests: one of the words OF_…"""
    return plan[plan[at.PLAN_ARRAYS] + word]


@kernel
def member_at(plan, t: int, slot: int) -> int:
    """Return the first word of a member record; t: of the forest."""
    return t + HEADER + slot * of(plan, OF_STRIDE)
