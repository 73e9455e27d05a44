"""Snapshots of tasks: at a committed point, part of a transaction, and what the journal has after them."""

import asyncio

import pytest

from streamapp.worker.journal.entry import Manifest, Skip
from tests.positions import at
from tests.unit.streamapp.worker.processing.rig import (
    GUARANTEES,
    SNAPSHOT_BYTES,
    Worker,
    leave_at_once,
    run,
)


@GUARANTEES
def test_a_snapshot_is_of_the_task_at_a_committed_point_and_counts_once_it_is_in_the_journal(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.commit("the incarnation is in the journal")
        await w.deliver(1, values=(bytes(SNAPSHOT_BYTES),))
        await w.tick_becomes_due()
        await w.commit("this cuts the task")
        await w.deliver(2)
        await w.tick_becomes_due()
        assert w.snapshots(0) == []
        await w.tick()
        await w.commit("this commits the manifest")
        assert w.snapshots(0) == [(b"[0, 1]", at(instances=2))]
        assert w.kafka.entries(0)[-1].after == at(instances=3)
        assert w.metric("grove_snapshots_total") == 1

    run(story, exactly_once)


@GUARANTEES
def test_skips_that_lie_ahead_are_written_again_after_each_snapshot(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        passed, *ahead = w.kafka.skips = (
            Skip(1, "instances", 0, ""),
            Skip(1, "instances", 7, "id"),
            Skip(1, "labels", 0, ""),
        )
        await w.write_snapshot()
        await w.commit("this commits the manifest")
        manifest = next(n for n, record in enumerate(w.kafka.journal[0]) if isinstance(record, Manifest))
        assert w.kafka.journal[0][manifest + 1 : manifest + 3] == ahead
        assert passed not in w.kafka.journal[0]

    run(story, exactly_once)


def test_a_snapshot_whose_transaction_is_aborted_does_not_count() -> None:
    """Its transaction has nothing but the manifest, and offsets all the same: for those a member is refused
    whose time in the group is over."""

    async def story(w: Worker) -> None:
        await w.write_snapshot()
        w.lose_membership()
        await w.commit("too late")
        assert w.table.chunks_of[0], "it was written"
        assert (w.snapshots(0), w.tick_due(), w.here, w.group.rejoined) == ([], None, [], 1)

    run(story)


def test_a_commit_of_a_snapshot_alone_moves_no_offsets() -> None:
    async def story(w: Worker) -> None:
        await w.write_snapshot()
        before = w.offsets
        await w.commit("nothing but the manifest")
        assert w.snapshots(0) == [(b"[0]", at(instances=1))]
        assert w.kafka.transactions[-1].offsets == {("controls", 0): 0}
        assert w.offsets == before

    run(story)


@GUARANTEES
def test_a_cut_that_fails_ends_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, values=(bytes(SNAPSHOT_BYTES),))
        await w.commit("the incarnation is in the journal")
        w.outputs.cut_fails = MemoryError("no memory")
        await w.tick_becomes_due()
        await w.commit("this cuts the task")
        assert w.ended is w.outputs.cut_fails
        assert w.snapshots(0) == []

    run(story, exactly_once)


# -- the snapshots of a worker that ends


@GUARANTEES
def test_a_worker_that_ends_leaves_a_snapshot_of_each_partition_where_it_committed_last(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1, 2)
        await w.deliver(0, 1)
        await w.commit("nothing is due yet")
        await w.deliver(2)
        await w.deliver(0, topic="labels", partition=1)
        await w.stop()
        for number, task, positions in ((0, b"[0, 1, 2]", at(instances=3)), (1, b"[0]", at(labels=1))):
            assert w.snapshots(number) == [(task, positions)]
            assert w.kafka.entries(number)[-1].after == positions
        assert 2 not in w.kafka.journal, "nothing has changed there"
        before = w.table.writes
        await w.stop()  # Faust stops an app twice
        assert w.table.writes == before

    run(story, exactly_once)


def test_a_worker_that_ends_writes_only_what_has_changed_since_the_snapshot_under_way() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        await w.deliver(0, partition=1, values=(bytes(SNAPSHOT_BYTES),))
        await w.commit("the incarnations are in the journal")
        await w.tick_becomes_due(1)
        await w.commit("this cuts partition 1")
        await w.deliver(1)
        await w.stop()
        assert w.snapshots(0)[-1][0] == b"[0, 1]"
        assert w.snapshots(1) == [(b"[0]", at(instances=1))]

    run(story)


def test_a_worker_that_fails_leaves_no_snapshots() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.stop(is_asked=False)
        assert (w.table.writes, w.offsets) == (0, {})

    run(story)


def test_a_commit_that_does_not_get_through_at_the_end_is_not_followed_by_snapshots() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.gate.clear()
        await w.stop(0.01)
        assert w.table.writes == 0
        w.answer_flush()

    run(story)


@pytest.mark.parametrize("known", [True, False], ids=["as-is-known", "as-is-not-known-yet"])
def test_a_broker_that_is_away_is_not_waited_for_with_snapshots(
    known: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leave_at_once(monkeypatch)

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.commit("the broker is still there")
        w.group.broker_reachable = not known
        w.table.failures = 1000
        async with asyncio.timeout(60):
            await w.stop()
        assert (w.tick_due(), w.snapshots(0)) == (None, [])

    run(story)
    told = "partitions [0] have no snapshot of their end" in caplog.text
    assert told is not known
