"""Runs, commits and hand-over of partitions, without Faust and without a broker."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from faust.types import TP

from streamapp.health import Health
from streamapp.metrics import Metrics
from streamapp.runs import Run
from streamapp.task_manager import TaskManager
from streamapp.transport.delivery import Delivery
from streamapp.transport.thread import CommitRefusedError, Membership
from topics.records import RawRecords

TOPICS = ("instances", "labels")


class Outputs:
    """A processor that writes down what happens; tasks are lists of offsets."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.sent: list[int] = []
        self.delivered: list[int] = []
        self.fails = False
        self.refuses = False
        self.gate = threading.Event()
        self.gate.set()
        self.is_full = False
        self.room = threading.Event()
        self.loses = False
        self.output_bytes = 0

    def new_task(self, partition: int) -> list[int]:
        return []

    def drop_task(self, task: list[int]) -> None:
        self.happened.append("dropped")

    def compute(self, task: list[int], run: Run) -> list[int]:
        if b"poison" in run.raw.values:
            message = f"topic={run.topic} partition={run.raw.partition} offset={run.raw.offsets[0]}"
            raise ValueError(message)
        task += run.raw.offsets
        return run.raw.offsets

    def send(self, run: Run, effects: list[int]) -> None:
        if self.refuses:
            message = "the producer did not take it"
            raise RuntimeError(message)
        self.sent += effects

    def bytes_of(self, effects: list[int]) -> int:
        return self.output_bytes * len(effects)

    def drain(self) -> None:
        assert self.room.wait(10)
        if self.loses:
            message = "outputs are lost"
            raise RuntimeError(message)
        self.happened.append("drained")
        self.is_full = False

    def flush(self) -> None:
        sent = list(self.sent)
        assert self.gate.wait(10)
        if self.fails:
            message = "outputs are lost"
            raise RuntimeError(message)
        self.happened.append("flushed")
        self.delivered = sent


class Group:
    """The driver as the task manager sees it, and the offsets of the group."""

    def __init__(self, outputs: Outputs) -> None:
        self.membership: Membership | None = Membership(1, "me", None)
        self.epoch = 1
        self.broker_reachable = True
        self.offsets: dict[TP, int] = {}
        self.dropped: list[int] = []
        self.crashed: BaseException | None = None
        self.before_commit: Callable[[], Awaitable[None]] | None = None
        self._outputs = outputs

    async def commit_as(self, membership: Membership, offsets: Mapping[TP, int]) -> None:
        if self.before_commit is not None:
            await self.before_commit()
        if membership != self.membership:
            message = "over"
            raise CommitRefusedError(message)
        for tp, at in offsets.items():
            assert set(range(self.offsets.get(tp, 0), at)) <= set(self._outputs.delivered), "flush first"
        self.offsets |= offsets

    def abandon(self) -> None:
        self.epoch += 1

    def drop(self, partition: int) -> None:
        self.dropped.append(partition)

    async def crash(self, reason: BaseException) -> None:
        self.crashed = reason


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """A manager with its surroundings, and partition 0 live."""

    def __init__(self) -> None:
        self.outputs, self.clock, self.health, self.metrics = Outputs(), Clock(), Health(), Metrics()
        self.group = Group(self.outputs)
        self.manager = TaskManager(
            self.outputs, self.metrics, self.health, commit_interval=0.1, clock=self.clock
        )
        self.manager.attach(self.group)

    async def assign(self, partitions: tuple[int, ...] = (0,), new: bool = True, **at: int) -> None:
        self.manager.assigned(partitions)
        for partition in partitions:
            await self.manager.restore(partition, {t: at.get(t, 0) for t in TOPICS}, new=new)
            self.manager.live(partition)

    async def deliver(
        self, *offsets: int, topic: str = "instances", partition: int = 0, values: tuple[bytes, ...] = ()
    ) -> None:
        n = len(offsets)
        raw = RawRecords(
            topic, partition, list(offsets), [0] * n, [b"k"] * n, list(values) or [b"v"] * n, [()] * n
        )
        run = Run(topic, raw, offsets[-1] + 1) if offsets else None
        done = asyncio.get_running_loop().create_future()
        await self.manager.process(Delivery(partition, run, self.group.epoch, done))
        assert done.done(), "the driver waits for it"

    def metric(self, name: str) -> float:
        return self.metrics.registry.get_sample_value(name) or 0.0


def run(story: Callable[[Worker], Awaitable[Any]]) -> None:
    async def told() -> None:
        await story(Worker())

    asyncio.run(told())


def test_offsets_are_committed_per_interval_after_the_outputs() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1, 2)
        assert w.group.offsets == {}
        w.clock.now += 0.2
        await w.deliver(3, topic="instances")
        await w.manager.commit("test")
        assert w.group.offsets == {TP("instances", 0): 4}
        assert w.outputs.happened == ["flushed"]

    run(story)


def test_a_tick_is_due_for_a_partition_with_uncommitted_work() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        assert w.manager.tick_due(w.clock.now + 100) is None
        assert w.manager.seconds_to_tick(w.clock.now) == float("inf")
        await w.deliver(0, partition=1)
        assert w.manager.tick_due(w.clock.now) is None
        assert w.manager.seconds_to_tick(w.clock.now) == pytest.approx(0.1)
        w.clock.now += 0.1
        assert w.manager.tick_due(w.clock.now) == 1
        await w.deliver(partition=1)
        await w.manager.commit("wait for the one at hand")
        assert w.group.offsets == {TP("instances", 1): 1}
        assert w.manager.tick_due(w.clock.now + 100) is None

    run(story)


def test_a_run_of_a_partition_that_is_not_live_ends_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.manager.assigned((0,))  # again, and not live yet
        await w.deliver(0, 1)
        assert "partition 0 is not live" in str(w.group.crashed)
        await w.manager.commit("too late")
        assert w.group.offsets == {}, "the driver calls it processed, which it is not"

    run(story)


def test_what_a_stopped_partition_did_before_is_committed_too() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1, values=(b"poison",))
        w.clock.now += 1
        assert w.manager.tick_due(w.clock.now) == 0
        await w.deliver()
        await w.manager.commit("wait for it")
        assert w.group.offsets == {TP("instances", 0): 1}
        assert w.manager.tick_due(w.clock.now + 1) is None

    run(story)


def test_markers_behind_the_last_record_are_committed_too() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        w.outputs.sent += [2, 3]  # no records: nothing has to be delivered for them
        w.manager.moved(0, "instances", 4)
        await w.manager.commit("test")
        assert w.group.offsets == {TP("instances", 0): 4}

    run(story)


def test_computing_goes_on_while_a_commit_is_under_way_and_its_outputs_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamapp.commits.MAX_PASSED_RECORDS", 1)

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
        await w.manager.commit("the rest")
        assert w.outputs.sent == [0, 1, 2, 3, 4]
        assert w.group.offsets == {TP("instances", 0): 5}

    run(story)


def test_nothing_is_committed_past_an_output_that_was_lost() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.fails = True
        await w.manager.commit("test")
        assert isinstance(w.group.crashed, RuntimeError)
        w.outputs.fails = False
        await w.deliver(1)
        await w.manager.commit("again")
        assert w.group.offsets == {}
        assert w.outputs.sent == [0], "what comes later is not processed any more"

    run(story)


def test_nothing_is_committed_past_an_output_that_the_producer_did_not_take() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.refuses = True
        w.clock.now += 1
        await w.deliver(1)
        assert isinstance(w.group.crashed, RuntimeError)
        w.outputs.refuses = False
        w.manager.moved(0, "instances", 2)  # the driver, after what it fetched next
        await w.deliver(2)
        await w.manager.commit("stopping")
        assert w.group.offsets == {}
        assert w.outputs.sent == [0]

    run(story)


def test_while_the_producer_has_no_room_the_loop_goes_on_and_no_run_is_processed() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.outputs.is_full = True
        first = asyncio.ensure_future(w.deliver(0))
        second = asyncio.ensure_future(w.deliver(0, partition=1))
        for _ in range(10):
            await asyncio.sleep(0)  # the loop turns
        assert w.outputs.sent == [0]
        assert not first.done(), "the driver waits: it is the back-pressure"
        w.outputs.room.set()
        await asyncio.gather(first, second)
        assert (w.outputs.sent, w.outputs.happened) == ([0, 0], ["drained"])
        await w.manager.commit("test")
        assert w.group.offsets == {TP("instances", 0): 1, TP("instances", 1): 1}

    run(story)


def test_nothing_is_committed_past_an_output_that_was_lost_while_it_waited_for_room() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.is_full = w.outputs.loses = True
        w.outputs.room.set()
        w.clock.now += 1
        await w.deliver(0)
        assert isinstance(w.group.crashed, RuntimeError)
        await w.manager.commit("stopping")
        assert w.group.offsets == {}

    run(story)


def test_the_outputs_of_what_is_held_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.commits.MAX_PASSED_RECORDS", 0)
    monkeypatch.setattr("streamapp.commits.MAX_HELD_BYTES", 150)

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
        for _ in range(10):
            await asyncio.sleep(0)
        assert not third.done(), "two outputs of 100 bytes each are held"
        w.outputs.gate.set()
        await third
        assert w.outputs.sent == [0, 1, 2, 3]

    run(story)


def test_a_refused_commit_abandons_what_was_fetched() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)

        async def rejoin() -> None:
            w.group.membership = Membership(2, "me", None)

        w.group.before_commit = rejoin
        await w.manager.commit("test")
        assert (w.group.epoch, w.group.offsets, w.group.crashed) == (2, {}, None)
        assert w.metric("grove_commits_refused_total") == 1

    run(story)


def test_a_delivery_of_an_earlier_assignment_is_void() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        done = asyncio.get_running_loop().create_future()
        raw = RawRecords("instances", 0, [0], [0], [b"k"], [b"v"], [()])
        await w.manager.process(Delivery(0, Run("instances", raw, 1), w.group.epoch - 1, done))
        assert w.outputs.sent == []

    run(story)


def test_a_partition_that_comes_back_keeps_its_task_if_it_stands_at_the_committed_offsets() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.manager.commit("revoked")
        task = w.manager.partitions[0].task
        w.manager.revoked()
        await w.assign(new=False, instances=2)
        assert w.manager.partitions[0].task is task
        assert w.metric("grove_state_lost_total") == 0

    run(story)


def test_a_partition_that_was_elsewhere_meanwhile_starts_anew_and_the_loss_is_counted() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.manager.commit("revoked")
        w.manager.revoked()
        await w.assign(new=False, instances=7)
        assert w.manager.partitions[0].task == []
        assert w.outputs.happened == ["flushed", "dropped"]
        assert w.metric("grove_state_lost_total") == 1

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
        await w.manager.commit("test")
        assert w.group.offsets == {TP("instances", 0): 1, TP("instances", 1): 1}
        assert w.group.dropped == [0]
        assert not all(check.ok for check in w.health.ready())
        assert all(check.ok for check in w.health.living()), "a restart would stop it again"
        assert w.metric("grove_partitions_stopped_total") == 1

    run(story)
    assert "partition 0 is stopped, the others go on: topic=instances partition=0 offset=1" in caplog.text


def test_lag_counts_what_is_not_committed() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.manager.lag({TP("instances", 0): 5, TP("labels", 0): 0}, {})
        assert w.manager.lags() == {TP("instances", 0): 5, TP("labels", 0): 0}
        await w.deliver(0, 1, 2, 3, 4)
        await w.manager.commit("test")
        assert sum(w.manager.lags().values()) == 0

    run(story)


def test_a_stopped_partition_lags_for_ever_but_does_not_make_the_worker_dead() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        w.manager.lag({TP("instances", 0): 5, TP("instances", 1): 1}, {})
        await w.deliver(0)
        await w.deliver(1, values=(b"poison",))
        await w.deliver(0, partition=1)
        await w.manager.commit("test")
        w.manager.lag({TP("instances", 1): 1}, {})  # the driver has dropped the other
        assert w.manager.lags() == {TP("instances", 0): 4, TP("instances", 1): 0}
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
        w.manager.lag(ends, away)
        assert w.health.lag == 3, "of partition 1; partition 0 waits for the leader of one of its topics"
        await w.deliver(0, 1, 2, partition=1)
        await w.manager.commit("test")
        for _ in range(3):
            w.manager.lag(ends, away)
        assert w.health.lag_since is None
        assert sum(w.manager.lags().values()) == 12, "it lags all the same"
        assert "the broker does not serve labels-0 (no leader is known)" in w.health.living()[1].said
        w.manager.lag(ends, {})
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
        w.manager.lag({TP("instances", 0): 5}, {})
        assert w.health.lag_since is not None
        w.manager.revoked()
        assert (w.health.lag, w.health.lag_since) == (0, None)

    run(story)


def test_what_an_earlier_member_processed_is_not_committed_before_the_partition_is_restored() -> None:
    async def story(w: Worker) -> None:
        await w.assign((0, 1))
        await w.deliver(0)
        await w.deliver(0, partition=1)
        w.group.membership = Membership(2, "me", None)
        w.manager.assigned((0, 1))
        await w.manager.restore(1, {"instances": 1, "labels": 0}, new=False)
        w.manager.live(1)
        await w.deliver(1, partition=1)
        w.clock.now += 1
        assert w.manager.tick_due(w.clock.now) == 1
        await w.manager.commit("stopping")
        assert w.group.offsets == {TP("instances", 1): 2}

    run(story)


def test_a_commit_does_not_touch_a_partition_that_was_restored_meanwhile() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)

        async def rebalance() -> None:
            await w.manager.restore(0, {"instances": 7, "labels": 0}, new=False)

        w.group.before_commit = rebalance
        await w.manager.commit("late")
        assert w.manager.partitions[0].committed == {"instances": 7, "labels": 0}

    run(story)


def test_what_is_held_during_a_flush_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.commits.MAX_PASSED_RECORDS", 0)
    monkeypatch.setattr("streamapp.commits.MAX_HELD_BYTES", 100)

    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.gate.clear()
        await w.deliver(0)
        w.clock.now += 1
        await w.deliver()  # starts the commit
        await asyncio.sleep(0)
        await w.deliver(1, values=(bytes(100),))
        full = asyncio.ensure_future(w.deliver(2))
        done, _ = await asyncio.wait([full], timeout=0.05)
        assert not done, "it waits until the flush is over"
        w.outputs.gate.set()
        await full
        await w.manager.commit("the rest")
        assert w.outputs.sent == [0, 1, 2]

    run(story)
