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

CANCEL_S: Final = 1.0
"""The longest time that the tasks of a loop that is closed may take to end."""


class LoopThread:
    """Runs an event loop until `close`; the thread does not keep the process alive."""

    def __init__(self, name: str) -> None:
        """Start the thread under this name."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._lock = threading.Lock()
        self._results: set[concurrent.futures.Future[Any]] = set()
        """Results for which threads wait."""
        self._is_closed = False
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine; AbortedError if the loop is closed before.

        Not to be called in the thread of the loop.
        """
        with self._lock:
            if self._is_closed:
                work.close()
                raise AbortedError(CLOSED)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._results.add(future)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise AbortedError(CLOSED) from None
        finally:
            with self._lock:
                self._results.discard(future)

    def soon(self, call: Callable[[], object]) -> None:
        """Have the loop call a function, without waiting for it; AbortedError if the loop is closed."""
        with self._lock:
            if self._is_closed:
                raise AbortedError(CLOSED)
            self._loop.call_soon_threadsafe(call)

    def close(self, work: Coroutine[Any, Any, object], seconds: float) -> bool:
        """Run a last coroutine for at most `seconds`, end the thread; return whether it came to its end.

        Threads that wait in `run` get an AbortedError in any case.
        """
        with self._lock:
            self._is_closed = True
            last = asyncio.run_coroutine_threadsafe(_alone(work, seconds), self._loop)
        try:
            return last.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            with self._lock:
                waiting = [*self._results]
            for result in waiting:  # what the loop has not begun, or could not end
                result.cancel()
            self._loop.close()


async def _alone(work: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Run a coroutine, then cancel everything else in the loop; return whether it came to its end in time.

    A task that takes no cancellation is left after CANCEL_S.
    """
    own = asyncio.current_task()
    last = asyncio.ensure_future(work)
    try:
        await asyncio.wait([last], timeout=seconds)
    finally:
        is_over = last.done()
        tasks = asyncio.all_tasks() - {own}
        for task in tasks:
            task.cancel()
        ends = asyncio.gather(*tasks, return_exceptions=True)
        if tasks:
            await asyncio.wait([ends], timeout=CANCEL_S)
    if is_over:
        last.result()
    return is_over
