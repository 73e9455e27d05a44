"""Partitions that are stopped: the others go on, and what was processed before is committed."""

import pytest

from streamapp.worker.restore.errors import RestoreError
from tests.unit.streamapp.worker.processing.rig import GUARANTEES, Worker, run


def test_an_unexpected_error_stops_its_partition_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        await w.deliver(1, 2, values=(b"poison", b"v"))
        await w.deliver(3)
        await w.deliver(0, partition=1)
        await w.commit()
        assert w.offsets == {("instances", 0): 1, ("instances", 1): 1}
        assert (w.group.dropped, list(w.stopped)) == ([0], [0])
        assert not w.is_ready
        assert w.is_alive, "a restart would stop it again"
        assert w.metric("grove_partitions_stopped_total") == 1

    run(story)
    assert "partition 0 is stopped, all others go on: topic=instances partition=0 offset=1" in caplog.text


@GUARANTEES
def test_what_a_stopped_partition_did_before_is_committed_too(exactly_once: bool) -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1, values=(b"poison",))
        w.clock.now += 1
        assert w.tick_due() == 0
        await w.tick()
        await w.until(lambda: bool(w.offsets))
        assert w.offsets == {("instances", 0): 1}
        await w.commit("wait for its end")
        w.clock.now += 1
        assert w.tick_due() is None

    run(story, exactly_once)


def test_a_partition_that_cannot_be_restored_is_stopped_and_the_others_go_on() -> None:
    async def story(w: Worker) -> None:
        w.kafka.cannot_restore[0] = RestoreError(0, "its journal is gone")
        await w.assigned(0, 1)
        assert await w.restore(0) is None
        await w.bring_to_life(1)
        await w.deliver(0, partition=1)
        await w.commit()
        assert w.offsets == {("instances", 1): 1}
        assert list(w.stopped) == [0]
        assert "its journal is gone; 'grove models reset" in w.stopped[0]
        assert not w.is_ready
        assert w.metric("grove_partitions_stopped_total") == 1

    run(story)


def test_whatever_a_restore_meets_stops_its_partition_alone_and_leaves_no_task() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        await w.deliver(0)
        await w.revoke()
        await w.assigned(0, 1)
        w.kafka.cannot_restore[0] = KeyError("of a replay")
        assert await w.restore(0) is None
        await w.bring_to_life(1)
        assert w.here == [1]
        assert "of a replay" in w.stopped[0]
        assert w.statuses[1] == "live"
        assert w.ended is None

    run(story)


def test_a_stopped_partition_that_comes_back_does_not_keep_its_task() -> None:
    """Nobody knows how far the run that stopped it has changed the task."""

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.deliver(1, values=(b"poison",))
        await w.revoke()
        await w.assign()
        assert (w.outputs.tasks[0], w.outputs.closed, w.stopped) == ([0], 1, {})
        await w.deliver(1)
        await w.commit()
        assert w.offsets == {("instances", 0): 2}

    run(story)
