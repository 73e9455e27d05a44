"""Plain batches: a kernel that finds record batches whose records can be read where they were fetched.

A producer of a trickle writes batches of a few records, so a fetch has many of them. A batch is *plain* if it
has format v2 and its checksum is right, if it is neither compressed nor a marker nor perhaps aborted, and if
no limit concerns it. The search ends before the first other batch, which its reader reads or refuses.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from core.kernels.jit import kernel, row_of, start_of
from topics.columns.checksum import checksum
from topics.columns.record_batches import (
    BASE_OFFSET,
    BASE_TIME,
    COUNT,
    END,
    HAS_TIMES,
    POSITION,
    SMALLEST_RECORD,
    START,
)

HEAD_BYTES: Final = 61
"""Bytes of a batch before its records."""

AT, NEXT_POSITION, N_RECORDS, MOST_RECORDS, MOST_OF_BATCH, MOST_BYTES, IS_CHECKED, OTHERS = range(8)
"""Fields of a search: where the next batch begins, its first wanted offset, and the number of records found;
then the number of records that end the search, the most records and bytes of a batch, 1 if checksums are to
be verified, and the attributes that no plain batch has.
"""
SEARCH_FIELDS: Final = 8

COMPRESSION, APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
"""Bits of the attributes."""

ATTRIBUTES_AT: Final = 22
"""The second byte of the attributes, which has all of these bits."""
MAGIC_AT: Final = 16
V2: Final = 2

_LENGTH_AT, _COUNTED_FROM, _CRC_AT, _CHECKED_FROM = 8, 12, 17, 21
_LAST_DELTA_AT, _FIRST_TIME_AT, _LAST_TIME_AT, _COUNT_AT = 23, 27, 35, 57
_UNSIGNED: Final = 0xFFFF_FFFF


@kernel("int64(Array(uint8, 1, 'C', readonly=True), uint32[::1], int64[::1], int64[:, ::1])")
def find_plain(data, tables, search, batches) -> int:
    """Fill in rows of `batches` (int64[m, BATCH_COLUMNS], see `read_records`); return how many.

    `data` is uint8 and holds batches as a broker sends them; `tables` is `checksum.TABLES`. `search` is
    int64[SEARCH_FIELDS]; its first three fields are moved to the end of the last batch that is found.
    """
    # Bare pointers: an array costs a count of references at every call.
    bytes_, table = start_of(data), start_of(tables)
    found = 0
    while found < len(batches) and search[N_RECORDS] < search[MOST_RECORDS]:
        at = search[AT]
        if len(data) - at < HEAD_BYTES or data[at + MAGIC_AT] != V2:
            break
        end = at + _COUNTED_FROM + _int32(bytes_, at + _LENGTH_AT)
        begin = at + HEAD_BYTES
        attributes = np.int64(data[at + ATTRIBUTES_AT])
        count = _int32(bytes_, at + _COUNT_AT)
        if end < begin or end > len(data) or attributes & search[OTHERS]:
            break
        if count < 0 or count > min(search[MOST_OF_BATCH], (end - begin) // SMALLEST_RECORD):
            break
        if end - begin > search[MOST_BYTES]:
            break
        stored = _int32(bytes_, at + _CRC_AT) & _UNSIGNED
        if search[IS_CHECKED] and checksum(bytes_, at + _CHECKED_FROM, end, table) != stored:
            break
        row = row_of(batches, found)
        has_times = attributes & APPEND_TIME == 0
        row[START], row[END], row[COUNT] = begin, end, count
        row[BASE_OFFSET], row[HAS_TIMES] = _int64(bytes_, at), np.int64(has_times)
        row[BASE_TIME] = _int64(bytes_, at + (_FIRST_TIME_AT if has_times else _LAST_TIME_AT))
        row[POSITION] = search[NEXT_POSITION]
        search[NEXT_POSITION] = row[BASE_OFFSET] + _int32(bytes_, at + _LAST_DELTA_AT) + 1
        search[N_RECORDS] += count
        search[AT] = end
        found += 1
    return found


@kernel
def _int32(data, at: int) -> int:
    """Return the signed number of four bytes at a place, the highest byte first."""
    number = np.int64(0)
    for byte in range(4):
        number = number << 8 | np.int64(data[at + byte])
    return (number ^ 0x8000_0000) - 0x8000_0000


@kernel
def _int64(data, at: int) -> int:
    """Return the signed number of eight bytes at a place, the highest byte first."""
    number = np.int64(0)
    for byte in range(8):
        number = number << 8 | np.int64(data[at + byte])
    return number
