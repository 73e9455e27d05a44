"""Rig: a task manager with its surroundings, without Faust and a broker, driven by verbs of behaviour.

Only this module has the constructors of `streamapp.worker.processing`, the order in which its parts get to
know each other, and the fakes. A test does what a driver or a broker does (assign, deliver, commit, revoke,
lose records) and looks at what a user sees: offsets of the group, journal, snapshots, what readers of the
outputs see, which partition is stopped, whether the worker ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

import pytest
from faust.types import TP

from streamapp.errors import NotYetError
from streamapp.worker.gauges import manager_gauges
from streamapp.worker.journal.entry import Entry, Manifest, Record, Skip
from streamapp.worker.observability.health import Health, Stage
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.processing.task_manager import TaskManager
from streamapp.worker.processing.transactions import Transaction
from streamapp.worker.restore.rebuild import Restored, RestoreRequest
from streamapp.worker.restore.restore_progress import RestoreProgress
from streamapp.worker.snapshots.schedule import SnapshotLimits
from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter
from streamapp.worker.snapshots.stored import StoredSnapshot
from streamapp.worker.task.sources import SOURCES, Positions, SourceName
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.membership import Membership
from streamapp.worker.transport.runs import Run
from tests.positions import at
from tests.unit.streamapp.worker.processing.outputs import OffsetsTask, Outputs
from tests.unit.streamapp.worker.snapshots.memory import MemoryJournal, MemoryTable
from topics.columns.records import RawRecords
from topics.errors import AbortedError, BrokerError

TOPICS: dict[SourceName, str] = {source: source for source in SOURCES}
COMMIT_INTERVAL = 0.1  # seconds
SNAPSHOT_BYTES = 100  # of records: a snapshot is due
ME, ANOTHER = Membership(1, "me", None), Membership(1, "another", None)

LogName = tuple[str, int]
"""Topic and partition."""


class Kafka:
    """What outlives a worker: offsets of the group, journal, outputs that are seen; and its transactions."""

    def __init__(self, exactly_once: bool) -> None:
        self.outputs = Outputs()
        self.exactly_once = exactly_once
        self.member = ME  # whom the group's coordinator takes offsets from
        self.offsets: dict[TP, int] = {}
        self.journal: dict[int, list[Record]] = {}
        self.seen: list[int] = []  # offsets whose outputs were seen by readers of what is committed
        self.without_record: set[int] = set()  # offsets for which no output has to be delivered
        self.transactions: list[Transaction] = []  # committed ones
        self.aborts = 0
        self.away_at_stop = False  # an abort waits for the broker until the worker has stopped
        self.refuses_aborts = False
        self.unstable = 0  # how often a restore has to be asked again
        self.cannot_restore: dict[int, Exception] = {}
        self.skips: tuple[Skip, ...] = ()  # in the journal
        self.topic_ids: dict[str, str] = {}  # as the topics have them now
        self.restores: list[RestoreProgress] = []
        self.while_restoring: Callable[[RestoreProgress], None] = lambda progress: None
        self.call: int | None = None  # of a client

    def open(self) -> None:
        """No predecessor has left a transaction open."""

    def expect(self, sources: Collection[tuple[str, int]]) -> None:
        """A hint, without effect here."""
        assert self.exactly_once

    def commit(self, transaction: Transaction) -> None:
        self.outputs.committing = self.exactly_once
        try:
            if self.exactly_once:
                self.outputs.flush()
            self._commit(transaction)
            if self.exactly_once:
                self.outputs.settle()
        finally:
            self.outputs.committing = False

    def _commit(self, transaction: Transaction) -> None:
        if transaction.offsets and transaction.membership != self.member:  # else nobody asks the coordinator
            message = "generation 1 is over"
            raise AbortedError(message)
        for tp, offset in transaction.offsets.items():
            needed = set(range(self.offsets.get(tp, 0), offset)) - self.without_record
            assert needed <= set(self.outputs.delivered), "flush first"
        self.offsets |= {tp: offset for tp, offset in transaction.offsets.items() if offset}
        for partition, records in transaction.records.items():
            self.journal.setdefault(partition, []).extend(records)
        self.transactions.append(transaction)

    def abort(self) -> None:
        assert not self.outputs.flushing, "a client takes one step at a time"
        self.aborts += 1
        if self.away_at_stop:
            message = "a transaction was not finished before the worker stopped: the broker is away"
            raise AbortedError(message)
        if self.refuses_aborts:
            message = "denied"
            raise BrokerError(message)
        self.outputs.offered.clear()
        if self.exactly_once:
            self.outputs.unsettled.clear()  # nobody will ever see them

    def restore(self, wanted: RestoreRequest) -> Restored:
        """Return what a partition goes live with: its task as it stood at the committed offsets."""
        self.restores.append(wanted.progress)
        self.while_restoring(wanted.progress)
        if self.unstable:
            self.unstable -= 1
            raise NotYetError
        if error := self.cannot_restore.get(wanted.partition):
            raise error
        entries = self.entries(wanted.partition)
        here = entries[-1].after if entries else wanted.first
        if wanted.kept_positions == here:
            return Restored(None, here, 0, topic_ids=self.topic_ids)
        if not entries:
            return Restored(None, here, 0, topic_ids=self.topic_ids, skips=self.skips)
        task: Any = OffsetsTask(self.outputs, wanted.partition, range(here["instances"]))
        highest = max(entry.incarnation for entry in entries)
        return Restored(task, here, highest, 5, 0.1, topic_ids=self.topic_ids, skips=self.skips)

    def entries(self, partition: int) -> list[Entry]:
        return [record for record in self.journal.get(partition, []) if isinstance(record, Entry)]

    def another_worker_commits(self, partition: int, **positions: int) -> None:
        """Another worker has the partition, processes it up to these positions, and gives it back."""
        entries = self.entries(partition)
        before = entries[-1].after if entries else at()
        incarnation = max((entry.incarnation for entry in entries), default=0) + 1
        entry = Entry(incarnation, 1, "", before, at(**positions), (), "{}")
        self.journal.setdefault(partition, []).append(entry)
        self.offsets |= {TP(source, partition): position for source, position in positions.items()}


class Group:
    """The driver as the task manager sees it."""

    def __init__(self) -> None:
        self.membership: Membership | None = ME
        self.epoch = 1
        self.broker_reachable = True
        self.positions: dict[int, dict[str, int]] = {}  # of live partitions: where each source is read next
        self.dropped: list[int] = []
        self.crashed: BaseException | None = None
        self.rejoined = 0
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    def abandon(self) -> None:
        self.epoch += 1
        self.positions.clear()

    def drop(self, partition: int) -> None:
        self.dropped.append(partition)
        self.positions.pop(partition, None)

    async def rejoin(self) -> None:
        self.rejoined += 1

    async def crash(self, reason: BaseException) -> None:
        self.crashed = reason


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """A task manager with its surroundings."""

    def __init__(
        self,
        exactly_once: bool,
        commit_start: bool = False,
        kafka: Kafka | None = None,
        transactions: Any = None,
    ) -> None:
        """`kafka`: what a worker before this one has left; `transactions`: others than the fake ones."""
        self.kafka = kafka or Kafka(exactly_once)
        self.outputs = self.kafka.outputs = Outputs(self.kafka.seen)
        self.clock, self.health, self.metrics = Clock(), Health(), Metrics()
        self.group, self.table = Group(), MemoryTable()
        pipeline: Any = self.outputs
        own: Any = transactions or self.kafka
        limits = SnapshotLimits(1e9, SNAPSHOT_BYTES, 60.0)
        snapshots = SnapshotWriter(self.table, MemoryJournal(), self.metrics, limits)
        self.outputs.tasks_lock = snapshots.tasks_lock
        self.manager = TaskManager(
            self.group,
            pipeline,
            own,
            self.kafka.restore,
            snapshots,
            self.metrics,
            self.health,
            topics=TOPICS,
            commit_interval=COMMIT_INTERVAL,
            exactly_once=exactly_once,
            commit_start=commit_start,
            clock=self.clock,
        )

    # -- partitions come and go

    async def assigned(self, *partitions: int) -> None:
        """The group assigns these partitions and no others; none is live yet."""
        await self.manager.assignments.assigned(partitions)

    async def restore(self, partition: int, **first: int) -> Mapping[str, int] | None:
        """Give a partition its task and return where it is read on; `first`: where new sources begin."""
        for position in first.values():
            self.kafka.without_record.update(range(position))
        begins = {TOPICS[source]: position for source, position in at(**first).items()}
        return await self.manager.assignments.restore(partition, begins)

    async def bring_to_life(self, partition: int, **first: int) -> None:
        positions = await self.restore(partition, **first)
        assert positions is not None
        self.manager.assignments.live(partition)
        self.group.positions[partition] = dict(positions)

    async def assign(self, *partitions: int, **first: int) -> None:
        """The group assigns these partitions (0), and all go live."""
        await self.assigned(*(partitions or (0,)))
        for partition in partitions or (0,):
            await self.bring_to_life(partition, **first)

    async def revoke(self) -> None:
        """The group takes the partitions away; what was processed is committed."""
        self.group.abandon()
        self.manager.assignments.revoked()
        await self.commit("partitions revoked")

    def waits(self, partition: int, reason: str) -> None:
        self.manager.assignments.waits(partition, reason)

    def lose_membership(self) -> None:
        """The group goes on without this worker: the coordinator refuses its offsets."""
        self.kafka.member = ANOTHER

    def join_again(self) -> None:
        """The worker is a member of the next generation, from which the coordinator takes offsets."""
        generation = (self.group.membership or ME).generation + 1
        self.group.membership = self.kafka.member = Membership(generation, "me", None)

    # -- records come

    async def deliver(
        self,
        *offsets: int,
        topic: str = "instances",
        partition: int = 0,
        values: tuple[bytes, ...] = (),
        is_followed: bool = False,
    ) -> None:
        run = records(partition, *offsets, topic=topic, values=values)
        await self.deliver_runs(run, is_followed=is_followed)

    async def deliver_runs(
        self, *runs: Run, late: bool = False, epoch: int | None = None, is_followed: bool = False
    ) -> list[Run]:
        """Deliver runs of different partitions at once; return what the manager gives back of them.

        `late`: fetched before the last rebalance; `epoch`: the epoch of the driver in which they were
        fetched, if it is another one than now; `is_followed`: other runs were fetched with them.
        """
        for run in runs:
            if (positions := self.group.positions.get(run.raw.partition)) is not None:
                positions[run.topic] = run.position
        fetched = self.group.epoch - late if epoch is None else epoch
        return (await self._deliver(runs[0].raw.partition, runs, fetched, is_followed=is_followed)).rest

    async def tick(self, partition: int = 0) -> None:
        """Give an opportunity to commit although nothing has arrived."""
        await self._deliver(partition, (), self.group.epoch)

    async def _deliver(
        self, partition: int, runs: tuple[Run, ...], epoch: int, *, is_followed: bool = False
    ) -> Delivery:
        done = asyncio.get_running_loop().create_future()
        delivery = Delivery(partition, runs, epoch, done, is_followed=is_followed)
        try:
            await self.manager.process(delivery)
        finally:
            assert delivery.done.done(), "the driver waits for it"
        return delivery

    async def cancel_delivery(self, partition: int) -> None:
        """Cancel a delivery of a record while a thread computes it."""
        thread = Thread(self)
        delivery = asyncio.ensure_future(self.deliver_runs(records(partition, 0)))
        await thread.begun.wait()
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery
        self.outputs.computes = None

    def markers_up_to(self, position: int, topic: str = "instances", partition: int = 0) -> None:
        """The log has no record left before `position`: markers of transactions, or holes."""
        self.kafka.without_record.update(range(position))
        self.manager.moved([(TP(topic, partition), position)])

    def position_is_lost(self, position: int, first: int, end: int, partition: int = 0) -> int | None:
        """The log of instances has offsets from `first` to `end` only; return where reading goes on."""
        start = self.manager.out_of_range(TP("instances", partition), position, first, end)
        if start is not None:
            self.kafka.without_record.update(range(position, start))
        return start

    # -- commits and the end

    async def commit(self, why: str = "test", timeout_s: float | None = None) -> None:
        """Commit all that is processed, after the commit that is under way."""
        await self.manager.committer.commit(why, timeout_s)

    async def begin_commit(self) -> None:
        """Let a commit begin whose flush the broker does not answer, and return while it lasts."""
        self.outputs.gate.clear()
        self.clock.now += 1.0
        while not self.outputs.flushing:
            await self.tick(next(iter(self.outputs.tasks), 0))
            await asyncio.sleep(0)

    def answer_flush(self, error: Exception | None = None) -> None:
        """The broker answers the flush that `begin_commit` has left open."""
        self.outputs.fails = error
        self.outputs.gate.set()

    async def stop(self, timeout_s: float = 10.0, *, is_asked: bool = True) -> None:
        """The worker ends; `is_asked`: because somebody has asked it to."""
        self.health.stopping = is_asked
        await self.manager.stopping(timeout_s)

    def tick_due(self) -> int | None:
        """Return a partition that the driver would tick now."""
        return self.manager.committer.tick_due(self.clock.now)

    def poll_may_wait(self) -> float:
        """Return the seconds that a poll of the driver may wait."""
        return self.manager.committer.seconds_to_tick(self.clock.now)

    async def tick_becomes_due(self, partition: int = 0) -> None:
        await self.until(lambda: self.tick_due() == partition)

    async def write_snapshot(self) -> None:
        """Process record 0 and write a snapshot of it, up to its record in the journal."""
        await self.assign()
        await self.deliver(0, values=(bytes(SNAPSHOT_BYTES),))
        await self.commit("the incarnation is in the journal")
        await self.tick_becomes_due()
        await self.commit("this cuts the task")
        await self.tick_becomes_due()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not true():  # noqa: ASYNC110 - threads and tasks are at work, no event
                await asyncio.sleep(0)

    # -- what is seen of it

    @property
    def offsets(self) -> dict[LogName, int]:
        """The committed offsets of the group."""
        return {(tp.topic, tp.partition): offset for tp, offset in self.kafka.offsets.items()}

    @property
    def here(self) -> list[int]:
        """Partitions whose tasks live here."""
        return sorted(self.outputs.tasks)

    @property
    def ended(self) -> BaseException | None:
        """The error that ended the worker."""
        return self.group.crashed

    @property
    def stopped(self) -> dict[int, str]:
        """Partitions that are stopped, and why."""
        found = self.health.statuses().items()
        return {number: status.detail for number, status in found if status.stage is Stage.STOPPED}

    @property
    def statuses(self) -> dict[int, str]:
        return {number: str(status) for number, status in self.health.statuses().items()}

    @property
    def is_ready(self) -> bool:
        return all(check.ok for check in self.health.readiness())

    @property
    def is_alive(self) -> bool:
        return all(check.ok for check in self.health.liveness())

    def logs_end(self, ends: Mapping[LogName, int], unserved: Mapping[LogName, str] | None = None) -> None:
        """The broker reports the ends of the logs; `unserved`: logs that it does not serve, and why."""
        away = {TP(*log): why for log, why in (unserved or {}).items()}
        self.manager.progress.lag({TP(*log): end for log, end in ends.items()}, away)

    @property
    def lags(self) -> dict[LogName, int]:
        found = self.manager.progress.lags().items()
        return {(tp.topic, tp.partition): lag for tp, lag in found}

    def snapshots(self, partition: int) -> list[tuple[bytes, Positions]]:
        """Return the complete snapshots of a partition: the offsets that its task has seen, and positions."""
        found = []
        for manifest in self.kafka.journal.get(partition, []):
            if isinstance(manifest, Manifest):
                (unit,) = StoredSnapshot(manifest, self.table.chunks(partition).get).units()
                found.append((unit.data, manifest.positions))
        return found

    def gauge(self, name: str) -> dict[str, float]:
        """Return a gauge of the task manager, by its first label."""
        found = {gauge.name: gauge for gauge in manager_gauges(self.manager, self.health, "group")}
        return {next(iter(sample.labels.values())): sample.value for sample in found[name].samples}

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


class Thread:
    """The thread that computes a large run: it has begun, and ends when a test lets it."""

    def __init__(self, w: Worker, partition: int | None = None) -> None:
        """`partition`: only its runs are large."""
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self._partition = partition
        w.outputs.computes = self.compute

    def compute(self, run: Run) -> Awaitable[None] | None:
        return self._compute() if self._partition in (None, run.raw.partition) else None

    async def _compute(self) -> None:
        self.begun.set()
        await self.may_end.wait()


def records(
    partition: int, *offsets: int, topic: str = "instances", values: Iterable[bytes] = (), each: bytes = b"v"
) -> Run:
    """Return a run of records with these values, or with one value for each."""
    n = len(offsets)
    columns = [0] * n, [b"k"] * n, list(values) or [each] * n, [()] * n
    return Run(topic, RawRecords(topic, partition, list(offsets), *columns), offsets[-1] + 1)


def hold(monkeypatch: pytest.MonkeyPatch, *, passed_records: int, held_bytes: int | None = None) -> None:
    """Bound what may be sent while a flush is under way, and what may be held."""
    place = "streamapp.worker.processing.commit_schedule"
    monkeypatch.setattr(f"{place}.MAX_PASSED_RECORDS", passed_records)
    if held_bytes is not None:
        monkeypatch.setattr(f"{place}.MAX_HELD_BYTES", held_bytes)


def leave_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker that ends wait a moment only for its last snapshots."""
    monkeypatch.setattr("streamapp.worker.snapshots.final_snapshots.TIMEOUT_S", 0.05)


GUARANTEES = pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly-once", "at-least-once"])


def run(story: Callable[[Worker], Awaitable[Any]], exactly_once: bool = True, **options: Any) -> None:
    async def told() -> None:
        await story(Worker(exactly_once, **options))

    asyncio.run(told())
