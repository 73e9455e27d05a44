"""Instance rows: the data of every run of instances, of one family or general."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from streamapp.worker.task.challenges.challenged_answers import ChallengedRows
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.event_time import RunTime
from streamapp.worker.task.pending.name_columns import Names
from topics.columns.records import Floats, Instances, Ints32, Ints64, RawRecords


class InstanceRows:
    """One run of instances on its way through the task; n rows."""

    scale: Floats | None = None  # float64[n]: factors for the weights of later labels; None: 1
    words: Ints64 | None = None  # of its episode, of a run of one row

    def __init__(
        self, state: PartitionState, raw: RawRecords, batch: Instances, time: RunTime, effects: Effects
    ) -> None:
        self.state, self.store = state, state.store
        self.raw, self.batch, self.time, self.effects = raw, batch, time, effects
        self.label: Ints32 = batch.label  # into `label_values`; -1: none
        self.challenged = ChallengedRows(state.store, len(batch))

    @property
    def label_values(self) -> Sequence[str]:
        """Class names."""
        return self.batch.label_values

    @cached_property
    def names(self) -> Names:
        """Model key and id of each row."""
        return Names(self.batch.keys, self.batch.key, self.batch.ids)

    @cached_property
    def clocks(self) -> Ints64:
        """int64[n]: the clock at each row."""
        clocks: Ints64 = self.time.clocks()[self.batch.record]
        return clocks
