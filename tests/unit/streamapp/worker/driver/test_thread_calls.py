"""Thread calls: result, exception and cancellation pass from one loop to the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from streamapp.worker.driver.thread_calls import run_in


@pytest.fixture
def elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_the_result_comes_from_the_other_thread(elsewhere: asyncio.AbstractEventLoop) -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return threading.get_ident()

    assert asyncio.run(run_in(elsewhere, work())) not in (0, threading.get_ident())


def test_an_exception_is_raised_here(elsewhere: asyncio.AbstractEventLoop) -> None:
    async def work() -> None:
        message = "of the other thread"
        raise ValueError(message)

    with pytest.raises(ValueError, match="of the other thread"):
        asyncio.run(run_in(elsewhere, work()))


def test_a_cancellation_here_cancels_it_there(elsewhere: asyncio.AbstractEventLoop) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    async def story() -> None:
        waiting = asyncio.ensure_future(run_in(elsewhere, work()))
        await asyncio.to_thread(begun.wait, 30)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(cancelled.wait, 30)

    asyncio.run(story())


def test_a_cancellation_there_is_one_here(elsewhere: asyncio.AbstractEventLoop) -> None:
    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async def story() -> None:
        with pytest.raises(asyncio.CancelledError):
            await run_in(elsewhere, work())

    asyncio.run(story())


def test_a_loop_that_was_closed_is_refused() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    async def work() -> None:
        """Do nothing."""

    async def story() -> None:
        coroutine = work()
        with pytest.raises(RuntimeError, match="closed"):
            await run_in(loop, coroutine)
        coroutine.close()

    asyncio.run(story())
