"""Replay: a task processes again what its journal lists; its outputs are dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, Literal, Protocol

from core.errors import SpecError
from core.state_version import STATE_VERSION, rules_of
from streamapp.errors import OtherReleaseError
from streamapp.worker.journal.entry import Entry, Manifest, Ranges, Step
from streamapp.worker.restore.errors import RestoreError, ways_out
from streamapp.worker.snapshots.chunks import DamagedError
from streamapp.worker.snapshots.index import Index
from streamapp.worker.snapshots.stored import Get, StoredSnapshot
from streamapp.worker.task.effects.effects import DeadLetter, Effects
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.quota import ModelQuota
from streamapp.worker.task.sources import SOURCES, Positions, SourceName, in_words
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import DamagedStateError, Unit
from topics.codecs.frames.schema_ids import distinct_schema_ids
from topics.columns.records import RawRecords, Schemas
from topics.errors import Reason
from topics.registry.registered_schema import SchemaId

logger = logging.getLogger(__name__)

NARROWED: Final = frozenset({Reason.BAD_WEIGHT, Reason.BAD_CONTROL})
"""Dead letters of records that an older release may have accepted."""

UNLIMITED: Final = 1 << 62  # models: the journal holds the records whose models had no room


Process = Callable[[Task, TaskRun], Effects]
SchemasOf = Callable[[int, Iterable[SchemaId]], Schemas]
"""A function that returns the schemas of ids, for a partition that is named in errors."""


class SourceLog(Protocol):
    """The records of a source, in order."""

    def up_to(self, position: int, unread: Ranges = ()) -> Iterator[RawRecords]:
        """Yield the records from the current to before another position; `unread`: batches to skip."""


class Replay:
    """Builds the task of a partition from its journal."""

    def __init__(
        self,
        partition: int,
        open_log: Callable[[SourceName, int], SourceLog],
        memory: ModelMemory | None = None,
        process: Process = Task.process,
        schemas: SchemasOf | None = None,
    ) -> None:
        """`open_log`: returns the records of a source from a position on; `memory`: of the models, only for
        the thread of this replay (None: no limit); `process`: lets the task process a run, for a caller that
        reads the effects; `schemas`: returns the schemas that records name (None: no registry is in use).
        """
        self.positions: Positions | None = None
        self.records = 0  # replayed
        self.task: Task | None = None
        self.partition = partition
        self._open_log = open_log
        self._logs: dict[SourceName, SourceLog] = {}
        self._quota = ModelQuota(UNLIMITED)
        self._memory = memory or ModelMemory()
        self._process_run = process
        self._schemas = schemas
        self._at: dict[SourceName, int] = {}  # positions while an entry is applied

    def begin(self, positions: Positions, units: Iterable[Unit] | None, config: TaskConfig) -> None:
        """Begin at positions: with the task of a snapshot, or (None) with a new one."""
        if units is None:
            self.task = Task(self.partition, config, self._quota, self._memory)
        else:
            self.task = Task.from_units(self.partition, config, self._quota, units, self._memory)
        self.positions = positions  # set now: nothing of a snapshot that is not whole may remain

    def begin_at(self, manifest: Manifest, get: Get) -> Index:
        """Begin at a snapshot, whose chunks `get` returns; return its index.

        DamagedError if it is not whole.
        """
        stored = StoredSnapshot(manifest, get)
        config = config_of(manifest)
        try:
            self.begin(manifest.positions, stored.units(), config)
        except DamagedStateError as error:
            raise DamagedError(str(error)) from error
        return stored.index

    def apply(self, entry: Entry) -> None:
        """Replay one entry; RestoreError if it does not follow the last one."""
        task = self._begin(entry)
        self._at = dict(entry.before)
        for step in entry.steps:
            n_records, at = 0, self._at[step.source]
            for raw in self._records(step):
                n_records += len(raw)
                self._process(task, raw, step, is_older=rules_of(entry.state_version) < STATE_VERSION)
            self.records += n_records
            self._check_count(step, at, n_records)
            task.advance(step.source, step.to)
        self.positions = entry.after

    def _begin(self, entry: Entry) -> Task:
        if self.positions is not None and entry.before != self.positions:
            here, there = in_words(self.positions), in_words(entry.before)
            reason = f"its journal goes on at {there} where it stood at {here}"
            raise RestoreError(self.partition, reason)
        if self.task is None:
            self.task = Task(self.partition, TaskConfig(), self._quota, self._memory)
            self.positions = entry.before
        if entry.config is not None:
            self.task.configure(config_of(entry))
        return self.task

    def _records(self, step: Step) -> Iterator[RawRecords]:
        source = step.source
        if SOURCES[source].journalled:
            return iter([step.records] if step.records is not None else [])
        at, self._at[source] = self._at[source], step.to
        if step.skipped == ((at, step.to),):  # never read, or all records became dead letters
            self._logs.pop(source, None)
            return iter(())
        if source not in self._logs:
            self._logs[source] = self._open_log(source, at)
        return self._logs[source].up_to(step.to, step.unread)

    def _check_count(self, step: Step, at: int, n_records: int) -> None:
        """Raise RestoreError if a log has lost some of the records that were processed."""
        if step.count is not None and n_records != step.count and step.skipped != ((at, step.to),):
            reason = (
                f"{step.count} records of {step.source} from offset {at} to before {step.to} were "
                f"processed, {n_records} are left: the topic is compacted, or was created again; "
                f"{ways_out(self.partition)}"
            )
            raise RestoreError(self.partition, reason)

    def _process(self, task: Task, raw: RawRecords, step: Step, *, is_older: bool) -> None:
        """Process records as they were processed before, including those that became dead letters.

        The rules of this release apply: a record that an older release accepted and this one refuses is left
        out, with a line in the log.
        """
        for part, how in parts(raw, step):
            if task.config.schemas:
                part = self._by_schemas(part, step.source)
            self._quota.closed = how == "refused"
            effects = self._process_run(task, TaskRun(step.source, part, dead=how == "dead"))
            for letter in effects.dead_letters if how != "dead" else ():
                if not is_older:
                    self._check_carried_out(letter)
                elif not NARROWED.isdisjoint((letter.reason, *dict(letter.rows).values())):
                    at = letter.origin
                    logger.warning(
                        "partition %d: replayed without %s:%d:%d, which an older release may read: %s",
                        self.partition,
                        at.topic,
                        at.partition,
                        at.offset,
                        letter.detail,
                    )
        self._quota.closed = False

    def _check_carried_out(self, letter: DeadLetter) -> None:
        """Raise OtherReleaseError for a control that was carried out, and that this release refuses.

        Without it the partition would go on with other models than it had.
        """
        if letter.reason == Reason.BAD_CONTROL:
            at = letter.origin
            message = (
                f"the command at {at.topic}:{at.partition}:{at.offset} was carried out when it was first "
                f"processed, and this release refuses it ({letter.detail})"
            )
            raise OtherReleaseError(message)

    def _by_schemas(self, raw: RawRecords, source: SourceName) -> RawRecords:
        """Return records with the schemas that they name, by which they were read at first."""
        ids = distinct_schema_ids(raw)
        if ids and self._schemas is None:
            reason = (
                f"records of {source} were read by the schemas of a registry; set schema.registry.url to the "
                f"registry that has schema {sorted(map(str, ids))[0]}"
            )
            raise RestoreError(self.partition, reason)
        return raw.read_by({} if self._schemas is None else self._schemas(self.partition, ids))


def config_of(record: Entry | Manifest) -> TaskConfig:
    """Return the settings in a record of the journal; OtherReleaseError if this release cannot read them."""
    try:
        config = TaskConfig.from_json(record.config or "", rules_of(record.state_version))
        config.default_spec()
    except (SpecError, ValueError) as error:
        message = f"its journal has settings that this release cannot read: {error}"
        raise OtherReleaseError(message) from error
    return config


Handled = Literal["processed", "refused", "dead", "skipped"]
"""How records were handled: as usual, without room for new models, refused as controls, or not read."""


def parts(raw: RawRecords, step: Step) -> Iterator[tuple[RawRecords, Handled]]:
    """Yield the records of a step that left a trace, in order, each time with how they were handled."""
    if not (step.skipped or step.refused or step.dead):
        yield raw, "processed"
        return
    for how, records in groupby(range(len(raw)), lambda record: _handled(raw.offsets[record], step)):
        numbers = list(records)
        if how != "skipped":
            yield raw.part(numbers[0], numbers[-1] + 1), how


def _handled(offset: int, step: Step) -> Handled:
    kinds: tuple[tuple[Handled, Ranges], ...] = (
        ("skipped", step.skipped),
        ("refused", step.refused),
        ("dead", step.dead),
    )
    for how, ranges in kinds:
        if any(first <= offset < end for first, end in ranges):
            return how
    return "processed"
