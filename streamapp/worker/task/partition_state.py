"""Partition state: the contents of a snapshot, which a failed run must leave unchanged."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.active.label_account import ANSWERED, DECLINED, EXPIRED
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.episodes.episode_table import Episodes
from streamapp.worker.task.label_review import LabelReview
from streamapp.worker.task.models.awaited_specs import AwaitedSpecs
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.files.importing import Imports
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.model_store import Ints64, ModelStore
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.models.schemas.feature_placement import Placement
from streamapp.worker.task.pending.early_labels import EarlyLabels
from streamapp.worker.task.pending.event_time import EventTime
from streamapp.worker.task.pending.pending import Pending
from streamapp.worker.task.task_config import TaskConfig, version_of

AT_ONCE: Final = 256
"""Models whose ended requests are counted in one batch; between two batches models may be evicted."""

ENDS: Final = {ANSWERED: "answered", DECLINED: "declined", EXPIRED: "expired"}


class PartitionState:
    """The parts of a task that keep state from run to run."""

    def __init__(self, config: TaskConfig, quota: ModelQuota, memory: ModelMemory | None = None) -> None:
        self._take_spec(config)
        self._given_version = 0
        self.store = ModelStore(quota, memory)
        self.awaited = AwaitedSpecs()
        self.placement = Placement(self.store.traits, self.store.growth, config.growth_max_attributes)
        self.pending = Pending(config.pending_ttl_ms, config.pending_max_bytes)
        self.early = EarlyLabels(config.early_hold_ms, config.early_max_bytes)
        self.episodes = Episodes(config.episodes_max_count, config.episodes_max_bytes)
        self.imports = Imports()
        self.time = EventTime(config.event_time_max_jump_ms)
        self.review: LabelReview | None = None
        self._given_up_before = self._given_up()

    def turn(self, clock: int) -> None:
        """Set the times of waiting items to `clock` if a later clock was wrong, or had not begun."""
        self.pending.turn(clock)
        self.early.turn(clock)
        self.episodes.turn(clock)

    def acquires(self, key: str) -> bool:
        """Return whether the model of a key buys features, or would if its first record came now."""
        if not self.config.features:
            return False
        slot = self.store.keys.slot(key)
        if slot != NO_MODEL:
            return bool(self.store.traits.acquires[slot])
        return self.awaited.get(key, self.default_spec).acquirer is not None

    @property
    def acquires_any(self) -> bool:
        """Whether there may be a key whose model buys features."""
        if self._default_acquires or self.store.traits.has_acquired:
            return True
        return any(spec.acquirer is not None for spec in self.awaited.values())

    @property
    def state_version(self) -> int:
        """The oldest state version that has all words of the specs that were here since the task began."""
        of_models = max(self.store.traits.state_version, self.awaited.state_version)
        return max(self._default_version, self._given_version, of_models)

    def note_words(self, source: Any) -> None:
        """Note the words of a spec that a control has given, which are in the journal as they were given."""
        self._given_version = max(self._given_version, version_of(source))

    def report_closed_requests(self, clock: int, effects: Effects) -> None:
        """Close the requests in the models that have ended up to the last tick before `clock`."""
        due = self.pending.close_due(clock)
        if not due:
            return
        closings = list(due.items())
        for start in range(0, len(closings), AT_ONCE):
            step = closings[start : start + AT_ONCE]
            self.will_change(np.array([slot for (slot, _), _ in step], dtype=np.int64))
            for (slot, how), n in step:
                self.store.cache.model(slot).close(how, n)
                self.count_closed(slot, how, effects, n)
            self.store.cache.evict_excess()  # these may be most of the models

    def count_closed(self, slot: int, how: int, effects: Effects, n: int = 1) -> None:
        """Count requests of a model that have ended, by its query strategy."""
        effects.closed[self.store.cache.plan(slot).spec.query.name, ENDS[how]] += n

    def configure(self, config: TaskConfig) -> None:
        """Continue under another configuration."""
        self._take_spec(config)
        self.placement.max_attributes = config.growth_max_attributes
        self.pending.configure(config.pending_ttl_ms, config.pending_max_bytes)
        self.early.configure(config.early_hold_ms, config.early_max_bytes)
        self.episodes.configure(config.episodes_max_count, config.episodes_max_bytes)
        self.time.configure(config.event_time_max_jump_ms)

    def _take_spec(self, config: TaskConfig) -> None:
        self.config = config
        self.default_spec = config.default_spec()
        self._default_acquires = self.default_spec.acquirer is not None
        self._default_version = max(self.default_spec.state_version, version_of(config.model_spec))
        self.undoable = config.processing_exception_handler == "dead-letter"
        """Whether models are copied before they change, so that a failed run leaves them as they were."""

    def forget_due(self, clock: int) -> None:
        """Forget items whose time is over; look-ups already treat them as expired."""
        self.pending.expire(clock)
        self.early.expire(clock)

    def count_changes(self, effects: Effects) -> None:
        """Count the items that the run made the partition give up."""
        if self._given_up() == self._given_up_before:
            return
        expired, dropped, given_up, jumps, imports, episodes = self._given_up_before
        effects.count(counters.PENDING_EXPIRED, self.pending.expired - expired)
        effects.count(counters.PENDING_DROPPED, self.pending.dropped - dropped)
        effects.count(counters.UNKNOWN, self.early.given_up - given_up)
        effects.count(counters.TIME_JUMPS, self.time.jumps - jumps)
        effects.count(counters.IMPORTS_GIVEN_UP, self.imports.given_up - imports)
        effects.count(counters.EPISODES_DROPPED, self.episodes.dropped - episodes)

    def will_change(self, slots: Ints64) -> None:
        """Note that models and their challengers are about to change, and load them into memory.

        slots: int64[m], may repeat.
        """
        slots = self.store.with_challengers(slots)
        self.store.cache.use(slots)
        self.store.changes.touch(slots)
        if self.undoable:
            self.store.undo.preserve(np.unique(slots).tolist())

    def checkpoint(self) -> None:
        """Begin a run: what happened before is final."""
        self.store.checkpoint()
        self.awaited.checkpoint()
        self.pending.checkpoint()
        self.early.checkpoint()
        self.episodes.checkpoint()
        self.imports.checkpoint()
        self.time.mark()
        self._given_up_before = self._given_up()

    def rollback(self) -> None:
        """Undo the run; the models themselves only if it is `undoable`."""
        self.store.rollback()
        self.awaited.rollback()
        self.pending.rollback()
        self.early.rollback()
        self.episodes.rollback()
        self.imports.rollback()
        self.time.rollback()

    def _given_up(self) -> tuple[int, int, int, int, int, int]:
        early, jumps, imports = self.early.given_up, self.time.jumps, self.imports.given_up
        return self.pending.expired, self.pending.dropped, early, jumps, imports, self.episodes.dropped
