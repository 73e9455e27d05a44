"""Record batches: a kernel that finds the parts of each record in Kafka's format v2.

The kernel refuses every batch that deviates from the format; aiokafka's reader then raises the detailed
error.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, row_of, start_of
from topics.columns.spans import (
    HEADERS,
    HEADERS_LENGTH,
    KEY,
    KEY_LENGTH,
    OFFSET,
    TIMESTAMP,
    VALUE,
    VALUE_LENGTH,
)

START, END, COUNT, BASE_OFFSET, BASE_TIME, HAS_TIMES, POSITION = range(7)
"""Columns that describe a batch: where its records begin and end, how many there are, the offset and
timestamp that its records are relative to, 1 if each record has its own timestamp (0: all have the base), and
the first wanted offset.
"""
BATCH_COLUMNS: Final = 7
SMALLEST_RECORD: Final = 7
"""Bytes of the smallest record: length, attributes, timestamp, offset, lengths of key and value, number of
headers.
"""
_BAD: Final = -1
_LONGEST: Final = 56  # bits before the ninth byte, the last that is read; a tenth byte is refused
_MORE: Final = 0x80
_SEVEN: Final = 0x7F


@kernel("int64(Array(uint8, 1, 'C', readonly=True), int64[:, ::1], int64[:, ::1])")
def read_records(data, batches, table) -> int:
    """Fill in the table of `RecordSpans`; return the number of its records, or -1 if a batch is malformed.

    `data` is uint8 and holds the uncompressed records; nothing is read beyond the end of a batch. `batches`
    is int64[m, BATCH_COLUMNS]. `table` is int64[8, n or more], for n records in all batches.
    """
    n, width = 0, table.shape[1]
    # Bare pointers: an array costs a count of references at every call.
    bytes_, cells = start_of(data), start_of(table)
    for number in range(len(batches)):
        n = read_batch(bytes_, row_of(batches, number), cells, width, n)
        if n < 0:
            return _BAD
    return n


@kernel
def read_batch(data, batch, cells, width: int, n: int) -> Any:
    """Read the records of a batch into the table from column n on; return the next column, or -1."""
    at, is_cut = batch[START], False
    for record in range(batch[COUNT]):
        at = _read(data, at, batch, cells, width, n)
        if at < 0:
            return _BAD
        offset = cells[OFFSET * width + n]
        if record == 0:
            # A broker sends whole batches, so the first records may be before the wanted offset.
            is_cut = offset < batch[POSITION]
        if not is_cut or offset >= batch[POSITION]:
            n += 1
    return n if at == batch[END] else _BAD


@kernel("int64(Array(uint8, 1, 'C', readonly=True), int64, int64, int64)")
def count_headers(data, start: int, end: int, count: int) -> int:
    """Return how many headers `count` records have together, up to the first malformed one.

    `data` is uint8 and holds the uncompressed records from `start` to `end`.
    """
    bytes_ = start_of(data)
    at, n = start, 0
    for _ in range(count):
        length, at = _number(bytes_, at, end)
        if at < 0 or length < 0 or length > end - at:
            return n
        stop = at + length
        _, at = _number(bytes_, at + 1, end)  # the timestamp, after a byte of attributes
        _, at = _number(bytes_, at, end)  # the offset
        for _ in range(2):  # key and value
            length, at = _number(bytes_, at, end)
            if at < 0 or length > end - at:
                return n
            at += max(length, 0)
        own, at = _number(bytes_, at, end)
        for _ in range(own):
            length, at = _number(bytes_, at, end)
            if at < 0 or length < 0 or length > end - at:
                return n
            length, at = _number(bytes_, at + length, end)
            if at < 0 or length > end - at:
                return n
            at += max(length, 0)
            n += 1
        if at != stop:
            return n
    return n


@kernel
def _read(data, at: int, batch, cells, width: int, n: int) -> int:
    """Read a record into column n of the table; return its end, or -1 if it is malformed."""
    length, at = _number(data, at, batch[END])
    if at < 0 or length < 0 or length > batch[END] - at:
        return _BAD
    end = at + length
    if at >= end or np.int64(data[at]) >= _MORE:  # the record's attributes, all unused
        return _BAD
    delta, at = _number(data, at + 1, end)
    cells[TIMESTAMP * width + n] = batch[BASE_TIME] + delta * batch[HAS_TIMES]
    delta, at = _number(data, at, end)
    cells[OFFSET * width + n] = batch[BASE_OFFSET] + delta
    at = _bytes(data, at, end, cells, KEY * width + n, KEY_LENGTH * width + n)
    at = _bytes(data, at, end, cells, VALUE * width + n, VALUE_LENGTH * width + n)
    cells[HEADERS * width + n] = at
    count, at = _number(data, at, end)
    if at < 0 or count < 0:
        return _BAD
    for _ in range(count):
        length, at = _number(data, at, end)
        if at < 0 or length < 0 or length > end - at:
            return _BAD
        length, at = _number(data, at + length, end)
        if at < 0 or length > end - at:
            return _BAD
        at += max(length, 0)
    cells[HEADERS_LENGTH * width + n] = end - cells[HEADERS * width + n] if count else 0
    return end if at == end else _BAD


@kernel
def _bytes(data, at: int, end: int, cells, start: int, size: int) -> int:
    """Store the start and length of a key or value; return its end, or -1 if it is malformed."""
    length, at = _number(data, at, end)
    if at < 0 or length > end - at:
        return _BAD
    cells[start] = at
    cells[size] = max(length, -1)
    return at + max(length, 0)


@kernel
def _number(data, at: int, end: int) -> Any:
    """Return the number at this place (zigzag, seven bits a byte) and its end; the end is -1 if it is
    malformed.
    """
    if at < 0 or at >= end:
        return 0, _BAD
    byte = np.int64(data[at])
    at += 1
    number, shift = byte & _SEVEN, 7
    while byte >= _MORE:
        if at >= end or shift > _LONGEST:
            return 0, _BAD
        byte = np.int64(data[at])
        at += 1
        number |= (byte & _SEVEN) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), at
