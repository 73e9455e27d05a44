"""Placement of a forest: where members and background trees lie in its words, planted, copied and moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from core.drift.base import Detector
from core.kernels.records import offset
from core.layout.model import WORD, Block, Floats, Ints
from core.layout.tree import Tree
from core.learners.forest.layout import (
    APART,
    FOREST_HEADER,
    MEMBER_FIELDS,
    Boosted,
    ForestBlock,
    ForestPlan,
    Member,
)
from core.learners.hoeffding.blocks import TreeLayout
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.protocol import BlockLayout, HasBlocks, Room
from core.schema.dimensions import Dimensions

REVIEW: Final = 1024
"""Labels between two reviews of a forest that is short of memory (core/learners/forest/memory.py)."""

SPARE: Final = 2
"""Divisor of the spare words: a forest that is laid out again gets a spare word for 2 words of trees."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A detector that watches the error of each member."""

    detector: Detector
    state: int
    """First word of its state in a member record; 0: it has none and never alarms."""
    initial: Floats

    def reset(self, member: Member) -> None:
        """Write the initial state."""
        if self.state:
            first = member.start + self.state
            member.floats[first : first + len(self.initial)] = self.initial


class ForestPlacement(BlockLayout):
    """Forests of a learner for records of certain dimensions; room: nodes, leaf records of tree after tree.

    The background tree of member i has the slot i + members; a slot without tree has no room. The last number
    of a room is the words that no tree takes. A tree that needs room moves to such words and leaves a gap for
    the next tree, so that a forest is copied as a whole only when no gap is wide enough.
    """

    place_name: ClassVar[str] = "node"
    block_names: ClassVar[tuple[str, str]] = ("forest", "background forest")

    def __init__(self, learner: Any, dims: Dimensions) -> None:
        """Take the learner, which defines the members and the detectors that watch them."""
        self.learner = learner
        self.dims = dims
        self.trees: TreeLayout = learner.member.blocks(dims)
        self.blank_address = self.trees.blank_address
        self.members: int = learner.members
        drift, warning = np.array(learner.drift.initial()), np.array(learner.warning.initial())
        self.drift = Watch(learner.drift, MEMBER_FIELDS if len(drift) else 0, drift)
        after = MEMBER_FIELDS + len(drift)
        self.warning = Watch(learner.warning, after if len(warning) else 0, warning)
        self.slots = self.members * (2 if len(warning) else 1)
        self.boosted_at = after + len(warning) if learner.boosts else 0
        """First of a member's weights for boosting in its record; 0: there are none."""
        self.event_at = after + len(warning) + (Boosted.SIZE if learner.boosts else 0)
        """First of the words that describe a split in a member record."""
        self.stride = self.event_at + SPLIT_WORDS + dims.classes
        self.trees_at = FOREST_HEADER + self.slots * self.stride
        self.offsets = self._plan_words()
        # A forest that has seen nothing has no background trees.
        none = (0, 0) * (self.slots - self.members)
        self.new_room = (*(1, 1) * self.members, *none, 0)  # type: ignore[misc]
        # A leaf can be deactivated only if it alone writes its statistics and has no state of a schedule.
        member, shape = learner.member, self.trees.shape(1, 1)
        is_plain = member.compiled and not member.quirks and not (shape.revision or shape.subtree)
        self.review_period = REVIEW if is_plain and not shape.schedule else 0
        """Labels between two reviews of the leaves of a full forest; 0: its trees stop growing."""
        self.plan_words = np.zeros(0, dtype=np.int64)
        """The words of its plan, which explanations pass to compiled code."""

    def _plan_words(self) -> tuple[int, ...]:
        """Return the words of a ForestPlan."""
        learner, attributes = self.learner, self.learner.attributes_seen(self.dims.attributes)
        plan = ForestPlan.over(np.zeros(ForestPlan.SIZE, dtype=np.int64))
        plan.members, plan.slots, plan.stride = self.members, self.slots, self.stride
        plan.drift, plan.warning, plan.event = self.drift.state, self.warning.state, self.event_at
        plan.attributes = attributes if attributes < self.dims.attributes else 0
        plan.subspaces = APART if learner.begins_apart else learner.subspaces
        plan.worst, plan.weighted = learner.replaces_worst, learner.weights_votes
        plan.moa = learner.compat == "moa"
        plan.once = learner.background_once
        plan.entropy = learner.uncertainty == "votes"
        plan.boosted = self.boosted_at
        return tuple(plan.ints.tolist())

    # Places

    def forest(self, ints: Ints, t: int) -> ForestBlock:
        """Return the header of the forest at a word."""
        return ForestBlock(ints, ints.view(np.float64), t)

    def record(self, ints: Ints, t: int, slot: int) -> Member:
        """Return a member record."""
        return Member(ints, ints.view(np.float64), t + FOREST_HEADER + slot * self.stride)

    def column(self, ints: Ints, t: int, name: str) -> Ints:
        """Return a word of all member records, by the name of its field: int64[slot], not copied."""
        first = t + FOREST_HEADER + offset(Member, name)
        return ints[first : first + self.slots * self.stride : self.stride]

    def event_words(self, member: Member) -> Floats:
        """Return the words of a member record that describe a split, not copied."""
        words: Floats = member.floats[member.start + self.event_at : member.start + self.stride]
        return words

    def tree_at(self, ints: Ints, t: int, slot: int) -> int:
        """Return the first word of a tree; 0: there is none."""
        place = int(self.record(ints, t, slot).tree)
        return t + place if place else 0

    def members_at(self, ints: Ints, t: int) -> list[int]:
        """Return the first words of the members' trees."""
        return [t + place for place in self.column(ints, t, "tree")[: self.members].tolist()]

    # Sizes

    def words(self, room: Room) -> int:
        return self.trees_at + sum(self.trees.words(tree) for tree in rooms_of(room) if tree[0]) + room[-1]

    def least_words(self, classes: int) -> int:
        return self.trees_at + self.slots * self.trees.least_words(classes)

    def room(self, ints: Ints, t: int) -> Room:
        """Return the nodes and leaf records that trees have room for, and the words that no tree takes.

        If trees do not lie in the order of their records, the latter number is at least 1.
        """
        rooms = self._rooms(ints, t, self.trees.room)
        places = [place for place in self.column(ints, t, "tree").tolist() if place]
        spare = int(self.forest(ints, t).words) - self.words((*rooms, 0))
        return (*rooms, spare if places == sorted(places) else max(spare, 1))

    def live_room(self, ints: Ints, t: int) -> Room:
        """Return the nodes and leaf records in use, tree by tree, without spare words."""
        return (*self._rooms(ints, t, self.trees.live_room), 0)

    def _rooms(self, ints: Ints, t: int, room_of: Any) -> list[int]:
        rooms: list[int] = []
        for place in self.column(ints, t, "tree").tolist():
            rooms += room_of(ints, t + place) if place else (0, 0)
        return rooms

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign forest; None if its trees do not lie one after another."""
        end = self.trees_at
        if t + end > len(ints):
            return None
        for slot, place in enumerate(self.column(ints, t, "tree").tolist()):
            if place == 0 and slot >= self.members:
                continue
            size = self.trees.size_of(ints, t + place) if place == end else None
            if size is None or Block(ints, ints, t + place).words != size:
                return None
            end += size
        return end

    # Writing

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a forest whose members have seen nothing."""
        words = self.words(room)
        ints[t : t + words] = 0
        self.forest(ints, t).words = words
        position = self.trees_at
        for slot, tree_room in enumerate(rooms_of(room)):
            if tree_room[0]:
                self.record(ints, t, slot).tree = position
                self._plant_tree(ints, t, slot, tree_room)
                position += self.trees.words(tree_room)

    def _plant_tree(self, ints: Ints, t: int, slot: int, room: Room) -> None:
        """Write a tree that has seen nothing at the place in its record, and number it."""
        record, number = self.record(ints, t, slot), slot % self.members
        member = self.record(ints, t, number)
        record.serial = member.made * self.members + number
        member.made += 1
        self.trees.plant(ints, t + int(record.tree), room)

    def copy(self, old: ForestPlacement, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a forest with the state of a source, and plant trees that have room and do not exist yet."""
        words = self.words(room)
        target[t : t + words] = 0
        target[t : t + FOREST_HEADER] = source[s : s + FOREST_HEADER]
        length = self.stride if old is self else self.event_at
        for slot in range(self.slots):
            before, record = old.record(source, s, slot).start, self.record(target, t, slot).start
            target[record : record + length] = source[before : before + length]
        self.forest(target, t).words = words
        position = self.trees_at
        for slot, tree_room in enumerate(rooms_of(room)):
            tree, record = old.tree_at(source, s, slot), self.record(target, t, slot)
            record.tree = position if tree_room[0] else 0
            if not tree_room[0]:
                continue
            if tree:
                self.trees.copy(old.trees, source, tree, target, t + position, tree_room)
            else:
                self._plant_tree(target, t, slot, tree_room)
            position += self.trees.words(tree_room)

    # Room

    def give_room(self, model: HasBlocks, t: int, slot: int, room: Room) -> int:
        """Give a tree this room, planting it if it does not exist; return the forest's first word after that.

        The tree moves to words that no tree takes. If no gap is large enough, or trees take fewer words than
        are free, the whole forest is laid out again with spare words.
        """
        ints, words = model.ints, self.trees.words(room)
        place = self._free_place(ints, t, words)
        if place:
            tree = self.tree_at(ints, t, slot)
            self.record(ints, t, slot).tree = place
            if tree:
                ints[t + place : t + place + words] = 0
                self.trees.copy(self.trees, ints, tree, ints, t + place, room)
            else:
                self._plant_tree(ints, t, slot, room)
            return t
        rooms = list(self.room(ints, t))
        rooms[2 * slot : 2 * slot + 2] = room
        return self.lay_out_again(model, t, rooms)

    def lay_out_again(self, model: HasBlocks, t: int, rooms: list[int]) -> int:
        """Give all trees this room, and spare words; return the forest's first word after that."""
        rooms[-1] = 0
        needed = self.words(tuple(rooms))
        most = int(model.plan.block_bytes(model.schema.n_classes)) // WORD
        rooms[-1] = max(min(needed // SPARE, most - needed), 0)
        return model.make_room(t, tuple(rooms))

    def _free_place(self, ints: Ints, t: int, words: int) -> int:
        """Return the first gap between the trees, or after the last, that has this number of words.

        0: there is no such gap, or trees take so little of the forest that it should be laid out again.
        """
        whole = int(self.forest(ints, t).words)
        gap, free, end = 0, 0, self.trees_at
        for place in [*sorted(filter(None, self.column(ints, t, "tree").tolist())), whole]:
            if place - end >= words and not gap:
                gap = end
            free += place - end
            end = place + int(Tree(ints, ints, t + place).words) if place < whole else whole
        is_sparse = free > whole - free + words
        return 0 if is_sparse else gap

    # State

    def takes_attributes(self, ints: Ints, t: int) -> bool:
        """Return whether no member was split yet; subsets of all attributes are then sampled again."""
        return all(self.trees.takes_attributes(ints, tree) for tree in self.members_at(ints, t))

    def nodes(self, ints: Ints, t: int) -> int:
        return sum(self.trees.nodes(ints, tree) for tree in self.members_at(ints, t))

    def has_stopped(self, ints: Ints, t: int) -> bool:
        """Return whether a member has reached its part of the caps."""
        return any(self.trees.has_stopped(ints, tree) for tree in self.members_at(ints, t))


def rooms_of(room: Room) -> list[Room]:
    """Return the rooms of the trees, (nodes, leaf records) each."""
    return list(zip(room[:-1:2], room[1::2], strict=True))
