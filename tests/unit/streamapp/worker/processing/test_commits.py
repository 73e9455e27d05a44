"""Commits: when they begin, in which order outputs, journal and offsets count, and when nothing may count."""

import asyncio
from typing import Any, cast

import pytest

from streamapp.worker.journal.entry import Step
from streamapp.worker.journal.ledger import LedgerError
from streamapp.worker.processing.commit_schedule import CommitSchedule
from tests.positions import at
from tests.unit.streamapp.settled import settled
from tests.unit.streamapp.worker.processing.rig import (
    COMMIT_INTERVAL,
    GUARANTEES,
    Thread,
    Worker,
    records,
    run,
)
from topics.errors import DeliveryError


@GUARANTEES
def test_offsets_are_committed_per_interval_after_the_outputs(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1, 2)
        await settled()
        assert (w.offsets, w.outputs.delivered) == ({}, [])
        w.clock.now += 2 * COMMIT_INTERVAL
        await w.deliver(3)
        await w.until(lambda: bool(w.offsets))
        assert w.offsets == {("instances", 0): 4}
        assert w.kafka.seen == [0, 1, 2, 3]

    run(story, exactly_once)


@GUARANTEES
def test_a_commit_that_publishes_outputs_has_all_runs_of_a_fetch(exactly_once: bool) -> None:
    """Labels that were fetched with instances are another run; at least once no output waits for a commit."""

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += COMMIT_INTERVAL
        await w.deliver(1, is_followed=True)
        await settled()
        await w.deliver(0, topic="labels")
        await w.until(lambda: bool(w.offsets))
        assert w.offsets.get(("labels", 0), 0) == (1 if exactly_once else 0)

    run(story, exactly_once)


@pytest.mark.parametrize(("interval", "is_prepared"), [(0.1, True), (60.0, False)])
def test_a_commit_is_prepared_if_it_is_near(interval: float, is_prepared: bool) -> None:
    schedule = CommitSchedule(cast("Any", None), interval=interval, exactly_once=True, clock=lambda: 100.0)
    assert schedule.is_near(100.0) is is_prepared
    schedule.note()
    assert schedule.is_near(100.0) is is_prepared
    assert schedule.is_near(100.0 + interval)


def test_a_commit_waits_half_an_interval_for_other_runs_at_most() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 1.4 * COMMIT_INTERVAL
        await w.deliver(1, is_followed=True)
        await settled()
        assert w.offsets == {}
        w.clock.now += 0.2 * COMMIT_INTERVAL
        await w.deliver(2, is_followed=True)
        await w.until(lambda: w.offsets == {("instances", 0): 3})

    run(story)


@GUARANTEES
def test_a_poll_may_wait_until_the_next_commit_is_due(exactly_once: bool) -> None:
    """While a commit is under way nobody can tell: a record that came meanwhile would wait out the poll."""

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.clock.now += 0.2
        w.outputs.gate.clear()
        await w.deliver(1)
        await w.until(lambda: w.outputs.flushing)
        await w.deliver(2)
        assert (w.poll_may_wait(), w.group.woken) == (float("inf"), 0)
        w.answer_flush()
        await w.until(lambda: w.group.woken == 1)
        await settled()
        assert w.poll_may_wait() == pytest.approx(COMMIT_INTERVAL)
        await w.commit("nothing is left")
        assert w.group.woken == 1

    run(story, exactly_once)


@GUARANTEES
def test_a_tick_is_due_for_a_partition_with_uncommitted_work(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.clock.now += 100
        assert (w.tick_due(), w.poll_may_wait()) == (None, float("inf"))
        await w.deliver(0, partition=1)
        assert w.tick_due() is None
        assert w.poll_may_wait() == pytest.approx(COMMIT_INTERVAL)
        w.clock.now += COMMIT_INTERVAL
        assert w.tick_due() == 1
        await w.tick(1)
        await w.until(lambda: bool(w.offsets))
        assert w.offsets == {("instances", 1): 1}
        await w.commit("wait for its end")
        w.clock.now += 100
        assert w.tick_due() is None

    run(story, exactly_once)


def test_a_poll_does_not_spin_for_what_nobody_here_can_commit() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.join_again()
        await w.assigned(0)  # it was not committed in time, and is not restored yet
        w.clock.now += 1
        assert (w.tick_due(), w.poll_may_wait()) == (None, float("inf"))

    run(story)


def test_the_journal_has_the_order_in_which_records_were_processed() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0, 1)
        await w.deliver(2)
        await w.deliver(0, topic="labels")
        await w.deliver(3)
        await w.commit()
        (entry,) = w.kafka.entries(0)
        assert entry.steps == (Step("instances", 3), Step("labels", 1), Step("instances", 4))
        assert (entry.before, entry.after) == (at(), at(instances=4, labels=1))
        assert (entry.incarnation, entry.config) == (1, "{}")

    run(story)


def test_offsets_are_committed_with_the_id_of_their_topic_and_at_first_all_of_them() -> None:
    async def story(w: Worker) -> None:
        w.kafka.topic_ids = {"controls": "C", "instances": "I"}
        await w.assign(controls=3, instances=10)
        for offset in (10, 11):
            await w.deliver(offset)
            await w.commit()
        controls, instances = ("controls", 0), ("instances", 0)
        first, second = w.kafka.transactions
        assert first.offsets == {controls: 3, instances: 11, ("feature_values", 0): 0, ("labels", 0): 0}
        assert second.offsets == {instances: 12}
        assert (first.topic_ids, second.topic_ids) == ({controls: "C", instances: "I"}, {instances: "I"})

    run(story)


@GUARANTEES
def test_no_commit_and_no_snapshot_cuts_a_run_that_a_thread_computes_in_half(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0, values=(bytes(100),))
        await w.commit("the incarnation is in the journal")
        await w.tick_becomes_due()
        thread = Thread(w, partition=0)
        w.clock.now += 1
        both = asyncio.ensure_future(w.deliver_runs(records(1, 0), records(0, 1)))
        await thread.begun.wait()  # the run of partition 1 has begun a commit before
        await settled()
        assert len(w.kafka.entries(0)) == 1
        thread.may_end.set()
        await both
        await w.tick_becomes_due()
        await w.commit("the snapshot")
        assert w.snapshots(0) == [(b"[0, 1]", at(instances=2))]
        assert w.offsets == {("instances", 0): 2, ("instances", 1): 1}

    run(story, exactly_once)


@GUARANTEES
def test_a_commit_that_nobody_waits_for_any_more_is_not_left_half_done(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.gate.clear()
        first = asyncio.ensure_future(w.commit("going live again"))
        await w.until(lambda: w.outputs.flushing)
        first.cancel()  # the group has taken the partitions away
        last = asyncio.ensure_future(w.commit("partitions revoked"))
        await settled()
        w.answer_flush()
        await last
        assert (w.offsets, w.kafka.aborts) == ({("instances", 0): 1}, 0)
        assert len(w.kafka.entries(0)) == 1
        with pytest.raises(asyncio.CancelledError):
            await first

    run(story, exactly_once)


@GUARANTEES
def test_nothing_is_committed_past_an_output_that_was_lost(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.fails = lost = RuntimeError("outputs are lost")
        await w.commit()
        assert w.ended is lost
        w.outputs.fails = None
        await w.deliver(1)
        await w.commit("again")
        assert w.offsets == {}
        assert w.outputs.sent == [0], "what comes later is not processed any more"

    run(story, exactly_once)


@GUARANTEES
def test_nothing_is_committed_past_an_output_that_the_producer_did_not_take(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.refuses = RuntimeError("the producer did not take it")
        await w.deliver(1)
        assert w.ended is w.outputs.refuses
        w.outputs.refuses = None
        w.markers_up_to(2)  # the driver, after what it fetched next
        await w.deliver(2)
        await w.commit("stopping")
        assert w.offsets == {}
        assert w.outputs.sent == [0]

    run(story, exactly_once)


def test_nothing_is_committed_past_an_output_that_was_lost_while_it_waited_for_room() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.fill(loses=DeliveryError("outputs are lost"))
        w.outputs.room.set()
        w.clock.now += 1
        await w.deliver(0)
        assert isinstance(w.ended, DeliveryError)
        await w.commit("stopping")
        assert w.offsets == {}

    run(story, exactly_once=False)


def test_records_that_come_in_another_order_than_that_of_their_log_end_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(5)
        await w.deliver(3)
        assert isinstance(w.ended, LedgerError)
        await w.commit()
        assert w.offsets == {}

    run(story)
