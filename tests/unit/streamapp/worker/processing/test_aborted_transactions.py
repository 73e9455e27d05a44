"""Aborted transactions: the worker goes back to what is committed, or ends, and no record is lost."""

import asyncio
import random

import pytest

from tests.positions import at
from tests.unit.streamapp.settled import settled
from tests.unit.streamapp.worker.processing.rig import GUARANTEES, ME, SNAPSHOT_BYTES, Thread, Worker, run
from topics.errors import AbortedError

ABORTED = "grove_transactions_aborted_total"


def lost() -> AbortedError:
    return AbortedError("1 record was not delivered")


async def abort_of_partition_0(w: Worker, values: tuple[bytes, ...] = ()) -> None:
    """Commit a record of partition 1, then lose one of partition 0 by an abort; `values`: of the former."""
    await w.assign(0, 1)
    await w.deliver(0, partition=1, values=values)
    await w.commit("all of partition 1")
    await w.deliver(0)
    w.lose_membership()
    await w.commit()


@GUARANTEES
def test_an_aborted_transaction_drops_what_it_undid_and_joins_the_group_again(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await abort_of_partition_0(w)
        assert (w.group.epoch, w.offsets, w.ended) == (2, {("instances", 1): 1}, None)
        assert (w.kafka.aborts, w.group.rejoined, w.here, w.outputs.closed) == (1, 1, [1], 1)
        assert w.metric(ABORTED) == 1
        w.join_again()
        await w.assign(0, 1)
        await w.deliver(0)
        await w.deliver(1, partition=1)
        await w.commit("again")
        assert w.offsets == {("instances", 0): 1, ("instances", 1): 2}
        assert (w.outputs.tasks[0], w.outputs.tasks[1], w.outputs.closed) == ([0], [0, 1], 1)

    run(story, exactly_once)


@GUARANTEES
def test_a_task_that_another_worker_left_behind_meanwhile_does_not_stay(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await abort_of_partition_0(w)
        assert w.here == [1]
        w.kafka.another_worker_commits(1, instances=3)
        w.join_again()
        await w.assign(0, 1)
        assert w.outputs.tasks[1] == [0, 1, 2]

    run(story, exactly_once)


def test_nothing_of_a_task_that_stays_is_committed_before_it_is_assigned_again() -> None:
    async def story(w: Worker) -> None:
        await abort_of_partition_0(w)
        w.kafka.member = ME
        w.markers_up_to(5, partition=1)
        await w.commit("partitions revoked")
        assert (w.offsets, w.kafka.aborts) == ({("instances", 1): 1}, 1)

    run(story)


@GUARANTEES
def test_a_stop_after_an_abort_does_not_wait_for_a_snapshot_that_cannot_be_taken(
    exactly_once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(w: Worker) -> None:
        await abort_of_partition_0(w)
        assert w.here == [1]
        await w.stop()
        assert (w.ended, w.kafka.aborts) == (None, 1)

    run(story, exactly_once)
    assert "no snapshot of their end" not in caplog.text


def test_a_task_that_stays_gets_its_snapshot_after_it_is_assigned_again() -> None:
    async def story(w: Worker) -> None:
        await abort_of_partition_0(w, values=(bytes(SNAPSHOT_BYTES),))
        assert (w.here, w.tick_due()) == ([1], None)
        w.join_again()
        await w.assign(0, 1)
        await w.tick_becomes_due(1)
        await w.commit("this cuts the task")
        await w.tick_becomes_due(1)
        await w.commit("its manifest")
        assert w.snapshots(1) == [(b"[0]", at(instances=1))]

    run(story)


def test_a_task_whose_cut_is_lost_with_a_transaction_does_not_stay() -> None:
    """Its next snapshot would lack what changed before that cut."""

    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0, partition=1, values=(bytes(SNAPSHOT_BYTES),))
        await w.commit("a snapshot of partition 1 is due")
        await w.until(lambda: bool(w.manager.committer.tick_due(w.clock.now)))
        await w.deliver(0)
        w.lose_membership()
        await w.commit()
        assert (w.here, w.ended) == ([], None)

    run(story)


def test_a_run_whose_outputs_are_refused_during_a_commit_that_aborts_takes_its_task_along() -> None:
    """The task has learned records that its ledger does not have."""

    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        await w.begin_commit()
        w.outputs.refuses = lost()
        waiting = asyncio.ensure_future(w.deliver(0, partition=1))
        await settled()
        w.answer_flush(lost())
        await waiting
        assert (w.kafka.aborts, w.group.rejoined, w.here) == (1, 1, [])

    run(story, exactly_once=False)


@GUARANTEES
def test_a_transaction_that_is_aborted_while_a_thread_computes_takes_its_run_along(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1)
        await w.begin_commit()
        thread = Thread(w)
        large = asyncio.ensure_future(w.deliver(2))
        await thread.begun.wait()
        w.answer_flush(lost())
        await w.until(lambda: not w.outputs.flushing)
        await settled()
        assert w.here == [0], "its task changes just now"
        thread.may_end.set()
        await large
        await w.until(lambda: w.group.rejoined == 1)
        assert (w.kafka.aborts, w.here, w.ended) == (1, [], None)
        w.outputs.fails = w.outputs.computes = None
        w.join_again()
        await w.assign()
        await w.deliver(0, 1, 2)
        await w.commit("again")
        assert w.offsets == {("instances", 0): 3}
        assert set(w.kafka.seen) == {0, 1, 2}
        assert not exactly_once or w.kafka.seen == [0, 1, 2]

    run(story, exactly_once)


@GUARANTEES
def test_a_transaction_that_a_run_and_a_commit_find_aborted_is_aborted_once(exactly_once: bool) -> None:
    """A long outage, with outputs that the producer has no room for."""

    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        await w.begin_commit()
        w.outputs.fill(loses=lost())
        waiting = asyncio.ensure_future(w.deliver(0, partition=1))
        w.outputs.room.set()
        await w.until(lambda: w.outputs.lost)
        await settled()
        w.answer_flush(AbortedError("the transaction coordinator was not heard of"))
        await waiting
        assert (w.kafka.aborts, w.group.rejoined, w.ended) == (1, 1, None)
        assert (w.metric(ABORTED), w.group.epoch, w.here) == (1, 2, [])

    run(story, exactly_once)


@GUARANTEES
def test_outputs_that_are_lost_during_a_commit_that_succeeds_are_aborted(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1)
        await w.begin_commit()
        w.outputs.fill(loses=lost())
        waiting = asyncio.ensure_future(w.deliver(2))
        w.outputs.room.set()
        await w.until(lambda: w.outputs.lost)
        w.answer_flush()
        await waiting
        assert (w.kafka.aborts, w.group.rejoined, w.ended) == (1, 1, None)
        assert w.offsets == {("instances", 0): 2}

    run(story, exactly_once)


def test_an_abort_that_a_run_needs_and_that_is_refused_ends_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.fill(loses=lost())
        w.outputs.room.set()
        w.kafka.refuses_aborts = True
        await w.deliver(0)
        assert (str(w.ended), w.group.rejoined) == ("denied", 0)

    run(story)


@GUARANTEES
def test_an_abort_that_a_stop_gives_up_is_no_crash(
    exactly_once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.lose_membership()
        w.kafka.away_at_stop = True
        await w.commit("stopping")
        assert (w.ended, w.group.rejoined, w.offsets) == (None, 0, {})
        await w.deliver(1)
        await w.commit("stopping")
        assert (w.kafka.aborts, w.outputs.sent) == (1, [0]), "nothing goes on after it"

    run(story, exactly_once)
    assert "the broker is away; uncommitted records will be processed again" in caplog.text


@GUARANTEES
def test_what_is_aborted_again_and_again_ends_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        w.lose_membership()  # a reason that does not go away
        while w.ended is None:
            await w.assign()
            await w.deliver(0)
            await w.commit()
            assert w.metric(ABORTED) < 10
        assert isinstance(w.ended, AbortedError)
        assert (w.group.rejoined, w.offsets) == (5, {})

    run(story, exactly_once)


def test_a_start_that_cannot_be_committed_is_looked_for_again() -> None:
    async def story(w: Worker) -> None:
        await w.assigned(0)
        w.lose_membership()
        assert await w.restore(0, instances=3) is None
        assert (w.here, w.group.rejoined, w.kafka.journal, w.stopped) == ([], 1, {}, {})

    run(story, commit_start=True)


@GUARANTEES
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_aborted_each_record_has_its_outcome(seed: int, exactly_once: bool) -> None:
    """Exactly once it has one, in the order of the log; else it may have several."""
    draw, n = random.Random(seed), 120

    async def story(w: Worker) -> None:
        async def read(most: int) -> None:
            """Deliver what comes next in the log."""
            if 0 in w.group.positions:
                position = w.group.positions[0]["instances"]
                if offsets := range(position, min(n, position + most)):
                    await w.deliver(*offsets)

        async def commit() -> None:
            """Let a commit begin, and process on while it lasts."""
            await read(2)
            await w.begin_commit()
            await read(draw.randrange(1, 4))
            w.answer_flush(w.outputs.fails)
            await w.commit("what came meanwhile")

        w.outputs.room.set()
        await w.assign()
        what, ends = "", n - 40
        while w.offsets.get(("instances", 0), 0) < ends:
            hurts = ["is refused", "loses outputs", "has no room"]
            what = "commits" if what in hurts else draw.choice(["commits", *hurts])
            await read(draw.randrange(1, 5))
            if what == "is refused":
                w.lose_membership()
            w.outputs.fails = lost() if what == "loses outputs" else None
            if what == "has no room":
                w.outputs.fill(loses=lost())
                await read(1)
                w.outputs.empty()
            else:
                await commit()
            if what != "commits":
                assert (w.here, w.ended) == ([], None)
                w.outputs.fails = None
                w.join_again()
                await w.assign()
        await read(n)
        await w.commit("the rest")
        assert w.kafka.aborts > 1, "or nothing was tried"
        if exactly_once:
            assert w.kafka.seen == [*range(n)]
        assert set(w.kafka.seen) == set(range(n))
        assert w.outputs.tasks[0] == [*range(n)], "its task has learned each of them once"
        assert w.kafka.entries(0)[-1].after["instances"] == n

    run(story, exactly_once)
