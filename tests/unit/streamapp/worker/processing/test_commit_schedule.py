"""How often a commit is due, by what the last one took."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from streamapp.worker.processing.commit_schedule import MAX_STRETCHED_INTERVAL, CommitSchedule
from streamapp.worker.processing.pipeline import Pipeline
from tests.unit.streamapp.worker.processing.rig import Clock

SETTING = 0.1  # seconds


def schedule(clock: Clock, *, exactly_once: bool) -> CommitSchedule:
    takes_all = SimpleNamespace(sender=SimpleNamespace(is_full=False, flush=lambda: None))
    return CommitSchedule(
        cast("Pipeline", takes_all), interval=SETTING, exactly_once=exactly_once, clock=clock
    )


def test_exactly_once_the_last_round_waits_for_the_commit_which_follows_it_at_once() -> None:
    clock = Clock()
    commits = schedule(clock, exactly_once=True)
    assert commits.seconds_to_last_round(clock.now, 0.02) == 0.0, "there is nothing to commit yet"
    commits.note()
    assert commits.seconds_to_last_round(clock.now, 0.02) == pytest.approx(0.08)
    assert not commits.is_due(clock.now + 0.079)
    assert commits.is_due(clock.now + 0.081), "no other round would be over in time"
    assert commits.seconds_to_last_round(clock.now + 0.081, 0.02) == 0.0
    assert commits.seconds_to_last_round(clock.now, 9.0) == pytest.approx(0.05), (
        "half of the interval at most"
    )
    assert commits.seconds_to_last_round(clock.now, 0.0) == pytest.approx(0.1)
    assert not commits.is_due(clock.now + 0.099), "under load commits come no sooner"


def committed(commits: CommitSchedule) -> None:
    """Commit, in no time."""

    async def transact() -> None:
        pass

    asyncio.run(commits.commit(transact))


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_commit_is_due_an_interval_after_the_last_one_began_or_at_once(exactly_once: bool) -> None:
    clock = Clock()
    commits = schedule(clock, exactly_once=exactly_once)
    commits.note()
    assert commits.due == pytest.approx(clock.now + SETTING), "before the first one many runs may come"
    committed(commits)
    began = clock.now
    clock.now += 0.03
    commits.note()
    assert commits.due == pytest.approx(began + SETTING)
    committed(commits)
    clock.now += 3.0
    commits.note()
    assert commits.is_due(clock.now), "the first record after a silence need not wait"


def test_last_rounds_that_end_early_make_commits_no_more_frequent() -> None:
    clock = Clock()
    commits = schedule(clock, exactly_once=True)
    commits.note()
    first = clock.now + SETTING
    for number in range(1, 50):
        clock.now += commits.seconds_to_last_round(clock.now, 0.02) + 0.005  # the round takes less
        commits.note()
        assert commits.is_due(clock.now)
        committed(commits)
        assert clock.now == pytest.approx(first + (number - 1) * SETTING - 0.015)


def test_after_a_commit_the_next_round_waits_although_nothing_is_uncommitted_yet() -> None:
    clock = Clock()
    commits = schedule(clock, exactly_once=True)
    commits.note()
    committed(commits)
    clock.now += 0.01
    assert commits.seconds_to_last_round(clock.now, 0.02) == pytest.approx(0.07)
    clock.now += 1.0
    assert commits.seconds_to_last_round(clock.now, 0.02) == 0.0, "nothing came, and nothing waits"


def test_at_least_once_nothing_waits_for_a_commit() -> None:
    clock = Clock()
    commits = schedule(clock, exactly_once=False)
    commits.note()
    assert commits.seconds_to_last_round(clock.now, 0.02) == 0.0
    assert not commits.is_due(clock.now + 0.099)


def test_commits_that_are_slow_come_less_often_up_to_a_limit_and_a_fast_one_ends_that() -> None:
    clock = Clock()
    commits = schedule(clock, exactly_once=True)

    async def interval_after(seconds: float) -> float:
        async def transact() -> None:
            clock.now += seconds

        await commits.commit(transact)
        return round(commits.interval, 6)

    async def story() -> None:
        assert commits.interval == SETTING
        assert await interval_after(0.04) == SETTING
        assert await interval_after(0.4) == 0.8
        assert not commits.is_due(1e9), "nothing is uncommitted"
        commits.note()
        assert not commits.is_due(clock.now + 0.39), "0.8 s after the last one began"
        assert commits.is_due(clock.now + 0.41)
        assert await interval_after(10.0) == MAX_STRETCHED_INTERVAL == 2.0
        assert await interval_after(0.01) == SETTING

    asyncio.run(story())
