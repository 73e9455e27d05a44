"""Placement of a forest: where members and background trees lie in its words, planted and copied."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from core.learners.forest import layout as of
from core.learners.forest import memory as _forest_memory
from core.learners.hoeffding.blocks import TreeLayout
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.protocol import BlockLayout, Room
from core.schema.dimensions import Dimensions
from core.tree import layout as at
from core.tree.layout import Ints


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
        self._watching = {at.PLAN_NODE_DETECTOR: learner.drift, at.PLAN_WARNING_DETECTOR: learner.warning}
        self._initial = {word: np.array(each.initial()) for word, each in self._watching.items()}
        drift, warning = map(len, self._initial.values())
        self.slots = self.members * (2 if warning else 1)
        self.event_at = of.MEMBER_FIELDS + drift + warning
        self.stride = self.event_at + SPLIT_WORDS + dims.classes
        self.detectors = {
            at.PLAN_NODE_DETECTOR: of.MEMBER_FIELDS if drift else 0,
            at.PLAN_WARNING_DETECTOR: of.MEMBER_FIELDS + drift if warning else 0,
        }
        self.trees_at = of.HEADER + self.slots * self.stride
        attributes = learner.attributes_seen(dims.attributes)
        self.offsets = (
            self.members,
            self.stride,
            self.slots,
            *self.detectors.values(),
            attributes if attributes < dims.attributes else 0,
            of.APART if learner.begins_apart else learner.subspaces,
            learner.replaces_worst,
            learner.weights_votes,
            learner.compat == "moa",
            self.event_at,
            learner.background_once,
            learner.uncertainty == "votes",
        )
        # A forest that has seen nothing has no background trees.
        none = (0, 0) * (self.slots - self.members)
        self.new_room = (*(1, 1) * self.members, *none, 0)  # type: ignore[misc]
        # A leaf can be deactivated only if it alone writes its statistics and has no state of a schedule.
        member, shape = learner.member, self.trees.shape(1, 1)
        is_plain = member.compiled and not member.quirks and not (shape.revision or shape.subtree)
        self.review_period = _forest_memory.REVIEW if is_plain and not shape.schedule else 0
        """Labels between two reviews of the leaves of a full forest; 0: its trees stop growing."""
        self.plan_words = np.zeros(0, dtype=np.int64)
        """The words of its plan, which explanations pass to compiled code."""

    def record(self, t: int, slot: int) -> int:
        """Return the first word of a member record."""
        return t + of.HEADER + slot * self.stride

    def tree_at(self, ints: Ints, t: int, slot: int) -> int:
        """Return the first word of a tree; 0: there is none."""
        offset = ints.item(self.record(t, slot) + of.TREE)
        return t + offset if offset else 0

    def members_at(self, ints: Ints, t: int) -> list[int]:
        """Return the first words of the members' trees."""
        return [self.tree_at(ints, t, slot) for slot in range(self.members)]

    def words(self, room: Room) -> int:
        return self.trees_at + sum(self.trees.words(each) for each in rooms_of(room) if each[0]) + room[-1]

    def least_words(self, classes: int) -> int:
        return self.trees_at + self.slots * self.trees.least_words(classes)

    def room(self, ints: Ints, t: int) -> Room:
        """Return the nodes and leaf records that trees have room for, and the words that no tree takes.

        If trees do not lie in the order of their records, the latter number is at least 1.
        """
        rooms = self._rooms(ints, t, self.trees.room)
        places = [place for place in self._places(ints, t).tolist() if place]
        spare = int(ints[t + at.BLOCK_WORDS]) - self.words((*rooms, 0))
        return (*rooms, spare if places == sorted(places) else max(spare, 1))

    def live_room(self, ints: Ints, t: int) -> Room:
        """Return the nodes and leaf records in use, tree by tree, without spare words."""
        return (*self._rooms(ints, t, self.trees.live_room), 0)

    def _rooms(self, ints: Ints, t: int, room_of: Any) -> list[int]:
        found: list[int] = []
        for place in self._places(ints, t).tolist():
            found += room_of(ints, t + place) if place else (0, 0)
        return found

    def _records(self, ints: Ints, t: int) -> Ints:
        """Return the records of members and background trees, int64[slot, word], not copied."""
        first = t + of.HEADER
        return ints[first : first + self.slots * self.stride].reshape(self.slots, self.stride)

    def _places(self, ints: Ints, t: int) -> Ints:
        """Return where the trees lie, relative to the forest, int64[slot]; 0: there is none."""
        return self._records(ints, t)[:, of.TREE]

    def size_of(self, ints: Ints, t: int) -> int | None:
        """Return the words of a foreign forest; None if its trees do not lie one after another."""
        end = self.trees_at
        if t + end > len(ints):
            return None
        for slot in range(self.slots):
            offset = ints.item(self.record(t, slot) + of.TREE)
            if offset == 0 and slot >= self.members:
                continue
            size = self.trees.size_of(ints, t + offset) if offset == end else None
            if size is None or ints[t + offset + at.BLOCK_WORDS] != size:
                return None
            end += size
        return end

    def plant(self, ints: Ints, t: int, room: Room) -> None:
        """Write a forest whose members have seen nothing."""
        words = self.words(room)
        ints[t : t + words] = 0
        ints[t + at.BLOCK_WORDS] = words
        self._lay_out(ints, t, room)

    def _lay_out(self, ints: Ints, t: int, room: Room) -> None:
        """Write where trees lie, and plant the trees that do not exist yet."""
        position = self.trees_at
        for slot, each in enumerate(rooms_of(room)):
            ints[self.record(t, slot) + of.TREE] = position if each[0] else 0
            if each[0]:
                self._plant_tree(ints, t, slot, each)
                position += self.trees.words(each)

    def _plant_tree(self, ints: Ints, t: int, slot: int, room: Room) -> None:
        """Write a tree that has seen nothing at the place in its record, and number it."""
        record, made = self.record(t, slot), self.record(t, slot % self.members) + of.MADE
        ints[record + of.SERIAL] = ints[made] * self.members + slot % self.members
        ints[made] += 1
        self.trees.plant(ints, t + ints.item(record + of.TREE), room)

    def copy(self, old: ForestPlacement, source: Ints, s: int, target: Ints, t: int, room: Room) -> None:
        """Write a forest with the state of a source, and plant trees that have room and do not exist yet."""
        words = self.words(room)
        target[t : t + words] = 0
        target[t : t + of.HEADER] = source[s : s + of.HEADER]
        for slot in range(self.slots):
            before, record = old.record(s, slot), self.record(t, slot)
            target[record : record + self.event_at] = source[before : before + self.event_at]
            if old is self:
                event, length = self.event_at, self.stride - self.event_at
                target[record + event : record + event + length] = source[
                    before + event : before + event + length
                ]
        target[t + at.BLOCK_WORDS] = words
        position = self.trees_at
        for slot, each in enumerate(rooms_of(room)):
            tree, record = old.tree_at(source, s, slot), self.record(t, slot)
            target[record + of.TREE] = position if each[0] else 0
            if not each[0]:
                continue
            if tree:
                self.trees.copy(old.trees, source, tree, target, t + position, each)
            else:
                self._plant_tree(target, t, slot, each)
            position += self.trees.words(each)

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
