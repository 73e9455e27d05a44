"""Course of an episode: requests features as long as the model wants some, then answers."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.active.acquirers.base import Step, costs
from streamapp.worker.task import counters
from streamapp.worker.task.acquisition.answer import AnswerQueue
from streamapp.worker.task.effects.effects import Effects, FeatureRequests
from streamapp.worker.task.episodes.episode import BOUGHT, UNAVAILABLE, Episode, known_cells
from streamapp.worker.task.partition_state import PartitionState
from topics.columns.records import FeatureRequest, RawRecords

FINISH: Final = "finish"
"""The client wants the answer now, or the model no longer buys features."""
DEADLINE: Final = "deadline"
ROOM: Final = "room"
"""There are too many open episodes: the oldest is answered with its known features."""

AT_ONCE: Final = 256
"""Overdue episodes that are answered before models may be evicted."""


class Course:
    """Continues the episodes of a partition while a run is processed.

    `answers` has the episodes that are over; `AnswerQueue.give` must follow the last record.
    """

    def __init__(self, state: PartitionState, raw: RawRecords, effects: Effects) -> None:
        self.state, self.store, self.episodes = state, state.store, state.episodes
        self.raw, self.effects = raw, effects
        self.answers = AnswerQueue(state, raw, effects)

    def finish_overdue(self, clock: int, record: int = 0) -> None:
        """End, at a record, the episodes whose deadline is before `clock`; answer them if they are many."""
        n_finished = 0
        while (episode := self.episodes.overdue(clock)) is not None:
            self.finish(episode, DEADLINE, record, clock)
            n_finished += 1
            if n_finished % AT_ONCE == 0:
                self.answers.give()
                self.store.cache.evict_excess()

    def advance(self, episode: Episode, record: int, clock: int, label: str | None = None) -> bool:
        """Request the features that the model wants next, or answer; return whether the episode is open.

        label: of the record itself, if that has just come.
        """
        slot = self.store.keys.slot(episode.name[0])
        episode = episode.widened(int(self.store.traits.width[slot]))
        step = self._step(slot, episode)
        if step.words is not None:
            episode = episode._replace(words=step.words)
        if not step.features:
            self.finish(episode, step.stop, record, clock, label)
            return False
        asking = episode.asking(step.features)
        if asking.name not in self.episodes and not self._make_room(asking, record, clock):
            self.finish(episode, ROOM, record, clock, label)
            return False
        if asking.name not in self.episodes:
            self.effects.count(counters.EPISODES_OPENED)
            self.effects.count(counters.FEATURES_MISSING, int(np.count_nonzero(episode.unknown)))
        self.episodes.put(asking)
        self._request(slot, asking, step, record)
        return True

    def take(self, episode: Episode, values: dict[int, float], unavailable: list[int]) -> Episode:
        """Return the episode with new values by column (NaN: no code) and with unavailable columns."""
        slot = self.store.keys.slot(episode.name[0])
        acquirer = self.store.cache.plan(slot).spec.acquirer
        self.answers.give_before_step(slot, acquirer, episode.x, episode.unknown)
        self.store.cache.use(np.array([slot]))
        model = self.store.cache.model(slot)
        x, status, words = episode.x.copy(), episode.status.copy(), episode.words
        price, cost = costs(self.store.traits.schema(slot)), episode.cost
        for column, value in values.items():
            x[column], status[column] = value, BOUGHT
            cost += float(price[column])
            self.effects.cost += float(price[column])
            if acquirer is not None:
                words = acquirer.observe(model, words, column, value)
        status[unavailable] = UNAVAILABLE
        if acquirer is not None:
            for column in unavailable:
                words = acquirer.observe(model, words, column, np.nan)
        self.effects.count(counters.FEATURES_BOUGHT, len(values))
        self.effects.count(counters.FEATURES_UNAVAILABLE, len(unavailable))
        bought = (*episode.bought, *values)
        return episode._replace(x=x, status=status, words=words, bought=bought, cost=cost)

    def finish(self, episode: Episode, stop: str, record: int, clock: int, label: str | None = None) -> None:
        """Answer with the known features."""
        if episode.name in self.episodes:
            self.episodes.remove(episode.name)
        if episode.questions:
            self.effects.count(counters.EPISODES[stop])
        self.answers.add(episode, stop, record, clock, label)

    def _step(self, slot: int, episode: Episode) -> Step:
        acquirer = self.store.cache.plan(slot).spec.acquirer
        if acquirer is None:  # the model was configured again since
            return Step(stop=FINISH)
        self.answers.give_before_step(slot, acquirer, episode.x, episode.unknown)
        self.store.cache.use(np.array([slot]))
        budget_left = acquirer.limit - episode.cost
        return acquirer.step(
            self.store.cache.model(slot), episode.words, episode.x, episode.unknown, budget_left
        )

    def _make_room(self, episode: Episode, record: int, clock: int) -> bool:
        """Answer the oldest episodes until one more episode fits; return whether it does."""
        while not self.episodes.has_room(episode.size):
            if not len(self.episodes):
                return False
            self.finish(self.episodes.oldest(), ROOM, record, clock)
        return True

    def _request(self, slot: int, episode: Episode, step: Step, record: int) -> None:
        schema = self.store.traits.schema(slot)
        key, instance = episode.name
        request = FeatureRequest(
            request_id=f"{episode.place}-q{episode.questions}",
            instance_id=instance,
            features=[schema.names[column] for column in step.features],
            cost=float(costs(schema)[[*step.features]].sum()),
            utility=step.utility,
            known=known_cells(schema, episode.x),
            expires_ms=episode.deadline,
        )
        self.effects.count(counters.FEATURES_REQUESTED, len(step.features))
        self.effects.feature_requests.append(FeatureRequests(record, [request], key.encode()))
