"""Calls of a client that may never return although they were given seconds.

librdkafka's destructor waits for the threads of the client, and was seen to wait for ever. Such a call cannot
be interrupted, so it is abandoned with its thread, and its client must not be used any more.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

CHECK_S: Final = 5.0
MAX_CHECKS: Final = 4
"""Checks are counted, not seconds: a process that was frozen for an hour misses one check only."""

_Outcome = queue.SimpleQueue[BaseException | None]


class AbandonedCallError(Exception):
    """A call of a client did not return."""


class ClientCalls:
    """Runs calls one after another, in a thread that does not keep the process alive."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], object], _Outcome] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._calls,), name="client-calls", daemon=True)
        self._thread.start()

    def run(self, call: Callable[[], object]) -> None:
        """Return when the call has returned, or raise its exception; AbandonedCallError if it hangs."""
        outcome: _Outcome = queue.SimpleQueue()
        self._calls.put((call, outcome))
        for _ in range(MAX_CHECKS):
            try:
                failure = outcome.get(timeout=CHECK_S)
            except queue.Empty:
                continue
            if failure is not None:
                raise failure
            return
        raise AbandonedCallError

    def end(self) -> None:
        """Let the thread end after the calls so far; a call that hangs keeps it."""
        self._calls.put(None)

    def join(self) -> None:
        """Return when the thread has ended; no call may hang."""
        self._thread.join()


def end_or_abandon(name: str, call: Callable[[], object]) -> None:
    """Run a call that ends a client, or raise its exception; a call that does not return is left behind.

    `name`: of the client and the call, for the log. Nothing is lost with such a client: what counts was
    delivered before, and the threads that stay end with the process.
    """
    calls = ClientCalls()
    hangs = False
    try:
        calls.run(call)
    except AbandonedCallError:
        hangs = True
        logger.warning(
            "%s has not returned from the Kafka client for %g s; it is left behind, and its threads end with "
            "this process",
            name,
            MAX_CHECKS * CHECK_S,
        )
    finally:
        calls.end()
        if not hangs:
            calls.join()


def _serve(calls: queue.SimpleQueue[tuple[Callable[[], object], _Outcome] | None]) -> None:
    while (item := calls.get()) is not None:
        call, outcome = item
        try:
            call()
        except BaseException as failure:  # noqa: BLE001 - whatever it is, it belongs to the caller
            outcome.put(failure)
        else:
            outcome.put(None)
        del item, call, outcome  # a waiting thread must not keep a client alive
