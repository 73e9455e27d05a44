"""How many bytes of models a worker keeps in memory, and who has to give some back; shared by its tasks.

The tasks stand in a ring and each sweeps its models with a hand of its own (residency.py): what was not used
since the hand last came by is evicted. Time is counted in uses, never by a clock; which models are in memory
changes nothing but how long a run takes.

A task that joins may bring more than there is room for, a hundred thousand models perhaps. No run waits for
all of them: they are borne above the limit, and each run evicts some of them beside what it needs itself.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final, Protocol

logger = logging.getLogger(__name__)


SLICE_BYTES: Final = 1 << 20  # some hundred models of a leaf: milliseconds


class Sweepable(Protocol):
    """The models of one task."""

    def sweep(self, wanted: int) -> int:
        """Go on to the last model, evict up to `wanted` bytes of them; return how many; OSError."""


class ModelMemory:
    """Bytes and counts. Belongs to one thread; others may read the counts."""

    def __init__(self, limit: int = 0, directory: Path | None = None, slice_bytes: int = SLICE_BYTES) -> None:
        """`limit`: bytes of models in memory between two runs, 0 for all there are; `directory`: where the
        evicted ones lie (None: where temporary files do); `slice_bytes`: how much of what a task brought
        above the limit goes after each run."""
        self.limit = limit
        self.directory = directory
        self.borne = 0  # bytes that tasks brought above the limit and that did not go yet
        self.taken = 0  # bytes in memory; counted only if there is a limit
        self.hits = 0  # models that runs used, each once a run: they were in memory
        self.misses = 0  # they were not
        self.evictions = 0
        self.written = 0  # bytes
        self._ring: list[Sweepable] = []
        self._turn = 0
        self._refused = False  # the disk took nothing the last time
        self._slice = slice_bytes

    def apart(self, parts: int) -> ModelMemory:
        """Return a part of as many equal ones, for a task that is restored in another thread."""
        return ModelMemory(max(1, self.limit // parts) if self.limit else 0, self.directory, self._slice)

    def join(self, models: Sweepable, taken: int = 0) -> None:
        """Let the models of a task take part, which take so many bytes already."""
        self._ring.append(models)
        self.taken += taken
        self.borne = min(self.borne + taken, self._surplus)

    def leave(self, models: Sweepable) -> None:
        """Let the models of a task go."""
        self._ring.remove(models)

    def make_room(self) -> None:
        """Evict models, the longest unused ones first, until the others are within the limit, and a slice of
        what is borne above it."""
        self.borne = min(max(0, self.borne - self._slice), self._surplus)
        idle, goal = 0, self.limit + self.borne
        while self.limit and self.taken > goal and idle <= 2 * len(self._ring):
            models = self._ring[self._turn % len(self._ring)]
            try:
                freed = models.sweep(self.taken - goal)
            except OSError as error:
                if not self._refused:
                    logger.warning("models stay in memory above models.max.bytes: %s", error)
                self._refused = True
                return
            self._refused = self._refused and not freed
            idle = 0 if freed else idle + 1
            if self.taken > goal:
                self._turn = (self._turn + 1) % len(self._ring)

    @property
    def _surplus(self) -> int:
        return max(0, self.taken - self.limit) if self.limit else 0
