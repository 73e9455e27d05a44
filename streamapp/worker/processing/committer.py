"""Committer: commits processed records, cut by cut, and goes back to the last cut if that fails.

The protocol of a commit, numbered as in the code here, in `commit_schedule.py` and in `transactions.py`:

    1. Between two runs every ledger with anything new is *cut*: closed into journal entries. With them go the
       manifests of snapshots that are written, and the positions after the entries.
    2. At the same point the tasks whose snapshots are due are cut too (copies of what has changed).
    3. At least once: the outputs sent so far are flushed, until the broker has acknowledged each of them.
       Exactly once: they are in the transaction, and later outputs are held back.
    4. The journal records are sent as parts of the transaction.
    5. The positions become its offsets, in the name of the member that processed the records: the group's
       coordinator refuses them if that member was taken out of the group (KIP-447).
    6. The transaction is committed: journal and offsets (and outputs) count together, or none of them does.
    7. The committed positions and manifests are noted. The cuts of step 2 begin to be written as snapshots;
       their manifests go with step 1 of a later commit.

If any of the steps 3 to 6 finds that the transaction cannot be committed, it is aborted. Tasks that have
processed anything since their last commit are then ahead of the committed state, and are dropped. The worker
joins the group again, and each partition comes back like one that is revoked and assigned again: restored
(`streamapp/worker/restore`), or with its task if nothing of it was undone. If the answer to the end of a
transaction is lost, the producer repeats that step until a broker answers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from faust.types import TP

from streamapp.worker.blocking_calls import run_watched
from streamapp.worker.journal.entry import Entry, Manifest, Record
from streamapp.worker.journal.skips import outstanding
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.processing.commit_schedule import CommitSchedule
from streamapp.worker.processing.driver import Driver
from streamapp.worker.processing.partition import Partition, Partitions
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.transactions import Transaction, Transactions
from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter
from streamapp.worker.snapshots.writer_protocols import TaskCut
from streamapp.worker.task.sources import Positions, SourceName
from streamapp.worker.transport.membership import Membership
from streamapp.worker.transport.runs import Run
from topics.errors import AbortedError, TopicsError

if TYPE_CHECKING:
    from streamapp.worker.telemetry.traces import Traces

logger = logging.getLogger(__name__)

MAX_ABORTS: Final = 5  # in a row: then the cause is permanent, such as a record that its topic does not take


class Committer:
    """Commits for all partitions of a worker at once. Everything runs in the event loop."""

    def __init__(
        self,
        driver: Driver,
        pipeline: Pipeline,
        transactions: Transactions,
        partitions: Partitions,
        snapshots: SnapshotWriter,
        metrics: Metrics,
        health: Health,
        *,
        topics: Mapping[SourceName, str],
        interval: float,
        exactly_once: bool,
        traces: Traces | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`topics`: of the sources, in causal order; `interval`: seconds; `exactly_once`: outputs are part of
        the transaction; `traces`: None if they are off.
        """
        self.lock = asyncio.Lock()
        """Held by a run, and while waiting for a commit, so that runs and commits have one order."""
        self.failed = False
        """Outputs were lost, or a stop gave up: nothing may be committed any more."""
        self._driver = driver
        self._pipeline = pipeline
        self._transactions = transactions
        self._partitions = partitions
        self._snapshots = snapshots
        self._metrics = metrics
        self._health = health
        self._topics = dict(topics)
        self._traces = traces
        self._clock = clock
        self.schedule = CommitSchedule(pipeline, interval=interval, exactly_once=exactly_once, clock=clock)
        self._in_client = partial(run_watched, call=lambda: self._transactions.call)
        self._committing: asyncio.Task[bool] | None = None
        self._aborts = 0  # since the last commit that succeeded
        self.dropped = 0
        """How many times the tasks that are ahead of the committed state were dropped."""

    async def open(self) -> None:
        """Return when no predecessor of this worker has an open transaction; HungError."""
        await self._in_client(self._transactions.open)

    # -- when -----------------------------------------------------------------------------------------------

    def tick_due(self, now: float) -> int | None:
        """Return a partition that needs a commit even if no records arrive, None if there is none."""
        if self._is_committing:
            return None
        if self.schedule.is_due(now):
            return self._partitions.first_uncommitted(self._driver.membership)
        return next(iter(self._snapshots.ready() or self._snapshots.due(now)), None)

    def seconds_to_tick(self, now: float) -> float:
        """Return how long a poll may wait."""
        due = self.schedule.due
        if due is None or self._is_committing:
            return float("inf")  # a tick would have no effect
        if self._partitions.first_uncommitted(self._driver.membership) is None:
            return float("inf")
        return max(0.0, due - now)

    @property
    def answers_at_once(self) -> bool:
        """Whether outputs are visible before their commit: at least once."""
        return not self.schedule.exactly_once

    def seconds_to_last_round(self, now: float, round_s: float) -> float:
        """Return how long a round of runs, which takes `round_s` seconds, may wait: see `CommitSchedule`."""
        return self.schedule.seconds_to_last_round(now, round_s)

    def expect(self, runs: Sequence[Run]) -> None:
        """Prepare the commit of runs that are about to be computed, exactly once.

        At least once a commit delays no answer. A commit that is far away is not prepared: the coordinator
        would have to keep an open transaction in which nothing happens.
        """
        if self.schedule.exactly_once and self.schedule.is_near(self._clock()):
            self._transactions.expect([(run.raw.topic, run.raw.partition) for run in runs])

    def commit_if_due(self, *, is_followed: bool = False) -> None:
        """Begin to commit if a commit is due and none is under way; called between two runs.

        `is_followed`: the driver has fetched other runs, which may become part of the commit.
        """
        now = self._clock()
        if self._is_committing or self.failed:
            return
        if self.schedule.waits_for_runs(now, is_followed=is_followed):
            return
        if self.schedule.is_due(now) or self._snapshots.ready() or self._snapshots.due(now):
            self._committing = asyncio.get_running_loop().create_task(self._commit())

    async def commit(self, why: str, timeout_s: float | None = None) -> None:
        """Commit everything processed, after the current run and commit; give up after `timeout_s`."""
        if self.failed:
            return
        try:
            async with asyncio.timeout(timeout_s):
                if await self.commit_now():
                    logger.info("committed: %s", why)
        except TimeoutError:
            self._give_up(f"{why}: not everything could be committed within {timeout_s:.0f} s")

    async def commit_now(self) -> bool:
        """Commit after the current run and commit; return whether everything processed is committed."""
        async with self.lock:
            if self._committing is not None:
                await asyncio.wait([self._committing])
            if self.failed:
                return False
            self._committing = asyncio.get_running_loop().create_task(self._commit())
            return await asyncio.shield(self._committing)  # half of a commit must not be left to a thread

    @property
    def _is_committing(self) -> bool:
        return self._committing is not None and not self._committing.done()

    async def room(self) -> None:
        """Return when the outputs of another run may be sent.

        Raise AbortedError if the transaction has to be aborted; any other failure ends the worker.
        """
        try:
            await self.schedule.room()
        except AbortedError:
            raise
        except Exception as error:  # noqa: BLE001 - it ends the worker
            await self.end(error)

    # -- the protocol ---------------------------------------------------------------------------------------

    async def _commit(self) -> bool:
        try:
            return await self._commit_all()
        except Exception as error:  # noqa: BLE001 - whatever it is of: its part of the journal would be a hole
            await self.end(error)
            return False
        finally:
            if self.schedule.due is not None:  # a poll that waits had no time of the next tick
                self._driver.wake()

    async def _commit_all(self) -> bool:
        """Commit everything uncommitted; return whether nothing uncommitted is left."""
        membership = self._driver.membership
        if membership is None:
            return False
        async with self._snapshots.tasks_lock:  # else a run may be half computed, in a thread
            dirty = self._partitions.uncommitted(membership)
            transaction = self._close(membership, dirty)  # 1.
            kept = self._cut_tasks(membership)  # 2.
        undone = transaction.records.keys() | kept.keys()
        if transaction.records and not await self._transact(transaction, undone):  # 3. to 6.
            return False
        async with self._snapshots.tasks_lock:
            for number, records in transaction.records.items():  # 7.
                # A partition restored during the commit is at the position that the group's offsets had then.
                if self._partitions.get(number) is dirty[number] and dirty[number].membership == membership:
                    self._note_committed(number, records)
            for number, (state, task_cut, positions) in kept.items():
                if self._partitions.get(number) is state:
                    self._snapshots.begin(number, task_cut, positions, self._pipeline.config)
                else:
                    task_cut.abandon()
        return True

    def _close(self, membership: Membership, dirty: Mapping[int, Partition]) -> Transaction:
        """Close the ledgers (step 1)."""
        records: dict[int, list[Record]] = {}
        offsets: dict[TP, int] = {}
        for number, state in dirty.items():
            records[number] = []
            if (manifest := self._snapshots.manifest(number)) is not None:
                # The journal is trimmed, and read, up to a snapshot: the skips that lie ahead are written
                # again after it.
                ahead = outstanding(state.skips, state.ledger.positions)
                records[number] += [manifest, *ahead]
            if not state.ledger.is_empty:
                entries = state.ledger.cut(state.task.state_version)
                records[number] += entries
                # The first commit has the offsets of all sources: a source without an offset later has then
                # lost it.
                begins = entries[0].config is not None
                before, after = entries[0].before, entries[-1].after
                moved = [source for source in self._topics if begins or after[source] != before[source]]
                offsets |= {TP(self._topics[source], number): after[source] for source in moved}
            else:  # without offsets the coordinator would not check the member
                source, topic = next(iter(self._topics.items()))
                offsets[TP(topic, number)] = state.committed[source]
        ids = {tp: topic_id for tp in offsets if (topic_id := dirty[tp.partition].topic_ids.get(tp.topic))}
        return Transaction(records, offsets, membership, ids)

    def _cut_tasks(self, membership: Membership) -> dict[int, tuple[Partition, TaskCut, Positions]]:
        """Cut the tasks whose snapshots are due, where the ledgers were cut (step 2)."""
        kept: dict[int, tuple[Partition, TaskCut, Positions]] = {}
        for number in self._snapshots.due(self._clock()):
            state = self._partitions[number]
            if state.membership == membership and state.stopped is None:
                self._snapshots.cut(number)
                kept[number] = state, state.task.cut(), dict(state.ledger.positions)
        return kept

    async def _transact(self, transaction: Transaction, undone: Collection[int]) -> bool:
        """Take the steps 3 to 6; return whether the transaction is committed.

        If it is not, the tasks of the partitions `undone` are dropped, and those that have processed anything
        since the cut.
        """
        if self._traces is not None:
            self._traces.cut(transaction.offsets)
        try:
            await self.schedule.commit(
                partial(self._in_client, partial(self._transactions.commit, transaction))
            )
        except AbortedError as error:
            await self._abort(error, undone)
            return False
        self._aborts = 0
        self._health.committed()
        self._metrics.commit_seconds.observe(self.schedule.seconds)
        if self._traces is not None:
            self._traces.committed()
        return True

    def _note_committed(self, number: int, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, Entry):
                self._partitions[number].committed = record.after
                self._snapshots.moved(number)
            elif isinstance(record, Manifest):
                self._snapshots.committed(number, record, self._clock())

    # -- going back, and the end ----------------------------------------------------------------------------

    async def abort_unless_dropped(
        self, here: Mapping[int, Partition], reason: AbortedError, dropped: int
    ) -> None:
        """Abort because a run of these partitions found that the transaction cannot be committed.

        Do nothing if the current commit aborts, or has aborted, since `dropped` was read, which was before
        the run. The client takes one step at a time, so a run and a commit that fail at the same time mean
        the same transaction. No commit can begin in between: the runs have the lock.
        """
        if self.dropped != dropped:
            return
        for number, partition in here.items():  # a task may be ahead of its ledger, which looks committed
            if self._partitions.get(number) is partition:
                self._partitions.drop(number)
        if self._committing is not None:
            await asyncio.wait([self._committing])
        if not self.failed and self.dropped == dropped:
            await self._abort(reason)

    async def _abort(self, reason: AbortedError, undone: Collection[int] = ()) -> None:
        """Go back to the committed state: drop the tasks that are ahead of it, and join the group again.

        `undone`: partitions whose entries or cuts are lost with the transaction.
        """
        logger.warning("a transaction is aborted, its records will be processed again: %s", reason)
        self._metrics.transactions_aborted.inc()
        if self._traces is not None:
            self._traces.aborted(reason)
        self._aborts += 1
        if self.failed or self._aborts > MAX_ABORTS:
            await self.end(reason)
            return
        async with self._snapshots.tasks_lock:
            self.schedule.forget()
            self._driver.abandon()
            self.dropped += 1
            # The group may take the partitions away: their snapshots go on when they are live again. A stop
            # before that must not wait for them.
            self._snapshots.pause()
            for number, partition in list(self._partitions.items()):
                if number in undone or partition.stopped is not None or not partition.ledger.is_empty:
                    self._partitions.drop(number)
                else:
                    partition.membership = None  # nothing of it is committed until it is assigned again
        try:
            await self._in_client(self._transactions.abort)
        except AbortedError as error:  # the broker is away, and the stop did not wait longer
            self._give_up(str(error))
        except Exception as error:  # noqa: BLE001 - refused: of a run it would end the agent without a reason that is said
            await self.end(error)
        else:
            await self._driver.rejoin()

    async def end(self, error: Exception) -> None:
        """Commit nothing any more, and end the worker: a commit would not match what was processed."""
        if self.failed:  # ending already: a further failure on the way is not the reason
            logger.warning("nothing was committed: %s", error)
            return
        if self._traces is not None:
            self._traces.aborted(error)
        if self._health.stopping and isinstance(error, TopicsError):  # of the broker
            self._give_up(f"stopping: {error}")
            return
        self.failed = True
        logger.error("nothing can be committed any more, ending: %s", error, exc_info=error)
        await self._driver.crash(error)

    def _give_up(self, why: str) -> None:
        """Commit nothing any more: a stop does not wait longer for the broker."""
        self.failed = True
        logger.error("%s; uncommitted records will be processed again", why)
