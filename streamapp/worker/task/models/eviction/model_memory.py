"""Model memory: how many bytes of models a worker keeps in memory, and which task has to evict.

The tasks take turns in a ring, and each sweeps its models with a separate clock hand (CLOCK, cache.py):
models not used since the hand last passed are evicted. Which models are in memory depends on their uses,
never on the time of day, and changes nothing but how long a run takes.

The limit covers the memory of the process: the words of the models that are in memory, and their schemas and
plans, each counted once even if many models share it (core/schema/shared.py). Schemas and plans stay in
memory while a model is evicted, so that a record can be decoded without waiting for the disk; the rest of the
limit is for words.

A task that joins may bring more than there is room for, a hundred thousand models perhaps. No run waits until
all of them are evicted: they overcommit memory, and each run evicts a slice of them in addition to the memory
that it needs.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final, Protocol

from core.schema import shared

logger = logging.getLogger(__name__)


SLICE_BYTES: Final = 1 << 20  # a few hundred models of a leaf: milliseconds


class Sweepable(Protocol):
    """The models of one task."""

    def sweep(self, n_bytes: int) -> int:
        """Sweep to the last model, evict up to `n_bytes`; return how many. OSError: the disk is full."""


class ModelMemory:
    """Bytes and counts. Belongs to one thread; other threads may read the counts."""

    def __init__(
        self,
        limit: int = 0,
        directory: Path | None = None,
        slice_bytes: int = SLICE_BYTES,
        tally: shared.Tally = shared.TALLY,
    ) -> None:
        """`limit`: bytes of models in memory between two runs, 0 for no limit; `directory`: for evicted
        models (None: the directory of temporary files).

        `slice_bytes`: bytes above the limit, brought by a task, that are evicted after each run; `tally`: of
        the parts that models share.
        """
        self.limit = limit
        self.directory = directory
        self.overcommitted = 0  # bytes above the limit that tasks brought and that were not evicted yet
        self.taken = 0  # bytes of words in memory; counted only if there is a limit
        self.hits = 0  # models in memory when a run needed them, each counted once a run
        self.misses = 0  # they were not
        self.evictions = 0
        self.written = 0  # bytes
        self._ring: list[Sweepable] = []
        self._turn = 0
        self._refused = False  # the disk refused the last eviction
        self._slice = slice_bytes
        self._tally = tally

    def apart(self, parts: int) -> ModelMemory:
        """Return one of `parts` equal shares, for a task that is restored in another thread."""
        limit = max(1, self.limit // parts) if self.limit else 0
        return ModelMemory(limit, self.directory, self._slice, self._tally)

    def join(self, models: Sweepable, n_bytes: int = 0) -> None:
        """Count the models of a task, which take `n_bytes` already."""
        self._ring.append(models)
        self.taken += n_bytes
        self.overcommitted = min(self.overcommitted + n_bytes, self._surplus)

    def leave(self, models: Sweepable) -> None:
        """Stop counting the models of a task."""
        self._ring.remove(models)

    def make_room(self) -> None:
        """Evict the longest unused models until the rest is within the limit, and a slice of the excess."""
        self.overcommitted = min(max(0, self.overcommitted - self._slice), self._surplus)
        idle, goal = 0, self.limit + self.overcommitted
        while self.limit and self.used > goal and idle <= 2 * len(self._ring):
            models = self._ring[self._turn % len(self._ring)]
            try:
                freed = models.sweep(self.used - goal)
            except OSError as error:
                if not self._refused:
                    logger.warning("models stay in memory above models.max.bytes: %s", error)
                self._refused = True
                return
            self._refused = self._refused and not freed
            idle = 0 if freed else idle + 1
            if self.used > goal:
                self._turn = (self._turn + 1) % len(self._ring)

    @property
    def used(self) -> int:
        """Bytes of words in memory, and of the shared parts of all models, evicted or not."""
        return self.taken + self._tally.bytes

    @property
    def _surplus(self) -> int:
        return max(0, self.used - self.limit) if self.limit else 0
