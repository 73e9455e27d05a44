"""Assignments: which partitions this worker has, and how each gets its task.

    assigned ──> restoring ──> live ──> revoked, or assigned again
                    │  ^         │
                    v  │         v
                   waits      stopped

A partition that is revoked and assigned again keeps its task if the committed offsets are still the task's
positions.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from streamapp.errors import LocalCopyError, NotYetError
from streamapp.worker import faults
from streamapp.worker.blocking_calls import run_blocking
from streamapp.worker.journal.ledger import Ledger
from streamapp.worker.observability.health import Health, PartitionStatus, Stage
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.processing.committer import Committer
from streamapp.worker.processing.driver import Driver
from streamapp.worker.processing.partition import Partition, Partitions
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.restore.errors import AbandonedError
from streamapp.worker.restore.rebuild import Restored, RestoreRequest
from streamapp.worker.restore.restore_progress import RestoreProgress
from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter
from streamapp.worker.task.sources import SourceName, positions_of
from streamapp.worker.transport.membership import Membership
from topics.errors import HungError, TopicsError

logger = logging.getLogger(__name__)

WAIT_LOG_S: Final = 10.0  # between two lines about a partition that waits


class Assignments:
    """Restores the tasks of assigned partitions, and drops the tasks of revoked partitions.

    All methods run in the event loop; only `restore` itself runs in a thread.
    """

    def __init__(
        self,
        driver: Driver,
        pipeline: Pipeline,
        restore: Callable[[RestoreRequest], Restored],
        partitions: Partitions,
        committer: Committer,
        snapshots: SnapshotWriter,
        metrics: Metrics,
        health: Health,
        *,
        topics: Mapping[SourceName, str],
        commit_start: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`restore`: returns the task of a partition, called in a thread.

        `topics`: of the sources, in causal order; `commit_start`: commit the start of a partition without
        committed offsets, which is the end of its logs at that time.
        """
        self.restoring: dict[int, RestoreProgress] = {}
        self._driver = driver
        self._pipeline = pipeline
        self._restore = restore
        self._partitions = partitions
        self._committer = committer
        self._snapshots = snapshots
        self._metrics = metrics
        self._health = health
        self._topics = dict(topics)
        self._commit_start = commit_start
        self._clock = clock
        self._revoked_at: float | None = None
        self._wait_logged_at: dict[int, float] = {}  # when a partition's wait was last logged

    async def assigned(self, partitions: Iterable[int]) -> set[int]:
        """Forget the tasks of partitions that this worker has no longer; new partitions are not live yet.

        Return the partitions whose task is still here.
        """
        keep = set(partitions)
        async with self._snapshots.tasks_lock:
            for number in self._partitions.keys() - keep:
                self._partitions.drop(number)
        for state in self._partitions.values():
            state.live = False
        self._health.partitions = dict.fromkeys(sorted(keep), PartitionStatus(Stage.RESTORING))
        self._health.restores.clear()
        self._health.assigned = True
        self._health.reading = ""
        logger.info("assigned partitions %s", sorted(keep))
        return {number for number, state in self._partitions.items() if state.stopped is None}

    async def restore(self, partition: int, first: Mapping[str, int]) -> Mapping[str, int] | None:
        """Give a partition a task at its committed offsets; return these, by topic.

        `first`: the offsets at which a partition that was never processed begins. None: the partition cannot
        be restored and is stopped. Raises NotYetError while it has to wait for a transaction of another
        worker.
        """
        state, membership = self._partitions.get(partition), self._driver.membership
        keepable = state is not None and state.stopped is None and state.ledger.is_empty
        kept_positions = dict(state.ledger.positions) if state is not None and keepable else None
        abandoned, chunks = threading.Event(), self._snapshots.chunks(partition)
        request = RestoreRequest(
            partition,
            positions_of({source: first[topic] for source, topic in self._topics.items()}),
            kept_positions,
            chunks,
            abandoned.is_set,
            RestoreProgress(partition, self._health.new_restore(partition).note),
            membership,
        )
        self.restoring[partition] = request.progress
        try:
            if kept_positions is None:
                chunks.check()  # before requests to a broker; a task that is kept needs no chunks
            await self._committer.open()
            restored = await run_blocking(lambda: self._restore(request))
        except (NotYetError, AbandonedError, TopicsError, LocalCopyError) as error:
            if isinstance(error, HungError):
                await self._committer.end(error)
            raise
        except Exception as error:  # noqa: BLE001 - as while processing: of any kind, it belongs to this partition
            async with self._snapshots.tasks_lock:
                self._partitions.drop(partition)
                self._partitions.stop(partition, error)
            return None
        finally:
            abandoned.set()
            self.restoring.pop(partition, None)
            chunks.close()
        if restored.task is None and state is not None and restored.positions == kept_positions:
            logger.info("partition %d keeps its task: it is at the committed offsets", partition)
            state.committed = restored.positions
            state.membership = membership
            state.topic_ids = restored.topic_ids
            state.skips = restored.skips or state.skips  # none: the journal was not read
        else:
            async with self._snapshots.tasks_lock:
                self._place(partition, restored, membership)
            if restored.task is not None:
                self._metrics.restored(request.progress.beginning, restored.records, restored.seconds)
            elif self._commit_start and not await self._commit_start_of(partition):
                return None  # aborted: the partition is assigned again
        return {topic: restored.positions[source] for source, topic in self._topics.items()}

    async def _commit_start_of(self, partition: int) -> bool:
        """Commit where a new partition begins, before it goes live; return whether that succeeded.

        Without this commit, if this worker crashes, the next one would begin at the ends that the logs have
        then, and would skip the records in between.
        """
        self._partitions[partition].ledger.starts = True
        return await self._committer.commit_now()

    def _place(self, partition: int, restored: Restored, membership: Membership | None) -> None:
        """Replace the task of a partition by its restored task, or by a new one."""
        self._partitions.drop(partition)
        if restored.task is None:
            task = self._pipeline.new_task(partition)
        else:
            task = restored.task
            self._pipeline.adopt_task(task)
            logger.info(
                "partition %d is restored: %d records replayed in %.1f s",
                partition,
                restored.records,
                restored.seconds,
            )
        incarnation = restored.incarnation + 1
        ledger = Ledger(restored.positions, incarnation, self._pipeline.config, self._pipeline.journal_bytes)
        state = Partition(task, ledger, restored.positions, membership, restored.topic_ids, restored.skips)
        self._partitions.add(partition, state, restored.base)
        if restored.records:  # a replay was needed: a snapshot now makes the next restore shorter
            self._snapshots.note([(partition, 0)], restored.seconds, self._clock())

    def live(self, partition: int) -> None:
        """Note that the records of a partition are being fetched."""
        faults.point("live-before")
        self._partitions[partition].live = True
        self._snapshots.live(partition)
        self._health.partitions[partition] = PartitionStatus(Stage.LIVE)
        self._wait_logged_at.pop(partition, None)
        if self._revoked_at is not None and not any(
            status.is_coming for status in self._health.partitions.values()
        ):
            self._metrics.rebalance_seconds.observe(self._clock() - self._revoked_at)
            self._revoked_at = None
        logger.info("partition %d is live", partition)

    def waits(self, partition: int, reason: str) -> None:
        """Note why a partition cannot be restored yet; logged at once, then every WAIT_LOG_S."""
        self._health.coming(partition, PartitionStatus(Stage.WAITS, reason))
        now = self._clock()
        if now - self._wait_logged_at.get(partition, -math.inf) >= WAIT_LOG_S:
            self._wait_logged_at[partition] = now
            logger.info("Partition %d waits: %s", partition, reason)

    def revoked(self) -> None:
        """Note that the group takes the partitions away; those that remain are assigned again."""
        self._snapshots.pause()
        self._health.assigned = False
        self._health.reading = ""
        self._health.partitions = {}
        self._health.lags(0)  # a rebalance may take longer than a worker may go without progress
        self._revoked_at = self._clock()
