"""Own features: labels that have features with them need no pending instance."""

from __future__ import annotations

import numpy as np

from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.effects.model_happenings import happened
from streamapp.worker.task.effects.unused_features import note_ignored, note_values
from streamapp.worker.task.model_creation import RefusedModelError, make_model
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.feature_placement import Placed
from streamapp.worker.task.partition_state import PartitionState
from topics.columns.records import Floats, Ints64, Labels, RawRecords
from topics.errors import Reason


class OwnFeatures:
    """The features among the labels of one run, in the columns of their models.

    Models take new values from them, but no new features: those come with instances. A label with features
    makes the model of its key if there is none, as an instance would.
    """

    def __init__(self, state: PartitionState, batch: Labels) -> None:
        self._state = state
        self._batch = batch
        self._model: Ints64 = np.full(len(batch), NO_MODEL, dtype=np.int64)
        self._placed = Placed(np.zeros((len(batch), 0)))
        labelled = [group.rows[batch.label[group.rows] >= 0] for group in batch.features]
        self._labelled: Ints64 = np.sort(np.concatenate(labelled)) if labelled else np.zeros(0, np.int64)
        self.rows: set[int] = set(self._labelled.tolist())  # labels with features, without declined labels
        self.flaws: dict[int, tuple[Reason, str]] = {}  # rows whose features cannot be learned, and why

    @property
    def x(self) -> Floats:
        """float64[n, D]; NaN in rows without features."""
        return self._placed.x

    def resolve(self, raw: RawRecords, effects: Effects) -> None:
        """Find (or make) the models of the labels with features, and place these in their columns."""
        if not self.rows:
            return
        placement, store, batch = self._state.placement, self._state.store, self._batch
        for row in self._labelled.tolist():
            self._model[row] = self._slot(raw, row, effects)
        parts, wrong = placement.parts(batch.features, self._model)
        width = int(store.traits.width[self._model[self._model >= 0]].max(initial=0))
        self._placed = placement.place(parts, len(batch), width)
        self.flaws |= wrong | self._placed.flaws
        note_ignored(placement, parts, store, raw, batch.record, effects)

    def grow_values(self, rows: set[int], raw: RawRecords, effects: Effects) -> None:
        """Give codes to the new values in `rows`; count those that stay without one."""
        placed = self._placed
        placed.new_values = [
            new_values.within(np.isin(new_values.rows, [*rows])) for new_values in placed.new_values
        ]
        grown = self._state.placement.grow_values(placed, self._model)
        note_values(grown, self._model, self._state.store.keys, raw, self._batch.record, effects)

    def _slot(self, raw: RawRecords, row: int, effects: Effects) -> int:
        key = self._batch.keys[self._batch.key[row]]
        slot = self._state.store.keys.slot(key)
        if slot != NO_MODEL:
            return slot
        try:
            record = int(self._batch.record[row])
            slot = make_model(self._state, key, self._batch.features, row, raw.offsets[record], effects)
        except RefusedModelError as error:
            self.flaws[row] = (error.reason, error.detail)
            return NO_MODEL
        happening = happened(
            "created", self._state.store, slot, raw, record, instance_id=self._batch.ids[row]
        )
        effects.happened.append(happening)
        return slot
