"""The log readers of a worker, lent to one restore after the other.

A new client asks where the brokers are, and connects: that takes longer than what is mostly read with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

IDLE_S: Final = 10.0
"""They are kept for the partitions of one assignment. What happens to a connection later on is nobody's
business."""


class Reader(Protocol):
    """What is lent."""

    def lend(self, abandoned: Callable[[], bool]) -> None:
        """Begin anew, for somebody else."""

    def rest(self) -> None:
        """Read nothing."""

    def close(self) -> None:
        """Close the client."""


R = TypeVar("R", bound=Reader)


class Readers(Generic[R]):
    """Lends readers, in any thread, and keeps those that come back for a while."""

    def __init__(self, make: Callable[[Callable[[], bool]], R], idle_s: float = IDLE_S) -> None:
        """`make`: gives a new one, told whether reading has become pointless."""
        self._make = make
        self._idle_s = idle_s
        self._idle: list[R] = []
        self._lock = threading.Lock()
        self._closing: threading.Timer | None = None

    @contextmanager
    def lent(self, abandoned: Callable[[], bool]) -> Iterator[Callable[[], R]]:
        """Lend as many as are asked for, until the block ends. After a failure none of them is used again."""
        lent: list[R] = []

        def reader() -> R:
            with self._lock:
                rested = self._idle.pop() if self._idle else None
            lent.append(self._make(abandoned) if rested is None else rested)
            if rested is not None:
                rested.lend(abandoned)
            return lent[-1]

        try:
            yield reader
            for each in lent:
                each.rest()
        except BaseException:
            _close(lent)
            raise
        self._keep(lent)

    def _keep(self, readers: list[R]) -> None:
        with self._lock:
            self._idle += readers
            if self._closing is not None:
                self._closing.cancel()
            self._closing = threading.Timer(self._idle_s, self.close)
            self._closing.daemon = True
            self._closing.start()

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        _close(idle)


def _close(readers: Sequence[Reader]) -> None:
    for each in readers:
        each.close()
