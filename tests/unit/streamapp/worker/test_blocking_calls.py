"""Threads that wait for a broker, and those whose client does not come back."""

import asyncio
from itertools import count
from threading import Barrier, Event, Thread, current_thread

import pytest

from streamapp.worker import blocking_calls
from topics.errors import HungError


def test_a_client_that_comes_back_is_waited_for_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_calls, "CHECK_S", 0.001)
    calls, came_back = count(), Event()

    def call() -> int | None:
        number = next(calls)
        if number == 10 * blocking_calls.MAX_CHECKS:
            came_back.set()
        return (
            number if number % blocking_calls.MAX_CHECKS else None
        )  # another one, or none, each time it is looked

    asyncio.run(blocking_calls.run_watched(lambda: came_back.wait(60), call))
    assert came_back.is_set()


def test_a_call_that_does_not_come_back_is_an_error_and_what_fails_is_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocking_calls, "CHECK_S", 0.001)
    never = Event()
    with pytest.raises(HungError, match="has not returned from a call"):
        asyncio.run(blocking_calls.run_watched(never.wait, lambda: 7))
    never.set()
    monkeypatch.setattr(blocking_calls, "CHECK_S", 60.0)  # the thread may wait for a processor
    with pytest.raises(ZeroDivisionError):
        asyncio.run(blocking_calls.run_watched(lambda: 1 / 0, lambda: 7))


def test_calls_one_after_another_share_threads_and_calls_at_once_do_not() -> None:
    async def story() -> None:
        threads: set[Thread] = {await blocking_calls.run_blocking(current_thread) for _ in range(100)}
        assert len(threads) < 100
        together = Barrier(2 * blocking_calls.MOST_IDLE)
        calls = [blocking_calls.run_blocking(together.wait) for _ in range(together.parties)]
        assert sorted(await asyncio.gather(*calls)) == [*range(together.parties)]

    asyncio.run(story())


def test_a_call_that_hangs_is_not_in_the_way_of_the_next_one() -> None:
    async def story() -> None:
        never = Event()
        hanging = asyncio.ensure_future(blocking_calls.run_blocking(never.wait))
        assert await blocking_calls.run_blocking(lambda: 7) == 7
        assert not hanging.done()
        never.set()
        await hanging

    asyncio.run(story())
