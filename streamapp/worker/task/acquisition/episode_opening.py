"""Opening: instances of models that buy features; each is answered at once, or opens an episode.

A task processes such a record as a separate run, because the features that are bought depend on everything
that its model learned before.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamapp.worker.task import counters
from streamapp.worker.task.acquisition.answer import REPEATED, EpisodeAnswer
from streamapp.worker.task.acquisition.episode_course import Course
from streamapp.worker.task.effects.effects import Effects, Origin
from streamapp.worker.task.effects.label_requests import place_of
from streamapp.worker.task.effects.unused_features import note_ignored, note_values
from streamapp.worker.task.episodes.episode import KNOWN, UNKNOWN, Episode
from streamapp.worker.task.instances.family_run import FamilyRun
from streamapp.worker.task.instances.run import InstancesRun
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.class_codes import RefusedClassError
from streamapp.worker.task.models.schemas.feature_placement import Placed
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.early_labels import HeldLabel
from streamapp.worker.task.pending.event_time import RunTime
from topics.columns.records import Instances, RawRecords

ROW_BITS: Final = 20
"""Bits for the row in a record's number: a block has at most 2**ROW_BITS rows."""


class AcquiringRun(InstancesRun):
    """One record of a model that buys features, on its way through the task; its n rows are independent."""

    def __init__(
        self, state: PartitionState, raw: RawRecords, batch: Instances, time: RunTime, effects: Effects
    ) -> None:
        super().__init__(state, raw, batch, time, effects)
        self.course = Course(state, raw, effects)

    def process(self) -> None:
        """Answer every row that needs no more features, and request features for the remaining rows."""
        self._resolve()
        for row in np.flatnonzero(self.model >= 0).tolist():
            placed = self._placed(row)
            if self.store.growth.is_due:  # also by values of a refused record, as in other runs
                self.state.will_change(np.array([self.model[row], *self.store.growth.grown], dtype=np.int64))
                self.store.growth.adopt()
            if placed is not None:
                self._open(row, placed)
        self._write_counts()
        self.effects.dead_letters += self.refusals.dead_letters(self.held_dead_letters)

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

    def _open(self, row: int, placed: Placed) -> None:
        """Open the episode of a row; it may end at once."""
        slot, name, clock = int(self.model[row]), self.names[row], int(self.clocks[row])
        acquirer = self.store.cache.plan(slot).spec.acquirer
        assert acquirer is not None
        record = int(self.batch.record[row])
        x = placed.x[row, : int(self.store.traits.width[slot])].copy()
        status = np.where(np.isnan(x), UNKNOWN, KNOWN).astype(np.int8)
        status[self._given] = KNOWN  # values without a code
        number = (self.raw.offsets[record] << ROW_BITS) + int(self.batch.row[row])
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
            EpisodeAnswer(self.state, self.raw, record, clock, episode).give(REPEATED, self.effects)
        elif self._is_remembered(row):
            self.course.finish(episode, REPEATED, record, clock, label)
        elif self.course.advance(episode, record, clock, label):
            self._hold(row, label)

    def _is_open(self, row: int) -> bool:
        return self.names[row] in self.state.episodes

    def _is_remembered(self, row: int) -> bool:
        _, state = self.state.pending.find(self.names[row], int(self.clocks[row]))
        return state in ("open", "settled")

    def _hold(self, row: int, label: str | None) -> None:
        """Hold back an instance's label, which its episode must not see."""
        if label is None:
            return
        early, name, clock = self.state.early, self.names[row], int(self.clocks[row])
        if early.find(name, clock) is not None:
            self.effects.count(counters.DUPLICATE)
            return
        record = int(self.batch.record[row])
        rows = int(np.count_nonzero(self.batch.record == record))
        origin = Origin.of(self.raw, record)
        block_row = int(self.batch.row[row]) if len(self.batch.blocks) else None
        size = len(origin.value or b"") // rows
        early.hold(name, HeldLabel(label, float(self.batch.weight[row]), clock, origin, block_row, size))
        self.effects.count(counters.EARLY)


def instances_run(
    state: PartitionState, raw: RawRecords, batch: Instances, time: RunTime, effects: Effects
) -> InstancesRun | FamilyRun:
    """Return the run of a part of the instances; it is one record if that record's model buys features."""
    if len(raw) == 1 and len(batch) and state.acquires(batch.keys[batch.key[0]]):
        return AcquiringRun(state, raw, batch, time, effects)
    plain = FamilyRun.of(state, raw, batch, time, effects)
    return plain or InstancesRun(state, raw, batch, time, effects)
