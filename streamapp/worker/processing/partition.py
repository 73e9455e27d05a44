"""Partitions: the tasks of this worker (Kafka Streams' `Tasks`), each with the data kept of its partition."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streamapp.worker.journal.entry import Skip
from streamapp.worker.journal.ledger import Ledger
from streamapp.worker.observability.health import Health, PartitionStatus, Stage
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.snapshots.snapshot_writer import Base, SnapshotWriter
from streamapp.worker.task.sources import Positions
from streamapp.worker.task.task import Task
from streamapp.worker.transport.membership import Membership

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Partition:
    """A partition whose task lives here."""

    task: Task
    ledger: Ledger
    committed: Positions
    membership: Membership | None  # that restored it; only this one may commit its offsets
    topic_ids: Mapping[str, str]  # of the sources whose records it processes
    skips: tuple[Skip, ...] = ()  # its records that become dead letters, including passed records
    live: bool = False  # its records are being fetched
    stopped: str | None = None  # why its processing was stopped for good


class Partitions(dict[int, Partition]):
    """The partitions whose tasks live here, by number; other threads than the event loop's may read it.

    Callers of `add`, `drop` and `stop` hold `SnapshotWriter.tasks_lock`, or have just computed a run.
    """

    def __init__(self, snapshots: SnapshotWriter, metrics: Metrics, health: Health) -> None:
        """Begin without partitions; `snapshots`: writes the snapshots of every partition that is here."""
        super().__init__()
        self._snapshots = snapshots
        self._metrics = metrics
        self._health = health

    def add(self, number: int, partition: Partition, base: Base) -> None:
        """Add a partition at the position where its ledger begins; `base`: the snapshot it came from."""
        self._snapshots.add(number, base, partition.ledger.incarnation)
        self[number] = partition

    def drop(self, number: int) -> None:
        """Drop the task of a partition: the partition left, or its state cannot be trusted."""
        partition = self.pop(number, None)
        if partition is not None:
            self._snapshots.drop(number)
            self._metrics.figures.drop(number)
            partition.task.close()

    def stop(self, number: int, error: Exception) -> None:
        """Stop processing a partition, live or not restorable; other partitions continue.

        Records that it processed before are still committed. `error` names topic, partition, offset and model
        key.
        """
        partition = self.get(number)
        if partition is not None:
            partition.stopped, partition.live = str(error), False
            self._snapshots.drop(number)
        self._health.partitions[number] = PartitionStatus(Stage.STOPPED, str(error))
        self._metrics.partitions_stopped.inc()
        logger.error(
            "partition %d is stopped, all others go on: %s", number, error, exc_info=error.__cause__ or error
        )

    def uncommitted(self, membership: Membership | None) -> dict[int, Partition]:
        """Return the partitions restored as `membership` that have uncommitted work.

        After a rebalance, partitions that are not restored yet hold what an earlier member processed: other
        workers may have continued from there.
        """
        return {number: self[number] for number in self._uncommitted(membership)}

    def first_uncommitted(self, membership: Membership | None) -> int | None:
        """Return the first of the partitions of `uncommitted`; None: there is none."""
        return next(self._uncommitted(membership), None)

    def _uncommitted(self, membership: Membership | None) -> Iterator[int]:
        for number, partition in self.items():
            if partition.membership == membership and not (
                partition.ledger.is_empty and self._snapshots.manifest(number) is None
            ):
                yield number
