"""Premature retention: deletes instances that lagging workers have not read yet."""

from __future__ import annotations

import time
from typing import Final

import msgpack
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks.chaos.checker import log_ends
from benchmarks.chaos.fleet import wait_until
from benchmarks.chaos.source_tape import SourceTape
from benchmarks.chaos.tape import Tape

MANIFEST: Final = 1
"""The kind of journal record that completes a snapshot (docs/journal.md)."""

REQUEST_S: Final = 30.0
SNAPSHOT_S: Final = 120.0
LEAST_LAG: Final = 20  # records; with fewer there is nothing to overtake


class Retention:
    """Deletes the beginning of logs."""

    def __init__(self, servers: str, group: str, topic: str, instances: SourceTape, journal: Tape) -> None:
        """`instances` and `journal` are recorded, so that deleted records can be checked later."""
        self.deleted: dict[int, int] = {}  # by partition: the offset up to which records are deleted
        self._servers, self._group, self._topic = servers, group, topic
        self._instances, self._journal = instances, journal

    def overtake(self, until: float) -> int | None:
        """Delete instances of the partition that lags most, three quarters of its uncommitted records.

        Return the partition; None if none lags, or if it took longer than `until` (time.monotonic()): a
        worker whose session is over has to restore its state, which is impossible once the records are
        deleted.
        """
        lags = self._lags()
        partition = max(lags, key=lambda number: lags[number][1] - lags[number][0])
        committed, end = lags[partition]
        if end - committed < LEAST_LAG:
            return None
        before = committed + (end - committed) * 3 // 4
        self._instances.wait_for({partition: before})
        client = AdminClient({"bootstrap.servers": self._servers, "log_level": 0})
        if time.monotonic() > until:
            return None
        for future in client.delete_records([TopicPartition(self._topic, partition, before)]).values():
            future.result(REQUEST_S)
        self.deleted[partition] = before
        return partition

    def wait_for_snapshot(self, partition: int) -> None:
        """Return when a snapshot of a partition contains all that was deleted: until then it could not be
        restored.
        """

        def complete() -> bool:
            bodies = (msgpack.unpackb(kept.value or b"") for kept in self._journal.records[partition][::-1])
            newest = next((body for body in bodies if body[1] == MANIFEST), None)
            return newest is not None and newest[6]["instances"] >= self.deleted[partition]

        problem = (
            f"no snapshot of partition {partition} has what was deleted before {self.deleted[partition]}"
        )
        wait_until(complete, SNAPSHOT_S, lambda: problem)

    def _lags(self) -> dict[int, tuple[int, int]]:
        """Return the committed offset of each partition, and the end of its log."""
        partitions = len(self._instances.records)
        ends = log_ends(self._servers, self._topic, partitions)
        settings = {
            "bootstrap.servers": self._servers,
            "group.id": self._group,
            "log_level": 0,
            # Else the coordinator has no answer while a worker that stands still has a transaction open.
            "isolation.level": "read_uncommitted",
        }
        client = Consumer(settings)
        try:
            places = [TopicPartition(self._topic, number) for number in range(partitions)]
            committed = client.committed(places, timeout=REQUEST_S)
        finally:
            client.close()
        return {
            position.partition: (max(0, position.offset), ends[position.partition]) for position in committed
        }
