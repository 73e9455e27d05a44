"""Layout of a forest's block: a header, a record for each member, and their trees.

    header | member record × (members, then their background trees) | tree | tree | …

A tree is a block of the Hoeffding family (core/tree/layout.py). Its record holds its place relative to the
forest. In a snapshot, trees follow each other in the order of their records. A member record consists of
MEMBER_FIELDS words, the states of the member's drift detector and warning detector, if it has them, and words
that describe a split, which are zeros except while a record is learned.
"""

from __future__ import annotations

from typing import Final

from core.kernels.jit import kernel
from core.tree import layout as at

# Header, after BLOCK_WORDS
NEXT: Final = 1  # while a record is being learned: the number of the next step, plus one; else 0
REPLACED: Final = 2  # trees that replaced another tree
RANKED: Final = (
    3  # 1: a tree has reached its part; leaves are ranked at reviews (core/learners/forest/memory.py)
)
HEADER: Final = 4

# Member record
TREE: Final = 0  # the tree's first word, relative to the forest; 0: there is none
SERIAL: Final = 1  # number of the tree, from which its random numbers follow
MADE: Final = 2  # trees that were made for the member so far, background trees included
SEEN: Final = 3  # weight of the records since the tree took its place (float64)
RIGHT: Final = 4  # weight of those that it predicted right (float64)
PLACE: Final = 5  # last record answered: number of the node where it ended
VOTE: Final = 6  # last record answered: class that the tree predicted
HINT: Final = 7  # last record answered: the leaf model's hint
DUE: Final = 8  # node that is due for a decision, relative to the tree; 0: none, TOLD: a split was made
ALARM: Final = 9  # alarm of the detectors at the last record: QUIET, WARNED or DRIFTED
MEMBER_FIELDS: Final = 10

TOLD: Final = -1
"""The words at OF_EVENT describe a split that was made, until Python has read them."""

QUIET: Final = 0
WARNED: Final = 1
DRIFTED: Final = 2

# Words of a plan about its forests, from plan[PLAN_ARRAYS] on
OF_MEMBERS: Final = 0
OF_STRIDE: Final = 1  # words of a member record
OF_SLOTS: Final = 2  # member records: for each member, and for each background tree if there are any
OF_DRIFT: Final = 3  # the drift detector's state, relative to a member record; 0: there is none
OF_WARNING: Final = 4
OF_ATTRIBUTES: Final = 5  # attributes that a leaf, or a member, may see; 0: all
OF_SUBSPACES: Final = 6  # 1: they are sampled for a member, not for each leaf; 2: APART
OF_WORST: Final = 7  # an alarm of any member replaces the member with the largest error
OF_WEIGHTED: Final = 8  # votes are weighted by accuracy
OF_MOA: Final = 9  # MOA's quirks hold
OF_EVENT: Final = (
    10  # words for a split, relative to a member record (core/learners/hoeffding/plain_split.py)
)
OF_ONCE: Final = 11  # a background tree learns a record once, even if its member learns it more often
OF_ENTROPY: Final = 12  # query strategies use the entropy of the members' votes
OF_FIELDS: Final = 13

APART: Final = 2
"""The first trees of the members have different subsets of few attributes, until all subsets are used."""


@kernel
def of(plan, word: int) -> int:
    """Return a word of a plan about its forests: one of the words OF_…"""
    return plan[plan[at.PLAN_ARRAYS] + word]


@kernel
def member_at(plan, t: int, slot: int) -> int:
    """Return the first word of a member record; t: first word of the forest."""
    return t + HEADER + slot * of(plan, OF_STRIDE)
