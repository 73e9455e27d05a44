"""Assembly: a task from the units of a cut.

The units may come in any order. Each is checked alone, and all together against the counts in the unit
`task`: nothing is missing, doubled, or left over from an earlier cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from streamapp.worker.task.models.files.model_unit import CHALLENGER, MODEL, read_model
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.entries import PendingImage
from streamapp.worker.task.pending.event_time import ClockState
from streamapp.worker.task.state.cut import TASK, lists_of
from streamapp.worker.task.state.list_unit import (
    AWAITED,
    CLOSINGS,
    EARLY,
    EPISODES,
    IMPORT,
    LISTS,
    read_awaited,
    read_closings,
    read_early,
    read_episodes,
    read_imports,
)
from streamapp.worker.task.state.pending_unit import MARKS, PENDING, Marks, join, read_block, read_marks
from streamapp.worker.task.state.written import WrittenUnits
from streamapp.worker.task.unit import Unit, UnitName, damaged, unseal

KINDS: Final = (MODEL, CHALLENGER, PENDING, MARKS, *LISTS, TASK.kind)


class Assembly:
    """Assembles an empty task from units."""

    def __init__(self, partition: int, state: PartitionState) -> None:
        self._partition, self._state = partition, state
        self._checksums: dict[UnitName, int] = {}
        self._units: dict[str, list[Unit]] = {kind: [] for kind in KINDS}

    def take(self, units: Iterable[Unit]) -> None:
        """Take all units; models are made at once, so that their bytes are not kept."""
        for unit in units:
            if unit.name.kind not in KINDS:
                raise damaged(unit.name, f"kind={unit.name.kind!r} must be one of {', '.join(KINDS)}")
            if unit.name in self._checksums:
                raise damaged(unit.name, "must be there once, and is there twice")
            if unit.name.kind in (MODEL, CHALLENGER):
                self._take_model(unit)
            else:
                self._units[unit.name.kind].append(unit)
            self._checksums[unit.name] = unit.checksum

    def finish(self, written: WrittenUnits) -> dict[Any, int]:
        """Put all units in place; return the positions, and note the units as `written`."""
        if not self._units[TASK.kind]:
            raise damaged(TASK, "must be there: it lists the units of the task")
        head, _ = unseal(self._units[TASK.kind][0], exact=True)
        if head["partition"] != self._partition:
            raise damaged(TASK, f"partition={head['partition']} must be {self._partition}")
        del self._checksums[TASK]
        written.replace(self._checksums, ())
        self._compare(head["units"], written.census({}, ()))
        state = self._state
        self._check_challengers()
        state.store.lives.load(int(head["incarnations"]))
        state.awaited.load(read_awaited(self._ordered(AWAITED)))
        state.early.load(read_early(self._ordered(EARLY)))
        state.episodes.load(*read_episodes(self._ordered(EPISODES)))
        for episode in state.episodes.image().episodes:
            if state.store.keys.slot(episode.name[0]) == NO_MODEL:
                raise damaged(UnitName(EPISODES), f"the model of the episode {episode.name} must be there")
        state.imports.load(read_imports(self._ordered(IMPORT)))
        state.time.restore(ClockState(**head["time"]))
        image, written.blocks = self._pending(head)
        written.marks = Marks.of(image)
        state.pending.load(image)
        state.checkpoint()
        written.lists = lists_of(state)
        return dict(head["next"])

    def _take_model(self, unit: Unit) -> None:
        stored, store = read_model(unit), self._state.store
        find = store.keys.challenger if unit.name.kind == CHALLENGER else store.keys.slot
        if find(unit.name.key) != NO_MODEL:
            raise damaged(
                unit.name, f"must be the only {unit.name.kind} of its key, and there is another one"
            )
        store.adopt(stored)
        store.cache.evict_excess()

    def _check_challengers(self) -> None:
        store = self._state.store
        for key, challenger in store.keys.challengers():
            slot = store.keys.slot(key)
            name = UnitName(CHALLENGER, key, int(store.traits.incarnation[challenger]))
            if slot == NO_MODEL:
                raise damaged(name, "its champion, the model of the same key, must be there")
            if store.traits.schema(slot) != store.traits.schema(challenger):
                raise damaged(name, "must have the schema of its champion")

    def _compare(self, declared: dict[str, Any], present: dict[str, Any]) -> None:
        for kind in KINDS:
            n, n_declared = present["kinds"].get(kind, 0), declared["kinds"].get(kind, 0)
            if n != n_declared:
                raise damaged(TASK, f"there must be {n_declared} units of kind {kind!r}, and there are {n}")
        if declared["checksums"] != present["checksums"]:
            raise damaged(TASK, "its units must all be from its cut, and some are from another cut")

    def _ordered(self, kind: str) -> list[Unit]:
        return sorted(self._units[kind], key=lambda unit: int(unit.name.key))

    def _pending(self, head: dict[str, Any]) -> tuple[PendingImage, list[Any]]:
        store = self._state.store
        entries = [read_block(unit) for unit in self._ordered(PENDING)]
        marks = [read_marks(unit) for unit in self._ordered(MARKS)]
        sizes = [len(block.rows) for block in entries]
        if sizes != [block_marks.shape[1] for block_marks in marks]:
            raise damaged(TASK, "each block of pending instances must have its marks")
        closings = {}
        for (key, how), n in read_closings(self._ordered(CLOSINGS)).items():
            if store.keys.slot(key) == NO_MODEL:
                raise damaged(UnitName(CLOSINGS), f"model {key!r} must be there: requests of it have ended")
            closings[store.keys.slot(key), how] = n
        blocks = list(zip(entries, marks, strict=True))
        image = join(TASK, tuple(head["pending"]), closings, blocks, store.keys.slot)
        if (image.rows["model"][~image.settled] == NO_MODEL).any():
            orphan = int(np.flatnonzero((image.rows["model"] == NO_MODEL) & ~image.settled)[0])
            raise damaged(TASK, f"the model of the pending instance {image.names[orphan]} must be there")
        return image, [entry.block for entry in entries]
