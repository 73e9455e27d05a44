"""The tasks of this worker: which partitions are here, what of them is processed, and what is committed.

    driver ── delivery ──> process ──> task ──> effects ──> outputs
                              │
                              └─ every commit.interval.ms: flush the outputs, then commit the offsets

At least once: offsets are committed only after every output of the records before them is acknowledged. If an
output cannot be delivered nothing is committed past it: the worker ends, and the records are processed again.

State lives in memory. A partition that leaves and comes back keeps its task if its committed offsets are the
ones the task stands at; else it starts with new models, which is said in the log and counted
(`grove_state_lost_total`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from faust.types import TP

from streamapp.commits import Commits, Outputs
from streamapp.health import LIVE, Health
from streamapp.metrics import Metrics
from streamapp.runs import Run
from streamapp.transport.delivery import Delivery
from streamapp.transport.thread import CommitRefusedError, Membership

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Processor(Outputs, Protocol):
    """What turns runs into outputs: tasks, codecs, outbox."""

    def new_task(self, partition: int) -> Any:
        """Return a task with new models."""

    def drop_task(self, task: Any) -> None:
        """Give up a task."""

    def compute(self, task: Any, run: Run) -> Any:
        """Return the effects of a run; raise what our own code does wrong."""


class Source(Protocol):
    """The driver's consumer, as far as it is needed here."""

    membership: Membership | None
    epoch: int

    @property
    def broker_reachable(self) -> bool:
        """Whether the broker answers, as far as is known."""

    async def commit_as(self, membership: Membership, offsets: Mapping[TP, int]) -> None:
        """Commit offsets of records that were processed as `membership`."""

    def abandon(self) -> None:
        """Forget what was fetched."""

    def drop(self, partition: int) -> None:
        """Stop fetching one partition."""

    async def crash(self, reason: BaseException) -> None:
        """End the worker."""


@dataclass(slots=True)
class Partition:
    """A partition whose task lives here."""

    task: Any
    processed: dict[str, int]  # topic -> position behind the last processed record
    committed: dict[str, int]
    membership: Membership | None  # as whom it was restored: with no other may its offsets be committed
    live: bool = False  # its records are being fetched
    stopped: str | None = None  # why its processing was stopped for good

    @property
    def dirty(self) -> dict[str, int]:
        """What is processed but not committed: topic -> position."""
        return {topic: at for topic, at in self.processed.items() if at != self.committed[topic]}


class TaskManager:
    """Owns the tasks. Everything runs in the event loop; `_lock` puts runs and final commits in one order."""

    source: Source

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
        self.partitions: dict[int, Partition] = {}
        self._processor = processor
        self._metrics = metrics
        self._health = health
        self._clock = clock
        self._commits = Commits(processor, interval=commit_interval, clock=clock)
        self._committing: asyncio.Task[None] | None = None
        self._failed = False  # outputs were lost: nothing may be committed any more
        self._log_ends: dict[TP, int] = {}  # of live and stopped partitions, when the broker last answered
        self._revoked_at: float | None = None
        self._lock = asyncio.Lock()

    def attach(self, consumer: Source) -> None:
        """Get to know the driver's consumer."""
        self.source = consumer
        self._health.broker_reachable = lambda: consumer.broker_reachable

    # -- processing -----------------------------------------------------------------------------------------

    async def process(self, delivery: Delivery) -> None:
        """Process a run (or tick), and start a commit when it is time to."""
        try:
            async with self._lock:
                partition = self.partitions.get(delivery.partition)
                current = delivery.epoch == self.source.epoch and not self._failed
                if current and partition is not None:
                    if delivery.run is not None and partition.stopped is None:
                        await self._process(delivery.partition, partition, delivery.run)
                    await self._room()
                    self._commit_if_due()
        finally:
            delivery.finish()

    async def _process(self, number: int, partition: Partition, run: Run) -> None:
        if not partition.live:  # skipped, it would be called processed all the same
            await self._end(RuntimeError(f"partition {number} is not live, and a run of it was handed out"))
            return
        try:
            effects = self._processor.compute(partition.task, run)
        except Exception as error:  # a bug of ours: what it left of the state is not to be trusted
            self._stop(number, partition, run, error)
            return
        try:
            self._commits.send(run, effects)
        except Exception as error:  # the driver has handed the run out: it will call it processed
            await self._end(error)
            return
        self.moved(number, run.topic, run.position)

    async def _room(self) -> None:
        """Return when another run may be processed."""
        try:
            await self._commits.room()
        except Exception as error:
            await self._end(error)

    async def _end(self, error: Exception) -> None:
        self._failed = True
        logger.error("nothing can be committed any more, ending: %s", error, exc_info=error)
        await self.source.crash(error)

    def _stop(self, number: int, partition: Partition, run: Run, error: Exception) -> None:
        partition.stopped = str(error)  # names topic, partition, offset and model key
        partition.live = False
        self.source.drop(number)
        self._health.partitions[number] = f"stopped: {partition.stopped}"
        self._metrics.partitions_stopped.inc()
        logger.error(
            "partition %d is stopped, the others go on: %s", number, error, exc_info=error.__cause__ or error
        )

    def moved(self, partition: int, topic: str, position: int) -> None:
        """Note that everything before `position` is processed (or was never a record)."""
        processed = self.partitions[partition].processed
        if processed[topic] != position:
            processed[topic] = position
            self._commits.note()

    async def between_runs(self, read: Callable[[list[Any]], T]) -> T:
        """Return what `read` makes of the tasks here while none of them is processing."""
        async with self._lock:
            return read([state.task for state in self.partitions.values()])

    # -- commits --------------------------------------------------------------------------------------------

    def tick_due(self, now: float) -> int | None:
        """Return a partition whose work should be committed although nothing arrives for it."""
        if not self._commits.is_due(now) or self._is_committing:
            return None
        return next(iter(self._uncommitted(self.source.membership)), None)

    def seconds_to_tick(self, now: float) -> float:
        """Return how long a poll may wait."""
        due = self._commits.due
        return float("inf") if due is None or self._is_committing else max(0.0, due - now)

    async def commit(self, why: str, patience: float | None = None) -> None:
        """Commit all that is processed, after the run and the commit at hand; give up after `patience` s."""
        try:
            async with asyncio.timeout(patience), self._lock:
                if self._committing is not None:
                    await asyncio.wait([self._committing])
                if not self._failed:
                    await self._commit()
                    logger.info("committed: %s", why)
        except TimeoutError:
            self._failed = True
            logger.error(  # noqa: TRY400 - where we waited says nothing
                "%s: not everything could be committed within %.0f s, does the broker answer? What is "
                "uncommitted will be processed again",
                why,
                patience,
            )

    @property
    def _is_committing(self) -> bool:
        return self._committing is not None and not self._committing.done()

    def _commit_if_due(self) -> None:
        if self._commits.is_due(self._clock()) and not (self._is_committing or self._failed):
            self._committing = asyncio.get_running_loop().create_task(self._commit())

    async def _commit(self) -> None:
        membership = self.source.membership
        work = self._uncommitted(membership)
        if membership is None or not work:
            return
        offsets = {
            TP(topic, number): at for number, (_, dirty) in work.items() for topic, at in dirty.items()
        }
        try:
            await self._commits.commit(lambda: self.source.commit_as(membership, offsets))
        except CommitRefusedError as error:
            logger.warning("commit of %d partitions refused, they will be read again: %s", len(work), error)
            self._metrics.commits_refused.inc()
            self.source.abandon()
        except Exception as error:
            await self._end(error)
        else:
            for number, (state, dirty) in work.items():
                # Restored meanwhile, it stands where the group's offsets were then.
                if self.partitions.get(number) is state and state.membership == membership:
                    state.committed |= dirty
            self._health.committed()
            self._metrics.commit_seconds.observe(self._commits.seconds)

    def _uncommitted(self, membership: Membership | None) -> dict[int, tuple[Partition, dict[str, int]]]:
        """Return the partitions restored as `membership` with what is to be committed of them.

        After a rebalance those that are not restored yet hold what an earlier member processed: others may
        have gone on from there.
        """
        return {
            number: (state, dirty)
            for number, state in self.partitions.items()
            if state.membership == membership and (dirty := state.dirty)
        }

    # -- assignments ----------------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[int]) -> None:
        """Forget the tasks of partitions that are not ours any more; the others are not live yet."""
        keep = set(partitions)
        for number in self.partitions.keys() - keep:
            self._processor.drop_task(self.partitions.pop(number).task)
        for state in self.partitions.values():
            state.live = False
        self._health.partitions = dict.fromkeys(sorted(keep), "restoring")
        self._health.assigned = True
        logger.info("assigned partitions %s", sorted(keep))

    async def restore(self, partition: int, positions: Mapping[str, int], *, new: bool) -> None:
        """Make the task of a partition stand at `positions`; `new`: nothing was ever committed for it."""
        state = self.partitions.get(partition)
        if state is not None and state.processed == positions and state.stopped is None:
            logger.info("partition %d keeps its task: it stands at the committed offsets", partition)
            state.committed = dict(positions)
            state.membership = self.source.membership
            return
        if not new:
            self._metrics.state_lost.inc()
            logger.warning(
                "partition %d starts with new models at %s: what was learned is lost (it was in memory)",
                partition,
                dict(positions),
            )
        if state is not None:
            self._processor.drop_task(state.task)
        task = self._processor.new_task(partition)
        self.partitions[partition] = Partition(task, dict(positions), dict(positions), self.source.membership)

    def live(self, partition: int) -> None:
        """Note that the records of a partition are being fetched."""
        self.partitions[partition].live = True
        self._health.partitions[partition] = LIVE
        if self._revoked_at is not None and all(state.live for state in self.partitions.values()):
            self._metrics.rebalance_seconds.observe(self._clock() - self._revoked_at)
            self._revoked_at = None
        logger.info("partition %d is live", partition)

    def revoked(self) -> None:
        """Note that the group takes the partitions away; what comes back will be assigned again."""
        self._health.assigned = False
        self._health.partitions = {}
        self._health.lags(0)  # the group may take longer than a worker may stand still
        self._revoked_at = self._clock()

    # -- what the driver noticed ----------------------------------------------------------------------------

    def lag(self, log_ends: Mapping[TP, int], unserved: Mapping[TP, str]) -> None:
        """Note where the logs of the live partitions end (of a stopped one it is known as of then), and which
        topic partitions the broker does not serve, and why."""
        stopped = {tp: end for tp, end in self._log_ends.items() if self._is_stopped(tp.partition)}
        self._log_ends = stopped | dict(log_ends)
        # A restart would stop a partition again, and bring no leader back: what lags there does not make the
        # worker dead.
        waiting = {tp.partition for tp in unserved}
        self._note_unserved({f"{tp.topic}-{tp.partition}": why for tp, why in sorted(unserved.items())})
        self._health.lags(
            sum(
                lag
                for tp, lag in self.lags().items()
                if tp.partition not in waiting and not self._is_stopped(tp.partition)
            )
        )

    def _note_unserved(self, unserved: Mapping[str, str]) -> None:
        before, self._health.unserved = self._health.unserved, unserved
        if unserved and not before:
            logger.warning("%s: their records wait, the others go on", self._health.not_served())
        elif before and not unserved:
            logger.info("the broker serves all partitions again")

    def lags(self) -> dict[TP, int]:
        """Return how many offsets of each partition, live or stopped, are not committed."""
        return {
            tp: max(0, end - state.committed[tp.topic])
            for tp, end in self._log_ends.items()
            if (state := self.partitions.get(tp.partition)) is not None
        }

    def _is_stopped(self, partition: int) -> bool:
        state = self.partitions.get(partition)
        return state is not None and state.stopped is not None

    def sought_back(self, partitions: Iterable[TP]) -> None:
        """Count partitions whose fetch position was not ours: nothing is lost, they are read again."""
        for tp in partitions:
            self._metrics.sought_back.inc()
            logger.warning("topic %s partition %d: fetch position was not ours, sought back", *tp)

    def records_lost(self, tp: TP, position: int, first: int, end: int) -> None:
        """Report that the log of a partition does not have our position."""
        topic, partition = tp
        if position < first:
            self._metrics.records_lost.labels(topic).inc(first - position)
            logger.error(
                "topic %s partition %d: offsets %d to %d were deleted by retention before they were read",
                topic,
                partition,
                position,
                first - 1,
            )
        else:
            logger.error(
                "topic %s partition %d: offset %d is behind the end %d of the log (was it truncated or made "
                "anew?); starting over at %d",
                topic,
                partition,
                position,
                end,
                first,
            )
