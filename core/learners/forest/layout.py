"""Layout of a forest's block: a header, a record for each member, and their trees.

    header | member record × (members, then their background trees) | tree | tree | …

A tree is a block of the Hoeffding family (core/layout/tree.py). Its record holds its place relative to the
forest. In a snapshot, trees follow each other in the order of their records. A member record consists of a
Member, the states of the member's drift detector and warning detector, if it has them, its weights if it is
boosted, and words that
describe a split, which are zeros except while a record is learned.
"""

from __future__ import annotations

from typing import Final

from core.drift.adwin import AdwinState
from core.kernels.jit import kernel
from core.kernels.records import Record, word
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.layout.tree import Tree

# Values of Member.alarm
QUIET: Final = 0
WARNED: Final = 1
DRIFTED: Final = 2

SPLIT_MADE: Final = -1
"""Value of ``Member.due``: a split was made, and the words at ``ForestPlan.event`` describe it to Python."""

APART: Final = 2
"""Value of ``ForestPlan.subspaces``: the first trees of the members have different subsets of few attributes,
until all subsets are used.
"""


class ForestPlan(Record):
    """The words of a plan about its forests (``ForestPlacement.offsets``)."""

    is_constant = True

    members: int = word("trees that vote")
    stride: int = word("words of a member record")
    slots: int = word("member records: for each member, and for each background tree if there are any")
    drift: int = word("first word of the drift detector's state in a member record, 0: there is none")
    warning: int = word("first word of the warning detector's state, 0: there is none")
    attributes: int = word("attributes that a leaf, or a member, may see; 0: all")
    subspaces: int = word("0: they are sampled for each leaf, 1: for a member, or APART")
    worst: int = word("1: an alarm of any member replaces the member with the largest error")
    weighted: int = word("1: votes are weighted by accuracy")
    moa: int = word("1: MOA's quirks hold")
    event: int = word("first of the words that describe a split, in a member record")
    once: int = word("1: a background tree learns a record once, even if its member learns it more often")
    entropy: int = word("1: query strategies use the entropy of the members' votes")
    boosted: int = word(
        "first word of a member's weights for boosting in its record, 0: members are not boosted"
    )


class ForestParameters(Record):
    """The numeric parameters of a forest (``Forest.constants``)."""

    poisson: float = word("mean of the number of times that a member learns a record; 0: once")


class Boosted(Record):
    """The weights for boosting in a member record (core/learners/forest/boosting.py)."""

    right: float = word("sum of the weights of the records that the member predicted right", low=0.0)
    wrong: float = word("sum of the weights of the records that it predicted wrong", low=0.0)
    weight: float = word("weight of the last record for the member", low=0.0)


class Member(Record):
    """The first words of a member record, which belongs to a member or to its background tree."""

    tree: int = word("first word of the tree, relative to the forest; 0: there is none")
    serial: int = word("number of the tree, from which its random numbers follow", low=0, high=1 << 53)
    made: int = word(
        "trees that were made for the member so far, background trees included", low=0, high=1 << 53
    )
    seen: float = word("weight of the records since the tree took its place", low=0.0)
    right: float = word("weight of those that it predicted right", low=0.0, high="seen")
    place: int = word("last record answered: number of the node where it ended")
    vote: int = word("last record answered: class that the tree predicted")
    hint: int = word("last record answered: the leaf model's hint")
    due: int = word(
        "while a record is learned: node that is due for a decision, relative to the tree; or SPLIT_MADE",
        low=0,
        high=0,
    )
    alarm: int = word("while a record is learned: QUIET, or the detectors' alarm", low=QUIET, high=QUIET)

    def window(self, state: int) -> AdwinState:
        """Return the window of the detector whose state begins at a word of the record."""
        return AdwinState(self.ints, self.floats, self.start + state)

    def boosted(self, state: int) -> Boosted:
        """Return the weights for boosting, which begin at a word of the record."""
        return Boosted(self.ints, self.floats, self.start + state)


MEMBER_FIELDS: Final = Member.SIZE


class ForestBlock(Record):
    """The header of a forest's block."""

    words: int = word("words of the block")
    next: int = word(
        "while a record is learned: number of the step that comes next, plus one; else 0", low=0, high=0
    )
    replaced: int = word("trees that replaced another tree")
    ranked: int = word(
        "1: a tree has reached its part; leaves are ranked at reviews (core/learners/forest/memory.py)"
    )

    @property
    def model(self) -> ModelHeader:
        """The header of the model that holds the forest."""
        return ModelHeader(self.ints, self.floats, 0)

    def member(self, plan: PlanRecord, slot: int) -> Member:
        """Return the record of a member, or of the background tree of member slot - members."""
        start = self.start + FOREST_HEADER + slot * forest_plan(plan).stride
        return Member(self.ints, self.floats, start)

    def tree(self, member: Member) -> Tree:
        """Return the tree of a member record, which must have one."""
        return Tree(self.ints, self.floats, self.start + member.tree)


FOREST_HEADER: Final = ForestBlock.SIZE


@kernel
def forest_plan(plan: PlanRecord) -> ForestPlan:
    """Return the words of a plan about its forests."""
    return ForestPlan(plan.ints, plan.floats, plan.arrays)


@kernel
def mean_repeats(plan: PlanRecord) -> float:
    """Return the mean of the number of times that a member learns a record; 0: once."""
    return ForestParameters(plan.ints, plan.floats, plan.learner_at).poisson
