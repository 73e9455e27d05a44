"""Thread calls: a coroutine that runs in the event loop of another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_in(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop of another thread; return its result or raise its exception.

    A cancellation here cancels it there, and the other way round. `asyncio.run_coroutine_threadsafe` does the
    same with two more futures, locks and three times the calls; a turn of the driver has one such call.
    """
    here = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = here.create_future()
    running: list[asyncio.Task[T]] = []

    def begin() -> None:
        task = loop.create_task(work)
        running.append(task)
        task.add_done_callback(report)

    def report(task: asyncio.Task[T]) -> None:
        if not here.is_closed():
            here.call_soon_threadsafe(settle, task)

    def settle(task: asyncio.Task[T]) -> None:
        error = None if task.cancelled() else task.exception()
        if outcome.done():
            return
        if task.cancelled():
            outcome.cancel()
        elif error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(task.result())

    def cancel() -> None:
        for task in running:
            task.cancel()

    loop.call_soon_threadsafe(begin)
    try:
        return await outcome
    except asyncio.CancelledError:
        if not loop.is_closed():
            loop.call_soon_threadsafe(cancel)
        raise
