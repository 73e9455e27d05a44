"""Snapshot writer: writes after the commit of a cut, in slices between runs.

    commit ──cut──> units ──> chunks in the table ──> index ──> manifest ──> journal (next transaction)
                     └ slices of a few ms ┘                                     └ now it counts

Superseded chunks stay until one more snapshot is complete, because a restore falls back on the second newest
one. Then the chunks that only older snapshots name are removed, and the journal is truncated before the
second newest one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from core.model.snapshot import platform_tag
from streamapp.errors import LocalCopyError
from streamapp.worker import faults
from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.journal.entry import Manifest
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.snapshots.chunks import UNIT, Copy, pack
from streamapp.worker.snapshots.index import Index, index_keys
from streamapp.worker.snapshots.schedule import SnapshotLimits, SnapshotSchedule
from streamapp.worker.snapshots.snapshot_table import Chunks
from streamapp.worker.snapshots.writer_protocols import Journal, Table, TaskCut
from streamapp.worker.task.models.files.model_unit import LargeModel
from streamapp.worker.task.sources import Positions, in_words
from streamapp.worker.task.unit import Unit

logger = logging.getLogger(__name__)

SLICE_SECONDS: Final = 0.005  # longest time in which units are made without a pause; runs wait for it
SLICE_BYTES: Final = 4 << 20
REMOVED_AT_ONCE: Final = 500  # keys
RETRY_SECONDS: Final = 1.0
JOURNAL_SECONDS: Final = 5.0
COMPLAINT_SECONDS: Final = 60.0  # between two lines of a partition whose snapshot waits
STOP_SECONDS: Final = 5.0


@dataclass(slots=True)
class Base:
    """The snapshot that a partition was restored from, or the newest complete one."""

    index: Index = field(default_factory=Index)
    manifest: Manifest | None = None
    garbage: Collection[bytes] = ()  # keys that are not needed once one more snapshot is complete


@dataclass(slots=True)
class _Writing:
    """A snapshot under way."""

    cut: TaskCut
    positions: Positions
    start: int
    config: str
    fresh: dict[bytes, Copy] = field(default_factory=dict)
    index: Index | None = None
    manifest: Manifest | None = None  # everything is in the table; to be committed
    work: float = 0.0  # seconds
    began: float = 0.0


class PartitionSnapshots:
    """The snapshots of one partition, from its restore on."""

    def __init__(self, base: Base, incarnation: int, limits: SnapshotLimits, turn: asyncio.Lock) -> None:
        """`turn`: held by the partition whose snapshot is being written."""
        self._turn = turn
        self.schedule = SnapshotSchedule(limits)
        self.start: int | None = None  # where in the journal a cut would begin; None: not determined yet
        self.live = asyncio.Event()  # the table of the partition is open
        self.moved = False  # something of this incarnation is in the journal
        self.unreachable = False  # the offset where a cut would begin could not be read in time
        self.failure: Exception | None = None  # why a part of the snapshot under way is not written yet
        self._gone = asyncio.Event()
        self._complained: float | None = None  # when it was last logged that the snapshot waits
        self._base = base
        self._incarnation = incarnation
        self._sequence = 0
        self.writing: _Writing | None = None  # the snapshot under way

    @property
    def dropped(self) -> bool:
        return self._gone.is_set()

    @property
    def has_changed(self) -> bool:
        """Whether a snapshot taken now would differ from the newest complete one, and can be taken."""
        changed = self.writing is not None or (self.moved and self.schedule.is_dirty)
        return changed and self.live.is_set() and not self.unreachable

    @property
    def manifest(self) -> Manifest | None:
        return self.writing.manifest if self.writing else None

    def drop(self) -> None:
        """Stop all snapshots of the partition: its task was dropped."""
        self._gone.set()
        self.live.set()
        self.abandon()

    def abandon(self) -> None:
        """Stop the snapshot under way; its contents count as changed."""
        if self.writing is not None:
            self.writing.cut.abandon()
            self.writing = None

    def begin(self, cut: TaskCut, positions: Positions, start: int, config: str) -> None:
        """Begin to write a task that was cut at committed positions."""
        self._sequence += 1
        self.writing = _Writing(cut, positions, start, config, began=time.monotonic())

    async def write(self, number: int, table: Table, tasks_lock: asyncio.Lock) -> None:
        """Write the snapshot under way, whenever the partition is live; the caller holds the turn."""
        writing = self.writing
        if writing is None:
            return
        pieces = writing.cut.pieces()
        while True:
            async with tasks_lock:
                slice_ = [] if self.dropped else self._slice(writing, pieces)
            if not slice_:
                break
            units = await self._seal(writing, slice_)
            packed = await run_blocking(lambda part=units: self._pack(part))  # type: ignore[misc]
            # All in one call: each put waits for the broker, and there may be thousands of units.
            await self._put(number, table, [item for _, items in packed for item in items])
            if self.dropped:
                return
            writing.fresh |= {unit.name.encode(): copy for unit, (copy, _) in zip(units, packed, strict=True)}
            faults.point("snapshot-chunks")
        if self.dropped:
            return
        removed = [name.encode() for name in writing.cut.removed]
        index = self._base.index.after(writing.fresh, removed)
        copy, items = await run_blocking(lambda: index.pack(self._incarnation, self._sequence))
        await self._put(number, table, items)
        faults.point("snapshot-index")
        writing.index, writing.manifest = index, self._manifest(writing, index, copy)

    def _slice(self, writing: _Writing, pieces: Iterator[Unit | LargeModel]) -> list[Unit | LargeModel]:
        began, size, slice_pieces = time.monotonic(), 0, []
        for piece in pieces:
            slice_pieces.append(piece)
            size += piece.size
            if time.monotonic() - began > SLICE_SECONDS or size > SLICE_BYTES:
                break
        writing.work += time.monotonic() - began
        return slice_pieces

    async def _seal(self, writing: _Writing, pieces: Sequence[Unit | LargeModel]) -> list[Unit]:
        """Return the units that have to be stored; the units of large models are made in a thread."""
        units = []
        for piece in pieces:
            if isinstance(piece, Unit):
                units.append(piece)
            elif writing.cut.keep(unit := await run_blocking(piece.seal)):
                units.append(unit)
        return units

    def _pack(self, units: Sequence[Unit]) -> list[tuple[Copy, list[tuple[bytes, bytes]]]]:
        return [
            pack(UNIT, unit.name.encode(), self._incarnation, self._sequence, unit.data) for unit in units
        ]

    async def _put(self, number: int, table: Table, items: list[tuple[bytes, bytes]]) -> None:
        """Write chunks until the write succeeds: the manifest will name them.

        Other partitions have the turn while this one cannot be written: its broker may be away for hours. The
        disk is that of all partitions, so none of them has the turn while it takes nothing.
        """
        while True:
            if not self.live.is_set():
                await self._without_turn(self.live.wait())
            if self.dropped:
                return
            try:
                await table.write(number, items)
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing may count as written
                self.complain("partition %d: a part of a snapshot is not written, again: %s", number, error)
                self.failure = error
                rest = self.rest(RETRY_SECONDS)
                await (rest if isinstance(error, LocalCopyError) else self._without_turn(rest))
            else:
                self.failure = None
                return

    def complain(self, words: str, *details: object) -> None:
        """Log why the snapshot waits: at once, and every minute until it is complete."""
        now = time.monotonic()
        if self._complained is None or now - self._complained >= COMPLAINT_SECONDS:
            self._complained = now
            logger.warning(words, *details)

    async def _without_turn(self, waiting: Awaitable[object]) -> None:
        """Wait for an event, and then for the turn, which another partition may have meanwhile."""
        self._turn.release()
        try:
            await waiting
        finally:
            await self._turn.acquire()

    async def rest(self, seconds: float) -> None:
        """Wait for some seconds, but return at once if the partition is given up."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), seconds)

    def _manifest(self, writing: _Writing, index: Index, copy: Copy) -> Manifest:
        return Manifest(
            self._incarnation,
            self._sequence,
            writing.cut.state_version,
            platform_tag(),
            writing.positions,
            writing.start,
            writing.config,
            len(index.copies),
            index.size,
            copy.chunks,
            copy.crc,
            copy.size,
        )

    def committed(self, manifest: Manifest, now: float) -> tuple[list[bytes], int | None, float]:
        """Note that a manifest is in the journal: the snapshot is complete.

        Return the keys that are not needed any more, where the journal may be truncated (None: nowhere), and
        how many seconds the snapshot took.
        """
        writing, old = self.writing, self._base
        assert writing is not None
        assert writing.index is not None
        garbage = list(old.garbage)
        if garbage:  # listed by a restore; the new snapshot needs some of them
            needed = writing.index.keys() | index_keys(manifest)
            garbage = [key for key in garbage if key not in needed]
        later = old.index.only_here(writing.index)
        if old.manifest is not None:
            later += index_keys(old.manifest)
        self._base = Base(writing.index, manifest, later)
        self.writing = None
        writing.cut.done()
        self._complained = None
        self.schedule.written(writing.work, now)
        seconds = time.monotonic() - writing.began
        return garbage, old.manifest.start if old.manifest else None, seconds


class SnapshotWriter:
    """Writes the snapshots of a worker's partitions, one after another."""

    def __init__(
        self,
        table: Table,
        journal: Journal,
        metrics: Metrics,
        limits: SnapshotLimits,
    ) -> None:
        self._table = table
        self._journal = journal
        self._metrics = metrics
        self._limits = limits
        self._partitions: dict[int, PartitionSnapshots] = {}
        self.tasks_lock = asyncio.Lock()
        """Held while a task is read, cut or dropped here, or changes in a thread. Code that changes or reads
        a task in the event loop without ever waiting needs it only to begin.
        """
        self.changed = asyncio.Event()  # something happened that `unfinished` or the next commit depends on
        self._finishing = False
        self._stopped = False
        self._turn = asyncio.Lock()
        self._writing: set[asyncio.Task[None]] = set()  # one of each snapshot under way
        self.tidying: set[asyncio.Task[None]] = set()
        self._looking: set[asyncio.Task[None]] = set()  # lookups of where journals end

    def chunks(self, number: int) -> Chunks:
        """Return the chunks of a partition whose table is here."""
        return self._table.chunks(number)

    def finish(self) -> None:
        """Make all partitions with changes due, because the worker ends."""
        self._finishing = True

    def unfinished(self) -> list[int]:
        """Return the partitions that have changed since their newest complete snapshot."""
        return [
            number
            for number, partition in self._partitions.items()
            if partition.has_changed and not self._stopped
        ]

    def ages(self, now: float) -> dict[int, float]:
        """Return for each live partition the seconds since the first change that its newest complete snapshot
        lacks, 0 if it lacks none; any thread may call this.
        """
        live = [(number, state) for number, state in [*self._partitions.items()] if state.live.is_set()]
        since = [(number, state.schedule.unsaved_since) for number, state in live]
        return {number: 0.0 if first is None else now - first for number, first in since}

    @property
    def disk_failure(self) -> str:
        """Why the disk does not take a part of a snapshot; empty: it does. Any thread may read it."""
        refused = (str(error) for _, error in self._failures() if isinstance(error, LocalCopyError))
        return next(refused, "") or self._table.failure()

    @property
    def broker_failure(self) -> str:
        """Why a broker does not take a part of a snapshot; empty: all do. Any thread may read it."""
        refused = (item for item in self._failures() if not isinstance(item[1], LocalCopyError))
        number, error = next(refused, (-1, None))
        return "" if error is None else f"partition {number}: a part of a snapshot is not written: {error}"

    def _failures(self) -> list[tuple[int, Exception]]:
        states = [*self._partitions.items()]  # in one step: other threads call this
        return [(number, state.failure) for number, state in states if state.failure is not None]

    async def stop(self) -> None:
        """Stop writing; return when the current write is done, or after a while."""
        self._stopped = True
        async with self.tasks_lock:
            for partition in self._partitions.values():
                partition.drop()
        for task in self._looking:  # there will be no cut; and the broker may be away
            task.cancel()
        if under_way := [*self._writing, *self.tidying]:
            await asyncio.wait(under_way, timeout=STOP_SECONDS)

    # -- notes from the task manager ------------------------------------------------------------------------

    def add(self, number: int, base: Base, incarnation: int) -> None:
        """Add a partition that was restored from `base`."""
        self.drop(number)
        self._partitions[number] = PartitionSnapshots(base, incarnation, self._limits, self._turn)

    def drop(self, number: int) -> None:
        """Remove a partition: its task was dropped."""
        partition = self._partitions.pop(number, None)
        if partition is not None:
            partition.drop()
            self.changed.set()

    def live(self, number: int) -> None:
        """Note that the table of a partition is here."""
        self._partitions[number].live.set()

    def pause(self) -> None:
        """Note that the tables may be taken away."""
        for partition in self._partitions.values():
            partition.live.clear()
        self.changed.set()

    def note(self, sizes: Iterable[tuple[int, int]], seconds: float, now: float) -> None:
        """Note that runs were processed, each in some seconds; sizes: partition, and bytes of its records."""
        for number, size in sizes:
            self._partitions[number].schedule.note(seconds, size, now)

    def due(self, now: float) -> list[int]:
        """Return the partitions whose next cut is to be kept."""
        due: list[int] = []
        if self._stopped:
            return due
        for number, partition in self._partitions.items():
            # An incarnation without a record in the journal may not be the only one with its number.
            cuttable = partition.writing is None and partition.moved and partition.live.is_set()
            if cuttable and partition.schedule.is_due(now, at_once=self._finishing):
                if partition.start is None:
                    self._look_for_start(number, partition)
                elif partition.start >= 0:
                    due.append(number)
        return due

    def cut(self, number: int) -> None:
        """Note that a task is being cut: its later changes belong to the next snapshot."""
        self._partitions[number].schedule.cut()

    def ready(self) -> list[int]:
        """Return the partitions with a manifest to commit."""
        return [number for number, state in self._partitions.items() if state.writing and state.manifest]

    def moved(self, number: int) -> None:
        """Note that the journal has an entry of a partition."""
        if number in self._partitions:
            self._partitions[number].moved = True

    def manifest(self, number: int) -> Manifest | None:
        partition = self._partitions.get(number)
        return partition.manifest if partition is not None else None

    def begin(self, number: int, cut: TaskCut, positions: Positions, config: str) -> None:
        """Begin to write a task that was cut at positions that are committed now."""
        partition = self._partitions.get(number)
        if partition is None or partition.start is None or self._stopped:
            cut.abandon()
            return
        faults.point("snapshot-cut")
        partition.begin(cut, positions, partition.start, config)
        partition.start = None
        self._in_background(self._write(number, partition), self._writing)

    def committed(self, number: int, manifest: Manifest, now: float) -> None:
        partition = self._partitions.get(number)
        if partition is None or partition.manifest is not manifest:
            return
        faults.point("snapshot-complete")
        self.changed.set()
        garbage, before, seconds = partition.committed(manifest, now)
        self._metrics.snapshot(manifest.units, manifest.size, seconds)
        logger.info(
            "partition %d: snapshot %d.%d at %s is complete: %d units, %d bytes, %.2f s",
            number,
            manifest.incarnation,
            manifest.sequence,
            in_words(manifest.positions),
            manifest.units,
            manifest.size,
            seconds,
        )
        self._in_background(self._tidy(number, partition, garbage, before), self.tidying)

    # -- inside ---------------------------------------------------------------------------------------------

    def _in_background(self, work: Any, among: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)

    def _look_for_start(self, number: int, partition: PartitionSnapshots) -> None:
        partition.start = -1  # being looked for

        async def look() -> None:
            try:
                partition.start = await run_blocking(lambda: self._journal.end(number))
            except Exception as error:  # noqa: BLE001 - the broker is away; the snapshot comes later
                partition.complain("partition %d: no snapshot yet: %s", number, error)
                partition.unreachable = self._finishing
                self.changed.set()
                await partition.rest(JOURNAL_SECONDS)
                partition.start = None
            self.changed.set()

        self._in_background(look(), self._looking)

    async def _write(self, number: int, partition: PartitionSnapshots) -> None:
        """Write a snapshot when it is its turn; the turns come in the order in which snapshots begin."""
        async with self._turn:
            try:
                await partition.write(number, self._table, self.tasks_lock)
            except Exception:
                logger.exception(
                    "partition %d: a snapshot failed, the next one will have what it had", number
                )
                async with self.tasks_lock:
                    partition.abandon()
        self.changed.set()

    async def _tidy(
        self, number: int, partition: PartitionSnapshots, garbage: list[bytes], before: int | None
    ) -> None:
        """Remove chunks that no manifest needs; the next restore finds chunks that remain as garbage."""
        try:
            for at in range(0, len(garbage), REMOVED_AT_ONCE):
                if partition.dropped or not partition.live.is_set():
                    return
                await self._table.remove(number, garbage[at : at + REMOVED_AT_ONCE])
                faults.point("snapshot-garbage")
            if before is not None:
                await run_blocking(lambda: self._journal.trim(number, before))
        except Exception as error:  # noqa: BLE001 - it costs space, not state
            logger.warning("partition %d: garbage of snapshots is left for later: %s", number, error)
