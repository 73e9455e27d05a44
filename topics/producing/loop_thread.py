"""Loop thread: an event loop in a thread of its own, for callers that wait in other threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from topics.errors import AbortedError

T = TypeVar("T")

CLOSED: Final = "the producer is closed"


class LoopThread:
    """Runs an event loop until `close`; the thread does not keep the process alive."""

    def __init__(self, name: str) -> None:
        """Start the thread under this name."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine; AbortedError if the loop is closed before.

        Not to be called in the thread of the loop.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise AbortedError(CLOSED) from None
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise AbortedError(CLOSED) from None

    def soon(self, call: Callable[[], object]) -> None:
        """Have the loop call a function, without waiting for it."""
        self._loop.call_soon_threadsafe(call)

    def close(self, work: Coroutine[Any, Any, object], seconds: float) -> bool:
        """Run a last coroutine for at most `seconds`, end the thread; return whether it came to its end."""
        last = asyncio.run_coroutine_threadsafe(_alone(work), self._loop)
        try:
            last.result(seconds)
        except concurrent.futures.TimeoutError:
            last.cancel()
            return False
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        return True


async def _alone(work: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine, then cancel everything else in the loop: no thread may wait for ever."""
    try:
        await work
    finally:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
