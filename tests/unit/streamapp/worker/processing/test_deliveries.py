"""Deliveries: runs of several partitions in their order, and those that threads compute or that wait."""

import asyncio

import pytest

from streamapp.worker.journal.entry import Skip
from streamapp.worker.processing.run_groups import GROUP_BYTES, LARGE_RECORD
from streamapp.worker.task.models.eviction.swap_file import SwapFileError
from tests.unit.streamapp.settled import settled
from tests.unit.streamapp.worker.processing.rig import GUARANTEES, Thread, Worker, records, run
from topics.errors import AbortedError, DeliveryError

LARGE = b"v" * LARGE_RECORD


@pytest.fixture(params=[GROUP_BYTES, 1], ids=["in-one-go", "each-by-itself"])
def group_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small runs of a delivery computed in one go, or one after the other."""
    monkeypatch.setattr("streamapp.worker.processing.run_groups.GROUP_BYTES", request.param)


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
            await w.assigned()
        elif what == "forgotten":
            w.group.abandon()
        waited.set()
        await delivered
        assert w.outputs.sent == ([0] if what == "nothing" else [])
        assert isinstance(w.ended, SwapFileError) == (what == "lost")

    run(story)


def test_a_delivery_of_an_earlier_assignment_is_void() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver_runs(records(0, 0), late=True)
        await w.commit()
        assert (w.outputs.sent, w.outputs.tasks[0], w.offsets) == ([], [], {})

    run(story)


@GUARANTEES
def test_a_run_of_a_partition_that_is_not_live_ends_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.assigned(0)  # again, and not live yet
        await w.deliver(0, 1)
        assert "partition 0 is not live" in str(w.ended)
        await w.commit("too late")
        assert w.offsets == {}, "the driver calls it processed, which it is not"

    run(story, exactly_once)


@pytest.mark.usefixtures("group_bytes")
@GUARANTEES
def test_runs_of_one_delivery_are_processed_in_their_order_each_by_its_task(
    exactly_once: bool,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1, 2)
        await w.cancel_delivery(1)  # its task is gone: what is delivered of it is void, the others are not
        await w.deliver(0)
        w.clock.now += 1.0  # a commit is due at the first of them
        await w.deliver_runs(records(2, 0, 1), records(1, 5), records(0, 1))
        assert w.outputs.sent == [0, 0, 1, 1]
        assert w.outputs.tasks == {0: [0, 1], 2: [0, 1]}
        await w.commit()
        assert w.offsets == {("instances", 2): 2, ("instances", 0): 2}

    run(story, exactly_once)


def test_outputs_of_small_runs_are_handed_over_at_once() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver_runs(records(0, 0), records(1, 0))
        assert w.outputs.handed == [2]

    run(story)


def test_outputs_of_large_runs_do_not_wait_for_the_next_run() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver_runs(records(0, 0, each=LARGE), records(1, 0))
        assert w.outputs.handed == [1, 1]

    run(story)


@GUARANTEES
def test_a_commit_in_the_middle_of_a_delivery_takes_along_what_was_gathered(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        w.clock.now += 1.0
        thread = Thread(w, partition=1)
        processing = asyncio.ensure_future(w.deliver_runs(records(0, 1), records(1, 0, each=LARGE)))
        await thread.begun.wait()
        thread.may_end.set()
        await w.until(lambda: w.offsets.get(("instances", 0)) == 2)
        await processing
        await w.commit()
        assert w.outputs.sent == w.kafka.seen == [0, 1, 0]
        assert w.offsets == {("instances", 0): 2, ("instances", 1): 1}

    run(story, exactly_once)


@pytest.mark.usefixtures("group_bytes")
def test_one_run_of_a_delivery_fails_and_the_others_do_not() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1, 2)
        await w.deliver_runs(records(0, 0), records(1, 0, each=b"poison"), records(2, 0))
        assert (w.group.dropped, list(w.stopped)) == ([1], [1])
        await w.deliver_runs(records(0, 1), records(1, 1), records(2, 1))
        await w.commit()
        assert w.offsets == {("instances", 0): 2, ("instances", 2): 2}

    run(story)


@pytest.mark.usefixtures("group_bytes")
def test_records_to_be_skipped_are_skipped_in_small_runs_too() -> None:
    async def story(w: Worker) -> None:
        w.kafka.skips = (Skip(1, "instances", 1, ""),)
        await w.assign(0, 1)
        await w.deliver_runs(records(0, 0, 1), records(1, 0))
        assert w.outputs.skipped == [1]
        await w.commit()
        assert w.offsets == {("instances", 0): 2, ("instances", 1): 1}

    run(story)


@pytest.mark.usefixtures("group_bytes")
def test_a_lost_model_of_one_run_of_a_delivery_ends_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver_runs(records(0, 0, each=b"lost"), records(1, 0))
        assert isinstance(w.ended, SwapFileError)
        assert (w.group.dropped, w.stopped) == ([], {}), "no record is to blame: a restart restores it"
        await w.commit()
        assert (w.outputs.sent, w.offsets) == ([], {})

    run(story)


def test_an_outcome_that_is_neither_results_nor_an_error_ends_the_worker() -> None:
    """Its run would count as processed, without an answer and without a word in the log."""

    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.foreign = "an answer"
        await w.deliver_runs(records(0, 0), records(1, 0))
        assert isinstance(w.ended, TypeError)
        assert "an answer" in str(w.ended)
        assert w.offsets == {}

    run(story)


@pytest.mark.usefixtures("group_bytes")
def test_outputs_of_one_run_that_the_producer_does_not_take_end_the_worker() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.refuses = RuntimeError("the producer did not take it")
        await w.deliver_runs(records(0, 0), records(1, 0))
        assert w.ended is w.outputs.refuses
        await w.commit()
        assert w.offsets == {}

    run(story)


def test_a_bug_while_runs_are_processed_in_one_go_ends_the_worker() -> None:
    """Nobody knows which tasks are ahead of what is noted: nothing of them may be committed."""

    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.bug = ZeroDivisionError()
        await w.deliver_runs(records(0, 0), records(1, 0))
        assert w.ended is w.outputs.bug
        await w.commit()
        assert (w.outputs.sent, w.offsets) == ([], {})

    run(story)


@pytest.mark.usefixtures("group_bytes")
def test_gathered_outputs_that_cannot_be_part_of_their_transaction_abort_it() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.will_not = AbortedError("1 record was not delivered")
        await w.deliver_runs(records(0, 0), records(1, 0))
        assert (w.kafka.aborts, w.group.rejoined) == (1, 1)
        assert 0 not in w.here
        assert w.outputs.tasks.get(1, []) == [], "its run may have been another group's"
        w.outputs.will_not = None
        await w.commit()
        assert (w.outputs.sent, w.kafka.seen, w.offsets) == ([], [], {})

    run(story)


@GUARANTEES
def test_gathered_outputs_that_are_lost_end_the_worker(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.will_not = lost = DeliveryError("1 record was not delivered")
        await w.deliver_runs(records(0, 0), records(1, 0))
        assert w.ended is lost
        await w.commit()
        assert w.offsets == {}

    run(story, exactly_once)


def test_a_delivery_ends_where_its_transaction_is_found_to_be_lost() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.fill(loses=AbortedError("1 record was not delivered"))
        w.outputs.room.set()
        await w.deliver_runs(records(0, 0), records(1, 0, each=LARGE))
        assert (w.kafka.aborts, w.group.rejoined, w.here) == (1, 1, [1])
        w.outputs.empty()
        await w.commit()
        assert (w.outputs.sent, w.offsets) == ([0], {}), "the second run is not processed"

    run(story)


def test_what_a_cancelled_delivery_did_not_come_to_is_not_committed() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1, 2)
        await w.deliver(0)
        thread = Thread(w)
        delivery = asyncio.ensure_future(w.deliver_runs(records(1, 0), records(2, 0)))
        await thread.begun.wait()
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery
        assert w.here == [0], "the driver calls both runs processed"
        w.outputs.computes = None
        await w.commit()
        assert w.offsets == {("instances", 0): 1}

    run(story)


@pytest.mark.parametrize("what", ["revoked", "assigned", "cancelled"])
def test_a_task_is_given_up_only_when_no_thread_computes_with_it(what: str) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        thread = Thread(w)
        large = asyncio.ensure_future(w.deliver(0))
        await thread.begun.wait()
        if what == "cancelled":
            large.cancel()
            with pytest.raises(asyncio.CancelledError):
                await large
            assert (w.here, w.outputs.sent, w.offsets) == ([], [], {}), "half of it is not committed"
            return
        waiting = asyncio.ensure_future(w.revoke() if what == "revoked" else w.assigned())
        await settled()
        assert (waiting.done(), w.here, w.outputs.delivered) == (False, [0], [])
        thread.may_end.set()
        await asyncio.gather(large, waiting)
        assert w.outputs.sent == [0], "it was processed, whatever the driver has forgotten"
        assert w.offsets == ({("instances", 0): 1} if what == "revoked" else {})
        assert w.here == ([0] if what == "revoked" else [])

    run(story)


@GUARANTEES
def test_records_that_are_too_many_for_a_step_are_given_back_unprocessed(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.outputs.step = 2
        w.kafka.without_record |= {2, 3}
        left = await w.deliver_runs(records(0, 0, 1, 4, 5, 6), records(1, 0, 1))
        assert w.outputs.tasks == {0: [0, 1], 1: [0, 1]}
        assert [run.raw.offsets for run in left] == [[4, 5, 6]]
        await w.commit()
        assert w.offsets == {("instances", 0): 4, ("instances", 1): 2}, "only what was processed"
        left = await w.deliver_runs(*left)
        assert [(run.raw.offsets, run.position) for run in left] == [([6], 7)]
        assert await w.deliver_runs(*left) == []
        await w.commit()
        assert w.offsets == {("instances", 0): 7, ("instances", 1): 2}
        assert w.outputs.tasks[0] == w.outputs.sent[:2] + w.outputs.sent[4:] == [0, 1, 4, 5, 6]

    run(story, exactly_once)
