"""Member state: one tree of a forest as its growth sees it, and the bytes that it may take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from core.events import Drift, Event, GrowthStopped, Pruned, Split
from core.layout.model import WORD, Ints, ModelHeader
from core.layout.plan import PlanRecord
from core.learners.forest.layout import FOREST_HEADER
from core.learners.forest.placement import ForestPlacement
from core.learners.hoeffding.blocks import TreeLayout
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.protocol import HasBlocks, Room
from core.schema.schema import Schema

USUAL_ROOMS: Final = ((63, 32), (31, 16), (15, 8), (7, 4))
"""Rooms (nodes, leaf records) for a tree that is made or split later; the largest that fits is given."""

USUAL_WORDS: Final = 1 << 13
"""Maximum of words of such a room. Trees of forests are replaced all the time, and each grows again."""


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """The plan of a forest as a member's growth sees it: the layout of trees, and a part of the bytes."""

    whole: Any
    blocks: TreeLayout
    parts: int
    """Number of trees that share the bytes; doubled where half of them is for the most promising leaves."""
    record_words: float
    """Words outside a tree: its part of the forest's header, and its record without the class words."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def block_bytes(self, classes: int) -> float:
        """Return the bytes that a tree may take: an equal part, even while there are no background trees."""
        return float(self.whole.block_bytes(classes)) / self.parts - self._record_bytes(classes)

    def learned_bytes(self, ints: Ints, least: int = 0) -> float:
        """Return the bytes that a tree may take, for the classes and values that the model has learned."""
        learned = max(classes_of(ints), least)
        return float(self.whole.learned_bytes(ints, least)) / self.parts - self._record_bytes(learned)

    def _record_bytes(self, classes: int) -> float:
        return (self.record_words + classes) * WORD

    def usual_room(self, classes: int, room: Room) -> Room:
        """Return the room that a tree gets: more than it needs now, as long as that is small."""
        if PlanRecord(self.ints, self.floats, 0).revision:
            return room
        most = int(self.block_bytes(classes)) // WORD
        for nodes, slots in USUAL_ROOMS:
            roomy = max(nodes, room[0]), max(slots, room[1])
            if self.blocks.words(roomy) <= min(USUAL_WORDS, most):
                return roomy
        even = max(room[0], 2 * room[1] - 1), max(room[1], (room[0] + 1) // 2)  # the ratio of binary splits
        return even if self.blocks.words(even) <= most else room


def own_part(layout: ForestPlacement, model: HasBlocks, t: int) -> MemberPlan:
    """Return the plan of a model as members of the forest at word t see it, each with its own bytes."""
    is_ranked = bool(layout.forest(model.ints, t).ranked)
    parts = 2 * layout.slots if is_ranked else layout.slots
    return MemberPlan(model.plan, layout.trees, parts, record_words(layout))


def whole_forest(layout: ForestPlacement, model: HasBlocks) -> MemberPlan:
    """Return the plan of a model for a review: it allows a tree all bytes of the forest."""
    return MemberPlan(model.plan, layout.trees, 1, record_words(layout))


def trees_bytes(layout: ForestPlacement, model: HasBlocks) -> float:
    """Return the bytes of all trees together, for the classes and values that the model has learned."""
    classes = classes_of(model.ints)
    learned = MemberPlan(model.plan, layout.trees, 1, 0.0).learned_bytes(model.ints)
    words = layout.slots * (record_words(layout) + classes)
    return learned + classes * WORD - words * WORD


def record_words(layout: ForestPlacement) -> float:
    """Return the words outside a tree: its part of the header, and its record without the class words."""
    return layout.event_at + SPLIT_WORDS + FOREST_HEADER / layout.slots


def classes_of(ints: Ints) -> int:
    """Return the number of classes that a model has learned."""
    return int(ModelHeader(ints, ints, 0).classes)


class MemberState:
    """One tree of a forest as its growth sees it: as a model (core/learners/hoeffding/decision.py)."""

    def __init__(
        self, layout: ForestPlacement, model: HasBlocks, t: int, slot: int, plan: MemberPlan
    ) -> None:
        """Take the forest's model, the forest's first word in it, and the slot of the tree.

        plan: holds the bytes that the tree may take.
        """
        self._layout = layout
        self._model = model
        self.forest = t
        self.slot = slot
        self.plan = plan
        self.ints, self.floats, self.address = model.ints, model.floats, model.address

    @property
    def spec(self) -> Any:
        """The spec of a member; growth reads only its learner."""
        return self._layout.learner.as_spec

    @property
    def schema(self) -> Schema:
        return self._model.schema

    @property
    def t(self) -> int:
        """First word of the tree."""
        return self.forest + int(self._layout.record(self.ints, self.forest, self.slot).tree)

    @property
    def block_places(self) -> list[int]:
        """First word of a member's tree; after -1 for a background tree, whose events are not reported."""
        return [self.t] if self.slot < self._layout.members else [-1, self.t]

    def make_room(self, t: int, room: Room) -> int:
        """Give the tree this room, or more that it needs soon; return its first word after that."""
        model = self._model
        room = self.plan.usual_room(model.schema.n_classes, room)
        self.forest = self._layout.give_room(model, self.forest, self.slot, room)
        self.ints, self.floats, self.address = model.ints, model.floats, model.address
        return self.t

    def extends(self, t: int) -> bool:
        """Return False: there are trees after it."""
        return False


def numbered(events: list[Event], member: int) -> list[Event]:
    """Return events of a tree with the number of its member."""
    return [_numbered(event, member) for event in events]


def _numbered(event: Event, member: int) -> Event:
    if isinstance(event, Split | Pruned | Drift):
        return replace(event, member=member)
    assert isinstance(event, GrowthStopped)
    return event
