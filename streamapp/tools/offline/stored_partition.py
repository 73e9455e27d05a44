"""Stored partition: read from Kafka without joining the group, and rebuilt.

The journal is read first, then the snapshot chunks that it names. Records that a worker writes at the same
time are newer than the requested point. Chunks that are deleted at the same time do no harm: no key is
ever written twice, and checksums show whether a snapshot is complete.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from types import TracebackType
from typing import Any, Final, Self

from streamapp.errors import NotYetError
from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.time_travel import Arrived, Departure, TimeTravel
from streamapp.worker.restore.changelog import Changelog
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.journal_replay import Process, Replay
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.restore.rebuild import Committed
from streamapp.worker.restore.replayed_schemas import looked_up_schemas
from streamapp.worker.restore.tail import TailReader
from streamapp.worker.task.sources import SOURCES, SourceName, in_words, source_topics
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from topics.codecs.avro.output_reader import OutputReader
from topics.columns.records import RawRecords
from topics.definitions import TopicNames
from topics.fetching.batches import PROCESSED, Limit
from topics.patience import Patience
from topics.registry.known_schemas import KnownSchemas

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 60.0
"""Timeout for open transactions and busy brokers; a worker ends its own transactions within a moment."""
PAUSE_S: Final = 0.2


class StoredPartition:
    """One partition of an installation."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        group: str,
        names: TopicNames,
        config: TaskConfig,
        partition: int,
        schemas: KnownSchemas | None = None,
    ) -> None:
        """`kafka`: client properties under Kafka's names; `config`: of tasks that begin after a reset;
        `schemas`: of the schema registry, if it is in use.
        """
        self.number = partition
        self._schemas = None if schemas is None else partial(looked_up_schemas, schemas)
        self._outputs = OutputReader(None if schemas is None else schemas.look_up)
        self._kafka = kafka
        self._group = group
        self._names = names
        self._config = config
        self._readers = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._readers.close()

    def now(self) -> Arrived | None:
        """Return the task at the committed offsets; None if no record was processed yet."""
        patience = Patience(TIMEOUT_S, logger.warning)
        while True:
            try:
                committed = self._committed()
                if all(at is None for at in committed.values()):
                    self._check_never_processed()
                    return None
                arrived = self._time_travel().to_committed(committed)
                if arrived is not None:
                    return arrived
                reason = f"its journal ends before the committed offsets {in_words(committed)}"
            except NotYetError as error:
                reason = f"a transaction is still open ({error})"
            except RestoreError as error:  # the journal was trimmed between two reads
                reason = error.reason
            if patience.is_over:
                message = f"partition {self.number}: {reason}"
                raise OfflineError(message)
            patience.note(f"partition {self.number}: {reason}")
            time.sleep(PAUSE_S)

    def at(self, offset: int, *, behind: bool = False) -> Arrived:
        """Return the task right before (`behind`: after) the record of `instances` at an offset."""
        try:
            return self._time_travel().to_record(offset, behind=behind)
        except (RestoreError, NotYetError) as error:
            raise self._impossible(error) from error

    def depart(self, offset: int | None, process: Process = Task.process) -> Departure:
        """Return a replay right before the record of `instances` at an offset, and the journal after it.

        None: at the earliest point that can be rebuilt; `process`: lets the task process a run.
        """
        try:
            travel = self._time_travel(process)
            return travel.from_earliest() if offset is None else travel.from_record(offset)
        except (RestoreError, NotYetError) as error:
            raise self._impossible(error) from error

    def go_on(self, departure: Departure) -> None:
        """Replay the rest of the journal."""
        try:
            departure.go_on()
        except (RestoreError, NotYetError) as error:
            raise self._impossible(error) from error

    def offset_at(self, timestamp: int) -> int:
        """Return the offset of the first record of `instances` at a time (ms) or after it; if there is none,
        the end of the log.
        """
        try:
            return self._look.of(self._names.instances, self.number).offset_at(timestamp)
        except NotYetError as error:
            raise self._impossible(error) from error

    def instance(self, offset: int) -> RawRecords | None:
        """Return the record of `instances` at an offset; None if there is none (a marker, a hole)."""
        for raw in self._open(self._names.instances, offset).up_to(offset + 1):
            if raw.offsets == [offset]:
                return raw
        return None

    def predictions_since(self, timestamp: int) -> Iterator[RawRecords]:
        """Yield the predictions from the first one on whose timestamp is at least `timestamp` (ms).

        Those in Avro are JSON.
        """
        log = self._reader()
        start = log.of(self._names.predictions, self.number).offset_at(timestamp)
        log.open(self._names.predictions, self.number, start)
        for raw in log.to_end():
            values: list[bytes | None] = [*self._outputs.texts([value or b"" for value in raw.values])]
            columns = (raw.offsets, raw.timestamps, raw.keys, values, raw.headers)
            yield RawRecords(raw.topic, raw.partition, *columns)

    # -- details --------------------------------------------------------------------------------------------

    def _impossible(self, error: RestoreError | NotYetError) -> OfflineError:
        reason = error.reason if isinstance(error, RestoreError) else str(error)
        return OfflineError(f"partition {self.number}: {reason}")

    def _check_never_processed(self) -> None:
        """Raise OfflineError if the journal is not empty, although the group has committed nothing."""
        if not self._look.of(self._names.journal, self.number).is_empty():
            message = (
                f"partition {self.number}: group {self._group} has committed nothing, but there is a "
                "journal; set application.id to the workers' value. If the group's offsets have expired, "
                f"'grove models restore --partition {self.number}' takes them from the journal"
            )
            raise OfflineError(message)

    def _reader(self) -> LogReader:
        return self._readers.enter_context(LogReader(self._kafka, self._group, lambda: False, in_runs=True))

    def _open(self, topic: str, position: int, limit: Limit | None = None) -> LogReader:
        log = self._reader()
        log.open(topic, self.number, position, limit)
        return log

    def _open_source(self, source: SourceName, position: int) -> LogReader:
        return self._open(SOURCES[source].topic(self._names), position, PROCESSED)

    @cached_property
    def _look(self) -> LogReader:
        """The reader of offsets and journal, for all reads of them."""
        return self._reader()

    @cached_property
    def _parts(self) -> LogReader:
        """The reader of snapshots, for all reads of them."""
        return self._reader()

    def _committed(self) -> Committed:
        topics = source_topics(self._names)
        offsets = self._look.committed(topics.values(), self.number)
        return {source: offsets[topic] for source, topic in topics.items()}

    def _time_travel(self, process: Process = Task.process) -> TimeTravel:
        journal = self._names.journal
        tails = TailReader(self._look.of(journal, self.number), journal, self.number)
        parts = Changelog(self._parts, self._names.snapshots, self.number, removed=True)

        def replay() -> Replay:
            return Replay(self.number, self._open_source, process=process, schemas=self._schemas)

        return TimeTravel(self.number, tails, parts.get, replay, self._config)
