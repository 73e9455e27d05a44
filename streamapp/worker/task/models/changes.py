"""Model changes: which models changed since the last finished cut, and copies for an open cut.

    run ── touch ──> changed ── begin ──> held ── taken ──> written
                        ^                  │ touch: copied first
                        └──── abandon ─────┘

A model is *held* from the cut until its unit is made. The first run that would change it before then waits
for one copy of it. Apart from this, only large models are copied, because their units are made in another
thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from streamapp.worker.task.models.eviction.cache import ModelCache
from streamapp.worker.task.models.files.model_record import ModelRecord

Ints64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_FIRST_CAPACITY: Final = 16


class ModelChanges:
    """Marks by slot."""

    def __init__(self, record: Callable[[int], ModelRecord], cache: ModelCache) -> None:
        """record: returns the current contents of a slot, not copied."""
        self._record = record
        self._cache = cache
        self._changed: Mask = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._held: Mask = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._copies: dict[int, ModelRecord] = {}
        self._holds = False

    def reserve(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        more = capacity - len(self._changed)
        if more > 0:
            self._changed = np.concatenate((self._changed, np.zeros(more, dtype=np.bool_)))
            self._held = np.concatenate((self._held, np.zeros(more, dtype=np.bool_)))

    def touch(self, slots: Ints64) -> None:
        """Note that models are about to change; slots: int64[m], may repeat."""
        self._changed[slots] = True
        self._cache.dirty[slots] = True  # evicted models are marked once they are loaded
        if self._holds:
            for slot in np.unique(slots[self._held[slots]]).tolist():
                now = self._record(slot)
                self._copies[slot] = now._replace(ints=now.ints.copy())
                self._held[slot] = False

    def changed(self) -> Ints64:
        """Return int64[m]: the slots of the models that changed since the last finished cut."""
        return np.flatnonzero(self._changed)

    def begin(self, slots: Ints64) -> None:
        """Hold these models in their current state; later changes are counted from here."""
        self._changed[:] = False
        self._held[slots] = True
        self._holds = True

    def take(self, slot: int, copied_from: float = math.inf) -> ModelRecord:
        """Return a held model in its state at the cut; it is no longer held.

        A model of `copied_from` bytes or more is always a copy: no run changes it any more.
        """
        copied = self._copies.pop(slot, None)
        if copied is not None:
            return copied
        self._held[slot] = False
        now = self._record(slot)
        return now if now.ints.nbytes < copied_from else now._replace(ints=now.ints.copy())

    def end(self) -> None:
        """Release everything the cut still held."""
        self._held[:] = False
        self._copies.clear()
        self._holds = False

    def mark(self, slots: Ints64) -> None:
        """Count models as changed: they are new, or a cut that held them was abandoned."""
        self._changed[slots] = True

    def forget(self, slot: int) -> None:
        """Count a deleted model as unchanged; the data that an open cut needs of it was copied before."""
        self._changed[slot] = False
