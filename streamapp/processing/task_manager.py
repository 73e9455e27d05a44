"""Task manager: which partitions are here, what of them is processed, and what is committed.

    driver ── delivery ──> process ──> task ──> effects ──> outputs
                              │
                              └─ every commit.interval.ms: a *cut* (outputs, journal, offsets)

A cut is a point between two runs. What is committed there is all that happened before it, in every partition
of this worker. If a transaction is aborted, the tasks are ahead of what is committed: all are dropped, the
worker joins the group again, and each partition is restored like any that arrives (`streamapp/restore`).

A partition that is revoked and assigned again keeps its task if the committed offsets are still the task's
positions.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from faust.types import TP

from streamapp import faults
from streamapp.blocking_calls import run_blocking, run_watched
from streamapp.errors import NotYetError
from streamapp.journal.entry import Entry, Manifest, Record, Step
from streamapp.journal.ledger import Ledger
from streamapp.journal.skips import offsets_to_skip, outstanding
from streamapp.observability.health import Health, PartitionStatus, Stage
from streamapp.observability.metrics import Metrics
from streamapp.processing.commit_schedule import Commits
from streamapp.processing.interfaces import Processor, Restorer, Source, Transactions
from streamapp.processing.lag import Lag
from streamapp.processing.partition import Partition
from streamapp.processing.transactions import Transaction
from streamapp.restore.errors import AbandonedError, SourceLogError
from streamapp.restore.progress import RestoreProgress
from streamapp.restore.rebuild import Restored, RestoreRequest
from streamapp.snapshots.leaving import leave_snapshots
from streamapp.snapshots.writer import SnapshotWriter, TaskCut
from streamapp.task.models.swap_file import SwapFileError
from streamapp.task.sources import Positions, SourceName
from streamapp.transport.delivery import Delivery
from streamapp.transport.runs import Run
from streamapp.transport.thread import Membership
from topics.errors import AbortedError, HungError, TopicsError

logger = logging.getLogger(__name__)

WAIT_SAID_S: Final = 10.0  # between two lines about a partition that waits
MAX_ABORTS: Final = 5  # in a row: then it is no accident, a record that its topic does not take for example

T = TypeVar("T")


class TaskManager:
    """Owns the tasks. Everything runs in the event loop; `_lock` puts runs and final commits in one order."""

    source: Source

    def __init__(
        self,
        processor: Processor,
        transactions: Transactions,
        restorer: Restorer,
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
        """`topics`: of the sources, in causal order; `commit_interval`: seconds; `commit_start`: a partition
        of which nothing was ever committed begins at the end of its logs, wherever that is by then."""
        self.partitions: dict[int, Partition] = {}
        self.restoring: dict[int, RestoreProgress] = {}
        self._processor = processor
        self._transactions = transactions
        self._restorer = restorer
        self._snapshots = snapshots
        self._topics = dict(topics)
        self._sources = {topic: source for source, topic in topics.items()}
        self._commit_start = commit_start
        self._metrics = metrics
        self._health = health
        self._clock = clock
        self._in_client = partial(run_watched, call=lambda: self._transactions.call)
        self._commits = Commits(processor, interval=commit_interval, exactly_once=exactly_once, clock=clock)
        self._committing: asyncio.Task[bool] | None = None
        self._failed = False  # outputs were lost, or a stop gave up: nothing may be committed any more
        self._left = False  # what had to be done before the end is done
        self._aborts = 0  # since the last commit that succeeded
        self._lag = Lag(self.partitions, self._sources, health)
        self._revoked_at: float | None = None
        self._waits_said: dict[int, float] = {}  # when it was last said of a partition
        self._lock = asyncio.Lock()

    def attach(self, consumer: Source) -> None:
        """Get to know the driver's consumer."""
        self.source = consumer
        self._health.broker_reachable = lambda: consumer.broker_reachable

    def attach_table(self, table: Any) -> None:
        """Get to know the table that snapshots lie in."""
        self._snapshots.attach(table)

    async def stopping(self, timeout_s: float) -> None:
        """Process no more and leave snapshots behind, while the table and its producer still work."""
        if self._health.stopping and self.partitions and not self._left:  # Faust stops us twice
            self._left = True
            self.source.abandon()
            epoch = self.source.epoch
            await self.commit("ending", timeout_s)
            if self.source.broker_reachable:
                await leave_snapshots(
                    self._snapshots,
                    self._commit_now,
                    lambda: not self._failed and self.source.epoch == epoch,
                )
        await self._snapshots.stop()

    # -- processing -----------------------------------------------------------------------------------------

    async def process(self, delivery: Delivery) -> None:
        """Process a run (or tick), and start a commit when it is time to."""
        try:
            async with self._lock:
                partition = self.partitions.get(delivery.partition)
                current = delivery.epoch == self.source.epoch and not self._failed
                if current and partition is not None:
                    try:
                        if delivery.run is not None and partition.stopped is None:
                            await self._process(partition, delivery, delivery.run)
                        await self._room()
                    except AbortedError as error:
                        await self._abort_unless_dropped(delivery.partition, partition, error)
                        return
                    self._commit_if_due()
        finally:
            delivery.finish()

    async def _process(self, partition: Partition, delivery: Delivery, run: Run) -> None:
        number = delivery.partition
        if not partition.live:  # skipped, it would be called processed all the same
            await self._end(RuntimeError(f"partition {number} is not live, and a run of it was handed out"))
            return
        if partition.skips:
            source = self._sources[run.topic]
            run = replace(run, skipped=offsets_to_skip(partition.skips, source, run.raw.offsets))
        began = self._clock()
        if not await self._ready(partition, delivery, run):
            return
        try:
            effects = self._processor.compute(partition.task, run)
        except SwapFileError as error:  # no fault of a record, nor of the state that is committed
            await self._end(error)
            return
        except Exception as error:  # noqa: BLE001 - a bug of ours: what it left of the state is not to be trusted
            self._stop(number, partition, error)
            return
        step = self._processor.step(run, effects)
        try:
            self._commits.send(run, effects)
            partition.ledger.note(step)
        except AbortedError:
            raise
        except Exception as error:  # noqa: BLE001 - the driver has handed the run out: it will call it processed
            await self._end(error)
            return
        self._commits.note()
        now = self._clock()
        self._snapshots.note(number, now - began, sum(map(len, filter(None, run.raw.values))), now)

    async def _ready(self, partition: Partition, delivery: Delivery, run: Run) -> bool:
        """Have what a run needs in memory; whether it may still be processed then."""
        failed: Exception | None = None
        try:
            await self._processor.ready(partition.task, run)
        except Exception as error:  # noqa: BLE001 - looked at below: of a task that was dropped it means nothing
            failed = error
        here = self.partitions.get(delivery.partition) is partition
        if self._failed or not here or delivery.epoch != self.source.epoch:
            return False  # dropped, or forgotten by the driver, while it was waited for
        if failed is not None:
            await self._end(failed)
        return failed is None

    async def _room(self) -> None:
        """Return when another run may be processed."""
        try:
            await self._commits.room()
        except AbortedError:
            raise
        except Exception as error:  # noqa: BLE001 - it ends the worker
            await self._end(error)

    async def _end(self, error: Exception) -> None:
        if self._failed:  # ending already: whatever else fails on the way is no other reason
            logger.warning("nothing was committed: %s", error)
            return
        if self._health.stopping and isinstance(error, TopicsError):  # of the broker
            self._give_up(f"stopping: {error}")
            return
        self._failed = True
        logger.error("nothing can be committed any more, ending: %s", error, exc_info=error)
        await self.source.crash(error)

    def _give_up(self, why: str) -> None:
        """Commit nothing any more: a stop does not wait for the broker any longer."""
        self._failed = True
        logger.error("%s; what is uncommitted will be processed again", why)

    def _stop(self, number: int, partition: Partition, error: Exception) -> None:
        partition.stopped = str(error)  # names topic, partition, offset and model key
        partition.live = False
        self.source.drop(number)
        self._snapshots.drop(number)
        self._note_stop(number, error)

    def _note_stop(self, number: int, error: Exception) -> None:
        self._health.partitions[number] = PartitionStatus(Stage.STOPPED, str(error))
        self._metrics.partitions_stopped.inc()
        logger.error(
            "partition %d is stopped, the others go on: %s", number, error, exc_info=error.__cause__ or error
        )

    def moved(self, partition: int, topic: str, position: int) -> None:
        """Note that there is no record left before `position`."""
        state, source = self.partitions[partition], self._sources[topic]
        if state.ledger.positions[source] != position:
            self._advance(state, topic, Step(source, position, count=0))

    def _advance(self, state: Partition, topic: str, step: Step) -> None:
        """Go to a position without records before it."""
        state.ledger.note(step)
        self._processor.advance(state.task, topic, step.to)
        self._commits.note()

    async def between_runs(self, read: Callable[[list[Any]], T]) -> T:
        """Return what `read` makes of the tasks here while none of them is processing."""
        async with self._lock:
            return read([state.task for state in self.partitions.values()])

    # -- commits --------------------------------------------------------------------------------------------

    def tick_due(self, now: float) -> int | None:
        """Return a partition whose work should be committed although nothing arrives for it."""
        if self._is_committing:
            return None
        if self._commits.is_due(now):
            return next(iter(self._uncommitted(self.source.membership)), None)
        return next(iter(self._snapshots.ready() or self._snapshots.due(now)), None)

    def seconds_to_tick(self, now: float) -> float:
        """Return how long a poll may wait."""
        due = self._commits.due
        if due is None or self._is_committing or not self._uncommitted(self.source.membership):
            return float("inf")  # no tick would come of it
        return max(0.0, due - now)

    async def commit(self, why: str, timeout_s: float | None = None) -> None:
        """Commit all that is processed, after the run and the commit at hand; give up after `timeout_s`."""
        if self._failed:
            return
        try:
            async with asyncio.timeout(timeout_s):
                if await self._commit_now():
                    logger.info("committed: %s", why)
        except TimeoutError:
            self._give_up(f"{why}: not everything could be committed within {timeout_s:.0f} s")

    async def _commit_now(self) -> bool:
        """Commit after the run and the commit at hand; tell whether nothing is left of what was processed."""
        async with self._lock:
            if self._committing is not None:
                await asyncio.wait([self._committing])
            if self._failed:
                return False
            self._committing = asyncio.get_running_loop().create_task(self._commit())
            return await asyncio.shield(self._committing)  # half of a commit must not be left to a thread

    @property
    def _is_committing(self) -> bool:
        return self._committing is not None and not self._committing.done()

    def _commit_if_due(self) -> None:
        now = self._clock()
        if self._is_committing or self._failed:
            return
        if self._commits.is_due(now) or self._snapshots.ready() or self._snapshots.due(now):
            self._committing = asyncio.get_running_loop().create_task(self._commit())

    async def _commit(self) -> bool:
        try:
            return await self._commit_all()
        except Exception as error:  # noqa: BLE001 - whatever it is of: its part of the journal would be a hole
            await self._end(error)
            return False

    async def _commit_all(self) -> bool:
        """Commit what is uncommitted; tell whether nothing of it is left."""
        membership = self.source.membership
        if membership is None:
            return False
        dirty = self._uncommitted(membership)
        transaction, kept = self._close(membership, dirty), self._cut_tasks(membership)
        if transaction.records and not await self._transact(transaction):
            return False
        for number, records in transaction.records.items():
            # Restored meanwhile, it stands where the group's offsets were then.
            if self.partitions.get(number) is dirty[number] and dirty[number].membership == membership:
                self._note_committed(number, records)
        for number, (state, task_cut, positions) in kept.items():
            if self.partitions.get(number) is state:
                self._snapshots.begin(number, task_cut, positions, self._processor.config)
            else:
                task_cut.abandon()
        return True

    def _close(self, membership: Membership, dirty: Mapping[int, Partition]) -> Transaction:
        """Close what was processed up to now."""
        records: dict[int, list[Record]] = {}
        offsets: dict[TP, int] = {}
        for number, state in dirty.items():
            records[number] = []
            if (manifest := self._snapshots.manifest(number)) is not None:
                # The journal is trimmed, and read, up to a snapshot: what lies ahead is said behind it anew.
                ahead = outstanding(state.skips, state.ledger.positions)
                records[number] += [manifest, *ahead]
            if not state.ledger.is_empty:
                entries = state.ledger.cut()
                records[number] += entries
                # At first all of them: a source without an offset has lost it later.
                begins = entries[0].config is not None
                before, after = entries[0].before, entries[-1].after
                moved = [source for source in self._topics if begins or after[source] != before[source]]
                offsets |= {TP(self._topics[source], number): after[source] for source in moved}
            else:  # without any offsets the coordinator would not be asked whether this is still ours
                source, topic = next(iter(self._topics.items()))
                offsets[TP(topic, number)] = state.committed[source]
        ids = {tp: topic_id for tp in offsets if (topic_id := dirty[tp.partition].topic_ids.get(tp.topic))}
        return Transaction(records, offsets, membership, ids)

    def _cut_tasks(self, membership: Membership) -> dict[int, tuple[Partition, TaskCut, Positions]]:
        """Cut the tasks whose snapshots are due, at the very point at which the transaction is cut."""
        kept: dict[int, tuple[Partition, TaskCut, Positions]] = {}
        for number in self._snapshots.due(self._clock()):
            state = self.partitions[number]
            if state.membership == membership and state.stopped is None:
                self._snapshots.cut(number)
                task_cut = self._processor.cut_task(state.task)
                kept[number] = state, task_cut, dict(state.ledger.positions)
        return kept

    async def _transact(self, transaction: Transaction) -> bool:
        """Commit a transaction; tell whether it is committed. If it is not, no task of before is left."""
        try:
            await self._commits.commit(
                partial(self._in_client, partial(self._transactions.commit, transaction))
            )
        except AbortedError as error:
            await self._abort(error)
            return False
        self._aborts = 0
        self._health.committed()
        self._metrics.commit_seconds.observe(self._commits.seconds)
        return True

    def _note_committed(self, number: int, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, Entry):
                self.partitions[number].committed = record.after
                self._snapshots.moved(number)
            elif isinstance(record, Manifest):
                self._snapshots.committed(number, record, self._clock())

    def _uncommitted(self, membership: Membership | None) -> dict[int, Partition]:
        """Return the partitions restored as `membership` of which something is to be committed.

        After a rebalance those that are not restored yet hold what an earlier member processed: others may
        have gone on from there.
        """
        return {
            number: state
            for number, state in self.partitions.items()
            if state.membership == membership
            and not (state.ledger.is_empty and self._snapshots.manifest(number) is None)
        }

    async def _abort_unless_dropped(self, number: int, partition: Partition, reason: AbortedError) -> None:
        """Abort what a run has found impossible to commit, unless the commit at hand does, or has done so.

        The client takes one step at a time, and what two find is one transaction. No commit can begin
        meanwhile: the run has the lock.
        """
        if self._committing is not None:
            await asyncio.wait([self._committing])
        if self.partitions.get(number) is partition and not self._failed:
            await self._abort(reason)

    async def _abort(self, reason: AbortedError) -> None:
        """Go back to what is committed: drop the tasks, which are ahead of it, and join the group again."""
        logger.warning("a transaction is aborted, its records will be processed again: %s", reason)
        self._metrics.transactions_aborted.inc()
        self._aborts += 1
        if self._failed or self._aborts > MAX_ABORTS:
            await self._end(reason)
            return
        self._commits.forget()
        self.source.abandon()
        for number in list(self.partitions):
            self._drop(number)
        try:
            await self._in_client(self._transactions.abort)
        except AbortedError as error:  # the broker is away, and a stop did not wait for it any longer
            self._give_up(str(error))
        except Exception as error:  # noqa: BLE001 - refused: of a run it would end the agent without a reason that is said
            await self._end(error)
        else:
            await self.source.rejoin()

    # -- assignments ----------------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[int]) -> set[int]:
        """Forget the tasks of partitions that are not ours any more; the others are not live yet.

        Return those whose task is here.
        """
        keep = set(partitions)
        for number in self.partitions.keys() - keep:
            self._drop(number)
        for state in self.partitions.values():
            state.live = False
        self._health.partitions = dict.fromkeys(sorted(keep), PartitionStatus(Stage.RESTORING))
        self._health.assigned = True
        self._health.reading = ""
        logger.info("assigned partitions %s", sorted(keep))
        return {number for number, state in self.partitions.items() if state.stopped is None}

    async def restore(self, partition: int, first: Mapping[str, int]) -> Mapping[str, int] | None:
        """Make the task of a partition stand where its committed offsets are; return where that is.

        `first`: where a partition begins that was never processed. None: it cannot be restored and is
        stopped. Raises NotYetError while a transaction of another worker has to be waited for.
        """
        state, membership = self.partitions.get(partition), self.source.membership
        keepable = state is not None and state.stopped is None and state.ledger.is_empty
        standing = dict(state.ledger.positions) if state is not None and keepable else None
        abandoned, chunks = threading.Event(), self._snapshots.chunks(partition)
        wanted = RestoreRequest(
            partition,
            {source: first[topic] for source, topic in self._topics.items()},
            standing,
            chunks,
            abandoned.is_set,
            RestoreProgress(partition, partial(self._health.restores, partition)),
            membership,
        )
        self.restoring[partition] = wanted.progress
        try:
            await self._in_client(self._transactions.open)
            restored = await run_blocking(lambda: self._restorer.restore(wanted))
        except (NotYetError, AbandonedError, TopicsError) as error:
            if isinstance(error, HungError):
                await self._end(error)
            raise
        except Exception as error:  # noqa: BLE001 - as while processing: of any kind, it belongs to this partition
            self._drop(partition)
            self._note_stop(partition, error)
            return None
        finally:
            abandoned.set()
            self.restoring.pop(partition, None)
            chunks.close()
        if restored.task is None and state is not None and restored.positions == standing:
            logger.info("partition %d keeps its task: it stands at the committed offsets", partition)
            state.committed = restored.positions
            state.membership = membership
            state.topic_ids = restored.topic_ids
            state.skips = restored.skips or state.skips  # none: the journal was not read
        else:
            self._place(partition, restored, membership)
            if restored.task is not None:
                self._metrics.restored(wanted.progress.beginning, restored.records, restored.seconds)
            elif self._commit_start and not await self._commit_start_of(partition):
                return None  # aborted: it is assigned anew
        return {topic: restored.positions[source] for source, topic in self._topics.items()}

    async def _commit_start_of(self, partition: int) -> bool:
        """Commit where a new partition begins, before it lives; whether that is committed.

        Whoever has it after a crash would begin at the end of then, behind records that came meanwhile.
        """
        self.partitions[partition].ledger.starts = True
        return await self._commit_now()

    def _place(self, partition: int, restored: Restored, membership: Membership | None) -> None:
        """Put a restored task, or a new one, in the place of what is here of a partition."""
        self._drop(partition)
        if restored.task is None:
            task = self._processor.new_task(partition)
        else:
            task = restored.task
            self._processor.adopt_task(task)
            logger.info(
                "partition %d is restored: %d records replayed in %.1f s",
                partition,
                restored.records,
                restored.seconds,
            )
        incarnation = restored.incarnation + 1
        config, most = self._processor.config, self._processor.journal_bytes
        ledger = Ledger(restored.positions, incarnation, config, most)
        self._snapshots.add(partition, restored.base, incarnation)
        if restored.records:  # what had to be replayed now need not be replayed the next time
            self._snapshots.note(partition, restored.seconds, 0, self._clock())
        self.partitions[partition] = Partition(
            task, ledger, restored.positions, membership, restored.topic_ids, restored.skips
        )

    def _drop(self, partition: int) -> None:
        state = self.partitions.pop(partition, None)
        if state is not None:
            self._snapshots.drop(partition)
            self._processor.drop_task(state.task)

    def live(self, partition: int) -> None:
        """Note that the records of a partition are being fetched."""
        faults.point("live-before")
        self.partitions[partition].live = True
        self._snapshots.live(partition)
        self._health.partitions[partition] = PartitionStatus(Stage.LIVE)
        self._waits_said.pop(partition, None)
        if self._revoked_at is not None and not any(
            status.is_coming for status in self._health.partitions.values()
        ):
            self._metrics.rebalance_seconds.observe(self._clock() - self._revoked_at)
            self._revoked_at = None
        logger.info("partition %d is live", partition)

    def waits(self, partition: int, reason: str) -> None:
        """Note why a partition cannot be restored yet; said at once, and again only now and then."""
        self._health.partitions[partition] = PartitionStatus(Stage.WAITS, reason)
        now = self._clock()
        if now - self._waits_said.get(partition, -math.inf) >= WAIT_SAID_S:
            self._waits_said[partition] = now
            logger.info("Partition %d waits: %s", partition, reason)

    def revoked(self) -> None:
        """Note that the group takes the partitions away; what comes back will be assigned again."""
        self._snapshots.pause()
        self._health.assigned = False
        self._health.reading = ""
        self._health.partitions = {}
        self._health.lags(0)  # the group may take longer than a worker may stand still
        self._revoked_at = self._clock()

    # -- what the driver noticed ----------------------------------------------------------------------------

    def lag(self, log_ends: Mapping[TP, int], unserved: Mapping[TP, str]) -> None:
        """Note where the logs of the live partitions end, and what the broker does not serve, and why."""
        self._lag.note(log_ends, unserved)

    def lags(self) -> dict[TP, int]:
        """Return how many offsets of each partition, live or stopped, are not committed."""
        return self._lag.offsets()

    def read_changelog(self, records: int, size: int, *, standby: bool, left: int) -> None:
        """Note that parts of snapshots were read: by a standby, or for a partition that is to go live."""
        self._metrics.read_changelog("standby" if standby else "active", records, size)
        if not standby:
            self._health.reading = f"reading parts of snapshots, {left:,} offsets left"

    def sought_back(self, partitions: Iterable[TP]) -> None:
        """Count partitions whose fetch position was not ours: nothing is lost, they are read again."""
        for tp in partitions:
            self._metrics.sought_back.inc()
            logger.warning("topic %s partition %d: fetch position was not ours, sought back", *tp)

    def out_of_range(self, tp: TP, position: int, first: int, end: int) -> int | None:
        """Return where to go on in a log that does not have our position; None: the partition is stopped.

        What retention took is lost, counted and noted in the journal. A log that ends before our position is
        another one than models have learned from, or has lost records they learned: to go on anywhere would
        be a guess.
        """
        state = self.partitions[tp.partition]
        if position >= first:
            if state.stopped is None:
                self._stop(tp.partition, state, SourceLogError(tp.topic, tp.partition, position, first, end))
            return None
        self._records_lost(tp, state, position, first)
        return first

    def _records_lost(self, tp: TP, state: Partition, position: int, first: int) -> None:
        self._metrics.records_lost.labels(tp.topic).inc(first - position)
        logger.error(
            "topic %s partition %d: offsets %d to %d were deleted by retention before they were read",
            tp.topic,
            tp.partition,
            position,
            first - 1,
        )
        step = Step(self._sources[tp.topic], first, skipped=((position, first),))
        self._advance(state, tp.topic, step)
