"""Replay: a task goes through what its journal says happened, once more and unheard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from streamapp.journal.entry import SOURCES, Entry, Manifest, Positions, Ranges, Step
from streamapp.restore.errors import RestoreError, ways_out
from streamapp.snapshots.chunks import DamagedError
from streamapp.snapshots.index import Index
from streamapp.snapshots.stored import Get, StoredSnapshot
from streamapp.task.config import TaskConfig
from streamapp.task.model_memory import ModelMemory
from streamapp.task.model_quota import ModelQuota
from streamapp.task.task import Run, Source, Task
from streamapp.task.unit import DamagedStateError, Unit
from topics.records import RawRecords

UNLIMITED: Final = 1 << 62  # models: which ones there was no room for, the journal says


class SourceLog(Protocol):
    """The records of a source, in order."""

    def up_to(self, position: int) -> Iterator[RawRecords]:
        """Yield the records from where we are to before a position."""


class Replay:
    """The task of a partition as its journal makes it."""

    def __init__(
        self,
        partition: int,
        open_log: Callable[[Source, int], SourceLog],
        memory: ModelMemory | None = None,
    ) -> None:
        """`open_log`: gives the records of a source from a position on; `memory`: of the models, of
        the thread of this replay alone (None: no limit)."""
        self.positions: Positions | None = None
        self.records = 0  # replayed
        self.task: Task | None = None
        self._partition = partition
        self._open_log = open_log
        self._logs: dict[Source, SourceLog] = {}
        self._quota = ModelQuota(UNLIMITED)
        self._memory = memory or ModelMemory()
        self._at: list[int] = []  # positions while an entry is gone through

    def begin(self, positions: Positions, units: Iterable[Unit] | None, config: TaskConfig) -> None:
        """Stand at positions: with the task of a snapshot, or (None) with a new one."""
        self.positions = positions
        if units is None:
            self.task = Task(self._partition, config, self._quota, self._memory)
        else:
            self.task = Task.from_units(self._partition, config, self._quota, units, self._memory)

    def begin_at(self, manifest: Manifest, get: Get) -> Index:
        """Stand at a snapshot, whose chunks `get` gives; return what it consists of.

        DamagedError if it is not whole.
        """
        stored = StoredSnapshot(manifest, get)
        try:
            self.begin(manifest.positions, stored.units(), TaskConfig.from_json(manifest.config))
        except DamagedStateError as error:
            raise DamagedError(str(error)) from error
        return stored.index

    def apply(self, entry: Entry) -> None:
        """Go through one entry; RestoreError if it does not follow upon the last one."""
        task = self._begin(entry)
        self._at = list(entry.before)
        for step in entry.steps:
            source: Source = SOURCES[step.source]
            found, at = 0, self._at[step.source]
            for raw in self._records(step, source):
                found += len(raw)
                self._process(task, source, raw, step)
            self.records += found
            self._check_count(step, at, found)
            task.advance(source, step.to)
        self.positions = entry.after

    def _begin(self, entry: Entry) -> Task:
        if self.positions is not None and entry.before != self.positions:
            reason = f"its journal goes on at {entry.before} where it stood at {self.positions}"
            raise RestoreError(self._partition, reason)
        if self.task is None:
            self.task = Task(self._partition, TaskConfig(), self._quota, self._memory)
            self.positions = entry.before
        if entry.config is not None:
            self.task.configure(TaskConfig.from_json(entry.config))
        return self.task

    def _records(self, step: Step, source: Source) -> Iterator[RawRecords]:
        if source == "controls":
            return iter([step.records] if step.records is not None else [])
        at = self._at[step.source]
        self._at[step.source] = step.to
        if step.skipped == ((at, step.to),):  # never read, or put aside altogether
            self._logs.pop(source, None)
            return iter(())
        if source not in self._logs:
            self._logs[source] = self._open_log(source, at)
        return self._logs[source].up_to(step.to)

    def _check_count(self, step: Step, at: int, found: int) -> None:
        """Raise RestoreError if a log has not the records any more that were processed."""
        if step.count is not None and found != step.count and step.skipped != ((at, step.to),):
            reason = (
                f"{step.count} records of {SOURCES[step.source]} from offset {at} to before {step.to} were "
                f"processed, {found} are left: the topic is compacted, or another one than it was; "
                f"{ways_out(self._partition)}"
            )
            raise RestoreError(self._partition, reason)

    def _process(self, task: Task, source: Source, raw: RawRecords, step: Step) -> None:
        """Process records the way it was done, those that were put aside included."""
        for part, refused in parts(raw, step.skipped, step.refused):
            self._quota.closed = refused
            task.process(Run(source, part))
        self._quota.closed = False


def parts(raw: RawRecords, skipped: Ranges, refused: Ranges) -> Iterator[tuple[RawRecords, bool]]:
    """Yield the records that were processed, in order, with whether there was no room for their models."""
    if not skipped and not refused:
        yield raw, False
        return
    start, kind = 0, _kind(raw.offsets[0], skipped, refused)
    for at in range(1, len(raw) + 1):
        here = _kind(raw.offsets[at], skipped, refused) if at < len(raw) else "end"
        if here != kind:
            if kind != "skipped":
                yield _part(raw, start, at), kind == "refused"
            start, kind = at, here


def _kind(offset: int, skipped: Ranges, refused: Ranges) -> str:
    if any(first <= offset < end for first, end in skipped):
        return "skipped"
    return "refused" if any(first <= offset < end for first, end in refused) else "processed"


def _part(raw: RawRecords, start: int, stop: int) -> RawRecords:
    columns: Mapping[str, Sequence[object]] = {
        name: getattr(raw, name)[start:stop]
        for name in ("offsets", "timestamps", "keys", "values", "headers")
    }
    return replace(raw, **columns)  # type: ignore[arg-type]
