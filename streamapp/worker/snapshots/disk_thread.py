"""Disk thread: calls that may wait for the disk of `state.dir`, one after another, in the order of requests.

A disk that does not answer holds this thread, and neither the event loop nor the end of the process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from streamapp.worker.blocking_calls import for_loop

T = TypeVar("T")


class DiskThread:
    """A thread with a queue; it starts with the first request. Its requests belong to one event loop."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._began: float | None = None  # when the current call began; None: there is none

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Call `work` after all earlier requests; return its result. The request cannot be cancelled."""
        future, call = for_loop(work)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="disk", daemon=True)
            self._thread.start()
        self._requests.put(call)
        return future

    def waits_s(self) -> float:
        """Return the seconds that the current call has taken, 0 without one; any thread may call this."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def end(self) -> None:
        """End the thread after all requests."""
        if self._thread is not None:
            self._requests.put(None)
            self._thread = None

    def _serve(self) -> None:
        while (call := self._requests.get()) is not None:
            self._began = time.monotonic()
            call()
            self._began = None
            del call  # a thread without a request must not keep a copy open


async def within(futures: list[asyncio.Future[Any]], seconds: float) -> bool:
    """Wait until all futures are done, or none of them became done for some seconds; return whether all are.

    Results and exceptions are left to others.
    """
    pending = {future for future in futures if not future.done()}
    while pending:
        ended, pending = await asyncio.wait(pending, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not ended:
            return False
    return True
