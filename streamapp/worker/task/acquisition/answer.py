"""Answer: the prediction at the end of an episode, with all its effects."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from core.active.label_account import DECLINED
from core.model_table import ANSWER_ONLY, LABELLED, NO_LABEL
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.effects.label_requests import label_requests
from streamapp.worker.task.episodes.episode import Episode, known_features
from streamapp.worker.task.instances.run import InstancesRun
from streamapp.worker.task.models.schemas.feature_placement import Placed
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.event_time import RunTime
from streamapp.worker.task.pending_policy import keep_pending
from topics.columns.records import MAX_WEIGHT, Acquired, Instances, Ints64, RawRecords

REPEATED: Final = "repeated"
"""The instance was answered before: it is answered with its features as sent, and nothing is bought twice."""


class EpisodeAnswer(InstancesRun):
    """The answer to one record whose episode is over.

    It is processed like any instance: a label that came before is learned at once, a strategy may request
    one, and an instance that waits for its label is kept. `record` is the record that led to the answer; its
    key may belong to another model.
    """

    def __init__(
        self, state: PartitionState, raw: RawRecords, record: int, clock: int, episode: Episode
    ) -> None:
        key, instance = episode.name
        slot = state.store.keys.slot(key)
        self._episode = episode.widened(int(state.store.traits.width[slot]))
        self._clock = np.array([clock], dtype=np.int64)
        batch = Instances(
            record=np.array([record], dtype=np.int32),
            row=np.zeros(1, dtype=np.int32),
            keys=[key],
            key=np.zeros(1, dtype=np.int32),
            ids=[instance],
            label_values=[],
            label=np.full(1, NO_LABEL, dtype=np.int32),
            weight=np.array([episode.weight]),
            features=[known_features(state.store.traits.schema(slot), self._episode.x)],
            blocks=np.empty((0, 3), dtype=np.int32),
            malformed=[],
        )
        time = RunTime([clock], clock, clock, self._clock)
        super().__init__(state, raw, batch, time, Effects())
        self.slots = self.model = np.array([slot], dtype=np.int64)

    @property
    def clocks(self) -> Ints64:
        """int64[1]: the clock at the answer."""
        return self._clock

    def give(self, stop: str, effects: Effects, *, label: str | None = None) -> None:
        """Answer; `label`: the label that the record itself had."""
        store, rows = self.store, np.zeros(1, dtype=np.int64)
        frozen = store.traits.frozen[self.model]
        if label is not None:
            self.classes.names.append(label)
            self.label = np.zeros(1, dtype=np.int32)
        open_elsewhere = self.names[0] in self.state.episodes
        held_labels = {} if open_elsewhere else self._release_early(rows, frozen)
        code = self._class_codes(rows, frozen, held_labels)
        self._scale()
        self.state.will_change(np.append(self.model[~frozen], [*store.growth.grown]).astype(np.int64))
        store.growth.adopt()
        self.width[:] = store.traits.width[self.model]
        x = self._episode.widened(int(self.width[0])).x[np.newaxis]
        self._x.append((rows, x))
        self.frozen[:] = frozen
        acquirer = store.cache.plan(int(self.model[0])).spec.acquirer
        if acquirer is not None and acquirer.writes and not frozen[0]:
            self.words = self._episode.words  # when its label comes, the model learns it with these words
            acquirer.hand_in(store.cache.model(int(self.model[0])), self.words)
        self._call(rows, Placed(x), code, ANSWER_ONLY if frozen[0] else LABELLED)
        if open_elsewhere:
            self._decline_request()
        else:
            self._keep_and_request()
        bought = self._bought(stop)
        for group in self.replies.groups(self.batch, self.model, store.traits):
            predictions = replace(group.predictions, acquired=[bought])
            self.effects.answers.append(replace(group, predictions=predictions))
        self.model_events.write(self.effects)
        self._end(effects)

    def _end(self, effects: Effects) -> None:
        self._write_counts()
        self.effects.dead_letters += self.refusals.dead_letters(self.held_dead_letters)
        effects.add(self.effects, self.names[0][0].encode())

    def _scale(self) -> None:
        """Weight its training by the inverse of the probability that this many features are known."""
        acquirer = self.store.cache.plan(int(self.model[0])).spec.acquirer
        words = self._episode.words
        if acquirer is not None and len(words):
            self.scale = np.array([acquirer.weight(words)])
            self.weight = np.minimum(self.weight * self.scale, MAX_WEIGHT)

    def _decline_request(self) -> None:
        """Send no request for the label of an instance whose episode is open: its answer does."""
        self.effects.count(counters.REPEATED)
        if self.replies.asked[0]:
            self.replies.asked[0] = False
            self.state.pending.close(int(self.model[0]), DECLINED)

    def _keep_and_request(self) -> None:
        asked = keep_pending(self)
        if not asked[0]:
            return
        self.effects.count(counters.REQUESTED)
        expires = self._clock + self.state.config.pending_ttl_ms
        rows, places = np.zeros(1, dtype=np.int64), [self._episode.place]
        self.effects.requests.append(
            label_requests(self.raw, self.batch, rows, self.model, self.store, self.replies, expires, places)
        )

    def _bought(self, stop: str) -> Acquired:
        names = self.store.traits.schema(int(self.model[0])).names
        episode = self._episode
        return Acquired([names[column] for column in episode.bought], episode.cost, stop)
