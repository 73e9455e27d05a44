"""Partitions: the tasks of this worker (Kafka Streams' `Tasks`), each with what is known of its partition."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from streamapp.worker.journal.entry import Skip
from streamapp.worker.journal.ledger import Ledger
from streamapp.worker.observability.health import Health, PartitionStatus, Stage
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.snapshots.writer import Base, SnapshotWriter
from streamapp.worker.task.sources import Positions
from streamapp.worker.task.task import Task
from streamapp.worker.transport.thread import Membership

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Partition:
    """A partition whose task lives here."""

    task: Task
    ledger: Ledger
    committed: Positions
    membership: Membership | None  # as whom it was restored: with no other may its offsets be committed
    topic_ids: Mapping[str, str]  # of the sources whose records it processes
    skips: tuple[Skip, ...] = ()  # records of it that are to become dead letters, passed ones too
    live: bool = False  # its records are being fetched
    stopped: str | None = None  # why its processing was stopped for good


class Partitions(dict[int, Partition]):
    """The partitions whose tasks live here, by number; other threads than the event loop's may read it.

    `add`, `drop` and `stop` are for who holds `SnapshotWriter.tasks_lock`, or has just computed a run.
    """

    def __init__(self, snapshots: SnapshotWriter, metrics: Metrics, health: Health) -> None:
        """Begin with none; `snapshots`: writes those of every partition that is here."""
        super().__init__()
        self._snapshots = snapshots
        self._metrics = metrics
        self._health = health

    def add(self, number: int, partition: Partition, base: Base) -> None:
        """Take in a partition that stands where its ledger begins; `base`: the snapshot that it is from."""
        self._snapshots.add(number, base, partition.ledger.incarnation)
        self[number] = partition

    def drop(self, number: int) -> None:
        """Give up the task of a partition: it left, or its state is not to be trusted."""
        partition = self.pop(number, None)
        if partition is not None:
            self._snapshots.drop(number)
            partition.task.close()

    def stop(self, number: int, error: Exception) -> None:
        """Process nothing more of a partition, whose task is here or could not be had; the others go on.

        What it did before is still committed. `error` names topic, partition, offset and model key.
        """
        partition = self.get(number)
        if partition is not None:
            partition.stopped, partition.live = str(error), False
            self._snapshots.drop(number)
        self._health.partitions[number] = PartitionStatus(Stage.STOPPED, str(error))
        self._metrics.partitions_stopped.inc()
        logger.error(
            "partition %d is stopped, the others go on: %s", number, error, exc_info=error.__cause__ or error
        )

    def uncommitted(self, membership: Membership | None) -> dict[int, Partition]:
        """Return the partitions restored as `membership` of which something is to be committed.

        After a rebalance those that are not restored yet hold what an earlier member processed: others may
        have gone on from there.
        """
        return {
            number: partition
            for number, partition in self.items()
            if partition.membership == membership
            and not (partition.ledger.is_empty and self._snapshots.manifest(number) is None)
        }
