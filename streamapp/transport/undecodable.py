# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Undecodable headers: reading a record batch whose header names are not all UTF-8.

Kafka wants UTF-8 there, but neither the broker nor every client looks, and aiokafka's decoders then refuse
the whole batch. Such a batch is read here in Python (some 10 µs a record), and what its headers are says
`topics/headers.py`.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

from topics.headers import read_headers
from topics.records import Headers

_BATCH_HEAD = Struct(">qi")  # base offset, bytes that follow


class FetchedRecords(MemoryRecords):  # type: ignore[misc]  # compiled, or Python's
    """aiokafka's fetched batches, with the bytes they are read from: the compiled ones do not show them."""

    def __init__(self, log: bytes) -> None:
        """`log`: batches as the broker sent them."""
        super().__init__(log)
        self.log = log


class Record(NamedTuple):
    """What is needed of a record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def keep_bytes() -> None:
    """Let aiokafka's fetchers of this process keep fetched bytes at hand."""
    fetcher.MemoryRecords = FetchedRecords


def read_tolerantly(records: FetchedRecords, base_offset: int) -> list[Record]:
    """Return the records of the batch (format v2) that begins at `base_offset`."""
    log, at = records.log, 0
    while True:
        base, size = _BATCH_HEAD.unpack_from(log, at)
        end = at + _BATCH_HEAD.size + size
        if base == base_offset:
            return _records(log[at:end])
        at = end


def _records(batch: bytes) -> list[Record]:
    head: Any = _DefaultRecordBatchPy(batch)
    head._maybe_uncompress()
    data, at = head._buffer, head._pos
    found = []
    for _ in range(head._num_records):
        record, at = _record(head, data, at)
        found.append(record)
    return found


def _record(head: Any, data: bytearray, at: int) -> tuple[Record, int]:
    _, at = decode_varint(data, at)  # length
    _, at = decode_varint(data, at)  # attributes
    timestamp_delta, at = decode_varint(data, at)
    offset_delta, at = decode_varint(data, at)
    key, at = _bytes(data, at)
    value, at = _bytes(data, at)
    count, at = decode_varint(data, at)
    headers = []
    for _ in range(count):
        name, at = _bytes(data, at)
        content, at = _bytes(data, at)
        headers.append((name or b"", content))
    timestamp = head.first_timestamp + timestamp_delta
    if head.timestamp_type == head.LOG_APPEND_TIME:
        timestamp = head.max_timestamp
    return Record(head.base_offset + offset_delta, timestamp, key, value, read_headers(headers)), at


def _bytes(data: bytearray, at: int) -> tuple[bytes | None, int]:
    size, at = decode_varint(data, at)
    return (None, at) if size < 0 else (bytes(data[at : at + size]), at + size)
