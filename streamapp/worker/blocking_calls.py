"""Blocking calls: client calls that wait for a broker, run in a thread and awaited by the event loop."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from topics.errors import HungError

logger = logging.getLogger(__name__)

T = TypeVar("T")

CHECK_S: Final = 5.0
MAX_CHECKS: Final = 24
"""Clients are set to return from a call after 5 s. Checks are counted, not seconds: a process that was
frozen for an hour misses one check only."""

MOST_IDLE: Final = 4
"""Threads that wait for a further call: a worker has ten commits a second, each with two calls."""

_Calls = queue.SimpleQueue[Callable[[], None]]
_idle: deque[_Calls] = deque()
"""The queues of the threads that wait for a further call."""
os.register_at_fork(after_in_child=_idle.clear)  # the child has none of the threads


def for_loop(work: Callable[[], T]) -> tuple[asyncio.Future[T], Callable[[], None]]:
    """Return a future of the running event loop, and a function for a thread, which resolves it by `work`.

    If the loop is closed before `work` returns, nobody waits for its result.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def resolve(outcome: Callable[[], None]) -> None:
        if not future.done():  # else the waiting task was cancelled
            outcome()

    def run() -> None:
        outcome: Callable[[], None]
        try:
            outcome = functools.partial(future.set_result, work())
        except BaseException as error:  # noqa: BLE001 - of any kind, it belongs to the one who waits
            outcome = functools.partial(future.set_exception, error)
        try:
            loop.call_soon_threadsafe(resolve, outcome)
        except RuntimeError:
            logger.debug("a call has returned after the end of its event loop")

    return future, run


async def run_blocking(work: Callable[[], T]) -> T:
    """Run `work` in a thread that does not keep the process alive: it may wait minutes for a broker."""
    future, run = for_loop(work)
    try:
        calls = _idle.pop()
    except IndexError:
        calls = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(calls,), name="broker", daemon=True).start()
    calls.put(run)
    return await future


def _serve(calls: _Calls) -> None:
    """Make one call after another, until enough other threads are idle."""
    while True:
        run = calls.get()
        run()
        del run  # an idle thread must not keep a client alive
        if len(_idle) >= MOST_IDLE:
            return
        _idle.append(calls)


async def run_watched(work: Callable[[], T], call: Callable[[], int | None]) -> T:
    """Run `work` like `run_blocking`; HungError when one call of a client does not return.

    `call`: the number of the call that `work` waits for. The thread is abandoned: a call that hangs cannot be
    interrupted, and its client must not be used any more.
    """
    working = asyncio.ensure_future(run_blocking(work))
    seen: int | None = None
    checks = 0
    try:
        while not (await asyncio.wait([working], timeout=CHECK_S))[0]:
            now = call()
            checks = checks + 1 if now is not None and now == seen else 0
            seen = now
            if checks == MAX_CHECKS:
                message = (
                    f"the Kafka client has not returned from a call for {checks * CHECK_S:.0f} s, though it "
                    "was given seconds; only a new process helps"
                )
                raise HungError(message)
        return working.result()
    finally:
        working.cancel()
