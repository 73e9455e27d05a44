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

_LENGTH: Final = Struct(">i")
"""Bytes of a batch after its offset and this length."""
_LENGTH_AT: Final = 8
_FIRST_BYTES: Final = 12
_MAGIC_AT: Final = 16
_V2: Final = 2


class FetchedRecords:
    """Batches as the broker sent them; the last one may be cut off, and is then left out."""

    def __init__(self, log: bytes) -> None:
        """`log` holds the batches."""
        self.log = log
        self.size = len(log)
        self.start = 0
        self.end = 0
        """End of the last batch taken."""

    def size_in_bytes(self) -> int:
        return self.size

    def has_next(self) -> bool:
        """Return whether all of the next batch is here."""
        body = self.size - self.end - _FIRST_BYTES
        return body >= 0 and body >= _LENGTH.unpack_from(self.log, self.end + _LENGTH_AT)[0]

    def next_batch(self) -> Any:
        """Return the next batch, or None; raise CorruptRecordException if it is too short for any format."""
        if not self.has_next():
            return None
        start = self.end
        end: int = start + _FIRST_BYTES + _LENGTH.unpack_from(self.log, start + _LENGTH_AT)[0]
        if end - start < SMALLEST:
            message = f"a batch of {end - start} bytes must have {SMALLEST} at least"
            raise CorruptRecordException(message)
        self.start, self.end = start, end
        if self.log[start + _MAGIC_AT] == _V2 and end - start >= HEAD_BYTES:
            return DefaultRecordBatch(memoryview(self.log)[start:end])
        return OldBatch(self.log, start, end)

    def go_on_at(self, end: int) -> None:
        """Continue after batches that end at `end`, and were read from the bytes."""
        self.start = self.end = end


def keep_bytes() -> None:
    """Make aiokafka's fetchers in this process keep the fetched bytes."""
    fetcher.MemoryRecords = FetchedRecords
