"""Rebuilding a task: the newest whole snapshot, then replay of the journal after it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from core.model.snapshot import platform_tag
from streamapp.worker import faults
from streamapp.worker.journal.entry import Entry, Manifest, Reset, Skip
from streamapp.worker.restore.errors import RestoreError, ways_out
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.restore.restore_progress import Beginning, RestoreProgress
from streamapp.worker.restore.tail import Tail, TailReader, entries_behind
from streamapp.worker.snapshots.chunks import DamagedError, incarnation_of
from streamapp.worker.snapshots.index import index_keys
from streamapp.worker.snapshots.snapshot_table import Chunks
from streamapp.worker.snapshots.snapshot_writer import Base
from streamapp.worker.task.sources import Positions, SourceName, in_words, positions_of
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig

logger = logging.getLogger(__name__)

Committed = Mapping[SourceName, int | None]
"""The group's position in each source; None: never committed."""


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """A partition that is to be restored."""

    partition: int
    first: Positions  # where the partition begins if it was never committed
    kept_positions: Positions | None  # positions of the current task, if it may stay
    chunks: Chunks  # of its snapshots
    abandoned: Callable[[], bool]  # whether the partition was revoked during the restore
    progress: RestoreProgress
    membership: Hashable = None  # of the worker when the restore began


@dataclass(frozen=True, slots=True)
class Restored:
    """The state with which a partition goes live."""

    task: Task | None  # None: the current task stays; a new task has processed nothing
    positions: Positions
    incarnation: int  # the highest in the journal and in the chunks
    records: int = 0  # replayed
    seconds: float = 0.0
    base: Base = field(default_factory=Base)
    topic_ids: Mapping[str, str] = field(default_factory=dict)  # of the sources, as they are now
    skips: tuple[Skip, ...] = ()  # records that are to become dead letters


class EndMismatchError(Exception):
    """The end of the journal differs from the committed offsets."""

    def __init__(self, positions: Positions | None, committed: Committed) -> None:
        self.positions = positions
        self.committed = committed
        self._ends = positions or positions_of({})
        self.ahead = any(end > (committed[source] or 0) for source, end in self._ends.items())
        journal_end = "is empty" if positions is None else f"ends at {in_words(positions)}"
        super().__init__(f"the journal {journal_end}, the committed offsets are {in_words(committed)}")

    @property
    def gone(self) -> list[SourceName]:
        """The sources that lack a committed offset although records of them were processed."""
        return [source for source, at in self.committed.items() if at is None and self._ends[source] > 0]


class Rebuild:
    """Makes the task of one partition again."""

    def __init__(
        self, request: RestoreRequest, config: TaskConfig, tails: TailReader, replay: Replay
    ) -> None:
        """`config`: of a task that begins after a reset; `replay`: a replay without a task yet."""
        self._wanted = request
        self._config = config
        self._tails = tails
        self._replay = replay

    def run(self, committed: Committed) -> Restored:
        """Return the task as it was at the committed offsets.

        Raise EndMismatchError, or RestoreError if the state cannot be restored.
        """
        began, replay = time.monotonic(), self._replay
        tail = self._tails.newest()
        end = tail.end
        if end is not None:
            check_end(end, committed)  # before work that may be useless
        tail, base, beginning = self._begin(tail)
        faults.point("restore-read")
        entries = entries_behind(tail, base.manifest or _reset(tail))
        self._wanted.progress.begins(beginning, sum(map(_offsets, entries)))
        self._go_through(entries)
        check_end(replay.positions, committed)
        # A journal that was emptied lacks the incarnations that wrote the chunks still in the table.
        incarnation = max(tail.incarnation, *map(incarnation_of, self._keys), 0)
        if replay.task is None or replay.positions is None:
            return Restored(None, self._wanted.first, incarnation, base=base, skips=tail.skips)
        seconds = time.monotonic() - began
        return Restored(
            replay.task,
            replay.positions,
            incarnation,
            replay.records,
            seconds,
            base,
            skips=tail.skips,
        )

    def _begin(self, tail: Tail) -> tuple[Tail, Base, Beginning]:
        """Begin at the newest whole snapshot; return the tail that belongs to it, the base, and its kind."""
        tried: list[Manifest] = []
        while True:
            for newest in tail.bases:
                if isinstance(newest, Reset):
                    self._check_new(newest, tried)
                    self._replay.begin(newest.positions, None, self._config)
                    return tail, Base(garbage=self._keys), "reset"
                if newest in tried:
                    continue
                beginning: Beginning = "older-snapshot" if tried else "snapshot"
                tried.append(newest)
                base = self._load(newest, beginning)
                if base is not None:
                    behind = tail if newest.start >= tail.start else self._tails.since(newest.start)
                    return behind, base, beginning
            if tail.whole:
                break
            tail = self._tails.since(tail.first)
        if tail.first > 0:
            reason = (
                f"its journal begins at offset {tail.first}, and none of the {len(tried)} snapshots it "
                "names is complete here (without this worker's state.dir their whole topic is read again)"
            )
            raise RestoreError(self._wanted.partition, reason)
        return tail, Base(garbage=self._keys), "journal"

    @cached_property
    def _keys(self) -> list[bytes]:
        """The keys of all chunks in the table."""
        return list(self._wanted.chunks.keys())

    def _check_new(self, reset: Reset, tried: Collection[Manifest]) -> None:
        """Raise RestoreError if a reset was written to continue from a snapshot that is not whole."""
        if carries_one_of(reset, tried):
            number = self._wanted.partition
            reason = (
                "the snapshot that 'grove models restore' let it go on from is not whole here; "
                f"{ways_out(number)}"
            )
            raise RestoreError(number, reason)

    def _load(self, manifest: Manifest, beginning: Beginning) -> Base | None:
        """Begin at a snapshot; None if it is not whole."""
        request = self._wanted
        name = f"snapshot {manifest.incarnation}.{manifest.sequence}"
        request.progress.reads(beginning, f"{name} of {manifest.units:,} units, {manifest.size:,} bytes")
        try:
            index = self._replay.begin_at(manifest, request.chunks.get)
        except DamagedError as error:
            logger.warning("partition %d: a snapshot cannot be used: %s", request.partition, error)
            return None
        named = index.keys() | index_keys(manifest)
        garbage = [key for key in self._keys if key not in named]
        return Base(index, manifest, garbage)

    def _go_through(self, entries: Sequence[Entry]) -> None:
        request, foreign = self._wanted, 0
        for entry in entries:
            foreign += entry.platform != platform_tag()
            self._replay.apply(entry)
            request.progress.replayed(_offsets(entry))
            faults.point("restore-replay")
        if foreign:
            logger.warning(
                "partition %d: %d journal entries are of another platform: counts are exact, the last bits "
                "of floats may differ",
                request.partition,
                foreign,
            )


def carries_one_of(reset: Reset, snapshots: Collection[Manifest]) -> bool:
    """Return whether a reset was written to continue from one of the snapshots after it.

    A snapshot after a reset with an incarnation from before the reset must be the snapshot that the partition
    fell back to: new models would then be wrong.
    """
    return any(manifest.incarnation <= reset.incarnation for manifest in snapshots)


def _offsets(entry: Entry) -> int:
    """Return the number of offsets that an entry covers."""
    return sum(after - entry.before[source] for source, after in entry.after.items())


def check_end(positions: Positions | None, committed: Committed) -> None:
    """Raise EndMismatchError unless the journal's end (None: it is empty) matches committed offsets."""
    if positions is None and not any(at is not None for at in committed.values()):
        return
    if positions is None or not agree(committed, positions):
        raise EndMismatchError(positions, committed)


def agree(committed: Committed, positions: Positions) -> bool:
    """Return whether committed offsets equal the positions; a source at its beginning may lack an offset."""
    return any(at is not None for at in committed.values()) and all(
        (committed.get(source) or 0) == here for source, here in positions.items()
    )


def _reset(tail: Tail) -> Reset | None:
    return next((base for base in tail.bases if isinstance(base, Reset)), None)
