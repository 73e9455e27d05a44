"""Answers: the predictions at the end of episodes, with all their effects.

A queue collects the episodes that are over, and answers them in one call. It answers them earlier where a
later step depends on their answers, so the results are the same as if each was answered at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.active.acquirers.base import Acquirer, Dependence
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
from streamapp.worker.task.pending.name_columns import Name
from streamapp.worker.task.pending_policy import keep_pending
from topics.columns.records import MAX_WEIGHT, Acquired, Features, Floats, Instances, Ints64, RawRecords

REPEATED: Final = "repeated"
"""The instance was answered before: it is answered with its features as sent, and nothing is bought twice."""

Mask = npt.NDArray[np.bool_]


class Ended(NamedTuple):
    """An episode that is over."""

    episode: Episode
    stop: str  # why no more features are requested
    record: int  # index in RawRecords of the record that led to the answer
    clock: int
    label: str | None  # that the record itself had
    is_open_elsewhere: bool  # another episode of the same instance is open
    key: bytes | None  # model key; None: it is the key of the record
    is_alone: bool  # its model takes the words of one episode at a time


class AnswerQueue:
    """The ended episodes of a run, oldest first."""

    def __init__(self, state: PartitionState, raw: RawRecords, effects: Effects) -> None:
        self._state, self._raw, self._effects = state, raw, effects
        self._ended: list[Ended] = []
        self.names: set[Name] = set()  # of all episodes that ended in this run
        self._names: set[Name] = set()  # of those that are not answered yet
        self._models: dict[int, bool] = {}  # slot -> whether an answer of it may teach the model

    def add(self, episode: Episode, stop: str, record: int, clock: int, label: str | None) -> None:
        """Take an episode that is over; `label`: that the record itself had."""
        state, name = self._state, episode.name
        self.give_name(name)
        slot = state.store.keys.slot(name[0])
        acquirer = state.store.cache.plan(slot).spec.acquirer
        is_alone = acquirer is not None and acquirer.writes
        is_open_elsewhere = name in state.episodes
        key: bytes | None = name[0].encode()
        if key == self._raw.keys[record]:
            key = None
        ended = Ended(episode, stop, record, clock, label, is_open_elsewhere, key, is_alone)
        self._ended.append(ended)
        self._names.add(name)
        self.names.add(name)
        teaches = label is not None or state.early.knows(name)
        self._models[slot] = teaches or self._models.get(slot, False)

    def give_name(self, name: Name) -> None:
        """Answer all episodes if one of them is of the instance with this name."""
        if name in self._names:
            self.give()

    def give_model(self, slot: int) -> None:
        """Answer all episodes if one of them is of this model."""
        if slot in self._models:
            self.give()

    def give_labelled(self) -> None:
        """Answer all episodes if the answer of one of them may come with its label."""
        if any(self._models.values()):
            self.give()

    def give_before_step(self, slot: int, acquirer: Acquirer | None, x: Floats, unknown: Mask) -> None:
        """Answer all episodes if the next step of another episode of the model depends on one of them."""
        if slot not in self._models or acquirer is None:
            return
        depends = acquirer.depends_on(x, unknown)
        if depends == Dependence.ANSWERS or (depends == Dependence.LABELS and self._models[slot]):
            self.give()

    def give(self) -> None:
        """Answer all episodes."""
        ended, self._ended = self._ended, []
        self._names.clear()
        self._models.clear()
        for part in _alike(ended):
            EpisodeAnswers(self._state, self._raw, part).give(self._effects)


def _alike(ended: Sequence[Ended]) -> Iterator[Sequence[Ended]]:
    """Yield the parts that one call answers: their model key is given alike, and their records differ.

    The event ids of answers to one record depend on the part, and parts depend on where runs are cut.
    """
    start = 0
    for at in range(1, len(ended) + 1):
        if at < len(ended):
            last, this = ended[at - 1], ended[at]
            is_single = last.is_alone or this.is_alone or last.is_open_elsewhere or this.is_open_elsewhere
            if not is_single and last.key == this.key and last.record != this.record:
                continue
        yield ended[start:at]
        start = at


class EpisodeAnswers(InstancesRun):
    """The answers to n instances whose episodes are over; their names differ.

    They are processed like any instances: a label that came before is learned at once, a strategy may request
    one, and an instance that waits for its label is kept.
    """

    def __init__(self, state: PartitionState, raw: RawRecords, ended: Sequence[Ended]) -> None:
        """ended: n of different records with the same `key`; 1, if it is open elsewhere or alone."""
        self._ended = ended
        n, store = len(ended), state.store
        code: dict[str, int] = {}
        key = [code.setdefault(item.episode.name[0], len(code)) for item in ended]
        slots = np.array([store.keys.slot(name) for name in code], dtype=np.int64)
        self._clock = np.array([item.clock for item in ended], dtype=np.int64)
        self._features = np.full((n, int(store.traits.width[slots].max())), np.nan)
        for row, item in enumerate(ended):
            self._features[row, : len(item.episode.x)] = item.episode.x
        batch = Instances(
            record=np.array([item.record for item in ended], dtype=np.int32),
            row=np.zeros(n, dtype=np.int32),
            keys=[*code],
            key=np.array(key, dtype=np.int32),
            ids=[item.episode.name[1] for item in ended],
            label_values=[],
            label=np.full(n, NO_LABEL, dtype=np.int32),
            weight=np.array([item.episode.weight for item in ended]),
            features=[],  # only requests for labels contain them
            blocks=np.empty((0, 3), dtype=np.int32),
            malformed=[],
        )
        first, last = int(self._clock[0]), int(self._clock[-1])
        super().__init__(
            state, raw, batch, RunTime(self._clock.tolist(), first, last, self._clock), Effects()
        )
        self.slots, self.model = slots, slots[batch.key]

    @property
    def clocks(self) -> Ints64:
        """int64[n]: the clocks at the answers."""
        return self._clock

    def give(self, effects: Effects) -> None:
        """Answer all of them."""
        store, rows = self.store, np.arange(len(self._ended))
        frozen = store.traits.frozen[self.model]
        self._take_labels()
        is_open_elsewhere = self._ended[0].is_open_elsewhere
        held_labels = {} if is_open_elsewhere else self._release_early(rows, frozen)
        code = self._class_codes(rows, frozen, held_labels)
        self._scale()
        self.state.will_change(np.append(self.model[~frozen], [*store.growth.grown]).astype(np.int64))
        store.growth.adopt()
        self.width[:] = store.traits.width[self.model]
        self._x.append((rows, self._features))
        self.frozen[:] = frozen
        if self._ended[0].is_alone and not frozen[0]:
            self._hand_in(int(self.model[0]))
        for mode, mine in ((ANSWER_ONLY, frozen), (LABELLED, ~frozen)):
            if np.count_nonzero(mine):
                codes = np.full(len(rows), NO_LABEL, dtype=np.int32) if mode == ANSWER_ONLY else code
                self._call(rows[mine], Placed(self._features), codes[mine], mode)
        if is_open_elsewhere:
            self._decline_request()
        else:
            self._keep_and_request()
        self.replies.acquired = [self._bought(row) for row in rows.tolist()]
        self.effects.answers += self.replies.groups(self.batch, self.model, store.traits)
        self.model_events.write(self.effects)
        self._write_counts()
        self.effects.dead_letters += self.refusals.dead_letters(self.held_dead_letters)
        effects.add(self.effects, self._ended[0].key)

    def _take_labels(self) -> None:
        """Take the labels that the records themselves had."""
        labels = {row: item.label for row, item in enumerate(self._ended) if item.label is not None}
        if not labels:
            return
        code: dict[str, int] = {}
        self.label = np.full(len(self._ended), NO_LABEL, dtype=np.int32)
        for row, label in labels.items():
            self.label[row] = code.setdefault(label, len(code))
        self.classes.names.extend(code)

    def _hand_in(self, slot: int) -> None:
        """Give the model the words of the episode; the label of the instance is learned with them later."""
        acquirer = self.store.cache.plan(slot).spec.acquirer
        assert acquirer is not None
        self.words = self._ended[0].episode.words
        acquirer.hand_in(self.store.cache.model(slot), self.words)

    def _scale(self) -> None:
        """Weight training by the inverse of the probability that this many features are known."""
        scale = np.ones(len(self._ended))
        for row, (slot, item) in enumerate(zip(self.model.tolist(), self._ended, strict=True)):
            acquirer = self.store.cache.plan(slot).spec.acquirer
            if acquirer is not None and len(item.episode.words):
                scale[row] = acquirer.weight(item.episode.words)
        if (scale != 1.0).any():
            self.scale = scale
            self.weight = np.minimum(self.weight * scale, MAX_WEIGHT)

    def _decline_request(self) -> None:
        """Send no request for the label of an instance whose episode is open: its answer does."""
        self.effects.count(counters.REPEATED)
        if self.replies.asked[0]:
            self.replies.asked[0] = False
            self.state.pending.close(int(self.model[0]), DECLINED)

    def _keep_and_request(self) -> None:
        rows = keep_pending(self).nonzero()[0]
        if not len(rows):
            return
        self.effects.count(counters.REQUESTED, len(rows))
        expires = self._clock[rows] + self.state.config.pending_ttl_ms
        places = [self._ended[row].episode.place for row in rows.tolist()]
        batch = replace(self.batch, features=[self._known(row) for row in rows.tolist()])
        self.effects.requests.append(
            label_requests(self.raw, batch, rows, self.model, self.store, self.replies, expires, places)
        )

    def _known(self, row: int) -> Features:
        """Return the known features of one instance."""
        schema = self.store.traits.schema(int(self.model[row]))
        return replace(known_features(schema, self._features[row]), rows=np.array([row], dtype=np.int64))

    def _bought(self, row: int) -> Acquired:
        names = self.store.traits.schema(int(self.model[row])).names
        episode, stop = self._ended[row].episode, self._ended[row].stop
        return Acquired([names[column] for column in episode.bought], episode.cost, stop)
