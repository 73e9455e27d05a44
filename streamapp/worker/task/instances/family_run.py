"""Family run: a run with nothing new or special about it, answered in few calls however small it is.

Most of the cost of answering a run does not depend on its number of rows: it is the search for special cases.
One survey of a run finds whether all its models are of one family (families.py), their schemas have all its
features and classes, and none of its labels was held back. `InstancesRun` would have the same effects.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from core.errors import RowError
from core.model_table import LABELLED
from streamapp.worker.task import counters
from streamapp.worker.task.effects.model_events import ModelEvents
from streamapp.worker.task.effects.record_error import RecordError
from streamapp.worker.task.effects.refusals import Refusals
from streamapp.worker.task.effects.replies import Replies
from streamapp.worker.task.instances.rows import InstanceRows
from streamapp.worker.task.pending_policy import Mask, keep_and_request
from topics.columns.records import Floats, Instances, Ints32, Ints64, RawRecords

if TYPE_CHECKING:
    from core.model_table import Answers
    from streamapp.worker.task.effects.effects import Effects
    from streamapp.worker.task.models.families import Surveyed
    from streamapp.worker.task.partition_state import PartitionState
    from streamapp.worker.task.pending.event_time import RunTime


class FamilyRun(InstanceRows):
    """A run of instances whose models are of one family; n rows, at least one."""

    def __init__(
        self,
        state: PartitionState,
        raw: RawRecords,
        batch: Instances,
        time: RunTime,
        effects: Effects,
        surveyed: Surveyed,
    ) -> None:
        super().__init__(state, raw, batch, time, effects)
        self.model = surveyed.model
        self._surveyed = surveyed

    @staticmethod
    def of(
        state: PartitionState, raw: RawRecords, batch: Instances, time: RunTime, effects: Effects
    ) -> FamilyRun | None:
        """Return a run if its models are of one family and nothing in it is new, else None."""
        surveyed = survey(state, batch)
        if surveyed is None:
            return None
        run = FamilyRun(state, raw, batch, time, effects, surveyed)
        return run if state.early.knows_none_of(run.names) else None

    def process(self) -> None:
        """Answer every row."""
        self.state.will_change(self.model)
        self.end(self._answers())

    def end(self, answers: Answers) -> None:
        """Add what the answers to all rows lead to."""
        effects, surveyed, malformed = self.effects, self._surveyed, self.batch.malformed
        self.replies = Replies(len(self.batch), answers, self.store.traits.n_classes[self.model])
        events = self._events(answers) if answers.events or self.challenged else None
        if events is not None and self.challenged:
            self.challenged.compare(self.model, self.replies, self.clocks, events)
        if (
            len(self.state.pending)
            or self.state.review is not None
            or self.state.config.pending_keep == "all"
            or np.count_nonzero(answers.asked)
        ):
            keep_and_request(self)
        if surveyed.kind is None or self.challenged:
            effects.answers += self.replies.groups(self.batch, self.model, self.store.traits)
        else:
            effects.answers.append(self.replies.of_kind(self.batch, surveyed.kind, surveyed.order))
        if events is not None:
            events.write(effects)
        effects.count(counters.ANSWERED, len(self.batch))
        effects.count(counters.LABELLED, surveyed.labels)
        if malformed:
            effects.count(counters.INSTANCES_DEAD, sum(len(each.rows) or 1 for each in malformed))
            effects.dead_letters += Refusals(self.raw, self.batch).dead_letters()

    @cached_property
    def labelled(self) -> Mask:
        """bool[n]: rows whose label was learned at once."""
        return self._surveyed.code >= 0

    @cached_property
    def frozen(self) -> Mask:
        """bool[n]: False for all, because no model is frozen."""
        return np.zeros(len(self.batch), dtype=np.bool_)

    @cached_property
    def width(self) -> Ints32:
        """int32[n]: the attributes of each row's model."""
        width: Ints32 = self.store.traits.width[self.model]
        return width

    def features_of(self, rows: Ints64) -> Floats:
        """Return float64[m, D]: the features that rows (int64[m]) had in their models' columns."""
        return self.batch.features[0].values[rows]

    def _answers(self) -> Answers:
        batch, code = self.batch, self._surveyed.code
        try:
            x, weight = batch.features[0].values, batch.weight
            answers = self.store.table.answer(self.model, x, code, weight, LABELLED)
            if self.store.keys.has_challengers:
                self.challenged.answer(np.arange(len(batch)), self.model, x, code, weight)
        except RowError as error:
            raise RecordError(int(batch.record[error.row])) from error.__cause__
        return answers

    def _events(self, answers: Answers) -> ModelEvents:
        model, store = self.model, self.store

        def records(at: int) -> int:
            behind = int(np.count_nonzero(model[at + 1 :] == model[at]))
            return store.cache.peek(int(model[at])).scale().records - behind

        events = ModelEvents(store, self.raw, self.batch.record, self.batch.ids)
        if answers.events:
            events.add(answers.events, np.arange(len(model)), answers.version.item, records)
        return events


def survey(state: PartitionState, batch: Instances) -> Surveyed | None:
    """Return the rows of a batch if their models are of one family, which has all their features and classes.

    Such rows add nothing to the schema of a model.
    """
    store, features = state.store, batch.features
    if len(features) != 1 or len(batch.blocks) or store.growth.is_due:
        return None
    slots = store.keys.slots(batch.keys)
    surveyed = store.traits.families.survey(slots, batch.key, batch.label_values, batch.label)
    if surveyed is None:
        return None
    if not state.placement.is_in_place(features[0], store.traits.schema(int(slots[0])).columns):
        return None
    return surveyed
