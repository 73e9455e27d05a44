"""Growth of a forest: members are split, alarms are handled, leaves are reviewed."""

from __future__ import annotations

import numpy as np

from core.events import Action, Drift, Event, GrowthStopped, Split
from core.layout.learning import DECISION_DUE, GREW, GROW_FIRST
from core.layout.model import WORD, Ints, ModelHeader
from core.layout.tree import LACKS_ROOM, Tree
from core.learners.forest import memory
from core.learners.forest.layout import DRIFTED, QUIET, SPLIT_MADE, WARNED, Member
from core.learners.forest.member_state import MemberState, numbered, own_part
from core.learners.forest.placement import ForestPlacement
from core.learners.hoeffding.decision import tree_of
from core.learners.hoeffding.growth import splitting
from core.learners.protocol import HasBlocks


class ForestGrowth:
    """Changes of the trees of forests of one layout: decisions, reviews, replaced members."""

    def __init__(self, layout: ForestPlacement) -> None:
        """Take the layout of the forests."""
        self.layout = layout

    def grow(self, model: HasBlocks, reason: int, t: int, row: int, index: int) -> list[Event]:
        """Make the due decisions of members and background trees, in order; return the events of members.

        reason: GROW_FIRST or DECISION_DUE. The forest begins at word t.
        """
        layout = self.layout
        is_first = t == model.block_places[0]
        slots, alarmed = self._due(model.ints, t)
        decided = reason
        if reason == GROW_FIRST:  # further trees that have learned may be due
            following = int(layout.forest(model.ints, t).next)
            member, is_background = divmod(abs(following) - 1, 2)
            waiting, alarmed = member + is_background * layout.members, []
            # Below 0 (core/learners/forest/boosting.py) members before it may have split in compiled code.
            # Their events come first: whether a split needs Python depends on the room that a tree has.
            decided = GROW_FIRST if following > 0 else DECISION_DUE
            before = [slot for slot in slots if slot < waiting] if following < 0 else []
            slots = [*before, waiting]
        block = model.block_places.index(t)
        events = self.conclude(model, decided, block, slots, alarmed, row, index)
        if reason == DECISION_DUE:
            events += self.review(model, model.block_places[block], row, index)
        return events if is_first else []

    def _due(self, ints: Ints, t: int) -> tuple[list[int], list[int]]:
        """Return the slots of the trees that are due, and the members with an alarm."""
        due, alarm = (self.layout.column(ints, t, name) for name in ("due", "alarm"))
        return np.flatnonzero(due).tolist(), np.flatnonzero(alarm[: self.layout.members]).tolist()

    def review(self, model: HasBlocks, t: int, row: int, index: int) -> list[Event]:
        """Rank the leaves if a review is due after this row, whose label the model has not counted yet."""
        labels, period = ModelHeader(model.ints, model.floats, 0).labels + 1, self.layout.review_period
        if not period or labels % period or not self.is_short(model.ints, t):
            return []
        return memory.review(self.layout, model, t, row, index)

    def is_short(self, ints: Ints, t: int) -> bool:
        """Return whether a tree has reached its part of the bytes, now or at an earlier review."""
        if self.layout.forest(ints, t).ranked:
            return True
        places = self.layout.column(ints, t, "tree").tolist()
        return any(place and Tree(ints, ints, t + place).stopped == LACKS_ROOM for place in places)

    def conclude(
        self,
        model: HasBlocks,
        reason: int,
        block: int,
        slots: list[int],
        alarmed: list[int],
        row: int,
        index: int,
    ) -> list[Event]:
        """Make the due decisions of the trees of some slots, then react to the alarms of members.

        block: number of the forest's block in the model; alarmed: numbers of members.
        """
        events: list[Event] = []
        for slot in slots:
            events += self._decide(model, reason, block, slot, row, index)
        for member in alarmed:
            t = model.block_places[block]
            record = self.layout.record(model.ints, t, member)
            level, record.alarm = int(record.alarm), QUIET
            events.append(self.react(model, t, member, level, row, index))
        return events

    def _decide(
        self, model: HasBlocks, reason: int, block: int, slot: int, row: int, index: int
    ) -> list[Event]:
        """Make the due decision of one tree; return its events."""
        layout, t = self.layout, model.block_places[block]
        record = layout.record(model.ints, t, slot)
        if record.due == SPLIT_MADE:
            return [self._reported(record, slot, row, index)]
        node, record.due = int(record.due), 0
        state = MemberState(layout, model, t, slot, own_part(layout, model, t))
        if reason == DECISION_DUE and self._split_with_room(state, node):
            record = layout.record(model.ints, model.block_places[block], slot)
            return [self._reported(record, slot, row, index)] if slot < layout.members else []
        events = layout.trees.grow(state, reason, state.t, state.t + node, row, index)
        if layout.forest(model.ints, model.block_places[block]).ranked:  # already reported
            events = [event for event in events if not isinstance(event, GrowthStopped)]
        return numbered(events, slot)

    def _split_with_room(self, state: MemberState, node: int) -> bool:
        """Split a leaf (node: relative to the tree) if it lacks only room; return whether it was split.

        The member's record then holds the words of the split, as if compiled code had not returned.
        """
        from core.learners.forest import stretch  # loads or compiles kernels

        trees, part, plan = self.layout.trees, state.plan, state.plan.record
        have, (nodes, slots) = trees.room(state.ints, state.t), trees.live_room(state.ints, state.t)
        if trees.has_stopped(state.ints, state.t) or not plan.plain_splits or plan.subtrees:
            return False  # a tree that adapts may have several leaves to split
        if nodes + 2 <= have[0] and slots + 1 <= have[1]:
            return False
        classes = state.schema.n_classes
        room = part.usual_room(classes, (2 * have[0] + 1, 2 * have[1]))
        if trees.words(room) * WORD > part.block_bytes(classes):
            return False
        tree = tree_of(state, state.make_room(state.t, room))
        record = self.layout.record(state.ints, state.forest, state.slot)
        outcome = stretch.split_again(plan, record, tree, tree.node_of(tree.start + node))
        has_grown = bool(outcome == GREW)
        if not has_grown or state.slot >= self.layout.members:
            self.layout.event_words(record)[:] = 0.0
        return has_grown

    def _reported(self, record: Member, slot: int, row: int, index: int) -> Split:
        """Return the event of a split that a member has made in compiled code, and clear its words."""
        words = self.layout.event_words(record)
        event = splitting.described_event(words.tolist(), row, index, slot)
        words[:] = 0.0
        record.due = 0
        return event

    def react(
        self,
        model: HasBlocks,
        t: int,
        member: int,
        level: int,
        row: int,
        index: int,
        rate: float | None = None,
    ) -> Drift:
        """Start a background tree at a warning, or replace the member at a drift; return the event.

        rate: the error rate in the event; None: the rate in the detector's window now.
        """
        layout = self.layout
        watch = layout.drift if level == DRIFTED else layout.warning
        if rate is None:
            record = layout.record(model.ints, t, member)
            rate = watch.detector.error_rate(record.floats[record.start + watch.state :])
        return Drift(
            row=row,
            model=index,
            level="warning" if level == WARNED else "drift",
            detector=watch.detector.name,
            error_rate=rate,
            action=self._warn(model, t, member) if level == WARNED else self._replace(model, t, member),
            member=member,
        )

    def _warn(self, model: HasBlocks, t: int, member: int) -> Action:
        """Start a background tree beside a member."""
        self._clear(self.layout.record(model.ints, t, member + self.layout.members))
        self.layout.warning.reset(self.layout.record(model.ints, t, member))
        self._plant(model, t, member + self.layout.members)
        return "background tree started"

    def _replace(self, model: HasBlocks, t: int, member: int) -> Action:
        """Replace a member by its background tree, or by a new tree."""
        layout, ints = self.layout, model.ints
        layout.forest(ints, t).replaced += 1
        record = layout.record(ints, t, member)
        n_made = int(record.made)
        if layout.slots > layout.members:
            background = layout.record(ints, t, member + layout.members)
            if background.tree:
                words = slice(background.start, background.start + layout.stride)
                ints[record.start : record.start + layout.stride] = ints[words]
                record.made = n_made
                self._clear(background)
                return "background tree took over"
        self._clear(record)
        record.made = n_made
        self._plant(model, t, member)
        return "new tree"

    def _plant(self, model: HasBlocks, t: int, slot: int) -> None:
        """Plant a tree that has seen nothing."""
        layout = self.layout
        plan = own_part(layout, model, t)
        layout.give_room(model, t, slot, plan.usual_room(model.schema.n_classes, layout.trees.new_room))

    def _clear(self, record: Member) -> None:
        """Write a record without a tree."""
        record.ints[record.start : record.start + self.layout.stride] = 0
        self.layout.drift.reset(record)
        self.layout.warning.reset(record)
