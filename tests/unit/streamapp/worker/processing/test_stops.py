"""Stops: a worker that is asked to end gives up what it cannot commit in time, and that is no crash."""

import asyncio

import pytest

from tests.positions import at
from tests.unit.streamapp.worker.processing.rig import GUARANTEES, Worker, records, run
from topics.errors import AbortedError, DeliveryError


def test_what_is_delivered_while_a_worker_ends_is_not_processed_any_more() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        epoch = w.group.epoch
        await w.stop()
        await w.deliver_runs(records(0, 1), epoch=epoch)
        await w.commit("stopping")
        assert (w.outputs.sent, w.snapshots(0)) == ([0], [(b"[0]", at(instances=1))])
        assert w.offsets == {("instances", 0): 1}

    run(story)


def test_a_worker_that_is_stopped_twice_does_its_last_work_once() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.stop()
        left = w.snapshots(0), w.group.epoch, len(w.kafka.transactions)
        await w.stop()  # as Faust does
        assert (w.snapshots(0), w.group.epoch, len(w.kafka.transactions)) == left

    run(story)


@GUARANTEES
@pytest.mark.parametrize("error", [AbortedError("too late"), RuntimeError("lost")], ids=["aborted", "lost"])
def test_a_commit_that_fails_after_a_stop_gave_it_up_is_no_crash(
    exactly_once: bool, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        w.outputs.gate.clear()
        await w.commit("stopping", timeout_s=0.01)
        w.answer_flush(error)
        await w.until(lambda: "nothing was committed" in caplog.text)
        await w.commit("stopping", timeout_s=0.01)  # Faust asks twice
        assert (w.ended, w.group.rejoined, w.offsets) == (None, 0, {})
        assert caplog.text.count("not everything could be committed") == 1
        assert "committed: stopping" not in caplog.text

    run(story, exactly_once)


def test_a_stop_that_gives_up_handing_outputs_over_is_no_crash(caplog: pytest.LogCaptureFixture) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.outputs.fill(loses=DeliveryError("outputs are lost"))
        waiting = asyncio.ensure_future(w.deliver(0))
        await w.until(lambda: w.outputs.draining)
        w.health.stopping = True
        w.outputs.room.set()
        await waiting
        await w.commit("stopping", timeout_s=60.0)
        assert (w.ended, w.offsets) == (None, {})
        assert "stopping: outputs are lost; uncommitted records will be processed again" in caplog.text

    run(story, exactly_once=False)
