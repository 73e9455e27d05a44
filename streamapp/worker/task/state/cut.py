"""Cut: a task's state at one moment, as units made one by one while the task continues.

    cut ──> units … units ──> done: the next cut begins from the written units
     │                  └───> abandon: the changes count as changes again
     └─ marks only: a model is copied when a run is about to change it before its unit is made

A cut yields the units that changed since the last finished cut (the first cut yields all), and lists the
removed units. Together with the unchanged units of that cut they are the whole state. The last unit, `task`,
holds the positions and the number of units: without it, or with another set of units, no task is made
(assembly.py).

All of this happens in the task's thread, between its runs, except that large models are sealed in another
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from streamapp.worker.task.episodes.episode_table import EpisodesImage
from streamapp.worker.task.models.files.model_unit import LargeModel, write_model
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.state.list_unit import (
    AWAITED,
    CLOSINGS,
    EARLY,
    EPISODES,
    IMPORT,
    LISTS,
    write_awaited,
    write_closings,
    write_early,
    write_episodes,
    write_imports,
)
from streamapp.worker.task.state.pending_unit import MARKS, PENDING, Marks, layout, write_block, write_marks
from streamapp.worker.task.state.written import WrittenUnits
from streamapp.worker.task.unit import Unit, UnitName, seal

TASK: Final = UnitName("task")

LARGE_BYTES: Final = 1 << 20
"""Sealing a model takes some 4 ms a megabyte, of which copying it is a tenth."""

_WRITERS: Final[dict[str, Callable[[Any], Iterator[Unit]]]] = {
    AWAITED: write_awaited,
    CLOSINGS: write_closings,
    EARLY: write_early,
    EPISODES: write_episodes,
    IMPORT: write_imports,
}


class Cut:
    """The changes of a task up to one moment; made by `Task.cut`."""

    def __init__(
        self, partition: int, next_: Mapping[Any, int], state: PartitionState, written: WrittenUnits
    ) -> None:
        """Mark the changes; `written`: the units of the last finished cut."""
        self.next = dict(next_)  # position after the processed records, per input
        self.state_version = state.state_version
        self._partition = partition
        self._store, self._written = state.store, written
        self._slots, self._lives, self._gone = state.store.begin_cut()
        self._incarnations = state.store.lives.begun
        self._time = state.time.state()._replace(jumps=0)  # the counter `jumps` belongs to the process
        self._pending = state.pending.image()
        self._blocks = written.blocks
        self._lists = lists_of(state)
        self._made: dict[UnitName, int] = {}
        self._removed: list[UnitName] = []
        self._begun = self._complete = self._over = False

    @property
    def n_models(self) -> int:
        """How many models have changed."""
        return len(self._slots)

    @property
    def removed(self) -> list[UnitName]:
        """Units removed since the last finished cut; complete once all units are made."""
        if not self._complete:
            message = "all units of the cut must be made before it is known which are gone; exhaust `units`"
            raise RuntimeError(message)
        return self._removed

    def units(self) -> Iterator[Unit]:
        """Yield the changed units, once, all made in this thread."""
        return self._sealed(self.pieces())

    def pieces(self) -> Iterator[Unit | LargeModel]:
        """Yield the changed units, once; each step makes one unit: a model, or up to half a megabyte.

        A large model is only copied: seal it in another thread, and pass its unit to `keep` before the next
        step.
        """
        if self._begun or self._over:
            message = "the units of a cut must be taken once, before `done` and `abandon`; make another cut"
            raise RuntimeError(message)
        self._begun = True
        return self._pieces()

    def keep(self, unit: Unit) -> bool:
        """Count a unit as part of the cut; return whether it has to be stored: it is new or changed."""
        if self._written.checksum(unit.name) == unit.checksum:
            return False
        self._made[unit.name] = unit.checksum
        return True

    def done(self) -> None:
        """Count everything as stored; release what the cut held."""
        if not self._complete or self._over:
            message = "a cut is done once, after all its units were made; `abandon` it otherwise"
            raise RuntimeError(message)
        self._over = True
        self._store.changes.end()
        self._written.replace(self._made, self._removed)
        self._written.blocks, self._written.lists = self._blocks, self._lists
        self._written.marks = Marks.of(self._pending)
        self._written.turned = self._pending.turned

    def abandon(self) -> None:
        """Forget the cut: the next cut has its changes. Does nothing after `done`."""
        if not self._over:
            self._over = True
            self._store.abandon_cut(self._slots, self._lives, self._gone)

    @property
    def over(self) -> bool:
        """Whether it is done or abandoned."""
        return self._over

    # -- units ----------------------------------------------------------------------------------------------

    def _sealed(self, pieces: Iterator[Unit | LargeModel]) -> Iterator[Unit]:
        for piece in pieces:
            if isinstance(piece, Unit):
                yield piece
            else:
                yield from self._new(piece.seal())

    def _pieces(self) -> Iterator[Unit | LargeModel]:
        self._removed += [name for name in self._gone if self._written.checksum(name) is not None]
        for slot in self._slots.tolist():
            record = self._store.changes.take(slot, LARGE_BYTES)
            if record.ints.nbytes < LARGE_BYTES:
                yield from self._new(write_model(record))
            else:
                yield LargeModel(record)
        yield from self._pending_units()
        for kind in LISTS:
            yield from self._list_units(kind)
        facts = {
            "partition": self._partition,
            "next": self.next,
            "time": self._time._asdict(),
            "incarnations": self._incarnations,
            "pending": self._pending.borders,
            "units": self._written.census(self._made, self._removed),
        }
        self._complete = True
        yield seal(TASK, facts)

    def _pending_units(self) -> Iterator[Unit]:
        written = self._written.blocks if self._pending.turned == self._written.turned else []
        closed_starts = {block.start for block in written if block.closed}
        self._blocks = layout(self._pending, written)
        marks = Marks.of(self._pending)
        for block in self._blocks:
            old = block.closed and block.start in closed_starts
            if not old:
                yield from self._new(write_block(self._pending, block))
            if not old or not marks.same(self._written.marks, block):
                yield from self._new(write_marks(self._pending, block))
        starts = {str(block.start) for block in self._blocks}
        for kind in (PENDING, MARKS):
            self._removed += [name for name in self._written.of_kind(kind) if name.key not in starts]

    def _list_units(self, kind: str) -> Iterator[Unit]:
        items = self._lists[kind]
        if _same(items, self._written.lists.get(kind)):
            return
        names = set()
        for unit in _WRITERS[kind](items):
            names.add(unit.name)
            yield from self._new(unit)
        self._removed += [name for name in self._written.of_kind(kind) if name not in names]

    def _new(self, unit: Unit) -> Iterator[Unit]:
        """Yield a unit unless the store has it already."""
        if self.keep(unit):
            yield unit


def _same(items: Any, written: Any) -> bool:
    """Return whether a list equals its written form; None: nothing was written."""
    if isinstance(items, EpisodesImage):  # episodes never change: identical objects are equal
        before = written or EpisodesImage()
        return items.next == before.next and [*map(id, items.episodes)] == [*map(id, before.episodes)]
    return bool(items == (written or {}))


def lists_of(state: PartitionState) -> dict[str, Any]:
    """Return the current contents of a task's lists, by kind."""
    keys = state.store.keys
    closings = state.pending.image_of_closings()
    return {
        AWAITED: dict(state.awaited),
        CLOSINGS: {(keys[model], how): n for (model, how), n in closings.items()},
        EARLY: state.early.image(),
        EPISODES: state.episodes.image(),
        IMPORT: state.imports.image(),
    }
