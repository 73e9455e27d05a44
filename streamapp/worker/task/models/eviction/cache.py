"""Model cache: which models of a task are in memory, and which in its swap file (CLOCK eviction).

        use ──> in memory ── evict: above the limit, not used since the last sweep ─────> evicted
               ^                                                                         │
               └── a run needs it: before the run (find, install), else when it does ────┘

Eviction is CLOCK (second chance): the clock hand goes round the slots and evicts the models that were not
used since it passed last. An evicted model keeps its slot, its columns and its plan; only its words are in
the swap file, unchanged, unused room included. So eviction changes only the time that a run takes. Between
two runs the models in memory are within the limit, except for models that a task brought when it joined,
which are evicted gradually (model_memory.py); the models of one run all have to be in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from core.layout.model import Ints
from core.model.model import Model, Scale
from core.model_table import ModelTable
from core.plan import Plan
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.eviction.swap_file import SwapFile

Ints64 = npt.NDArray[np.int64]

_FIRST_CAPACITY: Final = 16
_WINDOW: Final = 1024  # slots that the clock hand passes at once
_NBYTES: Final = Scale._fields.index("nbytes")
_COLUMNS: Final = ("evicted", "dirty", "_used", "_recent", "_size")


class ModelCache:
    """Flags and sizes by slot; belongs to the thread of its task."""

    def __init__(self, table: ModelTable, memory: ModelMemory) -> None:
        self.memory = memory
        self.evicted = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # evicted
        self.n_evicted = 0
        self._table = table
        self._swap = SwapFile(memory.directory)
        self.dirty = np.zeros(
            _FIRST_CAPACITY, dtype=np.bool_
        )  # changed since they were written to the swap file
        self._used = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # since the last `evict_excess`
        self._recent = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)  # since the clock hand passed
        self._size = np.zeros(_FIRST_CAPACITY, dtype=np.int64)  # bytes that are counted
        self._scales = np.zeros(
            (0, len(Scale._fields)), dtype=np.int64
        )  # of evicted models, once there are any
        self._plans: dict[int, Plan] = {}  # of evicted models
        self._loaded: set[int] = set()  # since the last `evict_excess`
        self._clock_hand = 0
        memory.join(self)

    @property
    def limited(self) -> bool:
        """Whether models can be evicted."""
        return self.memory.limit > 0

    @property
    def evicted_bytes(self) -> int:
        """Bytes of the evicted models. Another thread may call it at any time."""
        scales = self._scales
        return int(scales[self.evicted[: len(scales)], _NBYTES].sum()) if self.n_evicted else 0

    # -- models ---------------------------------------------------------------------------------------------

    def model(self, slot: int) -> Model:
        """Return a model, which is in memory from now on."""
        if self.limited or self.n_evicted:
            self.use(np.array([slot]))
        return self._table.model(slot)

    def peek(self, slot: int) -> Model:
        """Return a model for reading: an evicted model stays evicted, and a copy is returned."""
        if self._is_evicted(slot):
            return Model(self._plans[slot], self._swap.read(slot))
        return self._table.model(slot)

    def plan(self, slot: int) -> Plan:
        """Return the shared parts of a model, which stays where it is."""
        return self._plans[slot] if self._is_evicted(slot) else self._table.model(slot).plan

    def scale(self, slot: int) -> Scale:
        """Return the size of a model, which stays where it is. Another thread may call it at any time."""
        if self._is_evicted(slot):
            return Scale(*self._scales[slot].tolist())
        return self._table.model(slot).scale()

    def use(self, slots: Ints64) -> None:
        """Load models into memory for use; slots: int64[m], may repeat."""
        if self.n_evicted:
            for slot in np.unique(slots[self.evicted[slots]]).tolist():
                self.install(slot, self._swap.read(slot))
        if self.limited:
            self._used[slots] = True

    # -- events of models -----------------------------------------------------------------------------------

    def reserve(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        more = capacity - len(self.evicted)
        if more > 0:
            for name in _COLUMNS:
                column = getattr(self, name)
                setattr(self, name, np.concatenate((column, np.zeros(more, dtype=column.dtype))))

    def put(self, slot: int, model: Model) -> None:
        """Replace a model."""
        if self._is_evicted(slot):
            self._come_back(slot, Model(model.plan, model.ints))
        else:
            placed = self._table.model(slot)
            placed.plan = model.plan
            placed.use(model.ints)
            self._table.refresh(slot)
        self.entered(slot)

    def entered(self, slot: int) -> None:
        """Note that a slot has a new model."""
        self.dirty[slot] = True
        self._used[slot] = self.limited

    def forget(self, slot: int) -> None:
        """Forget a slot whose model leaves the table."""
        if self._is_evicted(slot):
            self.evicted[slot] = False
            self.n_evicted -= 1
            del self._plans[slot]
        self._count(slot, 0)
        self._swap.drop(slot)
        self.dirty[slot] = self._used[slot] = self._recent[slot] = False
        self._loaded.discard(slot)

    # -- before a run: models that it needs -----------------------------------------------------------------

    def missing(self, slots: Iterable[int]) -> list[int]:
        """Return which of some slots (negative: none) are evicted."""
        return [slot for slot in slots if slot >= 0 and self._is_evicted(slot)] if self.n_evicted else []

    def sizes(self, slots: Sequence[int]) -> list[int]:
        """Return the bytes of evicted models."""
        sizes: list[int] = self._scales[slots, _NBYTES].tolist()
        return sizes

    def install_now(self, slots: Sequence[int]) -> list[int]:
        """Load the models that can be read without waiting for the disk; return the slots of the rest."""
        waiting = []
        for slot in slots:
            words = self._swap.read_now(slot)
            if words is None:
                waiting.append(slot)
            else:
                self.install(slot, words)
        return waiting

    def fetch(self, slots: Sequence[int]) -> list[Ints]:
        """Return the words of evicted models. The only method for another thread."""
        return [self._swap.read(slot) for slot in slots]

    def install(self, slot: int, words: Ints) -> None:
        """Load a model with its words from `fetch`."""
        self._come_back(slot, Model(self._plans[slot], words))
        self._count(slot, words.nbytes)
        self._loaded.add(slot)
        self._used[slot] = self.limited

    # -- after a run ----------------------------------------------------------------------------------------

    def evict_excess(self) -> None:
        """Count the models used since the last call, and let the worker evict models above the limit."""
        if not self.limited:
            return
        slots = np.flatnonzero(self._used)
        self._used[slots] = False
        self._recent[slots] = True
        self.memory.hits += len(slots) - len(self._loaded)
        self.memory.misses += len(self._loaded)
        self._loaded.clear()
        slots = slots[~self.evicted[slots]]
        sizes = np.array([self._table.model(slot).nbytes for slot in slots.tolist()], dtype=np.int64)
        self.memory.taken += int(sizes.sum() - self._size[slots].sum())
        self._size[slots] = sizes
        self.memory.make_room()

    def sweep(self, n_bytes: int) -> int:
        """Move the clock hand to the last slot, and evict models not used since its last pass.

        Stop at `n_bytes`; return how many were freed. OSError if the disk does not take them.
        """
        freed = 0
        while self._clock_hand < len(self._size):
            start, stop = self._clock_hand, min(self._clock_hand + _WINDOW, len(self._size))
            idle = start + np.flatnonzero((self._size[start:stop] > 0) & ~self._recent[start:stop])
            enough = int(np.searchsorted(np.cumsum(self._size[idle]), n_bytes - freed)) + 1
            for slot in idle[:enough].tolist():
                freed += self._evict(slot)
            if freed >= n_bytes:
                stop = int(idle[enough - 1]) + 1
            self._recent[start:stop] = False
            self._clock_hand = stop
            if freed >= n_bytes:
                return freed
        self._clock_hand = 0
        return freed

    def join(self, memory: ModelMemory, slots: Iterable[int]) -> None:
        """Move the models of `slots`, which are all there are, to another memory."""
        sizes = self._size.copy() if self.limited else None  # counted already: there may be very many
        self._leave()
        self.memory = memory
        if self.limited:
            if sizes is None:
                sizes = np.zeros_like(self._size)
                for slot in slots:
                    sizes[slot] = 0 if self.evicted[slot] else self._table.model(slot).nbytes
            self._size[:] = sizes
        memory.join(self, int(self._size.sum()))

    def close(self) -> None:
        """Release everything: the task was dropped. Words fetched for it that come later are not counted."""
        self._leave()
        self.memory = ModelMemory()
        self.memory.join(self)
        self._swap.close()

    # -- inside ---------------------------------------------------------------------------------------------

    def _is_evicted(self, slot: int) -> bool:
        return self.n_evicted > 0 and bool(self.evicted[slot])

    def _evict(self, slot: int) -> int:
        model = self._table.model(slot)
        if self.dirty[slot] or not self._swap.holds(slot):
            self._swap.write(slot, model.ints)
            self.dirty[slot] = False
            self.memory.written += model.nbytes
        freed = int(self._size[slot])
        if slot >= len(self._scales):
            more = np.zeros((len(self.evicted) - len(self._scales), len(Scale._fields)), dtype=np.int64)
            self._scales = np.concatenate((self._scales, more))
        self._scales[slot] = model.scale()
        self._plans[slot] = model.plan
        self.evicted[slot] = True
        self.n_evicted += 1
        self._table.vacate(slot)
        self._count(slot, 0)
        self.memory.evictions += 1
        return freed

    def _come_back(self, slot: int, model: Model) -> None:
        self._table.occupy(slot, model)
        self.evicted[slot] = False
        self.n_evicted -= 1
        del self._plans[slot]

    def _count(self, slot: int, size: int) -> None:
        if self.limited:
            self.memory.taken += size - int(self._size[slot])
            self._size[slot] = size

    def _leave(self) -> None:
        self.memory.leave(self)
        self.memory.taken -= int(self._size.sum())
        self._size[:] = 0
