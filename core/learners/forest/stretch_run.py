"""Run of a stretch: compiled code goes through the rows, and Python makes the decisions where it returns."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from core.events import Drift, Event
from core.layout.learning import GROW_FIRST
from core.layout.model import ModelHeader
from core.layout.plan import PlanRecord
from core.learners.forest.growth import ForestGrowth
from core.learners.forest.layout import DRIFTED
from core.learners.forest.stretch import (
    ALARMED,
    BACKGROUND_AGAIN,
    BALLOT_WORDS,
    ERROR,
    LOG_FULL,
    LOG_MEMBER,
    LOG_ROW,
    LOG_SPLIT,
    THROUGH,
    Columns,
    Progress,
    new_buffers,
    play,
)
from core.learners.hoeffding.growth import splitting
from core.learners.protocol import HasBlocks, Stretch

# The order of events in a row: events of records that came again, splits, alarms of members
CAME_AGAIN, SPLIT, ALARM = range(3)


class StretchRun:
    """The rows of a stretch go through one member after another (core/learners/forest/stretch.py)."""

    def __init__(self, growth: ForestGrowth, model: HasBlocks, stretch: Stretch, index: int) -> None:
        """Take the growth of the forest that answers in a model; index: the model's in its table."""
        self.growth, self.model, self.stretch, self.index = growth, model, stretch, index
        layout, header = growth.layout, ModelHeader(model.ints, model.floats, 0)
        self.progress = progress = Progress.over(np.zeros(Progress.SIZE, dtype=np.int64))
        progress.first = progress.row = progress.checked = stretch.first
        progress.end, progress.until = stretch.end, layout.members
        progress.answers, progress.records, progress.labels = stretch.answers, header.records, header.labels
        self.classes = stretch.probability.shape[1]
        ballots = (layout.members, stretch.end - stretch.first, self.classes + BALLOT_WORDS)
        if not layout.learner.replaces_worst:
            ballots = (0, 0, 0)
        self.buffers = new_buffers(stretch.workspace, ballots, layout.dims.classes, layout.dims.attributes)
        self.events: list[tuple[int, int, int, Event]] = []
        """Row, place in the order of events in a row, member, and event."""

    def play(self) -> list[Event]:
        """Let the forest learn the rows; return the events in the order of rows."""
        model, stretch, progress = self.model, self.stretch, self.progress
        plan = PlanRecord(model.plan.ints, model.plan.floats, 0)
        columns = Columns(stretch.x, stretch.label, stretch.weight, stretch.prediction, stretch.probability)
        reason = LOG_FULL
        while reason != THROUGH:
            forest = self.growth.layout.forest(model.ints, model.block_places[0])
            reason = play(plan, forest, columns, self.buffers, progress)
            self._read_log()
            if reason == ALARMED:
                self._replace_worst()
            elif reason not in (LOG_FULL, THROUGH):
                self._decide(reason)
        self.events.sort(key=itemgetter(0, 1, 2))
        return [event for *_, event in self.events] + self._review()

    def _read_log(self) -> None:
        """Make events of the splits in the log, and empty it."""
        for words in self.buffers.log[: self.progress.logged].tolist():
            row, member = int(words[LOG_ROW]), int(words[LOG_MEMBER])
            event = splitting.described_event(words[LOG_SPLIT:], row, self.index, member)
            self.events.append((row, SPLIT, member, event))
        self.progress.logged = 0

    def _replace_worst(self) -> None:
        """Replace the worst member, which goes again through the rows after the alarm."""
        progress, t = self.progress, self.model.block_places[0]
        member, row = int(progress.member), int(progress.row)
        self.stretch.row = row
        self.events = [event for event in self.events if event[2] != member or event[0] <= row]
        ballot = self.buffers.ballots[member, row - self.stretch.first]
        rate = max(ballot.item(self.classes + ERROR), 0.0)
        event = self.growth.react(self.model, t, member, DRIFTED, row, self.index, rate)
        self.events.append((row, ALARM, member, event))
        progress.until, progress.row = member + 1, row + 1

    def _decide(self, reason: int) -> None:
        """Make the decisions that are due at the member."""
        layout, progress, model = self.growth.layout, self.progress, self.model
        t, member, row = model.block_places[0], int(progress.member), int(progress.row)
        slots, alarmed = [member, member + layout.members][: layout.slots // layout.members], []
        if reason == GROW_FIRST:
            slots = slots[1:] if progress.step == BACKGROUND_AGAIN else slots[:1]
        else:
            row -= 1
            alarmed = [member] if layout.record(model.ints, t, member).alarm else []
            slots = [slot for slot in slots if layout.record(model.ints, t, slot).due]
        self.stretch.row = row
        for event in self.growth.conclude(model, reason, 0, slots, alarmed, row, self.index):
            place = ALARM if isinstance(event, Drift) and event.node is None else SPLIT
            if reason == GROW_FIRST:
                place = CAME_AGAIN
            self.events.append((row, place, member, event))

    def _review(self) -> list[Event]:
        """Rank the leaves after the last row, with the counters that the model has there."""
        stretch, model, progress = self.stretch, self.model, self.progress
        length = stretch.end - stretch.first
        header = ModelHeader(model.ints, model.floats, 0)
        header.labels += length - 1
        header.records += length if stretch.answers else 0
        events = self.growth.review(model, model.block_places[0], stretch.end - 1, self.index)
        header = ModelHeader(model.ints, model.floats, 0)  # a review may move the model's words
        header.labels, header.records = progress.labels, progress.records
        return events
