"""How often a commit is due, by what the last one took."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from streamapp.processing.commit_schedule import MAX_STRETCHED_INTERVAL, CommitSchedule
from streamapp.processing.pipeline import Pipeline
from tests.unit.streamapp.processing.test_task_manager import Clock

SETTING = 0.1  # seconds


def test_commits_that_are_slow_come_less_often_up_to_a_limit_and_a_fast_one_ends_that() -> None:
    clock = Clock()
    takes_all = SimpleNamespace(sender=SimpleNamespace(is_full=False, flush=lambda: None))
    commits = CommitSchedule(cast("Pipeline", takes_all), interval=SETTING, exactly_once=True, clock=clock)

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
        assert not commits.is_due(clock.now + 0.79)
        assert commits.is_due(clock.now + 0.81)
        assert await interval_after(10.0) == MAX_STRETCHED_INTERVAL == 2.0
        assert await interval_after(0.01) == SETTING

    asyncio.run(story())
