"""Swap file: the words of evicted models, in an unlinked file of this process.

Only this process uses the file: it is unlinked when it is made, and the system removes it with the process,
however that ends. So no other worker can take its contents for a snapshot. Nothing is flushed to the disk:
data lost with the machine is restored from snapshot and journal.

A model keeps its place until it is dropped, so that a model that was read and did not change need not be
written again. Places have few sizes (at most a quarter larger than their contents) and are reused.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import weakref
import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from core.layout.model import WORD, Ints
from core.tree.allocation import aligned_words
from streamapp.errors import StreamappError

UNIT: Final = 256  # bytes; places are multiples of it
_FIRST_CAPACITY: Final = 16
_START, _ROOM, _WORDS, _CRC = range(4)  # columns of a place

_NO_WAIT: Final = getattr(os, "RWF_NOWAIT", 0)
"""Flag of a read that fails where it would wait for the disk; 0 where there is none."""


class SwapFileError(StreamappError):
    """Evicted models cannot be read back."""


class SwapFile:
    """Words by slot. One thread writes; at the same time another thread may call `read`."""

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: where the file is made at the first write (None: where temporary files are)."""
        self._directory = directory
        self._file: int | None = None
        self._closes: Callable[[], object] = _nothing
        self._places = np.zeros((_FIRST_CAPACITY, 4), dtype=np.int64)  # no words: the place is empty
        self._free: defaultdict[int, list[int]] = defaultdict(list)  # bytes -> where places of the size begin
        self._end = 0
        self._waits = not _NO_WAIT
        self._closed = False
        self._open = threading.Lock()  # held while the file is read

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._end

    def holds(self, slot: int) -> bool:
        """Return whether the file has words of a slot."""
        return slot < len(self._places) and bool(self._places[slot, _WORDS])

    def write(self, slot: int, words: Ints) -> None:
        """Write the words of a slot over its earlier words; OSError if the disk does not take them."""
        if self._closed:
            raise _gone()
        if slot >= len(self._places):
            more = np.zeros((max(slot + 1, 2 * len(self._places)), 4), dtype=np.int64)
            more[: len(self._places)] = self._places
            self._places = more
        room = room_of(words.nbytes)
        if self._places.item(slot, _ROOM) != room:
            self.drop(slot)
            self._places[slot, _START], self._places[slot, _ROOM] = self._take(room), room
        data = words.data.cast("B")
        try:
            self._write(data, self._places.item(slot, _START))
        except OSError:
            self.drop(slot)
            raise
        self._places[slot, _WORDS], self._places[slot, _CRC] = len(words), zlib.crc32(data)

    def read(self, slot: int) -> Ints:
        """Return the words of a slot; may wait for the disk. SwapFileError if they changed."""
        words = self._read(slot, 0)
        assert words is not None
        return words

    def read_now(self, slot: int) -> Ints | None:
        """Return the words of a slot if the system has them in memory, else None."""
        return None if self._waits else self._read(slot, _NO_WAIT)

    def drop(self, slot: int) -> None:
        """Forget the words of a slot."""
        if slot < len(self._places) and self._places[slot, _ROOM]:
            self._free[self._places.item(slot, _ROOM)].append(self._places.item(slot, _START))
            self._places[slot] = 0

    def close(self) -> None:
        """Release everything, after a read under way."""
        with self._open:
            self._closed = True
            self._file = None
            self._closes()

    # -- inside ---------------------------------------------------------------------------------------------

    def _take(self, room: int) -> int:
        if self._free[room]:
            return self._free[room].pop()
        start, self._end = self._end, self._end + room
        return start

    def _write(self, data: memoryview, start: int) -> None:
        if self._file is None:
            with tempfile.TemporaryFile(dir=self._directory, buffering=0) as file:
                self._file = os.dup(file.fileno())
            # A task whose restore was abandoned is dropped without closing.
            self._closes = weakref.finalize(self, os.close, self._file)
        while data:
            n = os.pwrite(self._file, data, start)
            data, start = data[n:], start + n

    def _read(self, slot: int, flags: int) -> Ints | None:
        start, _, n, crc = self._places[slot].tolist()
        words = aligned_words(n)
        data = words.data.cast("B")
        with self._open:
            if self._file is None:
                raise _gone()
            got = self._fill(self._file, data, start, flags)
        if got is None:
            return None
        if got < n * WORD or zlib.crc32(data) != crc:
            message = f"evicted model of slot {slot}: must be what was written; see the disk of state.dir"
            raise SwapFileError(message)
        return words

    def _fill(self, file: int, data: memoryview, start: int, flags: int) -> int | None:
        """Read until `data` is full; return how many bytes there were, None if some are not in memory."""
        got = 0
        while got < len(data):
            try:
                n = os.preadv(file, [data[got:]], start + got, flags)
            except BlockingIOError:
                return None
            except OSError as error:
                if flags and error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                    self._waits = True  # a file system that cannot detect a wait
                    return None
                message = f"evicted models cannot be read: {error.strerror}; see the disk of state.dir"
                raise SwapFileError(message) from error
            if n == 0:
                break
            got += n
        return got


def room_of(size: int) -> int:
    """Return the bytes of a place for `size` bytes: four sizes between one power of two and the next."""
    units = -(-size // UNIT)
    shift = max(0, units.bit_length() - 3)
    return (-(-units >> shift) << shift) * UNIT


def _nothing() -> None:
    pass


def _gone() -> SwapFileError:
    return SwapFileError("evicted models are deleted: their task was given up")
