"""Migration places on Kafka: the old one is read, the new one is written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Self

from streamapp.errors import NotYetError
from streamapp.tools.migration.errors import MigrationError
from streamapp.tools.migration.old_place import Leaving, leaving
from streamapp.tools.model_files.send import piece_bytes
from streamapp.tools.offline.installation import Installation
from streamapp.tools.offline.stored_partition import PAUSE_S, TIMEOUT_S
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.restore.rebuild import Committed
from streamapp.worker.task.sources import SourceName, source_topics
from topics.clients import admin
from topics.clients.cluster import Cluster
from topics.clients.consumer_group import members_of
from topics.clients.partitioner import partition_of
from topics.clients.sender import Sender
from topics.columns.records import Headers, RawRecords
from topics.definitions import TopicNames

SENT: Final[Headers] = (("grove-migrate", b"1"),)
"""Header of the records that a migration sends, by which a later run recognises them."""

COUNTED: Final = 10_000
"""Up to this number of records, they are counted one by one; more are counted by offsets."""


class OldPlace(Installation):
    """The place from which models are migrated; nothing is written."""

    @cached_property
    def source_partitions(self) -> int:
        """Partitions of `instances`; more than `partitions` if some were added later."""
        return admin.installed(Cluster(self.kafka), self.names)

    @cached_property
    def partitions(self) -> int:
        return min(self._counts.values())

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        topics = [*source_topics(self.names).values(), self.names.journal, self.names.snapshots]
        return Cluster(self.kafka).partition_counts(topics)

    def members(self) -> list[str]:
        return members_of(self.kafka, self.group)

    def leaving(self, partition: int) -> Leaving | None:
        """Return the models of a partition; None if no record of it was processed."""
        with self.partition(partition) as stored:
            arrived = stored.now()
        return None if arrived is None else leaving(arrived, self.names.prefix)

    def committed(self, partition: int) -> Committed:
        """Return the group's positions, once no transaction is open."""
        with self._reader() as reader:
            return _committed(reader, self.names, partition)

    def unprocessed(self, partition: int) -> dict[SourceName, int]:
        """Return how many records of each source the group has not committed."""
        counts: dict[SourceName, int] = {}
        committed = self.committed(partition) if partition < self.partitions else {}
        with self._reader() as reader:
            for source, topic in source_topics(self.names).items():
                if partition < self._counts.get(topic, 0):
                    first, _ = reader.of(topic, partition).range()
                    reader.open(topic, partition, max(first, committed.get(source) or 0))
                    counts[source] = _count(reader)
        return counts

    def _reader(self) -> LogReader:
        return LogReader(self.kafka, self.group, lambda: False)


class NewPlace:
    """The place to which models are migrated."""

    def __init__(self, kafka: Mapping[str, Any], group: str, names: TopicNames, partitions: int) -> None:
        """`partitions`: number of partitions that its topics have, or will have."""
        self.kafka, self.group, self.names, self.partitions = kafka, group, names, partitions
        self._cluster = Cluster(kafka)
        self._clients = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clients.close()

    @property
    def exists(self) -> bool:
        """Whether the topic to which models are sent exists."""
        return self.names.controls in self._cluster.partition_counts([self.names.controls])

    def begun(self) -> bool:
        """Whether workers have processed records here: the group has committed offsets of these topics."""
        with self._reader() as reader:
            committed = [_committed(reader, self.names, partition) for partition in range(self.partitions)]
        return any(at is not None for positions in committed for at in positions.values())

    def partition_of(self, key: str) -> int:
        return partition_of(key.encode(), self.partitions)

    @cached_property
    def piece_bytes(self) -> int:
        """Bytes of a model file that fit into a record of `controls`."""
        return piece_bytes(self._cluster, self.names.controls)

    def controls(self, partition: int) -> Iterator[RawRecords]:
        with self._reader() as reader:
            reader.open(self.names.controls, partition)
            yield from reader.to_end()

    def sent_by_others(self) -> tuple[int, str]:
        """Return how many controls were not sent by a migration, and the place of the first one."""
        n, first = 0, ""
        for partition in range(self.partitions if self.exists else 0):
            for raw in self.controls(partition):
                for offset, headers in zip(raw.offsets, raw.headers, strict=True):
                    if tuple(headers) != SENT:
                        n, first = n + 1, first or f"{partition}:{offset}"
        return n, first

    def send(self, key: str, values: list[bytes], timestamp: int) -> None:
        """Send commands to the model of a key; timestamp: ms, 0 is now."""
        n = len(values)
        partition = self.partition_of(key)
        columns = values, [key.encode()] * n, [timestamp] * n, [list(SENT)] * n
        self._sender.send_run(self.names.controls, partition, *columns)

    def flush(self) -> None:
        """Return when all sent records are on enough brokers."""
        self._sender.flush()

    def _reader(self) -> LogReader:
        return LogReader(self.kafka, self.group, lambda: False)

    @cached_property
    def _sender(self) -> Sender:
        sender = Sender(self.kafka)
        self._clients.callback(sender.close)
        return sender


def _committed(reader: LogReader, names: TopicNames, partition: int) -> Committed:
    """Return a group's positions, once no transaction is open and its coordinator can be reached."""
    topics, deadline = source_topics(names), time.monotonic() + TIMEOUT_S
    while True:
        try:
            offsets = reader.committed(topics.values(), partition)
            return {source: offsets[topic] for source, topic in topics.items()}
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
