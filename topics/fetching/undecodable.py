# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Undecodable headers: reading a record batch whose header names are not all UTF-8.

Kafka requires UTF-8 in header names, but neither the broker nor every client checks it, and aiokafka's
decoders then refuse the whole batch. Our kernel does not check header names either;
`topics/columns/headers.py` handles them on access. Batches with such names that the kernel leaves to aiokafka
are read here in Python (some 10 µs a record).
"""

from __future__ import annotations

from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.util import decode_varint_py

from topics.columns.headers import read_headers
from topics.fetching.record import Record


def read_tolerantly(batch: bytes) -> list[Record]:
    """Return the records of a batch (format v2); raise CorruptRecordException, as aiokafka does."""
    head: Any = _DefaultRecordBatchPy(batch)
    head._maybe_uncompress()
    data, at = head._buffer, head._pos
    records = []
    try:
        for _ in range(head._num_records):
            record, at = _record(head, data, at)
            records.append(record)
    except (ValueError, IndexError) as error:
        msg = f"Found invalid record structure: {error!r}"
        raise CorruptRecordException(msg) from error
    if at != len(data):
        msg = f"{len(data) - at} unconsumed bytes after all records consumed"
        raise CorruptRecordException(msg)
    return records


def _record(head: Any, data: bytearray, at: int) -> tuple[Record, int]:
    # The compiled decode_varint reads beyond the end.
    size, at = decode_varint_py(data, at)
    end = at + size
    _, at = decode_varint_py(data, at)  # attributes
    timestamp_delta, at = decode_varint_py(data, at)
    offset_delta, at = decode_varint_py(data, at)
    key, at = _bytes(data, at)
    value, at = _bytes(data, at)
    count, at = decode_varint_py(data, at)
    headers = []
    for _ in range(count):
        name, at = _bytes(data, at)
        content, at = _bytes(data, at)
        headers.append((name or b"", content))
    if at != end:
        msg = f"a record of {size} bytes ends {at - end:+} bytes after its end"
        raise ValueError(msg)
    timestamp = head.first_timestamp + timestamp_delta
    if head.timestamp_type == head.LOG_APPEND_TIME:
        timestamp = head.max_timestamp
    return Record(head.base_offset + offset_delta, timestamp, key, value, read_headers(headers)), at


def _bytes(data: bytearray, at: int) -> tuple[bytes | None, int]:
    size, at = decode_varint_py(data, at)
    if size > len(data) - at:
        msg = f"{size} bytes from {at} on, of {len(data)}"
        raise ValueError(msg)
    return (None, at) if size < 0 else (bytes(data[at : at + size]), at + size)
