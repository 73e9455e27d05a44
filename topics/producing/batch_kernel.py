"""Batch kernel: writes record batches in Kafka's format v2; `topics/columns/record_batches.py` reads them."""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import kernel, row_of, start_of
from topics.columns.checksum import checksum

VALUE, VALUE_LENGTH, KEY, KEY_LENGTH, TIME, FIRST_HEADER, END_HEADER, PLACE = range(8)
"""Columns of the table of records: places and lengths of value and key in the data (length NULL: null), then
the timestamp in ms, the first header and the end of the headers in the table of headers, and the place of the
partition.
"""
RECORD_COLUMNS: Final = 8

NAME, NAME_LENGTH, CONTENT, CONTENT_LENGTH = range(4)
"""Columns of the table of headers: places and lengths of name and value in the data."""
HEADER_COLUMNS: Final = 4

PRODUCER, EPOCH, ATTRIBUTES, MOST_BYTES = range(4)
"""The parameters of all batches; a batch is larger than MOST_BYTES only if it has a single record."""
PARAMETERS: Final = 4

BATCH_PLACE, BATCH_START, BATCH_END, BATCH_COUNT = range(4)
"""Columns that describe a written batch: place of its partition, where it begins and ends in the output, and
the number of its records.
"""
BATCH_COLUMNS: Final = 4

HEAD_BYTES: Final = 61
LONGEST_VARINT: Final = 10
"""Bytes of the longest number."""

SEQUENCES: Final = 1 << 31
"""After the sequence number 2**31 - 1 comes 0."""

V2: Final = 2
NO_LEADER_EPOCH: Final = -1
COUNTED_FROM: Final = 12
CRC_AT: Final = 17
CHECKED_FROM: Final = 21

_BITS: Final = 7
_LOW: Final = 0x7F
_MORE: Final = 0x80
_UNSIGNED: Final = 0x01FF_FFFF_FFFF_FFFF
"""Clears the bits that a shift by seven fills with the sign."""


@kernel(
    "int64(Array(uint8, 1, 'C', readonly=True), int64[:, ::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[:, ::1], uint8[::1], uint32[::1])"
)
def write_batches(data, records, headers, sequences, parameters, batches, out, tables) -> int:
    """Write records as batches, one after another; return the number of batches.

    `data` is uint8 and holds keys, values, names and values of headers. `records` is
    int64[n, RECORD_COLUMNS], the records of a partition next to each other; `headers` is
    int64[m, HEADER_COLUMNS]. `sequences` is int64[p], the next sequence number of each partition, which is
    moved past its records. `parameters` is int64[PARAMETERS]. `batches` is int64[n, BATCH_COLUMNS], filled
    in. `out` is uint8, with room for all records, each in a batch of its own; `tables` is `checksum.TABLES`.
    No bounds are checked.
    """
    # Bare pointers: an array costs a count of references at every call.
    bytes_, names, output, table = start_of(data), start_of(headers), start_of(out), start_of(tables)
    at, first, n_batches = 0, 0, 0
    while first < len(records):
        record = row_of(records, first)
        place, base = record[PLACE], record[TIME]
        start, count, latest = at, 0, base
        at += HEAD_BYTES
        while first + count < len(records):
            record = row_of(records, first + count)
            if record[PLACE] != place:
                break
            size = _record_bytes(record, names, count, base)
            if count > 0 and at - start + _width(size) + size > parameters[MOST_BYTES]:
                break
            at = _put_varint(output, at, size)
            at = _write_record(bytes_, record, names, count, base, output, at)
            latest = max(latest, record[TIME])
            count += 1
        _put(output, start, 0, 8)
        _put(output, start + 8, at - start - COUNTED_FROM, 4)
        _put(output, start + 12, NO_LEADER_EPOCH, 4)
        _put(output, start + 16, V2, 1)
        _put(output, start + 21, parameters[ATTRIBUTES], 2)
        _put(output, start + 23, count - 1, 4)
        _put(output, start + 27, base, 8)
        _put(output, start + 35, latest, 8)
        _put(output, start + 43, parameters[PRODUCER], 8)
        _put(output, start + 51, parameters[EPOCH], 2)
        _put(output, start + 53, sequences[place], 4)
        _put(output, start + 57, count, 4)
        _put(output, start + CRC_AT, checksum(output, start + CHECKED_FROM, at, table), 4)
        sequences[place] = (sequences[place] + count) % SEQUENCES
        batch = row_of(batches, n_batches)
        batch[BATCH_PLACE], batch[BATCH_START], batch[BATCH_END] = place, start, at
        batch[BATCH_COUNT] = count
        first += count
        n_batches += 1
    return n_batches


@kernel
def _record_bytes(record, names, delta: int, base: int) -> Any:
    """Return the bytes of a record after its length."""
    key, value, first, end = (
        record[KEY_LENGTH],
        record[VALUE_LENGTH],
        record[FIRST_HEADER],
        record[END_HEADER],
    )
    size = 1 + _width(record[TIME] - base) + _width(delta)
    size += _width(key) + max(key, 0) + _width(value) + max(value, 0) + _width(end - first)
    for header in range(first, end):
        row = header * HEADER_COLUMNS
        name, content = names[row + NAME_LENGTH], names[row + CONTENT_LENGTH]
        size += _width(name) + name + _width(content) + max(content, 0)
    return size


@kernel
def _write_record(data, record, names, delta: int, base: int, out, at: int) -> Any:
    """Write a record without its length; return its end."""
    _put(out, at, 0, 1)  # the record's attributes, all unused
    at = _put_varint(out, at + 1, record[TIME] - base)
    at = _put_varint(out, at, delta)
    at = _put_bytes(data, record[KEY], record[KEY_LENGTH], out, at)
    at = _put_bytes(data, record[VALUE], record[VALUE_LENGTH], out, at)
    at = _put_varint(out, at, record[END_HEADER] - record[FIRST_HEADER])
    for header in range(record[FIRST_HEADER], record[END_HEADER]):
        row = header * HEADER_COLUMNS
        at = _put_bytes(data, names[row + NAME], names[row + NAME_LENGTH], out, at)
        at = _put_bytes(data, names[row + CONTENT], names[row + CONTENT_LENGTH], out, at)
    return at


@kernel
def _put_bytes(data, start: int, length: int, out, at: int) -> Any:
    """Write a string with its length, NULL for null; return its end."""
    at = _put_varint(out, at, length)
    for byte in range(length):
        out[at + byte] = data[start + byte]
    return at + max(length, 0)


@kernel
def _put(out, at: int, number: int, size: int) -> None:
    """Write a number in `size` bytes, the highest first."""
    for byte in range(size):
        out[at + byte] = (number >> (8 * (size - 1 - byte))) & 0xFF


@kernel
def _put_varint(out, at: int, number: int) -> Any:
    """Write a number (zigzag, seven bits a byte); return its end."""
    rest = (number << 1) ^ (number >> 63)
    while rest < 0 or rest > _LOW:
        out[at] = (rest & _LOW) | _MORE
        rest = (rest >> _BITS) & _UNSIGNED
        at += 1
    out[at] = rest
    return at + 1


@kernel
def _width(number: int) -> Any:
    """Return the bytes of a number as `_put_varint` writes it."""
    rest, size = (number << 1) ^ (number >> 63), 1
    while rest < 0 or rest > _LOW:
        rest = (rest >> _BITS) & _UNSIGNED
        size += 1
    return size
