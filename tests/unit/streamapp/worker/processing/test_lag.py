"""Lag: what is not committed, and what of it makes a worker dead."""

import pytest

from tests.unit.streamapp.worker.processing.rig import Worker, run

STALL_S = 121.0  # longer than lag may stay without a commit


def stall(w: Worker) -> None:
    """Let a long time pass for liveness, in which the event loop turns."""
    now = w.health.clock() + STALL_S
    w.health.clock = lambda: now
    w.health.beat = now


def test_lag_counts_what_is_not_committed() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.logs_end({("instances", 0): 5, ("labels", 0): 0})
        assert w.lags == {("instances", 0): 5, ("labels", 0): 0}
        await w.deliver(0, 1, 2, 3, 4)
        await w.commit()
        assert w.lags == {("instances", 0): 0, ("labels", 0): 0}

    run(story)


def test_a_stopped_partition_lags_for_ever_but_does_not_make_the_worker_dead() -> None:
    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.logs_end({("instances", 0): 5, ("instances", 1): 1})
        await w.deliver(0)
        await w.deliver(1, values=(b"poison",))
        await w.deliver(0, partition=1)
        await w.commit()
        w.logs_end({("instances", 1): 1})  # the driver has dropped the other
        assert w.lags == {("instances", 0): 4, ("instances", 1): 0}
        stall(w)
        assert w.is_alive

    run(story)


def test_what_waits_for_a_leader_does_not_make_the_worker_dead_and_what_is_served_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    away = {("labels", 0): "no leader is known"}
    ends = {("instances", 0): 5, ("labels", 0): 7, ("instances", 1): 3, ("labels", 1): 0}

    async def story(w: Worker) -> None:
        await w.assign(0, 1)
        w.logs_end(ends, away)
        assert w.health.lag == 3, "of partition 1; partition 0 waits for the leader of one of its topics"
        await w.deliver(0, 1, 2, partition=1)
        await w.commit()
        for _ in range(3):
            w.logs_end(ends, away)
        assert sum(w.lags.values()) == 12, "it lags all the same"
        stall(w)
        assert w.is_alive
        assert "the broker does not serve labels-0 (no leader is known)" in w.health.liveness()[1].detail
        w.logs_end(ends)
        assert w.health.lag == 12
        stall(w)
        assert not w.is_alive

    run(story)
    told = [record.message for record in caplog.records if "serve" in record.message]
    assert told == [
        "the broker does not serve labels-0 (no leader is known): their records wait, all others go on",
        "the broker serves all partitions again",
    ]


def test_a_worker_whose_partitions_were_taken_away_has_no_lag_to_work_off() -> None:
    async def story(w: Worker) -> None:
        await w.assign()
        w.logs_end({("instances", 0): 5})
        assert w.health.lag == 5
        await w.revoke()
        assert w.health.lag == 0
        stall(w)
        assert w.is_alive

    run(story)
