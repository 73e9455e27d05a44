"""Growth of a forest: members are split, alarms are handled, trees get room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final

import numpy as np

from core.events import Action, Drift, Event, GrowthStopped, Pruned, Split
from core.learners.forest import layout as of
from core.learners.forest import memory as _forest_memory
from core.learners.forest.placement import ForestPlacement
from core.learners.forest.resampling import MOST
from core.learners.hoeffding.blocks import TreeLayout
from core.learners.hoeffding.growth import splitting
from core.learners.hoeffding.plain_split import SPLIT_WORDS
from core.learners.protocol import HasBlocks, Room, Stretch
from core.schema.schema import Schema
from core.tree import layout as at
from core.tree.layout import Ints

SPARE: Final = 2
"""Divisor of the spare words: a forest that is laid out again gets a spare word for 2 words of trees."""


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
        learned = max(ints.item(at.MODEL_CLASSES), least)
        return float(self.whole.learned_bytes(ints, least)) / self.parts - self._record_bytes(learned)

    def _record_bytes(self, classes: int) -> float:
        return (self.record_words + classes) * at.WORD


class MemberState:
    """One tree of a forest as its growth sees it: as a model (core/learners/hoeffding/decision.py)."""

    def __init__(
        self, layout: ForestGrowth, model: HasBlocks, t: int, slot: int, plan: MemberPlan | None = None
    ) -> None:
        """Take the forest's model, the forest's first word in it, and the slot of the tree.

        plan: holds the bytes that the tree may take; None: its own part.
        """
        self._layout = layout
        self._model = model
        self.forest = t
        self.slot = slot
        self.plan = layout.member_plan(model, t) if plan is None else plan
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
        return self.forest + self.ints.item(self._layout.record(self.forest, self.slot) + of.TREE)

    @property
    def block_places(self) -> list[int]:
        """First word of a member's tree; after -1 for a background tree, whose events are not reported."""
        return [self.t] if self.slot < self._layout.members else [-1, self.t]

    def make_room(self, t: int, room: Room) -> int:
        """Give the tree this room, or more that it needs soon; return its first word after that."""
        model = self._model
        room = self._layout.usual_room(self.plan, model.schema.n_classes, room)
        self.forest = self._layout.give_room(model, self.forest, self.slot, room)
        self.ints, self.floats, self.address = model.ints, model.floats, model.address
        return self.t

    def extends(self, t: int) -> bool:
        """Return False: there are trees after it."""
        return False


class ForestGrowth(ForestPlacement):
    """The part of a forest's layout that changes its trees: decisions, reviews, replaced members, room."""

    def grow(self, model: HasBlocks, reason: int, t: int, place: int, row: int, index: int) -> list[Event]:
        """Make the due decisions of members and background trees, in order; return the events of members."""
        is_first = t == model.block_places[0]
        records = self._records(model.ints, t)
        slots = np.flatnonzero(records[:, of.DUE]).tolist()
        alarmed = np.flatnonzero(records[: self.members, of.ALARM]).tolist()
        if reason == at.GROW_FIRST:  # further trees that have learned may be due
            member, is_background = divmod(model.ints.item(t + of.NEXT) - 1, 2)
            slots, alarmed = [member + is_background * self.members], []
        block = model.block_places.index(t)
        events = self._conclude(model, reason, block, slots, alarmed, row, index)
        if reason == at.DECISION_DUE:
            events += self._review(model, model.block_places[block], row, index)
        return events if is_first else []

    def _review(self, model: HasBlocks, t: int, row: int, index: int) -> list[Event]:
        """Rank the leaves if a review is due after this row, whose label the model has not counted yet."""
        labels = model.ints.item(at.MODEL_LABELS) + 1
        if not self.review_period or labels % self.review_period or not self.is_short(model.ints, t):
            return []
        return _forest_memory.review(self, model, t, row, index)

    def _conclude(
        self,
        model: HasBlocks,
        reason: int,
        block: int,
        slots: list[int],
        alarmed: list[int],
        row: int,
        index: int,
    ) -> list[Event]:
        """Make the due decisions of the trees of some slots, then react to the alarms of members."""
        events: list[Event] = []
        for slot in slots:
            t = model.block_places[block]
            due = self.record(t, slot) + of.DUE
            node = model.ints.item(due)
            if node == of.TOLD:
                events.append(self._told(model, t, slot, row, index))
                continue
            model.ints[due] = 0
            state = MemberState(self, model, t, slot)
            if reason == at.DECISION_DUE and self._split_with_room(state, node):
                if slot < self.members:
                    events.append(self._told(model, model.block_places[block], slot, row, index))
                continue
            grown = self.trees.grow(state, reason, state.t, state.t + node, row, index)
            if model.ints[model.block_places[block] + of.RANKED]:  # already reported
                grown = [event for event in grown if not isinstance(event, GrowthStopped)]
            events += [numbered(event, slot) for event in grown]
        for member in alarmed:
            t = model.block_places[block]
            alarm = self.record(t, member) + of.ALARM
            level = model.ints.item(alarm)
            model.ints[alarm] = of.QUIET
            events.append(self.react(model, t, member, level, row, index))
        return events

    def play(self, model: HasBlocks, stretch: Stretch, index: int) -> list[Event]:
        """Let each member learn the rows in turn (core/learners/forest/stretch.py); return events by rows."""
        from core.learners.forest import stretch as compiled  # loads or compiles kernels

        first, end, n = stretch.first, stretch.end, self.members
        state = np.zeros(compiled.STATE_WORDS, dtype=np.int64)
        state[[compiled.FIRST, compiled.END, compiled.ROW, compiled.CHECKED]] = first, end, first, first
        state[[compiled.UNTIL, compiled.ANSWERS]] = n, stretch.answers
        state[compiled.RECORDS], state[compiled.LABELS] = model.ints[[at.MODEL_RECORDS, at.MODEL_LABELS]]
        classes = stretch.probability.shape[1]
        shape = (
            (n, end - first, classes + compiled.BALLOT_WORDS) if self.learner.replaces_worst else (0, 0, 0)
        )
        ballots = np.empty(shape)
        log = np.empty((compiled.LOG_ROWS, compiled.LOG_SPLIT + SPLIT_WORDS + self.dims.classes))
        chances, subsets = np.empty(MOST + 1), compiled.new_subsets(self.dims.attributes)
        columns = (stretch.x, stretch.label, stretch.weight, stretch.prediction, stretch.probability)
        found: list[tuple[int, int, int, Event]] = []
        while True:
            t = model.block_places[0]
            reason = compiled.play(
                model.plan.address,
                model.address,
                t,
                *columns,
                stretch.workspace,
                ballots,
                log,
                chances,
                subsets,
                state,
            )
            for words in log[: state.item(compiled.LOGGED)].tolist():
                row, member = int(words[compiled.LOG_ROW]), int(words[compiled.LOG_MEMBER])
                split = splitting.described_event(words[compiled.LOG_SPLIT :], row, index, member)
                found.append((row, 1, member, split))
            state[compiled.LOGGED] = 0
            if reason == compiled.LOG_FULL:
                continue
            if reason == compiled.THROUGH:
                break
            member, row = state.item(compiled.MEMBER), state.item(compiled.ROW)
            if reason == compiled.ALARMED:
                stretch.row = row
                found = [each for each in found if each[2] != member or each[0] <= row]
                rate = max(ballots.item(member, row - first, classes + compiled.ERROR), 0.0)
                event: Event = self.react(model, t, member, of.DRIFTED, row, index, rate)
                found.append((row, 2, member, event))
                state[[compiled.UNTIL, compiled.ROW]] = member + 1, row + 1
                continue
            slots, alarmed = [member, member + n][: self.slots // n], []
            if reason == at.GROW_FIRST:
                slots = slots[1:] if state[compiled.STEP] == compiled.BACKGROUND_AGAIN else slots[:1]
            else:
                row -= 1
                alarmed = [member] if model.ints[self.record(t, member) + of.ALARM] else []
                slots = [slot for slot in slots if model.ints[self.record(t, slot) + of.DUE]]
            stretch.row = row
            for event in self._conclude(model, reason, 0, slots, alarmed, row, index):
                # The order of learning row by row: events of records that came again, splits, alarms of
                # members.
                alarm = isinstance(event, Drift) and event.node is None
                phase = 0 if reason == at.GROW_FIRST else 1 + alarm
                found.append((row, phase, member, event))
        found.sort(key=itemgetter(0, 1, 2))
        return [event for *_, event in found] + self._review_stretch(model, stretch, index)

    def _review_stretch(self, model: HasBlocks, stretch: Stretch, index: int) -> list[Event]:
        """Rank the leaves after the last row of a stretch, with the counters that the model has there."""
        before = model.ints[[at.MODEL_LABELS, at.MODEL_RECORDS]]
        rows = stretch.end - stretch.first
        model.ints[[at.MODEL_LABELS, at.MODEL_RECORDS]] += [rows - 1, rows if stretch.answers else 0]
        events = self._review(model, model.block_places[0], stretch.end - 1, index)
        model.ints[[at.MODEL_LABELS, at.MODEL_RECORDS]] = before
        return events

    def _split_with_room(self, state: MemberState, node: int) -> bool:
        """Split a leaf (node: relative to the tree) if it lacks only room; return whether it was split.

        The member's record then holds the words of the split, as if compiled code had not returned.
        """
        from core.learners.forest import stretch  # loads or compiles kernels

        ints, t, plan = state.ints, state.t, state.plan
        have, (nodes, slots) = self.trees.room(ints, t), self.trees.live_room(ints, t)
        has_stopped = self.trees.has_stopped(ints, t)
        if has_stopped or not plan.ints[at.PLAN_PLAIN_SPLITS] or plan.ints[at.PLAN_SUBTREES]:
            return False  # a tree that adapts may have several leaves to split
        if nodes + 2 <= have[0] and slots + 1 <= have[1]:
            return False
        room = self.usual_room(plan, state.schema.n_classes, (2 * have[0] + 1, 2 * have[1]))
        if self.trees.words(room) * at.WORD > plan.block_bytes(state.schema.n_classes):
            return False
        t = state.make_room(t, room)
        record = self.record(state.forest, state.slot)
        first = record + self.event_at
        has_grown = bool(stretch.split_again(plan.address, state.address, t, t + node, first) == at.GREW)
        if not has_grown or state.slot >= self.members:
            state.floats[first : record + self.stride] = 0.0
        return has_grown

    def _told(self, model: HasBlocks, t: int, slot: int, row: int, index: int) -> Split:
        """Return the event of a split that a member has made in compiled code, and clear its words."""
        record = self.record(t, slot)
        words = model.floats[record + self.event_at : record + self.stride]
        event = splitting.described_event(words.tolist(), row, index, slot)
        words[:] = 0.0
        model.ints[record + of.DUE] = 0
        return event

    def member_plan(self, model: HasBlocks, t: int) -> MemberPlan:
        """Return the plan of a model as the growth of members of the forest at word t sees it."""
        parts = 2 * self.slots if model.ints[t + of.RANKED] else self.slots
        return MemberPlan(model.plan, self.trees, parts, self._record_words)

    def state_of(self, model: HasBlocks, t: int, slot: int) -> MemberState:
        """Return a tree as a review sees it: its plan allows it all bytes of the forest."""
        return MemberState(self, model, t, slot, MemberPlan(model.plan, self.trees, 1, self._record_words))

    def trees_bytes(self, model: HasBlocks) -> float:
        """Return the bytes of all trees together, for the classes and values that the model has learned."""
        learned = MemberPlan(model.plan, self.trees, 1, 0.0).learned_bytes(model.ints)
        words = self.slots * (self._record_words + model.ints.item(at.MODEL_CLASSES))
        return learned + model.ints.item(at.MODEL_CLASSES) * at.WORD - words * at.WORD

    def numbered(self, events: list[Event], slot: int) -> list[Event]:
        """Return events of a tree with the number of its member."""
        return [numbered(event, slot) for event in events]

    def is_short(self, ints: Ints, t: int) -> bool:
        """Return whether a tree has reached its part of the bytes, now or at an earlier review."""
        if ints[t + of.RANKED]:
            return True
        places = self._places(ints, t)
        trees = t + places[places > 0]
        return bool((ints[trees + at.TREE_STOPPED] == at.LACKS_ROOM).any())

    @property
    def _record_words(self) -> float:
        return self.event_at + SPLIT_WORDS + of.HEADER / self.slots

    def usual_room(self, plan: MemberPlan, classes: int, room: Room) -> Room:
        """Return the room that a tree gets: more than it needs now, as long as that is small."""
        if plan.ints[at.PLAN_REVISION]:
            return room
        most = int(plan.block_bytes(classes)) // at.WORD
        for nodes, slots in USUAL_ROOMS:
            roomy = max(nodes, room[0]), max(slots, room[1])
            if self.trees.words(roomy) <= min(USUAL_WORDS, most):
                return roomy
        even = max(room[0], 2 * room[1] - 1), max(room[1], (room[0] + 1) // 2)  # the ratio of binary splits
        return even if self.trees.words(even) <= most else room

    def give_room(self, model: HasBlocks, t: int, slot: int, room: Room) -> int:
        """Give a tree this room, planting it if it does not exist; return the forest's first word after that.

        The tree moves to words that no tree takes. If no gap is large enough, or trees take fewer words than
        are free, the whole forest is laid out again with spare words.
        """
        ints, words = model.ints, self.trees.words(room)
        place = self._free_place(ints, t, words)
        if place:
            record, tree = self.record(t, slot), self.tree_at(ints, t, slot)
            ints[record + of.TREE] = place
            if tree:
                ints[t + place : t + place + words] = 0
                self.trees.copy(self.trees, ints, tree, ints, t + place, room)
            else:
                self._plant_tree(ints, t, slot, room)
            return t
        rooms = list(self.room(ints, t))
        rooms[2 * slot : 2 * slot + 2] = room
        return self.lay_out_anew(model, t, rooms)

    def lay_out_anew(self, model: HasBlocks, t: int, rooms: list[int]) -> int:
        """Give all trees this room, and spare words; return the forest's first word after that."""
        rooms[-1] = 0
        taken = self.words(tuple(rooms))
        most = int(model.plan.block_bytes(model.schema.n_classes)) // at.WORD
        rooms[-1] = max(min(taken // SPARE, most - taken), 0)
        return model.make_room(t, tuple(rooms))

    def _free_place(self, ints: Ints, t: int, words: int) -> int:
        """Return the first gap between the trees, or after the last, that has this number of words.

        0: there is no such gap, or trees take so little of the forest that it should be laid out again.
        """
        found, free, end, whole = 0, 0, self.trees_at, ints.item(t + at.BLOCK_WORDS)
        for place in [*sorted(filter(None, self._places(ints, t).tolist())), whole]:
            if place - end >= words and not found:
                found = end
            free += place - end
            end = place + ints.item(t + place + at.TREE_WORDS) if place < whole else whole
        is_sparse = free > whole - free + words
        return 0 if is_sparse else found

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
        word = at.PLAN_NODE_DETECTOR if level == of.DRIFTED else at.PLAN_WARNING_DETECTOR
        watching = self._watching[word]
        record, background = self.record(t, member), self.record(t, member + self.members)
        if rate is None:
            rate = watching.error_rate(model.floats[record + self.detectors[word] :])
        ints, classes = model.ints, model.schema.n_classes
        fresh = self.usual_room(self.member_plan(model, t), classes, self.trees.new_room)
        action: Action
        if level == of.WARNED:
            action = "background tree started"
            self._begin_anew(ints, background)
            self._reset(ints, record, at.PLAN_WARNING_DETECTOR)
            self.give_room(model, t, member + self.members, fresh)
        else:
            ints[t + of.REPLACED] += 1
            if self.slots > self.members and ints[background + of.TREE]:
                action = "background tree took over"
                made = ints.item(record + of.MADE)
                ints[record : record + self.stride] = ints[background : background + self.stride]
                ints[record + of.MADE] = made
                self._begin_anew(ints, background)
            else:
                action = "new tree"
                made = ints.item(record + of.MADE)
                self._begin_anew(ints, record)
                ints[record + of.MADE] = made
                self.give_room(model, t, member, fresh)
        return Drift(
            row=row,
            model=index,
            level="warning" if level == of.WARNED else "drift",
            detector=watching.name,
            error_rate=rate,
            action=action,
            member=member,
        )

    def _begin_anew(self, ints: Ints, record: int) -> None:
        """Write a record without a tree."""
        ints[record : record + self.stride] = 0
        for word in self.detectors:
            self._reset(ints, record, word)

    def _reset(self, ints: Ints, record: int, word: int) -> None:
        """Write the initial state of a detector."""
        state = self.detectors[word]
        if state:
            initial = self._initial[word]
            ints.view(np.float64)[record + state : record + state + len(initial)] = initial

    def problems(self, model: HasBlocks, t: int) -> Iterator[str]:
        for slot in range(self.slots):
            tree = self.tree_at(model.ints, t, slot)
            if tree:
                state = MemberState(self, model, t, slot)
                yield from (f"slot {slot}: {each}" for each in self.trees.problems(state, tree))


def numbered(event: Event, member: int) -> Event:
    """Return an event of a tree with the number of its member."""
    if isinstance(event, Split | Pruned | Drift):
        return replace(event, member=member)
    assert isinstance(event, GrowthStopped)
    return event
