"""Task manager: the processing loop of a worker, run after run, of any partition.

    driver ── delivery ──> process ──> pipeline: load, decode, task, encode ──> results ──> outputs
                              │
                              └─ every commit.interval.ms: a cut of all partitions (`committer.py`)

`assignments.py` decides which partitions are here, and restores their tasks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar

from faust.types import TP

from streamapp.worker.journal.entry import Step
from streamapp.worker.journal.skips import offsets_to_skip
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.processing.assignments import Assignments
from streamapp.worker.processing.committer import Committer
from streamapp.worker.processing.driver import Driver
from streamapp.worker.processing.partition import Partition, Partitions
from streamapp.worker.processing.pipeline import Pipeline, Results
from streamapp.worker.processing.read_progress import ReadProgress
from streamapp.worker.processing.transactions import Transactions
from streamapp.worker.restore.errors import SourceLogError
from streamapp.worker.restore.rebuild import Restored, RestoreRequest
from streamapp.worker.snapshots.final_snapshots import leave_snapshots
from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.runs import Run
from topics.columns.records import Instances
from topics.errors import AbortedError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class TaskManager:
    """Processes runs, one at a time, and owns the objects that this needs. Runs in the event loop."""

    def __init__(
        self,
        driver: Driver,
        pipeline: Pipeline,
        transactions: Transactions,
        restore: Callable[[RestoreRequest], Restored],
        snapshots: SnapshotWriter,
        metrics: Metrics,
        health: Health,
        *,
        topics: Mapping[SourceName, str],
        commit_interval: float,
        exactly_once: bool,
        commit_start: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`restore`, `commit_start`: as `Assignments` takes them; `topics`: of the sources, in causal order;
        `commit_interval`: seconds.
        """
        self.partitions = Partitions(snapshots, metrics, health)
        self.committer = Committer(
            driver,
            pipeline,
            transactions,
            self.partitions,
            snapshots,
            metrics,
            health,
            topics=topics,
            interval=commit_interval,
            exactly_once=exactly_once,
            clock=clock,
        )
        self.assignments = Assignments(
            driver,
            pipeline,
            restore,
            self.partitions,
            self.committer,
            snapshots,
            metrics,
            health,
            topics=topics,
            commit_start=commit_start,
            clock=clock,
        )
        self._sources = {topic: source for source, topic in topics.items()}
        self.progress = ReadProgress(self.partitions, self._sources, metrics, health)
        self._driver = driver
        self._pipeline = pipeline
        self._snapshots = snapshots
        self._metrics = metrics
        self._health = health
        health.broker_reachable = lambda: driver.broker_reachable
        self._clock = clock
        self._left = False  # whether the work before the end is done

    async def stopping(self, timeout_s: float) -> None:
        """Stop processing and write final snapshots, while the table and its producer still work."""
        if self._health.stopping and self.partitions and not self._left:  # Faust stops us twice
            self._left = True
            self._driver.abandon()
            epoch = self._driver.epoch
            await self.committer.commit("ending", timeout_s)
            if self._driver.broker_reachable:
                await leave_snapshots(
                    self._snapshots,
                    self.committer.commit_now,
                    lambda: not self.committer.failed and self._driver.epoch == epoch,
                )
        await self._snapshots.stop()

    async def between_runs(self, read: Callable[[list[Task]], T]) -> T:
        """Return the result of `read` on the tasks here, called while none of them is processing."""
        async with self.committer.lock:
            return read([state.task for state in self.partitions.values()])

    # -- runs -----------------------------------------------------------------------------------------------

    async def process(self, delivery: Delivery) -> None:
        """Process runs (or a tick), one after another, and start a commit when it is due."""
        left = deque(delivery.runs)
        try:
            async with self.committer.lock:
                if not left:
                    await self._process_if_ours(delivery, delivery.partition, None)
                numbers = [run.raw.partition for run in delivery.runs]
                here = {number: self.partitions[number] for number in numbers if number in self.partitions}
                read = dict(zip(numbers, self._pipeline.read_together(delivery.runs), strict=True))
                gathers = len(left) > 1 and self._pipeline.are_small(delivery.runs)
                with self._pipeline.sender.gathering() if gathers else nullcontext():
                    if gathers:
                        await self._process_together(delivery, left, read)
                    while left:
                        number = left[0].raw.partition
                        await self._process_if_ours(delivery, number, left[0], read[number])
                        left.popleft()
                if gathers:
                    await self._hand_over_gathered(here)
        except asyncio.CancelledError:  # the runs were handed out, and would count as processed
            for run in left:
                self.partitions.drop(run.raw.partition)
            raise
        finally:
            delivery.finish()

    async def _process_together(
        self, delivery: Delivery, left: deque[Run], read: Mapping[int, Instances | None]
    ) -> None:
        """Process the remaining runs that can be processed together, and remove them from `left`.

        No other coroutine runs before all of them are noted: a commit would find tasks ahead of their
        ledgers.
        """
        here: dict[int, Partition] = {}
        some = []
        for run in left:
            number = run.raw.partition
            partition = self.partitions.get(number)
            if partition is not None and self._is_plain(delivery, number, partition):
                here[number] = partition
                some.append((partition.task, run, read[number]))
        began = self._clock()
        try:
            found = self._pipeline.process_together(some)
            seconds = (self._clock() - began) / max(1, len(some))
            for (_, run, _), results in zip(some, found, strict=True):
                if results is not None:
                    self._settle(here[run.raw.partition], run.raw.partition, results, seconds)
                    left.remove(run)
        except AbortedError as error:
            await self.committer.abort_unless_dropped(here, error)
            return
        except Exception as error:  # noqa: BLE001 - the driver will call the runs processed
            await self.committer.end(error)
            return
        self.committer.commit_if_due()

    def _is_plain(self, delivery: Delivery, number: int, partition: Partition) -> bool:
        """Return whether a partition has no special state that needs its runs processed alone."""
        is_live = partition.live and partition.stopped is None and not partition.skips
        return is_live and self._is_ours(delivery, number, partition)

    def _settle(
        self, partition: Partition, number: int, results: Results | Exception, seconds: float
    ) -> None:
        """Send and note the result of a partition's run, or stop the partition; raise fatal errors."""
        if isinstance(results, SwapFileError):
            raise results
        if isinstance(results, Exception):
            self._stop(number, results)
            return
        self.committer.schedule.send(results)
        partition.ledger.note(results.step)
        self.committer.schedule.note()
        self._snapshots.note(number, seconds, results.input_bytes, self._clock())

    async def _hand_over_gathered(self, here: Mapping[int, Partition]) -> None:
        """Hand over the gathered outputs of runs of these partitions."""
        if self.committer.failed:
            return
        try:
            self._pipeline.sender.hand_over()
            await self.committer.room()
        except AbortedError as error:
            await self.committer.abort_unless_dropped(here, error)
        except Exception as error:  # noqa: BLE001 - outputs of what is called processed are lost
            await self.committer.end(error)

    async def _process_if_ours(
        self, delivery: Delivery, number: int, run: Run | None, instances: Instances | None = None
    ) -> None:
        """Process a run (or none) of a partition, unless the partition is not here any more."""
        partition = self.partitions.get(number)
        if partition is None or not self._is_ours(delivery, number, partition):
            return
        try:
            if run is not None and partition.stopped is None:
                await self._process(partition, delivery, run, instances)
            await self.committer.room()
        except AbortedError as error:
            await self.committer.abort_unless_dropped({number: partition}, error)
            return
        self.committer.commit_if_due()

    def _is_ours(self, delivery: Delivery, number: int, partition: Partition) -> bool:
        """Return whether a delivery may be processed: task here, no rebalance since, nothing failed."""
        return (
            delivery.epoch == self._driver.epoch
            and self.partitions.get(number) is partition
            and not self.committer.failed
        )

    async def _process(
        self, partition: Partition, delivery: Delivery, run: Run, instances: Instances | None
    ) -> None:
        number = run.raw.partition
        if not partition.live:  # else the driver would count the skipped run as processed
            error = RuntimeError(f"partition {number} is not live, and a run of it was handed out")
            await self.committer.end(error)
            return
        if partition.skips:
            source = self._sources[run.topic]
            run = replace(run, skipped=offsets_to_skip(partition.skips, source, run.raw.offsets))
        began = self._clock()
        try:
            is_ours = partial(self._is_ours, delivery, number, partition)
            results = await self._pipeline.process(
                partition.task, run, is_ours, instances, runs_of_step=len(delivery.runs)
            )
        except asyncio.CancelledError:  # it may be processed, but is never noted
            self.partitions.drop(number)
            raise
        except SwapFileError as error:  # neither a record nor the committed state is the cause
            await self.committer.end(error)
            return
        except Exception as error:  # noqa: BLE001 - a bug of ours: what it left of the state is not to be trusted
            self._stop(number, error)
            return
        if results is None or self.committer.failed:
            return
        if results.rest is not None:
            delivery.rest.append(results.rest)
        try:
            self._settle(partition, number, results, self._clock() - began)
        except AbortedError:
            raise
        except Exception as error:  # noqa: BLE001 - the driver has handed the run out: it will call it processed
            await self.committer.end(error)

    def _stop(self, number: int, error: Exception) -> None:
        """Process nothing more of one partition."""
        self._driver.drop(number)
        self.partitions.stop(number, error)

    # -- positions without records --------------------------------------------------------------------------

    def moved(self, partition: int, topic: str, position: int) -> None:
        """Note that no record before `position` is left."""
        state, source = self.partitions[partition], self._sources[topic]
        if state.ledger.positions[source] != position:
            self._advance(state, Step(source, position, count=0))

    def out_of_range(self, tp: TP, position: int, first: int, end: int) -> int | None:
        """Return where to continue in a log that does not have our position; None: the partition is stopped.

        Records that retention deleted are lost, counted and noted in the journal. A log that ends before our
        position is not the log that models have learned from, or has lost records that they learned: any
        position to continue from would be a guess.
        """
        state = self.partitions[tp.partition]
        if position >= first:
            if state.stopped is None:
                self._stop(tp.partition, SourceLogError(tp.topic, tp.partition, position, first, end))
            return None
        self._metrics.records_lost.labels(tp.topic).inc(first - position)
        logger.error(
            "topic %s partition %d: offsets %d to %d were deleted by retention before they were read",
            tp.topic,
            tp.partition,
            position,
            first - 1,
        )
        self._advance(state, Step(self._sources[tp.topic], first, skipped=((position, first),)))
        return first

    def _advance(self, state: Partition, step: Step) -> None:
        """Advance to a position without records before it."""
        state.ledger.note(step)
        state.task.advance(step.source, step.to)
        self.committer.schedule.note()
