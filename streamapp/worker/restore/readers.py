"""Pool of log readers, borrowed by one restore after another.

A new client has to fetch metadata and to connect, which mostly takes longer than the read itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from streamapp.worker.freed_memory import trim

IDLE_S: Final = 10.0
"""How long idle readers are kept: long enough for the partitions of one assignment."""


class Reader(Protocol):
    """A reader that is reused."""

    def reuse(self, abandoned: Callable[[], bool]) -> None:
        """Start over for another restore."""

    def release(self) -> None:
        """Read nothing until the next `reuse`."""

    def close(self) -> None:
        """Close the client."""


R = TypeVar("R", bound=Reader)


class Readers(Generic[R]):
    """Gives out readers, in any thread, and keeps those that are returned for a while."""

    def __init__(self, make: Callable[[Callable[[], bool]], R], idle_s: float = IDLE_S) -> None:
        """`make`: returns a new reader; its argument is a function that returns whether the restore was
        abandoned.
        """
        self._make = make
        self._idle_s = idle_s
        self._idle: list[R] = []
        self._lock = threading.Lock()
        self._closing: threading.Timer | None = None

    @contextmanager
    def borrow(self, abandoned: Callable[[], bool]) -> Iterator[Callable[[], R]]:
        """Give out readers until the block ends; after a failure none of them is used again."""
        borrowed: list[R] = []

        def reader() -> R:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            borrowed.append(self._make(abandoned) if idle is None else idle)
            if idle is not None:
                idle.reuse(abandoned)
            return borrowed[-1]

        try:
            yield reader
            for used in borrowed:
                used.release()
        except BaseException:
            _close(borrowed)
            raise
        self._keep(borrowed)

    def _keep(self, readers: list[R]) -> None:
        with self._lock:
            self._idle += readers
            if self._closing is not None:
                self._closing.cancel()
            self._closing = threading.Timer(self._idle_s, self.close)
            self._closing.daemon = True
            self._closing.start()

    def close(self) -> None:
        """Close the readers that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        _close(idle)
        if idle:
            trim()  # their buffers were the most of what a restore needed


def _close(readers: Sequence[Reader]) -> None:
    for reader in readers:
        reader.close()
