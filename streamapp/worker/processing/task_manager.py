"""Task manager: the processing loop of a worker, group after group of runs, of any partitions.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from faust.types import TP

from streamapp.worker.journal.entry import Step
from streamapp.worker.journal.skips import offsets_to_skip
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.processing.assignments import Assignments
from streamapp.worker.processing.committer import Committer
from streamapp.worker.processing.driver import Driver
from streamapp.worker.processing.partition import Partition, Partitions
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.read_progress import ReadProgress
from streamapp.worker.processing.results import Results
from streamapp.worker.processing.run_groups import groups
from streamapp.worker.processing.transactions import Transactions
from streamapp.worker.restore.errors import SourceLogError
from streamapp.worker.restore.rebuild import Restored, RestoreRequest
from streamapp.worker.snapshots.final_snapshots import leave_snapshots
from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter
from streamapp.worker.task.instances.leading_records import STEP
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.runs import Run
from topics.errors import AbortedError

if TYPE_CHECKING:
    from streamapp.worker.telemetry.traces import Traces

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
        traces: Traces | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`restore`, `commit_start`: as `Assignments` takes them; `topics`: of the sources, in causal order.

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
            traces=traces,
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
        """Stop processing and write final snapshots, while Faust's table and its producer still work."""
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
        """Return the result of `read` on the tasks here, called while none of them is processing.

        A partition that was assigned again and is not live yet may hold the task of an earlier assignment,
        which other workers have continued since; `read` does not get it.
        """
        async with self.committer.lock:
            membership = self._driver.membership
            if membership is None:  # between two assignments; after an abort, tasks have none either
                return read([])
            states = [state for state in self.partitions.values() if state.membership == membership]
            return read([state.task for state in states if state.live or state.stopped is not None])

    # -- runs -----------------------------------------------------------------------------------------------

    async def process(self, delivery: Delivery) -> None:
        """Process runs, group after group, and start a commit when it is due; a tick has no runs."""
        left = deque(groups(delivery.runs) or [[]])  # a tick, which only advances time
        try:
            async with self.committer.lock:
                while left:
                    await self._process(delivery, left[0])
                    left.popleft()
        except asyncio.CancelledError:  # the runs were handed out, and would count as processed
            for run in chain.from_iterable(left):
                self.partitions.drop(run.raw.partition)
            raise
        finally:
            delivery.finish()

    async def _process(self, delivery: Delivery, group: Sequence[Run]) -> None:
        """Process the runs of a group whose partitions are still here."""
        numbers = [run.raw.partition for run in group] or [delivery.partition]
        here = {number: self.partitions[number] for number in numbers if number in self.partitions}
        if not here or delivery.epoch != self._driver.epoch or self.committer.failed:
            return
        dropped = self.committer.dropped
        try:
            await self._compute(delivery, [run for run in group if run.raw.partition in here], here)
            await self.committer.room()
        except AbortedError as error:
            await self.committer.abort_unless_dropped(here, error, dropped)
            return
        except Exception as error:  # noqa: BLE001 - the driver has handed out the runs: it will call them processed
            await self.committer.end(error)
            return
        self.committer.commit_if_due(is_followed=delivery.is_followed)

    async def _compute(self, delivery: Delivery, group: Sequence[Run], here: Mapping[int, Partition]) -> None:
        """Compute runs, send their results and note them in the ledgers; stop a partition whose run fails.

        Raise SwapFileError if models are lost: neither a record nor the committed state is the cause.
        """
        work = [
            (
                partition.task,
                run if partition.live and not partition.skips else self._with_skips(run, partition),
            )
            for run in group
            if (partition := here[run.raw.partition]).stopped is None
        ]
        if not work:
            return

        def is_ours(number: int) -> bool:
            """Return whether a run may be processed: task here, no rebalance since, nothing failed."""
            is_here = number in self.partitions and self.partitions[number] is here[number]
            return is_here and delivery.epoch == self._driver.epoch and not self.committer.failed

        self.committer.expect([run for _, run in work])
        began = self._clock()
        outcomes = await self._pipeline.process(work, is_ours, STEP // len(delivery.runs))
        seconds = (self._clock() - began) / len(work)
        computed = [outcome for outcome in outcomes if isinstance(outcome, Results)]
        if len(computed) < len(work):
            self._take_failures(work, outcomes)
        if self.committer.failed:
            return
        delivery.rest.extend([results.rest for results in computed if results.rest is not None])
        # No other coroutine runs until all results are noted: a commit would find tasks ahead of ledgers.
        self.committer.schedule.send(computed)
        for results in computed:
            results.note_in(here[results.run.raw.partition].ledger)
        sizes = [(results.run.raw.partition, results.input_bytes) for results in computed]
        self._snapshots.note(sizes, seconds, self._clock())
        if computed:
            self.committer.schedule.note()

    def _take_failures(
        self, work: Sequence[tuple[Task, Run]], outcomes: Sequence[Results | Exception | None]
    ) -> None:
        """Stop the partitions whose runs failed; raise SwapFileError if models are lost.

        Raise TypeError for an outcome of another kind: the run would count as processed, without an answer.
        """
        for (_, run), outcome in zip(work, outcomes, strict=True):
            if isinstance(outcome, SwapFileError):
                raise outcome
            if isinstance(outcome, Exception):
                self._stop(run.raw.partition, outcome)
            elif not isinstance(outcome, Results | None):
                message = f"the outcome of a run is {outcome!r}: neither results nor an error"
                raise TypeError(message)

    def _with_skips(self, run: Run, partition: Partition) -> Run:
        """Return a run with the offsets that an operator skipped; raise if its partition is not live."""
        if not partition.live:  # else the driver would count the skipped run as processed
            message = f"partition {run.raw.partition} is not live, and a run of it was handed out"
            raise RuntimeError(message)
        if not partition.skips:
            return run
        source = self._sources[run.topic]
        return replace(run, skipped=offsets_to_skip(partition.skips, source, run.raw.offsets))

    def _stop(self, number: int, error: Exception) -> None:
        """Stop a partition: its records are no longer fetched or processed."""
        self._driver.drop(number)
        self.partitions.stop(number, error)

    # -- positions without records --------------------------------------------------------------------------

    def moved(self, heads: Iterable[tuple[TP, int]]) -> None:
        """Note that logs have no further record to process before a position each."""
        for tp, position in heads:
            state, source = self.partitions[tp.partition], self._sources[tp.topic]
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
