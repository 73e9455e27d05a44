"""Read-ahead: items are made in a thread of their own, a bounded stretch ahead of who takes them.

    thread       read, decompress, check ──> batches, AHEAD_BYTES at most ──┐
    who takes    <── in order, then the error that the thread ended with ───┘

What takes the thread's time lets go of the interpreter's lock: reading from RocksDB, zstd, the checksums. So
models are made of some units while the next ones are read. They are handed over in batches, because each
change of threads costs as much as a small model.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

T = TypeVar("T")

BATCH_BYTES: Final = 256 << 10
AHEAD_BYTES: Final = 4 << 20
"""Waiting to be taken; a batch more may, and another one may be in the thread's hands."""


class ReadAhead(Generic[T]):
    """The items of an iterable, once; the thread is over when the block ends that this is entered for."""

    def __init__(
        self,
        items: Iterable[T],
        size_of: Callable[[T], int],
        batch_bytes: int = BATCH_BYTES,
        ahead_bytes: int = AHEAD_BYTES,
    ) -> None:
        """`items`: gone through in the thread; `size_of`: the bytes of one."""
        self._items = items
        self._size_of = size_of
        self._batch_bytes = batch_bytes
        self._ahead_bytes = ahead_bytes
        self._changed = threading.Condition()
        self._batches: deque[tuple[list[T], int]] = deque()
        self._ahead = 0  # bytes of the batches
        self._is_over = False  # nothing more comes
        self._is_given_up = False  # nobody takes anything more
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="read-ahead", daemon=True)

    def __enter__(self) -> Self:
        """Begin to read."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give up what was not taken, and wait for the thread: for the item that it is at."""
        with self._changed:
            self._is_given_up = True
            self._changed.notify_all()
        self._thread.join()

    def __iter__(self) -> Iterator[T]:
        """Yield the items in order; then raise what going through them has raised."""
        while (batch := self._take()) is not None:
            yield from batch
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it knows us, by the way it came

    def _take(self) -> list[T] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._is_over)
            if not self._batches:
                return None
            batch, size = self._batches.popleft()
            self._ahead -= size
            self._changed.notify_all()
            return batch

    def _read(self) -> None:
        batch: list[T] = []
        size = 0
        try:
            for item in self._items:
                batch.append(item)
                size += self._size_of(item)
                if size >= self._batch_bytes:
                    if not self._give(batch, size):
                        return
                    batch, size = [], 0
        except BaseException as error:  # noqa: BLE001 - of any kind, it belongs to the one who takes
            self._error = error
        self._give(batch, size)
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _give(self, batch: list[T], size: int) -> bool:
        """Hand over a batch once there is room for it; return whether anybody still takes."""
        with self._changed:
            self._changed.wait_for(lambda: self._ahead < self._ahead_bytes or self._is_given_up)
            if self._is_given_up:
                return False
            self._batches.append((batch, size))
            self._ahead += size
            self._changed.notify_all()
            return True
