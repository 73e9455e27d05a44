# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Batches: the record batches of a fetch one by one, inflated within bounds, and refused batches.

aiokafka's own reader inflates a batch to any size, so it is given only batches that are inflated already.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import Struct
from typing import Any, Final

import numpy as np
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.record.default_records import DefaultRecordBatch

from topics.columns.spans import ROWS, RecordSpans
from topics.errors import Reason
from topics.fetching.inflate import CODEC_NAMES, DamagedError, OversizedError, inflated
from topics.fetching.old_formats import OldBatch
from topics.fetching.record import Record
from topics.fetching.refused import BATCH_BYTES, HEADER_COST, KEPT_BYTES, RECORD_COST, RefusedBatch
from topics.fetching.undecodable import read_tolerantly

V2: Final = 2
HEAD: Final = Struct(">qiibIhiqqqhii")
"""The head of a batch in format v2: base offset, bytes that follow, leader epoch, magic, CRC, attributes,
last offset delta, first and largest timestamp, producer id, its epoch, base sequence, number of records.
"""
COMPRESSION, APPEND_TIME = 0x07, 0x08
"""Bits of the attributes."""

SMALLEST_HEADER: Final = 2
"""Bytes of the lengths of a name and a value."""

_LENGTH: Final = Struct(">i")
_BEFORE_LENGTH, _COUNTED_FROM = 8, 12
_ATTRIBUTES: Final = Struct(">h")
_ATTRIBUTES_AT: Final = 21


@dataclass(frozen=True, slots=True)
class Limit:
    """How large the records of a batch may be once they are inflated."""

    most_bytes: int = BATCH_BYTES
    setting: str = "fetch.decompressed.max.bytes"

    @property
    def most_records(self) -> int:
        """Largest number of records of a batch: the memory that they take beside their bytes stays within the
        limit, too.
        """
        return max(1, self.most_bytes // RECORD_COST)

    @property
    def most_headers(self) -> int:
        """Largest number of headers that the records of a batch may have together."""
        return max(1, self.most_bytes // HEADER_COST)


PROCESSED: Final = Limit(1 << 31)
"""The limit for batches that a worker has processed: it accepted them under its setting of then."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A wanted batch of format v2, its records no longer compressed."""

    log: bytes  # the bytes that hold its head
    start: int
    end: int
    payload: bytes | None  # its inflated records; None: they lie in the log after the head

    @property
    def plain(self) -> bytes:
        """The batch as if it had never been compressed; it keeps the checksum of the compressed batch."""
        if self.payload is None:
            return self.log[self.start : self.end]
        head = bytearray(self.log[self.start : self.start + HEAD.size])
        _LENGTH.pack_into(head, _BEFORE_LENGTH, HEAD.size - _COUNTED_FROM + len(self.payload))
        (attributes,) = _ATTRIBUTES.unpack_from(head, _ATTRIBUTES_AT)
        _ATTRIBUTES.pack_into(head, _ATTRIBUTES_AT, attributes & ~COMPRESSION)
        return bytes(head) + self.payload


def is_skipped(records: Any, batch: Any) -> bool:
    """Whether a batch holds no records for readers: a control batch, or part of an aborted transaction."""
    if records._isolation_level == READ_COMMITTED and batch.producer_id is not None:
        records._consume_aborted_up_to(batch.base_offset)
        if batch.is_control_batch and records._contains_abort_marker(batch):
            records._aborted_producers.discard(batch.producer_id)
        if batch.is_transactional and batch.producer_id in records._aborted_producers:
            return True
    return bool(batch.is_control_batch)


def is_v2(batch: Any) -> bool:
    """Whether a batch of aiokafka's has format v2, which Kafka writes since version 0.11."""
    return isinstance(batch, DefaultRecordBatch) and batch.magic == V2


def opened(log: bytes, start: int, end: int, position: int, limit: Limit) -> Batch | RefusedBatch:
    """Return a batch of format v2 with its records inflated, or the reason why they are not read."""
    attributes, count = HEAD.unpack_from(log, start)[5], HEAD.unpack_from(log, start)[-1]
    codec = attributes & COMPRESSION
    if count > limit.most_records:
        problem = f"has {count:,} records; at most {limit.most_records:,} of a batch are read"
        return _refused(log, start, end, position, Reason.BATCH_TOO_LARGE, f"{problem}{_remedy(limit)}")
    payload: bytes | None = None
    try:
        if codec:
            payload = inflated(codec, log[start + HEAD.size : end], limit.most_bytes)
    except OversizedError:
        problem = f"of {end - start:,} bytes ({CODEC_NAMES[codec]}) becomes more than {limit.most_bytes:,}"
        refused = _refused(log, start, end, position, Reason.BATCH_TOO_LARGE, f"{problem}{_remedy(limit)}")
        return replace(refused, inflated=limit.most_bytes)
    except DamagedError as error:
        return damaged(log, start, end, position, error)
    batch = Batch(log, start, end, payload)
    headers = _many_headers(batch, count, limit)
    if headers:
        problem = f"has {headers:,} headers; at most {limit.most_headers:,} of a batch are read"
        refused = _refused(log, start, end, position, Reason.BATCH_TOO_LARGE, f"{problem}{_remedy(limit)}")
        return replace(refused, inflated=len(payload or b""))
    return batch


def _many_headers(batch: Batch, count: int, limit: Limit) -> int:
    """Return how many headers the `count` records of a batch have, if these are too many, or else 0."""
    data, begin, stop = batch.log, batch.start + HEAD.size, batch.end
    if batch.payload is not None:
        data, begin, stop = batch.payload, 0, len(batch.payload)
    if stop - begin <= SMALLEST_HEADER * limit.most_headers:
        return 0  # there is no room for more
    # Compiled kernels: imported only when needed.
    from topics.columns.record_batches import count_headers

    headers = int(count_headers(np.frombuffer(data, dtype=np.uint8), begin, stop, count))
    return headers if headers > limit.most_headers else 0


def damaged(log: bytes, start: int, end: int, position: int, error: Exception) -> RefusedBatch:
    """Return the refusal of a batch of format v2 that cannot be read although its checksum is right."""
    problem = f"of {end - start:,} bytes cannot be read ({type(error).__name__}: {error}); mend its producer"
    return _refused(log, start, end, position, Reason.BAD_BATCH, problem)


def old_opened(
    batch: OldBatch, log: bytes, start: int, end: int, position: int, limit: Limit
) -> tuple[list[Record], int] | RefusedBatch:
    """Return the records of a batch of another format than v2 and the bytes inflated for them, or the reason
    why they are not read.
    """
    last = batch.next_offset - 1
    try:
        records, size = batch.records(limit.most_bytes, limit.most_records)
    except OversizedError:
        most = f"{limit.most_bytes:,} bytes or {limit.most_records:,} records"
        problem = f"of {end - start:,} bytes ({CODEC_NAMES[batch.codec]}) becomes more than {most}"
        refused = _old(log, start, end, position, last, Reason.BATCH_TOO_LARGE, f"{problem}{_remedy(limit)}")
        return replace(refused, inflated=limit.most_bytes)
    except DamagedError as error:
        problem = (
            f"of {end - start:,} bytes cannot be read ({type(error).__name__}: {error}); mend its producer"
        )
        return _old(log, start, end, position, last, Reason.BAD_BATCH, problem)
    return [record for record in records if record.offset >= position], size


def records_of(batch: Batch) -> list[Any]:
    """Return the records of a batch as aiokafka reads them."""
    plain = batch.plain
    try:
        return list(DefaultRecordBatch(plain))
    except UnicodeDecodeError:
        return list(read_tolerantly(plain))


def spans_of(batch: Batch, position: int) -> RecordSpans | None:
    """Return the records of a batch from an offset on, found by a kernel; None: it is damaged or unusual."""
    # Compiled kernels: imported only when needed.
    from topics.columns.record_batches import SMALLEST_RECORD, read_records

    base, *_, attributes, _, first_time, last_time, _, _, _, count = HEAD.unpack_from(batch.log, batch.start)
    buffer, begin, stop = batch.log, batch.start + HEAD.size, batch.end
    if batch.payload is not None:
        buffer, begin, stop = batch.payload, 0, len(batch.payload)
    if not 0 <= count <= (stop - begin) // SMALLEST_RECORD:
        return None
    has_times = not attributes & APPEND_TIME
    time = first_time if has_times else last_time
    row = np.array([[begin, stop, count, base, time, has_times, position]], dtype=np.int64)
    table = np.empty((ROWS, count), dtype=np.int64)
    n = read_records(np.frombuffer(buffer, dtype=np.uint8), row, table)
    return None if n < 0 else RecordSpans(buffer, table[:, :n])


def _remedy(limit: Limit) -> str:
    return f" (raise {limit.setting}, or have its producer send smaller batches)"


def _refused(log: bytes, start: int, end: int, position: int, reason: Reason, problem: str) -> RefusedBatch:
    base, *_, attributes, last_delta, first_time, last_time, _, _, _, _ = HEAD.unpack_from(log, start)
    first, last = max(base, position), base + max(last_delta, 0)
    time = last_time if attributes & APPEND_TIME else first_time
    return _made(log, start, end, first, last, time, reason, problem)


def _old(
    log: bytes, start: int, end: int, position: int, last: int, reason: Reason, problem: str
) -> RefusedBatch:
    return _made(log, start, end, min(position, last), last, 0, reason, problem)


def _made(
    log: bytes, start: int, end: int, first: int, last: int, time: int, reason: Reason, problem: str
) -> RefusedBatch:
    detail = f"the batch of offsets {first} to {last} {problem}"
    return RefusedBatch(first, last, max(time, 0), reason, detail, log[start : min(end, start + KEPT_BYTES)])
