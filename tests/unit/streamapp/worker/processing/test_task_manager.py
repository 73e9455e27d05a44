"""Runs, commits and hand-over of partitions, without Faust and without a broker."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Entry, Manifest, Record, Skip, Step
from streamapp.worker.journal.ledger import LedgerError
from streamapp.worker.observability.health import Health, PartitionStatus, Stage
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.processing.task_manager import TaskManager
from streamapp.worker.processing.transactions import Transaction
from streamapp.worker.restore.errors import RestoreError
from streamapp.worker.restore.rebuild import Restored, RestoreRequest
from streamapp.worker.snapshots.schedule import SnapshotLimits
from streamapp.worker.snapshots.stored import StoredSnapshot
from streamapp.worker.snapshots.writer import SnapshotWriter
from streamapp.worker.task.models.swap_file import SwapFileError
from streamapp.worker.task.sources import SOURCES, SourceName
from streamapp.worker.transport.consumer import Consumer
from streamapp.worker.transport.delivery import Delivery
from streamapp.worker.transport.runs import FetchedColumns, Run, TimeOrder
from streamapp.worker.transport.thread import Membership
from tests.positions import at
from tests.unit.streamapp.settled import settled
from tests.unit.streamapp.worker.snapshots.memory import ListCut, MemoryJournal, MemoryTable
from topics.columns.records import RawRecords
from topics.columns.spans import RecordSpans
from topics.errors import AbortedError, BrokerError, DeliveryError

TOPICS: dict[SourceName, str] = {source: source for source in SOURCES}
SOURCE_OF = {topic: source for source, topic in TOPICS.items()}


class OffsetsTask(list[int]):
    """A task that is a list of the offsets it was given."""

    def __init__(self, outputs: "Outputs", offsets: Iterable[int] = ()) -> None:
        super().__init__(offsets)
        self.outputs = outputs

    def cut(self) -> ListCut:
        return self.outputs.cut_task(self)

    def advance(self, source: SourceName, position: int) -> None:
        self.outputs.happened.append(f"{source} moved to {position}")

    def close(self) -> None:
        self.outputs.happened.append("dropped")


class Outputs:
    """A pipeline and its sender that write down what happens; the effects of a run are its offsets."""

    config = "{}"
    journal_bytes = 1 << 20

    def __init__(self) -> None:
        self.sender = self
        self.happened: list[str] = []
        self.skipped: list[int] = []
        self.sent: list[int] = []
        self.delivered: list[int] = []
        self.unsettled: list[int] = []  # sent, and not yet seen by any reader
        self.seen: list[int] = []  # by those who read what is committed
        self.committing = False  # a transaction that they are part of
        self.fails: Exception | None = None
        self.refuses = False
        self.gate = threading.Event()
        self.gate.set()
        self.is_full = False
        self.gathers = False
        self.in_one_go = False  # small runs are processed together
        self.offered: list[Any] = []  # results that are not handed over yet
        self.handed: list[int] = []  # how many each time
        self.will_not: Exception | None = None  # be handed over
        self.room = threading.Event()
        self.loses: Exception | None = None
        self.flushing = False
        self.draining = False
        self.output_bytes = 0
        self.readies: Callable[[], Awaitable[None]] | None = None
        self.computes: Callable[[], Awaitable[None]] | None = None  # as long as a thread does
        self.tasks_lock = asyncio.Lock()

    def new_task(self, partition: int) -> OffsetsTask:
        return OffsetsTask(self)

    def adopt_task(self, task: OffsetsTask) -> None:
        self.happened.append("adopted")

    def cut_task(self, task: OffsetsTask) -> ListCut:
        return ListCut({"task": repr(task).encode()})

    def are_small(self, some: Sequence[Run]) -> bool:
        return all(len(run.raw) < 10 for run in some)

    def read_together(self, some: Sequence[Run]) -> list[int]:
        return [run.position for run in some]

    def process_together(self, some: Sequence[tuple[OffsetsTask, Run, int]]) -> list[Any]:
        return [self._in_one_go(*each) if self.in_one_go else None for each in some]

    def _in_one_go(self, task: OffsetsTask, run: Run, instances: int) -> Any:
        try:
            return self._results(task, run, instances)
        except (ValueError, SwapFileError) as error:
            return error

    async def process(
        self, task: OffsetsTask, run: Run, is_ours: Callable[[], bool], instances: int | None
    ) -> Any:
        if self.readies is not None:
            try:
                await self.readies()
            except SwapFileError:
                if is_ours():
                    raise
            if not is_ours():
                return None
        results = self._results(task, run, instances)
        if self.computes is not None:
            async with self.tasks_lock:
                await self.computes()
        return results

    def _results(self, task: OffsetsTask, run: Run, instances: int | None) -> Any:
        assert instances == run.position, "what was read is of another run"
        if b"poison" in run.raw.values:
            message = f"topic={run.topic} partition={run.raw.partition} offset={run.raw.offsets[0]}"
            raise ValueError(message)
        if b"lost" in run.raw.values:
            message = "the disk lost a model"
            raise SwapFileError(message)
        self.skipped += sorted(run.skipped)
        task += run.raw.offsets
        n_bytes = sum(len(value or b"") for value in run.raw.values)
        step = Step(SOURCE_OF[run.topic], run.position)
        size = n_bytes + self.output_bytes * len(run.raw)
        return SimpleNamespace(run=run, size=size, step=step, input_bytes=n_bytes)

    def send(self, results: Any) -> None:
        if self.refuses:
            message = "the producer did not take it"
            raise RuntimeError(message)
        self.offered.append(results)
        if not self.gathers:
            self.hand_over()

    @contextmanager
    def gathering(self) -> Iterator[None]:
        self.gathers = True
        try:
            yield
        finally:
            self.gathers = False

    def hand_over(self) -> None:
        if self.will_not is not None:
            raise self.will_not
        assert not self.committing, "a client refuses records while it commits their transaction"
        self._take()

    def _take(self) -> None:
        offered, self.offered = self.offered, []
        self.handed += [len(offered)] if offered else []
        for results in offered:
            self.sent += results.run.raw.offsets
            self.unsettled += results.run.raw.offsets

    def drain(self) -> None:
        self.draining = True
        assert self.room.wait(10)
        if self.loses is not None:
            self.happened.append("lost")
            raise self.loses
        self.happened.append("drained")
        self.is_full = False

    def flush(self) -> None:
        self._take()
        sent, flushed = list(self.sent), len(self.unsettled)
        self.flushing = True
        assert self.gate.wait(10)
        self.flushing = False
        if self.fails is not None:
            raise self.fails
        self.happened.append("flushed")
        self.delivered = sent
        if not self.committing:  # they are part of no transaction
            self.settle(flushed)

    def settle(self, n: int | None = None) -> None:
        """Let readers see what was sent, all or the first `n`."""
        self.seen += self.unsettled[:n]
        del self.unsettled[:n]


class Kafka:
    """Transactions and what they committed: offsets of the group, journal."""

    def __init__(self, outputs: Outputs, exactly_once: bool) -> None:
        self.outputs = outputs
        self.exactly_once = exactly_once
        self.member = Membership(1, "me", None)
        self.offsets: dict[TP, int] = {}
        self.journal: dict[int, list[Record]] = {}
        self.visible: list[int] = []
        self.opened = self.aborts = 0
        self.away_at_stop = False  # an abort waits for the broker until the worker has stopped
        self.refuses_aborts = False
        self.task: OffsetsTask | None = None  # what a restore gives
        self.unstable = 0  # how often a restore has to be asked again
        self.skips: tuple[Skip, ...] = ()  # what a restore finds in the journal
        self.call: int | None = None  # of a client

    def open(self) -> None:
        self.opened += 1

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
        if transaction.membership != self.member:
            message = "generation 1 is over"
            raise AbortedError(message)
        for tp, offset in transaction.offsets.items():
            assert set(range(self.offsets.get(tp, 0), offset)) <= set(self.outputs.delivered), "flush first"
        self.offsets |= {tp: offset for tp, offset in transaction.offsets.items() if offset}
        self.visible = list(self.outputs.delivered)
        for partition, records in transaction.records.items():
            self.journal.setdefault(partition, []).extend(records)

    def entries(self, partition: int) -> list[Entry]:
        return [record for record in self.journal.get(partition, []) if isinstance(record, Entry)]

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
        if self.unstable:
            self.unstable -= 1
            raise NotYetError
        entries = self.entries(wanted.partition)
        at = entries[-1].after if entries else wanted.first
        if wanted.kept_positions == at:
            return Restored(None, at, 0)
        highest = max((entry.incarnation for entry in entries), default=0)
        return Restored(self.task, at, highest, 5, 0.1, skips=self.skips)  # type: ignore[arg-type]


class Group:
    """The driver as the task manager sees it."""

    def __init__(self) -> None:
        self.membership: Membership | None = Membership(1, "me", None)
        self.epoch = 1
        self.broker_reachable = True
        self.dropped: list[int] = []
        self.crashed: BaseException | None = None
        self.rejoined = 0
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    def abandon(self) -> None:
        self.epoch += 1

    def drop(self, partition: int) -> None:
        self.dropped.append(partition)

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
    """A manager with its surroundings, and partition 0 live."""

    def __init__(self, exactly_once: bool, commit_start: bool = False) -> None:
        self.outputs, self.clock, self.health, self.metrics = Outputs(), Clock(), Health(), Metrics()
        self.group, self.table = Group(), MemoryTable()
        self.kafka = Kafka(self.outputs, exactly_once)
        pipeline: Any = self.outputs
        transactions: Any = self.kafka
        snapshots = SnapshotWriter(self.table, MemoryJournal(), self.metrics, SnapshotLimits(1e9, 100, 60.0))
        self.outputs.tasks_lock = snapshots.tasks_lock
        self.manager = TaskManager(
            pipeline,
            transactions,
            lambda wanted: self.kafka.restore(wanted),
            snapshots,
            self.metrics,
            self.health,
            topics=TOPICS,
            commit_interval=0.1,
            exactly_once=exactly_once,
            commit_start=commit_start,
            clock=self.clock,
        )
        self.committer, self.assignments = self.manager.committer, self.manager.assignments
        consumer: Any = self.group
        self.manager.attach(consumer)

    async def assign(self, partitions: tuple[int, ...] = (0,)) -> None:
        await self.assignments.assigned(partitions)
        for partition in partitions:
            assert await self.assignments.restore(partition, dict.fromkeys(TOPICS.values(), 0)) is not None
            self.assignments.live(partition)

    async def deliver(
        self, *offsets: int, topic: str = "instances", partition: int = 0, values: tuple[bytes, ...] = ()
    ) -> None:
        n = len(offsets)
        raw = RawRecords(
            topic, partition, list(offsets), [0] * n, [b"k"] * n, list(values) or [b"v"] * n, [()] * n
        )
        run = Run(topic, raw, offsets[-1] + 1) if offsets else None
        done = asyncio.get_running_loop().create_future()
        await self.manager.process(Delivery(partition, (run,) if run else (), self.group.epoch, done))
        assert done.done(), "the driver waits for it"

    async def write_snapshot(self) -> None:
        """Process something and write a snapshot of it, up to its record in the journal."""
        await self.assign()
        await self.deliver(0, values=(bytes(100),))
        await self.committer.commit("the incarnation is in the journal")
        await self.until(lambda: self.committer.tick_due(self.clock.now) == 0)
        await self.committer.commit("this cuts the task")
        await self.until(lambda: self.committer.tick_due(self.clock.now) == 0)

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not true():  # noqa: ASYNC110 - threads and tasks are at work, no event
                await asyncio.sleep(0)

    def metric(self, name: str) -> float:
        return self.metrics.registry.get_sample_value(name) or 0.0


GUARANTEES = pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly-once", "at-least-once"])


def run(story: Callable[[Worker], Awaitable[Any]], exactly_once: bool = True) -> None:
    async def told() -> None:
        await story(Worker(exactly_once))

    asyncio.run(told())


@GUARANTEES
def test_offsets_are_committed_per_interval_after_the_outputs(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1, 2)
        assert w.kafka.offsets == {}
        w.clock.now += 0.2
        await w.deliver(3, topic="instances")
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 0): 4}
        assert w.outputs.happened == ["flushed"]

    run(story, exactly_once)


@pytest.mark.parametrize("what", ["nothing", "lost", "revoked", "revoked-and-lost", "forgotten"])
def test_a_run_that_waited_for_its_models_is_processed_if_it_still_may_be(what: str) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        waits, waited = asyncio.Event(), asyncio.Event()

        async def ready() -> None:
            waits.set()
            await waited.wait()
            if what.endswith("lost"):
                message = "the disk lost them"
                raise SwapFileError(message)

        w.outputs.readies = ready
        delivered = asyncio.ensure_future(w.deliver(0))
        await waits.wait()
        if what.startswith("revoked"):
            await w.assignments.assigned(())
        elif what == "forgotten":
            w.group.abandon()
        waited.set()
        await delivered
        assert w.outputs.sent == ([0] if what == "nothing" else [])
        assert isinstance(w.group.crashed, SwapFileError) == (what == "lost")

    run(story)


def test_a_model_that_is_lost_while_a_run_is_computed_ends_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, values=(b"lost",))
        assert isinstance(w.group.crashed, SwapFileError)
        assert w.group.dropped == [], "no record is to blame: a restart restores the partition"

    run(story)


class Thread:
    """Stands for the thread that computes a large run: it has begun, and ends when it is told to."""

    def __init__(self, w: Worker) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        w.outputs.computes = self.compute

    async def compute(self) -> None:
        self.begun.set()
        await self.may_end.wait()


@GUARANTEES
def test_no_commit_and_no_snapshot_cuts_a_run_that_a_thread_computes_in_half(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, values=(bytes(100),))
        await w.committer.commit("the incarnation is in the journal")
        await w.until(lambda: w.committer.tick_due(w.clock.now) == 0)
        thread = Thread(w)
        w.clock.now += 1
        large = asyncio.ensure_future(w.deliver(1))
        await thread.begun.wait()
        w.committer.commit_if_due()  # of a run that was delivered before
        await settled()
        assert len(w.kafka.entries(0)) == 1
        thread.may_end.set()
        await large
        w.outputs.computes = None
        await w.until(lambda: bool(w.committer._snapshots.ready()))
        await w.committer.commit("the snapshot")
        manifest, data = newest(w, 0)
        assert (data, manifest.positions) == (b"[0, 1]", at(instances=2))
        assert w.kafka.offsets == {TP("instances", 0): 2}

    run(story, exactly_once)


@GUARANTEES
def test_a_transaction_that_is_aborted_while_a_thread_computes_takes_its_run_along(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 1
        w.outputs.gate.clear()
        await w.deliver(1)  # starts a commit
        await w.until(lambda: w.outputs.flushing)
        thread = Thread(w)
        large = asyncio.ensure_future(w.deliver(2))
        await thread.begun.wait()
        w.outputs.fails = AbortedError("1 record was not delivered")
        w.outputs.gate.set()
        await w.until(lambda: not w.outputs.flushing)
        await settled()
        assert list(w.manager.partitions) == [0], "its task changes just now"
        thread.may_end.set()
        await large
        await w.until(lambda: w.group.rejoined == 1)
        assert (w.kafka.aborts, w.manager.partitions, w.group.crashed) == (1, {}, None)
        w.outputs.fails = w.outputs.computes = None
        w.group.membership = w.kafka.member = Membership(2, "me", None)
        await w.assign()
        await w.deliver(0, 1, 2)
        await w.committer.commit("again")
        assert w.kafka.offsets == {TP("instances", 0): 3}
        assert set(w.outputs.seen) == {0, 1, 2}
        assert not exactly_once or w.outputs.seen == [0, 1, 2]

    run(story, exactly_once)


@pytest.mark.parametrize("what", ["revoked", "assigned", "cancelled"])
def test_a_task_is_given_up_only_when_no_thread_computes_with_it(what: str) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        thread = Thread(w)
        large = asyncio.ensure_future(w.deliver(0))
        await thread.begun.wait()
        w.group.abandon()
        if what == "cancelled":
            large.cancel()
            with pytest.raises(asyncio.CancelledError):
                await large
            assert w.manager.partitions == {}, "what is half processed is not committed"
            assert (w.outputs.sent, w.kafka.offsets) == ([], {})
            return
        then = w.committer.commit("partitions revoked") if what == "revoked" else w.assignments.assigned(())
        waiting = asyncio.ensure_future(then)
        await settled()
        assert (waiting.done(), w.outputs.happened) == (False, [])
        thread.may_end.set()
        await asyncio.gather(large, waiting)
        assert w.outputs.sent == [0], "it was processed, whatever the driver has forgotten"
        assert w.kafka.offsets == ({TP("instances", 0): 1} if what == "revoked" else {})
        assert list(w.manager.partitions) == ([0] if what == "revoked" else [])

    run(story)


def run_of(partition: int, *offsets: int) -> Run:
    n = len(offsets)
    raw = RawRecords("instances", partition, list(offsets), [0] * n, [b"k"] * n, [b"v"] * n, [()] * n)
    return Run("instances", raw, offsets[-1] + 1)


def test_runs_of_one_delivery_are_processed_in_their_order_each_by_its_task() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1, 2))
        w.manager.partitions.drop(1)  # what is delivered of it is void, the others are not
        done = asyncio.get_running_loop().create_future()
        runs = run_of(2, 0, 1), run_of(1, 5), run_of(0, 0)
        await w.manager.process(Delivery(2, runs, w.group.epoch, done))
        assert done.done()
        assert w.outputs.sent == [0, 1, 0]
        assert w.outputs.handed == [2], "both at once"
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 2): 2, TP("instances", 0): 1}

    run(story)


def test_what_a_cancelled_delivery_did_not_come_to_is_not_committed() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1, 2))
        await w.deliver(0)
        thread = Thread(w)
        done = asyncio.get_running_loop().create_future()
        runs = run_of(1, 0), run_of(2, 0)
        delivery = asyncio.ensure_future(w.manager.process(Delivery(1, runs, w.group.epoch, done)))
        await thread.begun.wait()
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery
        assert list(w.manager.partitions) == [0], "the driver calls both runs processed"
        w.outputs.computes = None
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 0): 1}

    run(story)


def test_a_delivery_ends_where_its_transaction_is_found_to_be_lost() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.outputs.is_full, w.outputs.loses = True, AbortedError("1 record was not delivered")
        w.outputs.room.set()
        done = asyncio.get_running_loop().create_future()
        await w.manager.process(Delivery(0, (run_of(0, 0), run_of(1, 0)), w.group.epoch, done))
        assert (w.kafka.aborts, w.group.rejoined, w.manager.partitions) == (1, 1, {})
        assert (w.outputs.sent, w.outputs.offered) == ([], []), "the second run is not processed"
        assert w.kafka.offsets == {}

    run(story)


def test_what_large_runs_led_to_does_not_wait_for_the_next_one() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        done = asyncio.get_running_loop().create_future()
        runs = run_of(0, *range(10)), run_of(1, 0)
        await w.manager.process(Delivery(0, runs, w.group.epoch, done))
        assert w.outputs.handed == [1, 1]

    run(story)


@GUARANTEES
def test_a_commit_in_the_middle_of_a_delivery_takes_along_what_was_gathered(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        w.clock.now += 1.0
        second = asyncio.Event()

        async def wait_at_the_second() -> None:
            if len(w.outputs.offered) == 1:
                await second.wait()

        w.outputs.readies = wait_at_the_second
        done = asyncio.get_running_loop().create_future()
        delivery = Delivery(0, (run_of(0, 1), run_of(1, 0)), w.group.epoch, done)
        processing = asyncio.ensure_future(w.manager.process(delivery))
        await w.until(lambda: w.kafka.offsets.get(TP("instances", 0), 0) == 2)
        assert w.outputs.sent == [0, 1], "flushed with the run that it is of"
        second.set()
        await processing
        await w.committer.commit("test")
        assert (w.outputs.sent, w.kafka.offsets[TP("instances", 1)]) == ([0, 1, 0], 1)

    run(story, exactly_once)


def test_gathered_outputs_that_cannot_be_part_of_their_transaction_abort_it() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.outputs.will_not = AbortedError("1 record was not delivered")
        done = asyncio.get_running_loop().create_future()
        await w.manager.process(Delivery(0, (run_of(0, 0), run_of(1, 0)), w.group.epoch, done))
        assert (w.kafka.aborts, w.group.rejoined, w.manager.partitions) == (1, 1, {})
        assert (w.outputs.sent, w.outputs.offered, w.kafka.offsets) == ([], [], {})

    run(story)


@GUARANTEES
def test_gathered_outputs_that_are_lost_end_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.outputs.will_not = lost = DeliveryError("1 record was not delivered")
        done = asyncio.get_running_loop().create_future()
        await w.manager.process(Delivery(0, (run_of(0, 0), run_of(1, 0)), w.group.epoch, done))
        assert w.group.crashed is lost
        await w.committer.commit("test")
        assert w.kafka.offsets == {}

    run(story, exactly_once)


def small(w: Worker, *runs: Run) -> Delivery:
    """Return runs that are processed in one go."""
    w.outputs.in_one_go = True
    return Delivery(runs[0].raw.partition, runs, w.group.epoch, asyncio.get_running_loop().create_future())


def with_value(run: Run, value: bytes) -> Run:
    """Return a run whose records have another value."""
    return replace(run, raw=replace(run.raw, values=[value] * len(run.raw)))


@GUARANTEES
def test_runs_that_are_processed_in_one_go_are_all_noted_before_they_are_committed(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1, 2))
        await w.deliver(0)
        w.clock.now += 1.0  # a commit is due at the first of them
        w.manager.partitions.drop(1)
        await w.manager.process(small(w, run_of(0, 1), run_of(1, 0), run_of(2, 0, 1)))
        assert w.outputs.handed[1:] == [2], "both at once"
        await w.committer.commit("test")
        assert w.outputs.sent == [0, 1, 0, 1]
        assert w.kafka.offsets == {TP("instances", 0): 2, TP("instances", 2): 2}

    run(story, exactly_once)


def test_one_of_the_runs_processed_in_one_go_fails_and_the_others_do_not() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1, 2))
        await w.manager.process(small(w, run_of(0, 0), with_value(run_of(1, 0), b"poison"), run_of(2, 0)))
        assert w.group.dropped == [1]
        assert [w.manager.partitions[at].stopped is None for at in range(3)] == [True, False, True]
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 0): 1, TP("instances", 2): 1}

    run(story)


def test_a_lost_model_of_one_of_the_runs_processed_in_one_go_ends_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        delivery = small(w, with_value(run_of(0, 0), b"lost"), run_of(1, 0))
        await w.manager.process(delivery)
        assert isinstance(w.group.crashed, SwapFileError)
        assert delivery.done.done()
        await w.committer.commit("test")
        assert (w.outputs.sent, w.kafka.offsets) == ([], {})

    run(story)


def test_the_first_of_the_runs_processed_in_one_go_whose_outputs_are_lost_ends_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.outputs.refuses = True
        await w.manager.process(small(w, run_of(0, 0), run_of(1, 0)))
        assert isinstance(w.group.crashed, RuntimeError)
        await w.committer.commit("test")
        assert w.kafka.offsets == {}

    run(story)


def test_a_bug_while_runs_are_processed_in_one_go_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows which tasks are ahead of their ledgers: nothing of them may be committed."""

    def fail(some: Sequence[Any]) -> None:
        some[0][0].extend([0])
        raise ZeroDivisionError

    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        monkeypatch.setattr(w.outputs, "process_together", fail)
        await w.manager.process(small(w, run_of(0, 0), run_of(1, 0)))
        assert isinstance(w.group.crashed, ZeroDivisionError)
        await w.committer.commit("test")
        assert (w.outputs.sent, w.kafka.offsets) == ([], {})

    run(story)


def test_runs_with_skips_are_processed_each_by_itself() -> None:
    async def story(w: Worker) -> None:
        w.kafka.skips = (Skip(1, "instances", 1, ""),)
        await w.assign((0, 1))
        await w.manager.process(small(w, run_of(0, 0, 1), run_of(1, 0)))
        assert w.outputs.skipped == [1]

    run(story)


@GUARANTEES
def test_who_polls_is_told_when_the_next_commit_is_due(exactly_once: bool) -> None:
    """While one is under way nobody can tell: a record that came meanwhile would wait out the poll."""

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 0.2
        w.outputs.gate.clear()
        await w.deliver(1)
        await w.until(lambda: w.outputs.flushing)
        await w.deliver(2)
        assert (w.committer.seconds_to_tick(w.clock.now), w.group.woken) == (float("inf"), 0)
        w.outputs.gate.set()
        await w.until(lambda: w.group.woken == 1)
        await settled()
        assert w.committer.seconds_to_tick(w.clock.now) == pytest.approx(0.1)
        await w.committer.commit("nothing is left")
        assert w.group.woken == 1

    run(story, exactly_once)


@GUARANTEES
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_aborted_each_record_has_its_outcome(seed: int, exactly_once: bool) -> None:
    """Exactly once it has one, in the order of the log; else it may have several."""
    draw, n = random.Random(seed), 120
    lost = AbortedError("1 record was not delivered")

    async def story(w: Worker) -> None:
        async def read(most: int) -> None:
            """Deliver what comes next in the log."""
            if 0 in w.manager.partitions:
                at = w.manager.partitions[0].ledger.positions["instances"]
                if offsets := range(at, min(n, at + most)):
                    await w.deliver(*offsets)

        async def commit() -> None:
            """Let a commit begin, and process on while it lasts."""
            w.outputs.gate.clear()
            w.clock.now += 1.0
            await read(2)
            while not w.outputs.flushing and w.manager.partitions:
                await w.deliver()  # a tick: it is time to
                await asyncio.sleep(0)
            await read(draw.randrange(1, 4))
            w.outputs.gate.set()
            await w.committer.commit("what came meanwhile")

        w.outputs.room.set()
        await w.assign()
        what, ends = "", n - 40
        while w.kafka.offsets.get(TP("instances", 0), 0) < ends:
            hurts = ["is refused", "loses outputs", "has no room"]
            what = "commits" if what in hurts else draw.choice(["commits", *hurts])
            await read(draw.randrange(1, 5))
            w.outputs.fails = lost if what == "loses outputs" else None
            w.kafka.member = Membership(w.group.rejoined, "another" if what == "is refused" else "me", None)
            if what == "has no room":
                w.outputs.is_full, w.outputs.loses = True, lost
                await read(1)
                w.outputs.is_full, w.outputs.loses = False, None
            else:
                await commit()
            if what != "commits":
                assert (w.manager.partitions, w.group.crashed) == ({}, None)
                w.outputs.fails = None
                w.group.membership = w.kafka.member = Membership(w.group.rejoined, "me", None)
                await w.assign()
        await read(n)
        await w.committer.commit("the rest")
        assert w.kafka.aborts > 1, "or nothing was tried"
        if exactly_once:
            assert w.outputs.seen == [*range(n)]
        assert set(w.outputs.seen) == set(range(n))
        assert w.kafka.entries(0)[-1].after["instances"] == n

    run(story, exactly_once)


@GUARANTEES
def test_a_tick_is_due_for_a_partition_with_uncommitted_work(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        assert w.committer.tick_due(w.clock.now + 100) is None
        assert w.committer.seconds_to_tick(w.clock.now) == float("inf")
        await w.deliver(0, partition=1)
        assert w.committer.tick_due(w.clock.now) is None
        assert w.committer.seconds_to_tick(w.clock.now) == pytest.approx(0.1)
        w.clock.now += 0.1
        assert w.committer.tick_due(w.clock.now) == 1
        await w.deliver(partition=1)
        await w.committer.commit("wait for the one at hand")
        assert w.kafka.offsets == {TP("instances", 1): 1}
        assert w.committer.tick_due(w.clock.now + 100) is None

    run(story, exactly_once)


@GUARANTEES
def test_a_run_of_a_partition_that_is_not_live_ends_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.assignments.assigned((0,))  # again, and not live yet
        await w.deliver(0, 1)
        assert "partition 0 is not live" in str(w.group.crashed)
        await w.committer.commit("too late")
        assert w.kafka.offsets == {}, "the driver calls it processed, which it is not"

    run(story, exactly_once)


@GUARANTEES
def test_what_a_stopped_partition_did_before_is_committed_too(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1, values=(b"poison",))
        w.clock.now += 1
        assert w.committer.tick_due(w.clock.now) == 0
        await w.deliver()
        await w.committer.commit("wait for it")
        assert w.kafka.offsets == {TP("instances", 0): 1}
        assert w.committer.tick_due(w.clock.now + 1) is None

    run(story, exactly_once)


@GUARANTEES
def test_markers_behind_the_last_record_are_committed_too(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        w.outputs.sent += [2, 3]  # no records: nothing has to be delivered for them
        w.manager.moved(0, "instances", 4)
        assert w.outputs.happened == ["instances moved to 4"], "the task stands where the journal does"
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 0): 4}

    run(story, exactly_once)


def test_computing_goes_on_while_a_commit_is_under_way_and_its_outputs_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamapp.worker.processing.commit_schedule.MAX_PASSED_RECORDS", 1)

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 1
        w.outputs.gate.clear()
        await w.deliver(1)  # starts the commit of 0 and 1
        await asyncio.sleep(0)
        await w.deliver(2)  # the flush is under way: one record may pass
        await w.deliver(3)
        await w.deliver(4)
        assert w.outputs.sent == [0, 1, 2]
        w.outputs.gate.set()
        await w.committer.commit("the rest")
        assert w.outputs.sent == [0, 1, 2, 3, 4]
        assert w.kafka.offsets == {TP("instances", 0): 5}

    run(story, exactly_once=False)


@GUARANTEES
def test_nothing_is_committed_past_an_output_that_was_lost(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.fails = RuntimeError("outputs are lost")
        await w.committer.commit("test")
        assert isinstance(w.group.crashed, RuntimeError)
        w.outputs.fails = None
        await w.deliver(1)
        await w.committer.commit("again")
        assert w.kafka.offsets == {}
        assert w.outputs.sent == [0], "what comes later is not processed any more"

    run(story, exactly_once)


@GUARANTEES
def test_nothing_is_committed_past_an_output_that_the_producer_did_not_take(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.refuses = True
        await w.deliver(1)
        assert isinstance(w.group.crashed, RuntimeError)
        w.outputs.refuses = False
        w.manager.moved(0, "instances", 2)  # the driver, after what it fetched next
        await w.deliver(2)
        await w.committer.commit("stopping")
        assert w.kafka.offsets == {}
        assert w.outputs.sent == [0]

    run(story, exactly_once)


@GUARANTEES
def test_an_aborted_transaction_drops_the_tasks_and_joins_the_group_anew(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        w.kafka.member = Membership(2, "me", None)  # the group has moved on
        await w.committer.commit("test")
        assert (w.group.epoch, w.kafka.offsets, w.group.crashed) == (2, {}, None)
        assert (w.kafka.aborts, w.group.rejoined, w.manager.partitions) == (1, 1, {})
        assert w.outputs.happened[-2:] == ["dropped", "dropped"]
        assert w.metric("grove_transactions_aborted_total") == 1
        w.group.membership = w.kafka.member
        await w.assign((0, 1))
        await w.deliver(0)
        await w.committer.commit("again")
        assert w.kafka.offsets == {TP("instances", 0): 1}

    run(story, exactly_once)


@GUARANTEES
def test_a_transaction_that_a_run_and_a_commit_find_aborted_is_aborted_once(exactly_once: bool) -> None:
    """A long outage, with outputs that the producer has no room for."""

    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        w.clock.now += 1
        w.outputs.gate.clear()
        await w.deliver(1)  # starts a commit
        await w.until(lambda: w.outputs.flushing)
        w.outputs.is_full, w.outputs.loses = True, AbortedError("1 record was not delivered")
        w.outputs.fails = AbortedError("the transaction coordinator was not heard of")
        waiting = asyncio.ensure_future(w.deliver(0, partition=1))
        w.outputs.room.set()
        await w.until(lambda: "lost" in w.outputs.happened)
        await settled()
        w.outputs.gate.set()
        await waiting
        assert (w.kafka.aborts, w.group.rejoined, w.group.crashed) == (1, 1, None)
        assert w.metric("grove_transactions_aborted_total") == 1
        assert (w.group.epoch, w.manager.partitions) == (2, {})

    run(story, exactly_once)


@GUARANTEES
def test_outputs_that_are_lost_behind_a_commit_that_succeeds_are_aborted(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 1
        w.outputs.gate.clear()
        await w.deliver(1)  # starts a commit
        await w.until(lambda: w.outputs.flushing)
        w.outputs.is_full, w.outputs.loses = True, AbortedError("1 record was not delivered")
        waiting = asyncio.ensure_future(w.deliver(2))
        w.outputs.room.set()
        await w.until(lambda: "lost" in w.outputs.happened)
        w.outputs.gate.set()
        await waiting
        assert (w.kafka.aborts, w.group.rejoined, w.group.crashed) == (1, 1, None)
        assert w.kafka.offsets == {TP("instances", 0): 2}

    run(story, exactly_once)


def test_an_abort_that_a_run_needs_and_that_is_refused_ends_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.is_full, w.outputs.loses = True, AbortedError("1 record was not delivered")
        w.outputs.room.set()
        w.kafka.refuses_aborts = True
        await w.deliver(0)
        assert (str(w.group.crashed), w.group.rejoined) == ("denied", 0)

    run(story)


@GUARANTEES
def test_an_abort_that_a_stop_gives_up_is_no_crash(
    exactly_once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.kafka.member, w.kafka.away_at_stop = Membership(2, "me", None), True
        await w.committer.commit("stopping")
        assert (w.group.crashed, w.group.rejoined, w.kafka.offsets) == (None, 0, {})
        await w.deliver(1)
        await w.committer.commit("stopping")
        assert (w.kafka.aborts, w.outputs.sent) == (1, [0]), "nothing goes on after it"

    run(story, exactly_once)
    assert "the broker is away; what is uncommitted will be processed again" in caplog.text


@GUARANTEES
def test_a_commit_that_nobody_waits_for_any_more_is_not_left_half_done(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.gate.clear()
        first = asyncio.ensure_future(w.committer.commit("going live again"))
        await asyncio.sleep(0)
        first.cancel()  # the group has taken the partitions away
        last = asyncio.ensure_future(w.committer.commit("partitions revoked"))
        w.outputs.gate.set()
        await last
        assert (w.kafka.offsets, w.kafka.aborts) == ({TP("instances", 0): 1}, 0)
        assert len(w.kafka.entries(0)) == 1
        with pytest.raises(asyncio.CancelledError):
            await first

    run(story, exactly_once)


@GUARANTEES
@pytest.mark.parametrize("error", [AbortedError("too late"), RuntimeError("lost")], ids=["aborted", "lost"])
def test_a_commit_that_fails_after_a_stop_gave_it_up_is_no_crash(
    exactly_once: bool, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.gate.clear()
        await w.committer.commit("stopping", timeout_s=0.01)
        w.outputs.fails = error
        w.outputs.gate.set()
        await w.until(lambda: "nothing was committed" in caplog.text)
        await w.committer.commit("stopping", timeout_s=0.01)  # Faust asks twice
        assert (w.group.crashed, w.group.rejoined, w.kafka.offsets) == (None, 0, {})
        assert caplog.text.count("not everything could be committed") == 1
        assert "committed: stopping" not in caplog.text

    run(story, exactly_once)


@GUARANTEES
def test_what_is_aborted_again_and_again_ends_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        w.kafka.member = Membership(2, "me", None)  # a reason that does not go away
        while w.group.crashed is None:
            await w.assign()
            await w.deliver(0)
            await w.committer.commit("test")
            assert w.metric("grove_transactions_aborted_total") < 10
        assert isinstance(w.group.crashed, AbortedError)
        assert (w.group.rejoined, w.kafka.offsets) == (5, {})

    run(story, exactly_once)


def test_exactly_once_holds_back_all_outputs_while_a_transaction_ends() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 1
        w.outputs.gate.clear()
        await w.deliver(1)  # starts the commit of 0 and 1
        await asyncio.sleep(0)
        await w.deliver(2)
        await w.deliver(3)
        assert w.outputs.sent == [0, 1]
        w.outputs.gate.set()
        await w.committer.commit("the rest")
        assert w.kafka.visible == [0, 1, 2, 3]
        assert w.outputs.handed == [1, 1, 2], "what was held goes in one call"
        assert [entry.steps for entry in w.kafka.entries(0)] == [
            (Step("instances", 2),),
            (Step("instances", 4),),
        ]

    run(story)


def test_while_the_producer_has_no_room_the_loop_goes_on_and_no_run_is_processed() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.outputs.is_full = True
        first = asyncio.ensure_future(w.deliver(0))
        second = asyncio.ensure_future(w.deliver(0, partition=1))
        await w.until(lambda: w.outputs.draining)
        await settled()
        assert w.outputs.sent == [0]
        assert not first.done(), "the driver waits: it is the back-pressure"
        w.outputs.room.set()
        await asyncio.gather(first, second)
        assert (w.outputs.sent, w.outputs.happened) == ([0, 0], ["drained"])
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 0): 1, TP("instances", 1): 1}

    run(story, exactly_once=False)


def test_a_stop_that_gives_up_handing_outputs_over_is_no_crash(caplog: pytest.LogCaptureFixture) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.is_full, w.outputs.loses = True, DeliveryError("outputs are lost")
        waiting = asyncio.ensure_future(w.deliver(0))
        await asyncio.sleep(0)
        w.health.stopping = True
        w.outputs.room.set()
        await waiting
        await w.committer.commit("stopping", timeout_s=1.0)
        assert (w.group.crashed, w.kafka.offsets) == (None, {})
        assert "stopping: outputs are lost; what is uncommitted will be processed again" in caplog.text

    run(story, exactly_once=False)


def test_nothing_is_committed_past_an_output_that_was_lost_while_it_waited_for_room() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.is_full, w.outputs.loses = True, DeliveryError("outputs are lost")
        w.outputs.room.set()
        w.clock.now += 1
        await w.deliver(0)
        assert isinstance(w.group.crashed, DeliveryError)
        await w.committer.commit("stopping")
        assert w.kafka.offsets == {}

    run(story, exactly_once=False)


def test_the_outputs_of_what_is_held_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.worker.processing.commit_schedule.MAX_PASSED_RECORDS", 0)
    monkeypatch.setattr("streamapp.worker.processing.commit_schedule.MAX_HELD_BYTES", 150)

    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.output_bytes = 100
        await w.deliver(0)
        w.clock.now += 1
        w.outputs.gate.clear()
        await w.deliver(1)  # starts the commit
        await asyncio.sleep(0)
        await w.deliver(2)
        third = asyncio.ensure_future(w.deliver(3))
        await w.until(lambda: w.outputs.flushing)
        await settled()
        assert not third.done(), "two outputs of 100 bytes each are held"
        w.outputs.gate.set()
        await third
        assert w.outputs.sent == [0, 1, 2, 3]

    run(story, exactly_once=False)


def test_the_journal_says_what_was_processed_in_which_order() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.deliver(2)
        await w.deliver(0, topic="labels")
        await w.deliver(3)
        await w.committer.commit("test")
        (entry,) = w.kafka.entries(0)
        assert entry.steps == (Step("instances", 3), Step("labels", 1), Step("instances", 4))
        assert (entry.before, entry.after) == (at(), at(instances=4, labels=1))
        assert (entry.incarnation, entry.config) == (1, "{}")

    run(story)


@GUARANTEES
def test_a_snapshot_is_of_the_task_at_a_committed_point_and_counts_once_it_is_in_the_journal(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        def due() -> bool:
            return w.committer.tick_due(w.clock.now) == 0

        await w.assign()
        await w.deliver(0)
        await w.committer.commit("the incarnation is in the journal")
        await w.deliver(1, values=(bytes(100),))  # the limit of bytes
        await w.until(due)
        await w.committer.commit("this cuts the task")
        await w.deliver(2)
        await w.until(due)
        await w.deliver()
        await w.committer.commit("this commits the manifest")
        (manifest,) = [record for record in w.kafka.journal[0] if isinstance(record, Manifest)]
        (unit,) = StoredSnapshot(manifest, w.table.chunks(0).get).units()
        assert (unit.data, manifest.positions) == (b"[0, 1]", at(instances=2))
        assert w.kafka.entries(0)[-1].after == at(instances=3)
        assert w.metric("grove_snapshots_total") == 1

    run(story, exactly_once)


@GUARANTEES
def test_each_run_is_told_which_of_its_records_are_to_be_skipped(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        w.kafka.skips = (Skip(1, "instances", 3, ""), Skip(1, "labels", 0, ""), Skip(1, "instances", 4, ""))
        await w.assign()
        await w.deliver(0, 1, 2)
        assert w.outputs.skipped == []
        await w.deliver(3, 4, 5)
        await w.deliver(0, topic="controls")
        assert w.outputs.skipped == [3, 4]
        await w.deliver(0, topic="labels")
        assert w.outputs.skipped == [3, 4, 0]
        await w.committer.commit("still there")
        await w.assignments.assigned((0,))  # comes back with its task, and the journal is not read
        assert await w.assignments.restore(0, dict.fromkeys(TOPICS.values(), 0)) is not None
        w.assignments.live(0)
        assert w.manager.partitions[0].skips == w.kafka.skips

    run(story, exactly_once)


@GUARANTEES
def test_what_lies_ahead_to_be_skipped_is_said_again_behind_each_snapshot(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        passed, *ahead = w.kafka.skips = (
            Skip(1, "instances", 0, ""),
            Skip(1, "instances", 7, "id"),
            Skip(1, "labels", 0, ""),
        )
        await w.write_snapshot()
        await w.deliver()
        await w.committer.commit("this commits the manifest")
        at = next(n for n, record in enumerate(w.kafka.journal[0]) if isinstance(record, Manifest))
        assert w.kafka.journal[0][at + 1 : at + 3] == ahead
        assert passed not in w.kafka.journal[0]

    run(story, exactly_once)


def newest(w: Worker, partition: int) -> tuple[Manifest, bytes]:
    """The newest complete snapshot of a partition, and what is in it."""
    manifest = [record for record in w.kafka.journal[partition] if isinstance(record, Manifest)][-1]
    (unit,) = StoredSnapshot(manifest, w.table.chunks(partition).get).units()
    return manifest, unit.data


@GUARANTEES
def test_a_worker_that_ends_leaves_a_snapshot_of_each_partition_where_it_committed_last(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1, 2))
        await w.deliver(0, 1)
        await w.committer.commit("nothing is due yet")
        await w.deliver(2)
        await w.deliver(0, topic="labels", partition=1)
        w.health.stopping = True
        await w.manager.stopping(10)
        for number, task, positions in ((0, b"[0, 1, 2]", at(instances=3)), (1, b"[0]", at(labels=1))):
            manifest, data = newest(w, number)
            assert (data, manifest.positions) == (task, positions)
            assert w.kafka.entries(number)[-1].after == positions
        assert 2 not in w.kafka.journal, "nothing has changed there"
        before = w.table.writes
        await w.manager.stopping(10)  # Faust stops an app twice
        assert w.table.writes == before

    run(story, exactly_once)


def test_a_worker_that_ends_writes_only_what_has_changed_since_the_snapshot_under_way() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        await w.deliver(0, partition=1, values=(bytes(100),))  # the limit of bytes
        await w.committer.commit("the incarnations are in the journal")
        await w.until(lambda: w.committer.tick_due(w.clock.now) == 1)
        await w.committer.commit("this cuts partition 1")
        await w.deliver(1)
        w.health.stopping = True
        await w.manager.stopping(10)
        assert newest(w, 0)[1] == b"[0, 1]"
        manifest, data = newest(w, 1)
        assert (manifest.sequence, data) == (1, b"[0]")

    run(story)


def test_what_is_delivered_while_a_worker_ends_is_not_processed_any_more() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.health.stopping, epoch = True, w.group.epoch
        await w.manager.stopping(10)
        raw = RawRecords("instances", 0, [1], [0], [b"k"], [b"v"], [()])
        done = asyncio.get_running_loop().create_future()
        await w.manager.process(Delivery(0, (Run("instances", raw, 2),), epoch, done))
        await w.committer.commit("stopping")
        assert (w.outputs.sent, newest(w, 0)[1]) == ([0], b"[0]")
        assert w.kafka.offsets[TP("instances", 0)] == 1

    run(story)


def test_a_worker_that_fails_leaves_no_snapshots() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.manager.stopping(10)  # nobody has asked it to end: something else has
        assert (w.table.writes, w.kafka.offsets) == (0, {})

    run(story)


@pytest.mark.parametrize("known", [True, False], ids=["as-is-known", "as-is-not-known-yet"])
def test_a_broker_that_is_away_is_not_waited_for_with_snapshots(
    known: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streamapp.worker.snapshots.leaving.TIMEOUT_S", 0.05)

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.committer.commit("the broker is still there")
        w.group.broker_reachable = not known
        w.table.failures = 1000
        w.health.stopping = True
        async with asyncio.timeout(10):
            await w.manager.stopping(10)
        assert w.committer.tick_due(w.clock.now) is None
        assert not any(isinstance(record, Manifest) for record in w.kafka.journal[0])

    run(story)
    told = "partitions [0] have no snapshot of their end" in caplog.text
    assert told is not known


def test_a_commit_that_does_not_get_through_at_the_end_is_not_followed_by_snapshots() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.gate.clear()
        w.health.stopping = True
        await w.manager.stopping(0.01)
        assert w.table.writes == 0
        w.outputs.gate.set()

    run(story)


def test_a_snapshot_whose_transaction_is_aborted_does_not_count() -> None:
    async def story(w: Worker) -> None:
        await w.write_snapshot()
        w.kafka.member = Membership(2, "me", None)
        await w.committer.commit("too late")
        assert w.table.chunks_of[0], "it was written"
        assert not any(isinstance(record, Manifest) for record in w.kafka.journal[0])
        assert w.committer.tick_due(w.clock.now) is None

    run(story)


def test_a_commit_of_a_snapshot_alone_carries_offsets_by_which_a_stranger_is_refused() -> None:
    async def story(w: Worker) -> None:
        await w.write_snapshot()
        committed: list[Transaction] = []
        w.kafka.commit = committed.append  # type: ignore[method-assign, assignment]
        await w.committer.commit("nothing but the manifest")
        (transaction,) = committed
        (manifest,) = transaction.records[0]
        assert isinstance(manifest, Manifest)
        assert transaction.offsets == {TP("controls", 0): 0}

    run(story)


@GUARANTEES
def test_a_cut_that_fails_ends_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, values=(bytes(100),))
        await w.committer.commit("the incarnation is in the journal")

        def fails(task: OffsetsTask) -> ListCut:
            message = "no memory"
            raise MemoryError(message)

        w.outputs.cut_task = fails  # type: ignore[method-assign]
        await w.until(lambda: w.committer.tick_due(w.clock.now) == 0)
        await w.committer.commit("this cuts the task")
        assert isinstance(w.group.crashed, MemoryError)

    run(story, exactly_once)


def test_whatever_a_restore_meets_stops_its_partition_alone_and_leaves_no_task_behind() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        w.assignments.revoked()
        await w.assignments.assigned((0, 1))
        restore = w.kafka.restore

        def fails(wanted: RestoreRequest) -> Restored:
            if wanted.partition == 0:
                raise KeyError("of a replay")
            return restore(wanted)

        w.kafka.restore = fails  # type: ignore[method-assign]
        assert await w.assignments.restore(0, dict.fromkeys(TOPICS.values(), 0)) is None
        assert await w.assignments.restore(1, dict.fromkeys(TOPICS.values(), 0)) is not None
        assert 0 not in w.manager.partitions
        assert "of a replay" in w.health.partitions[0].detail
        assert w.group.crashed is None

    run(story)


def test_a_delivery_of_an_earlier_assignment_is_void() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        done = asyncio.get_running_loop().create_future()
        raw = RawRecords("instances", 0, [0], [0], [b"k"], [b"v"], [()])
        await w.manager.process(Delivery(0, (Run("instances", raw, 1),), w.group.epoch - 1, done))
        assert w.outputs.sent == []

    run(story)


def test_a_partition_that_comes_back_keeps_its_task_if_it_stands_at_the_committed_offsets() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.committer.commit("revoked")
        task = w.manager.partitions[0].task
        w.assignments.revoked()
        await w.assign()
        assert w.manager.partitions[0].task is task
        assert w.metric("grove_restore_seconds_count") == 0

    run(story)


def test_a_partition_that_comes_back_is_committed_with_the_ids_that_its_topics_have_now() -> None:
    """A topic may have been made again meanwhile, at the same positions."""

    async def story(w: Worker) -> None:
        await w.assign()
        commit, committed = w.kafka.commit, list[Transaction]()

        def noting(transaction: Transaction) -> None:
            committed.append(transaction)
            commit(transaction)

        restore, ids = w.kafka.restore, {"instances": "again"}
        w.kafka.commit = noting  # type: ignore[method-assign]
        w.kafka.restore = lambda wanted: replace(restore(wanted), topic_ids=ids)  # type: ignore[method-assign]
        await w.deliver(0)
        await w.committer.commit("revoked")
        task = w.manager.partitions[0].task
        w.assignments.revoked()
        await w.assign()
        assert w.manager.partitions[0].task is task
        await w.deliver(1)
        await w.committer.commit("test")
        assert [each.topic_ids for each in committed] == [{}, {TP("instances", 0): "again"}]

    run(story)


def test_a_partition_that_was_elsewhere_meanwhile_is_restored() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.committer.commit("revoked")
        w.assignments.revoked()
        entry = w.kafka.entries(0)[-1]
        w.kafka.journal[0].append(replace(entry, incarnation=2, before=entry.after, after=at(instances=7)))
        w.kafka.task = OffsetsTask(w.outputs, range(7))
        await w.assign()
        assert w.manager.partitions[0].task is cast("Any", w.kafka.task)
        assert w.outputs.happened[-2:] == ["dropped", "adopted"]
        assert w.metric("grove_replayed_records_total") == 5
        w.outputs.delivered = w.outputs.sent = list(range(7))
        await w.deliver(7)
        await w.committer.commit("test")
        assert w.kafka.journal[0][-1].incarnation == 3

    run(story)


def test_a_partition_that_cannot_be_restored_is_stopped_and_the_others_go_on() -> None:
    async def story(w: Worker) -> None:
        def refuse(wanted: RestoreRequest) -> Restored:
            if wanted.partition == 0:
                raise RestoreError(0, "its journal is gone")
            return Restored(None, at(), 0)

        w.kafka.restore = refuse  # type: ignore[method-assign]
        await w.assignments.assigned((0, 1))
        first = dict.fromkeys(TOPICS.values(), 0)
        assert await w.assignments.restore(0, first) is None
        assert await w.assignments.restore(1, first) == first
        w.assignments.live(1)
        assert "its journal is gone; 'grove models reset" in w.health.partitions[0].detail
        assert not all(check.ok for check in w.health.readiness())
        assert w.metric("grove_partitions_stopped_total") == 1

    run(story)


def test_a_partition_waits_for_the_transaction_of_another_worker() -> None:
    async def story(w: Worker) -> None:
        w.kafka.unstable = 1
        await w.assignments.assigned((0,))
        with pytest.raises(NotYetError):
            await w.assignments.restore(0, dict.fromkeys(TOPICS.values(), 0))
        await w.assign()
        assert w.manager.partitions[0].live

    run(story)


def test_a_partition_that_leaves_gives_up_its_task() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.assign((1,))
        assert w.outputs.happened[:1] == ["dropped"]
        assert list(w.manager.partitions) == [1]

    run(story)


def test_an_unexpected_error_stops_its_partition_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        await w.deliver(1, 2, values=(b"poison", b"v"))
        await w.deliver(3)
        await w.deliver(0, partition=1)
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 0): 1, TP("instances", 1): 1}
        assert w.group.dropped == [0]
        assert not all(check.ok for check in w.health.readiness())
        assert all(check.ok for check in w.health.liveness()), "a restart would stop it again"
        assert w.metric("grove_partitions_stopped_total") == 1

    run(story)
    assert "partition 0 is stopped, the others go on: topic=instances partition=0 offset=1" in caplog.text


def test_lag_counts_what_is_not_committed() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.manager.progress.lag({TP("instances", 0): 5, TP("labels", 0): 0}, {})
        assert w.manager.progress.lags() == {TP("instances", 0): 5, TP("labels", 0): 0}
        await w.deliver(0, 1, 2, 3, 4)
        await w.committer.commit("test")
        assert sum(w.manager.progress.lags().values()) == 0

    run(story)


def test_a_stopped_partition_lags_for_ever_but_does_not_make_the_worker_dead() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.manager.progress.lag({TP("instances", 0): 5, TP("instances", 1): 1}, {})
        await w.deliver(0)
        await w.deliver(1, values=(b"poison",))
        await w.deliver(0, partition=1)
        await w.committer.commit("test")
        w.manager.progress.lag({TP("instances", 1): 1}, {})  # the driver has dropped the other
        assert w.manager.progress.lags() == {TP("instances", 0): 4, TP("instances", 1): 0}
        assert (w.health.lag, w.health.lag_since) == (0, None)

    run(story)


def test_what_waits_for_a_leader_does_not_make_the_worker_dead_and_what_is_served_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    away = {TP("labels", 0): "no leader is known"}
    ends = {TP("instances", 0): 5, TP("labels", 0): 7, TP("instances", 1): 3, TP("labels", 1): 0}

    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.manager.progress.lag(ends, away)
        assert w.health.lag == 3, "of partition 1; partition 0 waits for the leader of one of its topics"
        await w.deliver(0, 1, 2, partition=1)
        await w.committer.commit("test")
        for _ in range(3):
            w.manager.progress.lag(ends, away)
        assert w.health.lag_since is None
        assert sum(w.manager.progress.lags().values()) == 12, "it lags all the same"
        assert "the broker does not serve labels-0 (no leader is known)" in w.health.liveness()[1].detail
        w.manager.progress.lag(ends, {})
        assert w.health.lag == 12
        assert w.health.lag_since is not None

    run(story)
    told = [record.message for record in caplog.records if "serve" in record.message]
    assert told == [
        "the broker does not serve labels-0 (no leader is known): their records wait, the others go on",
        "the broker serves all partitions again",
    ]


def test_a_worker_whose_partitions_were_taken_away_has_no_lag_to_work_off() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.manager.progress.lag({TP("instances", 0): 5}, {})
        assert w.health.lag_since is not None
        w.assignments.revoked()
        assert [w.health.lag, w.health.lag_since] == [0, None]

    run(story)


def test_what_an_earlier_member_processed_is_not_committed_before_the_partition_is_restored() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        await w.deliver(0, partition=1)
        w.kafka.member = w.group.membership = Membership(2, "me", None)
        await w.assignments.assigned((0, 1))
        await w.assignments.restore(1, dict.fromkeys(TOPICS.values(), 0))
        w.assignments.live(1)
        await w.deliver(0, partition=1)
        w.clock.now += 1
        assert w.committer.tick_due(w.clock.now) == 1
        await w.committer.commit("stopping")
        assert w.kafka.offsets == {TP("instances", 1): 1}

    run(story)


def test_a_commit_does_not_touch_a_partition_that_was_restored_meanwhile() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 1
        w.outputs.gate.clear()
        await w.deliver()  # starts the commit
        w.kafka.journal[0] = [Entry(3, 1, "", at(), at(instances=7), ())]
        await w.assignments.restore(0, dict.fromkeys(TOPICS.values(), 0))
        w.outputs.gate.set()
        await w.committer.commit("the one at hand")
        assert w.manager.partitions[0].committed == at(instances=7)

    run(story)


def test_what_is_held_during_a_flush_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.worker.processing.commit_schedule.MAX_PASSED_RECORDS", 0)
    monkeypatch.setattr("streamapp.worker.processing.commit_schedule.MAX_HELD_BYTES", 100)

    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.gate.clear()
        await w.deliver(0)
        w.clock.now += 1
        await w.deliver()  # starts the commit
        await asyncio.sleep(0)
        await w.deliver(1, values=(bytes(100),))
        full = asyncio.ensure_future(w.deliver(2))
        await w.until(lambda: w.outputs.flushing)
        await settled()
        assert not full.done(), "it waits until the flush is over"
        w.outputs.gate.set()
        await full
        await w.committer.commit("the rest")
        assert w.outputs.sent == [0, 1, 2]

    run(story)


def test_a_log_that_ends_before_our_position_stops_its_partition_and_nothing_is_guessed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0, 1)
        assert w.manager.out_of_range(TP("instances", 0), 2, 0, 1) is None
        assert w.manager.out_of_range(TP("instances", 0), 2, 0, 1) is None, "said once"
        await w.deliver(2)
        await w.deliver(0, partition=1)
        await w.committer.commit("test")
        assert w.kafka.offsets == {TP("instances", 0): 2, TP("instances", 1): 1}
        assert w.group.dropped == [0]
        assert not all(check.ok for check in w.health.readiness())
        assert w.metric("grove_partitions_stopped_total") == 1
        assert w.metric("grove_records_lost_total") == 0

    run(story)
    assert (
        "partition 0 is stopped, the others go on: topic instances has offsets 0 to 1, but records up to 2 "
        "were processed: it was made anew, or truncated; stop the workers, then 'grove models restore "
    ) in caplog.text


@GUARANTEES
def test_where_a_partition_begins_at_the_end_is_committed_before_it_lives(exactly_once: bool) -> None:
    async def story() -> None:
        w = Worker(exactly_once, commit_start=True)
        w.outputs.sent += range(7)  # before the beginning: nothing has to be delivered for them
        await w.assignments.assigned([0])
        begins = {"controls": 0, "instances": 7, "feature_values": 0, "labels": 0}
        assert await w.assignments.restore(0, begins) == begins
        assert w.kafka.offsets == {TP("instances", 0): 7}
        (entry,) = w.kafka.entries(0)
        assert (entry.before, entry.after, entry.steps) == (at(instances=7), at(instances=7), ())
        assert entry.config is not None
        again = Worker(exactly_once, commit_start=True)  # after a crash; the log has grown
        again.assignments._restore, w.kafka.task = w.kafka.restore, again.outputs.new_task(0)
        await again.assignments.assigned([0])
        assert await again.assignments.restore(0, {**begins, "instances": 9}) == begins

    asyncio.run(story())


def test_a_start_that_cannot_be_committed_is_looked_for_again() -> None:
    async def story() -> None:
        w = Worker(True, commit_start=True)
        await w.assignments.assigned([0])
        w.kafka.member = Membership(2, "another", None)
        assert await w.assignments.restore(0, dict.fromkeys(TOPICS.values(), 3)) is None
        assert (w.manager.partitions, w.group.rejoined, w.kafka.journal) == ({}, 1, {})

    asyncio.run(story())


def test_what_retention_took_is_lost_counted_and_noted_in_the_journal() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        assert w.manager.out_of_range(TP("instances", 0), 2, 7, 9) == 7
        w.outputs.sent += range(2, 7)  # no records: nothing has to be delivered for them
        await w.deliver(7)
        await w.committer.commit("test")
        assert w.kafka.entries(0)[0].steps == (
            Step("instances", 2),
            Step("instances", 7, ((2, 7),)),
            Step("instances", 8),
        )
        assert w.metrics.registry.get_sample_value("grove_records_lost_total", {"topic": "instances"}) == 5
        assert w.health.partitions == {0: PartitionStatus(Stage.LIVE)}

    run(story)


@GUARANTEES
def test_retention_that_overtakes_what_waits_loses_nothing_of_it(exactly_once: bool) -> None:
    """The records that were fetched before lie in front of those that are gone: they come first."""

    async def story(w: Worker) -> None:
        await w.assign()
        order = TimeOrder(
            0, [(topic, 0) for topic in TOPICS.values()], skew_ms=0, max_idle_ms=-1, max_records=2
        )
        order.add(
            "instances",
            FetchedColumns(
                RecordSpans.of(range(4), [0] * 4, [b"k"] * 4, [b"v"] * 4, [()] * 4), position=4, log_end=20
            ),
        )
        consumer: Any = Consumer.__new__(Consumer)
        consumer.epoch, consumer._orders = w.group.epoch, {0: order}
        consumer.wiring = SimpleNamespace(manager=w.manager)

        async def log_ranges(partitions: list[TP]) -> dict[TP, tuple[int, int]]:
            return dict.fromkeys(partitions, (9, 20))

        consumer._thread = SimpleNamespace(log_ranges=log_ranges)
        for _ in range(2):  # a run of what waits, and then the other
            await consumer._jump(w.group.epoch, [TP("instances", 0)])
            assert "instances" not in [ahead.topic for ahead in order.wanted()], "it would fail again at once"
            run = order.next_run(0.0)
            assert run is not None
            done = asyncio.get_running_loop().create_future()
            await w.manager.process(Delivery(0, (run,), w.group.epoch, done))
            await w.committer.commit("test")
            assert w.kafka.offsets[TP("instances", 0)] == run.position
            assert (
                w.metrics.registry.get_sample_value("grove_records_lost_total", {"topic": "instances"})
                is None
            )
        assert "instances" in [ahead.topic for ahead in order.wanted()]
        await consumer._jump(w.group.epoch, [TP("instances", 0)])
        w.outputs.sent += range(4, 9)  # no records: nothing has to be delivered for them
        await w.committer.commit("test")
        assert w.kafka.offsets[TP("instances", 0)] == 9
        assert w.metrics.registry.get_sample_value("grove_records_lost_total", {"topic": "instances"}) == 5
        steps = [entry.steps for entry in w.kafka.entries(0)]
        assert steps == [(Step("instances", 2),), (Step("instances", 4),), (Step("instances", 9, ((4, 9),)),)]
        ahead = order.topics["instances"]
        assert (ahead.position, ahead.lag) == (9, 11), "labels do not overtake what is still to be fetched"

    run(story, exactly_once)


def test_records_that_come_in_another_order_than_that_of_their_log_end_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(5)
        await w.deliver(3)
        assert isinstance(w.group.crashed, LedgerError)
        await w.committer.commit("test")
        assert w.kafka.offsets == {}

    run(story)


def test_offsets_are_committed_with_the_id_of_their_topic_and_at_first_all_of_them() -> None:
    committed: list[Transaction] = []

    async def story(w: Worker) -> None:
        restored = Restored(
            None, at(controls=3, instances=10), 0, topic_ids={"controls": "C", "instances": "I"}
        )
        w.kafka.restore = lambda wanted: restored  # type: ignore[method-assign]
        w.kafka.commit = committed.append  # type: ignore[method-assign, assignment]
        await w.assign()
        for offset in (10, 11):
            await w.deliver(offset)
            await w.committer.commit("test")

    run(story)
    controls, instances = TP("controls", 0), TP("instances", 0)
    assert [each.offsets for each in committed] == [
        {controls: 3, instances: 11, TP("feature_values", 0): 0, TP("labels", 0): 0},
        {instances: 12},
    ]
    assert [each.topic_ids for each in committed] == [{controls: "C", instances: "I"}, {instances: "I"}]


def test_a_partition_that_waits_says_so_in_its_state_and_now_and_then_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")

    async def story(w: Worker) -> None:
        await w.assignments.assigned((0, 1))
        for second in range(25):
            w.assignments.waits(0, f"no leader at {second}")
            w.assignments.waits(1, "a transaction is open")
            w.clock.now += 1
        waits = {number: str(status) for number, status in w.health.partitions.items()}
        assert waits == {0: "waits: no leader at 24", 1: "waits: a transaction is open"}

    run(story)
    said = [record.message for record in caplog.records if record.message.startswith("Partition 0")]
    assert said == [f"Partition 0 waits: no leader at {second}" for second in (0, 10, 20)]


def test_how_far_a_restore_is_counts_only_while_it_is_waited_for() -> None:
    async def story(w: Worker) -> None:
        say: list[Callable[[str], None]] = []
        restore = w.kafka.restore

        def telling(wanted: RestoreRequest) -> Restored:
            say.append(wanted.progress.say)
            wanted.progress.say("replayed 1 of 2 records")
            assert str(w.health.partitions[0]) == "restoring: replayed 1 of 2 records"
            return restore(wanted)

        w.kafka.restore = telling  # type: ignore[method-assign]
        await w.assign()
        say[0]("replayed 2 of 2 records")
        assert w.health.partitions == {0: PartitionStatus(Stage.LIVE)}
        w.assignments.revoked()
        say[0]("replayed 2 of 2 records")
        assert w.health.partitions == {}

    run(story)


def test_a_poll_does_not_spin_for_what_nobody_here_can_commit() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.assignments.revoked()
        w.group.membership = Membership(2, "me", None)
        await w.assignments.assigned((0,))  # its last commit failed; it is not restored yet
        w.clock.now += 1
        assert w.committer.tick_due(w.clock.now) is None
        assert w.committer.seconds_to_tick(w.clock.now) == float("inf")

    run(story)
