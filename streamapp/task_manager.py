"""The tasks of this worker: which partitions are here, what of them is processed, and what is committed.

    driver ── delivery ──> process ──> Task ──> effects ──> outbox
                              │
                              └─ every commit.interval.ms: flush the outbox, then commit the offsets

At least once: offsets are committed only after every output of the records before them is acknowledged. If an
output cannot be delivered nothing is committed past it: the worker ends, and the records are processed again.

State lives in memory. A partition that leaves and comes back keeps its task if its committed offsets are the ones
the task stands at; else it starts with new models, which is said in the log and counted (`grove_state_lost_total`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from faust.types import TP

from streamapp.health import LIVE, Health
from streamapp.metrics import Metrics
from streamapp.runs import Run
from streamapp.transport.delivery import Delivery
from streamapp.transport.thread import CommitRefusedError, Membership

logger = logging.getLogger(__name__)


class Processor(Protocol):
    """What turns runs into outputs: a task with its codecs and the outbox."""

    def new_task(self, partition: int) -> Any: ...
    def process(self, task: Any, run: Run) -> None: ...
    def flush(self) -> None: ...


class Offsets(Protocol):
    """The driver's consumer, as far as it is needed here."""

    membership: Membership | None
    epoch: int

    async def commit_as(self, membership: Membership, offsets: Mapping[TP, int]) -> None: ...
    def abandon(self) -> None: ...
    def drop(self, partition: int) -> None: ...


@dataclass(slots=True)
class Partition:
    """A partition whose task lives here."""

    task: Any
    processed: dict[str, int]  # topic -> position behind the last processed record
    committed: dict[str, int]
    live: bool = False  # its records are being fetched
    stopped: str | None = None  # why its processing was stopped for good

    @property
    def dirty(self) -> bool:
        """Whether something is processed that is not committed."""
        return self.processed != self.committed


class TaskManager:
    """Owns the tasks and the commits. Everything runs in the event loop; `_lock` makes one total order of it."""

    consumer: Offsets

    def __init__(
        self,
        processor: Processor,
        metrics: Metrics,
        health: Health,
        *,
        commit_interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`commit_interval`: seconds."""
        self.processor = processor
        self.metrics = metrics
        self.health = health
        self.partitions: dict[int, Partition] = {}
        self.log_ends: dict[TP, int] = {}  # of the live partitions, when the broker last answered
        self.failed: BaseException | None = None  # outputs were lost: nothing may be committed any more
        self._interval = commit_interval
        self._clock = clock
        self._commit_due: float | None = None  # None: nothing is uncommitted
        self._commit_seconds = 0.0  # of the last commit
        self._lock = asyncio.Lock()
        self._executor = ThreadPoolExecutor(1, "outbox")

    def attach(self, consumer: Offsets) -> None:
        """Get to know the driver's consumer."""
        self.consumer = consumer

    # -- processing -----------------------------------------------------------------------------------------

    async def process(self, delivery: Delivery) -> None:
        """Process a run (or tick), and commit when it is time to."""
        try:
            async with self._lock:
                if delivery.epoch == self.consumer.epoch and self.failed is None:
                    await self._process(delivery)
        finally:
            delivery.finish()

    async def _process(self, delivery: Delivery) -> None:
        partition = self.partitions.get(delivery.partition)
        if partition is None or not partition.live:
            return
        if delivery.run is not None:
            self.processor.process(partition.task, delivery.run)
            self.moved(delivery.partition, delivery.run.topic, delivery.run.position)
            self.metrics.runs.inc()
        if self._commit_due is not None and self._clock() >= self._commit_due:
            await self._commit("interval")

    def moved(self, partition: int, topic: str, position: int) -> None:
        """Note that everything before `position` is processed (or was never a record)."""
        state = self.partitions[partition]
        if state.processed[topic] != position:
            state.processed[topic] = position
            if self._commit_due is None:
                self._commit_due = self._clock() + max(self._interval, 2 * self._commit_seconds)

    # -- commits --------------------------------------------------------------------------------------------

    def tick_due(self, now: float) -> int | None:
        """Return a partition whose work should be committed although nothing arrives for it."""
        if self._commit_due is None or now < self._commit_due:
            return None
        return next((number for number, state in self.partitions.items() if state.live and state.dirty), None)

    def seconds_to_tick(self, now: float) -> float:
        """Return how long a poll may wait."""
        return float("inf") if self._commit_due is None else max(0.0, self._commit_due - now)

    async def commit(self, why: str) -> None:
        """Commit what is processed, after the run at hand."""
        async with self._lock:
            if self.failed is None:
                await self._commit(why)

    async def _commit(self, why: str) -> None:
        dirty = {number: dict(state.processed) for number, state in self.partitions.items() if state.dirty}
        self._commit_due = None
        membership = self.consumer.membership
        if not dirty or membership is None:
            return
        started = self._clock()
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self.processor.flush)
            offsets = {
                TP(topic, number): position
                for number, processed in dirty.items()
                for topic, position in processed.items()
                if position != self.partitions[number].committed[topic]
            }
            await self.consumer.commit_as(membership, offsets)
        except CommitRefusedError as error:
            logger.warning("commit of %d partitions refused (%s): %s", len(dirty), why, error)
            self.metrics.commits_refused.inc()
            self.consumer.abandon()
            return
        except BaseException as error:
            self.failed = error
            raise
        for number, processed in dirty.items():
            self.partitions[number].committed = processed
        self._commit_seconds = self._clock() - started
        self.health.committed()
        self.metrics.commit_seconds.observe(self._commit_seconds)

    # -- assignments ----------------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[int]) -> None:
        """Forget the tasks of partitions that are not ours any more; the others are not live yet."""
        keep = set(partitions)
        for number in [number for number in self.partitions if number not in keep]:
            del self.partitions[number]
        for state in self.partitions.values():
            state.live = False
        self.health.partitions = dict.fromkeys(sorted(keep), "restoring")
        self.health.assigned = True
        logger.info("assigned partitions %s", sorted(keep))

    async def restore(self, partition: int, positions: Mapping[str, int], *, new: bool) -> None:
        """Make the task of a partition stand at `positions`; `new`: nothing was ever committed for it."""
        state = self.partitions.get(partition)
        if state is not None and state.processed == positions and state.stopped is None:
            logger.info(
                "partition %d keeps its task: it stands at the committed offsets %s", partition, positions
            )
            state.committed = dict(positions)
            return
        if not new:
            self.metrics.state_lost.inc()
            logger.warning(
                "partition %d starts with new models at %s: what was learned before is lost (state is in memory)",
                partition,
                dict(positions),
            )
        task = self.processor.new_task(partition)
        self.partitions[partition] = Partition(task, dict(positions), dict(positions))

    def revoked(self) -> None:
        """Note that the group takes the partitions away; what comes back will be assigned again."""
        self.health.assigned = False
        self.health.partitions = {}

    def live(self, partition: int) -> None:
        """Note that the records of a partition are being fetched."""
        self.partitions[partition].live = True
        self.health.partitions[partition] = LIVE
        logger.info("partition %d is live", partition)

    def lag(self, log_ends: Mapping[TP, int]) -> None:
        """Note where the logs of the live partitions end."""
        self.log_ends = dict(log_ends)
        self.health.lags(sum(self.lags().values()))

    def lags(self) -> dict[TP, int]:
        """Return how many offsets of each live partition are not committed."""
        return {
            tp: max(0, end - state.committed[tp.topic])
            for tp, end in self.log_ends.items()
            if (state := self.partitions.get(tp.partition)) is not None and state.stopped is None
        }

    # -- what the driver noticed ----------------------------------------------------------------------------

    def sought_back(self, partitions: Iterable[TP]) -> None:
        """Count partitions whose fetch position was not ours: nothing is lost, they are read again."""
        for tp in partitions:
            self.metrics.sought_back.inc()
            logger.warning("topic %s partition %d: fetch position was not ours, sought back", *tp)

    def records_lost(self, tp: TP, position: int, first: int, end: int) -> None:
        """Report that the log of a partition does not have our position."""
        if position < first:
            self.metrics.records_lost.labels(tp.topic).inc(first - position)
            logger.error(
                "topic %s partition %d: offsets %d to %d were deleted by retention before they were processed",
                tp.topic,
                tp.partition,
                position,
                first - 1,
            )
        else:
            logger.error(
                "topic %s partition %d: offset %d is behind the end %d of the log (truncated or created anew?); "
                "starting over at %d",
                tp.topic,
                tp.partition,
                position,
                end,
                first,
            )
