"""The two places of a migration on Kafka: one that is read, one that is written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Self

from streamapp.group import members_of
from streamapp.journal.entry import SOURCES, source_topics
from streamapp.migration.errors import MigrationError
from streamapp.migration.leaving import Leaving, leaving
from streamapp.model_import import piece_bytes
from streamapp.offline.installation import Installation
from streamapp.offline.partition import PATIENCE_S, PAUSE_S
from streamapp.restore.errors import NotYetError
from streamapp.restore.log_reader import LogReader
from streamapp.task.config import TaskConfig
from topics import admin
from topics.cluster import Cluster
from topics.definitions import TopicNames
from topics.partitioner import partition_of
from topics.records import RawRecords
from topics.sender import Sender

COUNTED: Final = 10_000
"""Records counted one by one; beyond, offsets are."""


class OldPlace:
    """Where the models are; nothing is written."""

    def __init__(self, kafka: Mapping[str, Any], group: str, names: TopicNames, config: TaskConfig) -> None:
        """`kafka`: client properties under Kafka's names; `group`: whose offsets count."""
        self.kafka, self.group, self.names = kafka, group, names
        cluster = Cluster(kafka)
        self.source_partitions = admin.installed(cluster, names)
        """Of `instances`; more than `partitions` where somebody has added some."""
        self._counts = cluster.partition_counts([*source_topics(names), names.journal, names.snapshots])
        self.partitions = min(self._counts.values())
        self._installation = Installation(kafka, group, names, config)

    def members(self) -> list[str]:
        """Return who is in the group."""
        return members_of(self.kafka, self.group)

    def leaving(self, partition: int) -> Leaving | None:
        """Return what there is of a partition; None if nothing of it was processed."""
        with self._installation.partition(partition) as stored:
            arrived = stored.now()
        return None if arrived is None else leaving(arrived, self.names.prefix)

    def committed(self, partition: int) -> tuple[int | None, ...]:
        """Return the group's positions, once no transaction is open any more."""
        with self._reader() as reader:
            return _committed(reader, source_topics(self.names), partition)

    def unprocessed(self, partition: int) -> dict[str, int]:
        """Return how many records of each source the group has not committed."""
        found = {}
        committed = self.committed(partition) if partition < self.partitions else [None] * len(SOURCES)
        with self._reader() as reader:
            for source, position in zip(SOURCES, committed, strict=True):
                topic = getattr(self.names, source)
                if partition < self._counts.get(topic, 0):
                    first, _ = reader.of(topic, partition).range()
                    reader.open(topic, partition, max(first, position or 0))
                    found[source] = _count(reader)
        return found

    def _reader(self) -> LogReader:
        return LogReader(self.kafka, self.group, lambda: False)


class NewPlace:
    """Where the models go."""

    def __init__(self, kafka: Mapping[str, Any], group: str, names: TopicNames, partitions: int) -> None:
        """`partitions`: how many its topics have, or will have."""
        self.kafka, self.group, self.names, self.partitions = kafka, group, names, partitions
        self._cluster = Cluster(kafka)
        self._clients = ExitStack()

    def __enter__(self) -> Self:
        """Return the place."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the clients."""
        self._clients.close()

    @property
    def exists(self) -> bool:
        """Whether there is a topic that models can be sent to."""
        return self.names.controls in self._cluster.partition_counts([self.names.controls])

    def begun(self) -> bool:
        """Whether workers have processed something here: the group has committed offsets of these topics."""
        topics = source_topics(self.names)
        with self._reader() as reader:
            found = [_committed(reader, topics, partition) for partition in range(self.partitions)]
        return any(at is not None for positions in found for at in positions)

    def partition_of(self, key: str) -> int:
        """Return the partition that a key has here."""
        return partition_of(key.encode(), self.partitions)

    @cached_property
    def piece_bytes(self) -> int:
        """Bytes of a file that a record of `controls` takes."""
        return piece_bytes(self._cluster, self.names.controls)

    def controls(self, partition: int) -> Iterator[RawRecords]:
        """Yield what there is on `controls`."""
        with self._reader() as reader:
            reader.open(self.names.controls, partition)
            yield from reader.to_end()

    def send(self, key: str, values: list[bytes], timestamp: int) -> None:
        """Send commands to the model of a key; timestamp: ms, 0 is now."""
        n = len(values)
        partition = self.partition_of(key)
        self._sender.send_run(self.names.controls, partition, values, [key.encode()] * n, [timestamp] * n)

    def flush(self) -> None:
        """Return when all that was sent is on enough brokers."""
        self._sender.flush()

    def _reader(self) -> LogReader:
        return LogReader(self.kafka, self.group, lambda: False)

    @cached_property
    def _sender(self) -> Sender:
        sender = Sender(self.kafka)
        self._clients.callback(sender.close)
        return sender


def _committed(reader: LogReader, topics: tuple[str, ...], partition: int) -> tuple[int | None, ...]:
    """Return a group's positions, once no transaction is open any more, and its coordinator is there."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return reader.committed(topics, partition)
        except NotYetError as error:
            if time.monotonic() > deadline:
                message = (
                    f"partition {partition}: the committed offsets are not known ({error}); a transaction of "
                    "a worker may still be open, which the broker ends after transaction.timeout.ms: try "
                    "again then"
                )
                raise MigrationError(message) from None
        time.sleep(PAUSE_S)


def _count(reader: LogReader) -> int:
    end, n = reader.range()[1], 0
    for raw in reader.to_end():
        n += len(raw)
        if n >= COUNTED:
            return n + max(0, end - reader.position)
    return n
