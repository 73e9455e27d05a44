"""Opening: instances of models that buy features; each is answered at once, or opens an episode.

Such records are processed one by one, because the features that are bought depend on everything that their
models learned before. The parts of this work that depend on nothing before are done for many records at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from streamapp.worker.task import counters
from streamapp.worker.task.acquisition.answer import REPEATED
from streamapp.worker.task.acquisition.episode_course import Course
from streamapp.worker.task.effects.effects import Effects, Origin
from streamapp.worker.task.effects.label_requests import place_of
from streamapp.worker.task.effects.model_happenings import happened
from streamapp.worker.task.effects.unused_features import note_ignored, note_values
from streamapp.worker.task.episodes.episode import KNOWN, UNKNOWN, Episode
from streamapp.worker.task.instances.family_run import FamilyRun
from streamapp.worker.task.instances.run import InstancesRun
from streamapp.worker.task.model_creation import RefusedModelError, make_model
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.class_codes import RefusedClassError
from streamapp.worker.task.models.schemas.feature_placement import Placed
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.early_labels import HeldLabel
from streamapp.worker.task.pending.event_time import RunTime
from topics.columns.records import Floats, Instances, RawRecords

Mask = npt.NDArray[np.bool_]

ROW_BITS: Final = 20
"""Bits for the row in a record's number: a block has at most 2**ROW_BITS rows."""

STRETCH: Final = 256
"""Rows whose features are placed together."""

REMEMBERED: Final = ("open", "settled")
"""States of an instance that waits for its label, or has it."""


class Stretch(NamedTuple):
    """Placed features of some rows of a run."""

    x: Floats  # float64[n, D] in the columns of the rows' models
    special: Mask  # bool[n]: rows that may change their model, or are refused
    first: int  # row of the run
    stop: int

    def holds(self, row: int) -> bool:
        """Whether a row is among them."""
        return self.first <= row < self.stop

    def up_to(self, row: int) -> Stretch:
        """Return the stretch without a row and the rows after it."""
        return self._replace(stop=row)


class AcquiringRun(InstancesRun):
    """Records of models that buy features, on their way through the task; n rows, one after the other.

    The features of many rows are placed together. A row that may change its model before it is answered is
    placed when it has its turn.
    """

    def __init__(
        self, state: PartitionState, raw: RawRecords, batch: Instances, time: RunTime, effects: Effects
    ) -> None:
        super().__init__(state, raw, batch, time, effects)
        self.course = Course(state, raw, effects)
        self._stretch = Stretch(np.empty((0, 0)), np.empty(0, dtype=np.bool_), 0, 0)
        self._given: list[int] = []  # columns of the row's values that have no code
        self._was_kept: Mask = np.zeros(len(batch), dtype=np.bool_)  # before the run, waiting for its label

    def process(self) -> None:
        """Answer every row that needs no more features, and request features for the remaining rows."""
        if len(self.batch):
            self.slots = self.store.keys.slots(self.batch.keys)
            self._was_kept = self.state.pending.serials(self.names) >= 0
        self.model = self.slots[self.batch.key]
        clocks: list[int] = self.clocks.tolist()
        for row, record in enumerate(self.batch.record.tolist()):
            self.course.finish_overdue(clocks[row], record)
            if row in self.refusals:  # another row of its block could not make the model
                continue
            if self.model[row] >= 0 or self._makes_model(row):
                self._open_row(row)
        self.course.answers.give()
        self._write_counts()
        self.effects.dead_letters += self.refusals.dead_letters(self.held_dead_letters)
        self.effects.dead_letters.sort(key=lambda letter: letter.record)

    def _makes_model(self, row: int) -> bool:
        """Make the model of a row; return False if the row is refused."""
        record, key = int(self.batch.record[row]), int(self.batch.key[row])
        name, offset = self.batch.keys[key], self.raw.offsets[record]
        try:
            slot = make_model(self.state, name, self.batch.features, row, offset, self.effects)
        except RefusedModelError as error:
            alike = (self.batch.record == record) & (self.batch.key == key)
            for refused in np.flatnonzero(alike).tolist():
                self.refusals.add(refused, error.reason, error.detail)
            return False
        happening = happened("created", self.store, slot, self.raw, record, instance_id=self.batch.ids[row])
        self.effects.happened.append(happening)
        self.slots[key] = slot
        self.model = self.slots[self.batch.key]
        self._stretch = self._stretch.up_to(row)
        return True

    def _open_row(self, row: int) -> None:
        slot = int(self.model[row])
        width = int(self.store.traits.width[slot])
        if not self._stretch.holds(row):
            self._stretch = self._next_stretch(row)
        if not self._stretch.special[row]:
            self._given = []
            self._open(row, self._stretch.x[row, :width])
            return
        self.course.answers.give_model(slot)  # these answers were due before the model changes
        placed = self._placed(row)
        if self.store.growth.is_due:  # also by values of a refused record, as in other runs
            self.state.will_change(np.array([slot, *self.store.growth.grown], dtype=np.int64))
            self.store.growth.adopt()
        if self.store.traits.width[slot] != width:
            self._stretch = self._stretch.up_to(row + 1)
        if placed is not None:
            self._open(row, placed.x[row, : int(self.store.traits.width[slot])])

    def _next_stretch(self, first: int) -> Stretch:
        """Place the features of the next rows, as far as their models exist."""
        stop, n = min(first + STRETCH, len(self.batch)), len(self.batch)
        model = np.full(n, NO_MODEL, dtype=np.int64)
        model[first:stop] = self.model[first:stop]
        placement, traits = self.state.placement, self.store.traits
        parts, wrong = placement.parts(self.batch.features, model)
        placed = placement.place(parts, n, int(traits.width[model[model >= 0]].max()))
        is_special = model < 0
        is_special[[*wrong, *placed.flaws]] = True
        for new_values in placed.new_values:
            is_special[new_values.rows] = True
        for part in parts:
            if part.layout.unknown:
                is_special[part.rows] = True
        is_special |= (self.label >= 0) & (self.classes.known(self.slots, self.batch.key, self.label) < 0)
        if np.count_nonzero(traits.counts_records):
            is_special |= self.weight != 1.0
        return Stretch(placed.x, is_special, first, stop)

    def _placed(self, row: int) -> Placed | None:
        """Return the features of a row in its model's columns, None if it is refused."""
        placement, batch, store = self.state.placement, self.batch, self.store
        only = np.full(len(batch), NO_MODEL, dtype=np.int64)
        only[row] = self.model[row]
        parts, wrong = placement.parts(batch.features, only)
        new = placement.new_attributes(parts, batch.record)
        if new:
            self._add_attributes(np.array([row]), new)
            parts, wrong = placement.parts(batch.features, only)
        placed = placement.place(parts, len(batch), int(store.traits.width[self.model[row]]))
        for flawed, (reason, detail) in (placed.flaws | wrong).items():
            self.refusals.add(flawed, reason, detail)
        self._refuse_weights(np.array([row]))
        if row in self.refusals:
            return None
        if self.label[row] >= 0 and not store.traits.frozen[self.model[row]]:
            try:
                self.classes.admit(int(self.model[row]), self.classes.names[self.label[row]])
            except RefusedClassError as error:
                self.refusals.add(row, error.reason, error.detail)
                return None
        attributes = [new_value.attribute for new_value in placed.new_values]
        grown = placement.grow_values(placed, self.model)
        note_values(grown, self.model, store.keys, self.raw, batch.record, self.effects)
        note_ignored(placement, parts, store, self.raw, batch.record, self.effects)
        self._given = attributes
        return placed

    def _open(self, row: int, features: Floats) -> None:
        """Open the episode of a row with these features (float64[d]); it may end at once."""
        slot, name, clock = int(self.model[row]), self.names[row], int(self.clocks[row])
        acquirer = self.store.cache.plan(slot).spec.acquirer
        assert acquirer is not None
        record = int(self.batch.record[row])
        x = features.copy()
        status = np.where(np.isnan(x), UNKNOWN, KNOWN).astype(np.int8)
        status[self._given] = KNOWN
        x[self._given] = np.where(x[self._given] < 0.0, np.nan, x[self._given])  # categories without a code
        number = (self.raw.offsets[record] << ROW_BITS) + int(self.batch.row[row])
        self.course.answers.give_name(name)
        if acquirer.writes:
            self.course.answers.give_model(slot)
        self.course.answers.give_before_step(slot, acquirer, x, status == UNKNOWN)
        self.store.cache.use(np.array([slot]))
        model, frozen = self.store.cache.model(slot), bool(self.store.traits.frozen[slot])
        if acquirer.writes and not frozen:
            self.state.will_change(np.array([slot]))
        episode = Episode(
            name=name,
            serial=self.state.episodes.next_serial,
            place=place_of(self.raw, self.batch, row),
            opened=clock,
            deadline=clock + acquirer.timeout_ms,
            weight=float(self.batch.weight[row]),
            x=x,
            status=status,
            words=acquirer.open(model, x, status == UNKNOWN, number, frozen),
        )
        code = int(self.batch.label[row])
        label = self.batch.label_values[code] if code >= 0 else None
        if self._is_open(row):  # the earlier episode stays open
            self._hold(row, label)
            self.course.answers.add(episode, REPEATED, record, clock, None)
        elif self._is_remembered(row):
            self.course.finish(episode, REPEATED, record, clock, label)
        elif self.course.advance(episode, record, clock, label):
            self._hold(row, label)

    def _is_open(self, row: int) -> bool:
        return self.names[row] in self.state.episodes

    def _is_remembered(self, row: int) -> bool:
        name, clock = self.names[row], int(self.clocks[row])
        if not self._was_kept[row] and name not in self.course.answers.names:
            return False
        if self.state.pending.find(name, clock)[1] not in REMEMBERED:
            return False
        self.course.answers.give()  # an instance that is kept may displace this one
        return self.state.pending.find(name, clock)[1] in REMEMBERED

    def _hold(self, row: int, label: str | None) -> None:
        """Hold back an instance's label, which its episode must not see."""
        if label is None:
            return
        self.course.answers.give_labelled()  # a label that is released leaves room for this one
        early, name, clock = self.state.early, self.names[row], int(self.clocks[row])
        if early.find(name, clock) is not None:
            self.effects.count(counters.DUPLICATE)
            return
        record = int(self.batch.record[row])
        rows = int(np.count_nonzero(self.batch.record == record))
        origin = Origin.of(self.raw, record)
        is_block = record in self.batch.blocks[:, 0]
        block_row = int(self.batch.row[row]) if is_block else None
        size = len(origin.value or b"") // rows
        early.hold(name, HeldLabel(label, float(self.batch.weight[row]), clock, origin, block_row, size))
        self.effects.count(counters.EARLY)


def instances_run(
    state: PartitionState, raw: RawRecords, batch: Instances, time: RunTime, effects: Effects
) -> InstancesRun | FamilyRun:
    """Return the run of a part of the instances, whose models either all buy features, or none does."""
    if len(batch) and state.acquires_any and state.acquires(batch.keys[batch.key[0]]):
        return AcquiringRun(state, raw, batch, time, effects)
    plain = FamilyRun.of(state, raw, batch, time, effects)
    return plain or InstancesRun(state, raw, batch, time, effects)
