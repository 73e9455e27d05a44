"""Fetched records: the batches of an answer to a fetch, one by one, with their bytes.

It stands in for aiokafka's `MemoryRecords`, which does not expose the bytes, and reads all batches of an
answer in the format of the first. A topic that is older than its broker may have several formats in one
answer.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch

from topics.fetching.old_formats import SMALLEST, OldBatch

HEAD_BYTES: Final = 61
"""Bytes of the head of a batch of format v2."""

_OFFSET_AND_LENGTH: Final = Struct(">qi")
_MAGIC_AT: Final = 16
_V2: Final = 2


class FetchedRecords:
    """Batches as the broker sent them; the last one may be cut off, and is then left out."""

    def __init__(self, log: bytes) -> None:
        """`log` holds the batches."""
        self.log = log
        self.start = 0
        self.end = 0
        """End of the last batch taken."""
        self._next = self._end_of(0)

    def size_in_bytes(self) -> int:
        return len(self.log)

    def has_next(self) -> bool:
        return self._next is not None

    def next_batch(self) -> Any:
        """Return the next batch, or None; raise CorruptRecordException if it is too short for any format."""
        if self._next is None:
            return None
        start, end = self.end, self._next
        if end - start < SMALLEST:
            message = f"a batch of {end - start} bytes must have {SMALLEST} at least"
            raise CorruptRecordException(message)
        self.start, self.end = start, end
        self._next = self._end_of(end)
        if self.log[start + _MAGIC_AT] == _V2 and end - start >= HEAD_BYTES:
            return DefaultRecordBatch(memoryview(self.log)[start:end])
        return OldBatch(self.log, start, end)

    def go_on_at(self, end: int) -> None:
        """Continue after batches that end at `end`, and were read from the bytes."""
        self.start = self.end = end
        self._next = self._end_of(end)

    def _end_of(self, start: int) -> int | None:
        """Return the end of the batch that begins at `start`; None: not all of it is here."""
        if len(self.log) - start < _OFFSET_AND_LENGTH.size:
            return None
        end: int = start + _OFFSET_AND_LENGTH.size + _OFFSET_AND_LENGTH.unpack_from(self.log, start)[1]
        return end if end <= len(self.log) else None


def keep_bytes() -> None:
    """Make aiokafka's fetchers in this process keep the fetched bytes."""
    fetcher.MemoryRecords = FetchedRecords
