"""Plain batches: a kernel that finds record batches whose records can be read where they were fetched.

A producer of a trickle writes batches of a few records, so a fetch has many of them. A batch is *plain* if it
has format v2 and its checksum is right, if it is neither compressed nor a marker nor perhaps aborted, and if
no limit concerns it. The search ends before the first other batch, which its reader reads or refuses.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel, row_of, start_of, tail
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
    read_batch,
)
from topics.columns.spans import HEADERS_LENGTH, VALUE_LENGTH

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
    n_found = 0
    while n_found < len(batches) and search[N_RECORDS] < search[MOST_RECORDS]:
        if not _is_next_plain(bytes_, len(data), table, search, row_of(batches, n_found)):
            break
        n_found += 1
    return n_found


@kernel(
    "void(Array(uint8, 1, 'C', readonly=True), uint32[::1], int64[:, ::1], int64[::1], int64[:, ::1],"
    " int64[:, ::1])"
)
def read_logs(data, tables, logs, search, records, results) -> None:
    """Read the records of several logs, each of which holds batches as a broker sends them.

    `data` is uint8, `tables` is `checksum.TABLES`. `logs` is int64[m, 3]: where each log begins and ends in
    the data, and the first wanted offset. `search` is int64[SEARCH_FIELDS + BATCH_COLUMNS], whose first three
    fields are overwritten, and those after the search. `records` is the table of `RecordSpans`, int64[8, n or
    more], for the records of all logs, one log after another. `results` is int64[m, 4]: the number of records
    of each log, the position after them, and the bytes of their values and headers; the number is -1 if a
    batch is not plain, and the log has to be read otherwise. A batch that is cut off by the end of the log is
    left out; markers have no records.
    """
    bytes_, table = start_of(data), start_of(tables)
    cells, width, n = start_of(records), records.shape[1], 0
    batch = tail(start_of(search), SEARCH_FIELDS)
    for log in range(len(logs)):
        first, stop, is_plain = n, logs[log, 1], True
        search[AT], search[NEXT_POSITION] = logs[log, 0], logs[log, 2]
        while is_plain and _is_whole(bytes_, search[AT], stop):
            attributes = np.int64(data[search[AT] + ATTRIBUTES_AT])
            is_plain = _is_next_plain(bytes_, stop, table, search, batch)
            if is_plain and attributes & CONTROL == 0:
                after = read_batch(bytes_, batch, cells, width, n)
                is_plain = after >= 0
                n = max(after, n)
        results[log, 1], results[log, 2], results[log, 3] = search[NEXT_POSITION], 0, 0
        if is_plain:
            results[log, 0] = n - first
            for record in range(first, n):
                results[log, 2] += max(cells[VALUE_LENGTH * width + record], 0)
                results[log, 3] += cells[HEADERS_LENGTH * width + record]
        else:
            results[log, 0], n = -1, first


@kernel
def _is_whole(data, at: int, stop: int) -> bool:
    """Return whether a batch begins at a place and ends before `stop`, as far as its length shows it."""
    if stop - at < _COUNTED_FROM:
        return False
    return bool(at + _COUNTED_FROM + _int32(data, at + _LENGTH_AT) <= stop)


@kernel
def _is_next_plain(data, stop: int, table, search, batch) -> bool:
    """Return whether the next batch up to `stop` is plain; then fill in `batch` and move the search on."""
    at = search[AT]
    if stop - at < HEAD_BYTES or data[at + MAGIC_AT] != V2:
        return False
    end = at + _COUNTED_FROM + _int32(data, at + _LENGTH_AT)
    begin = at + HEAD_BYTES
    attributes = np.int64(data[at + ATTRIBUTES_AT])
    count = _int32(data, at + _COUNT_AT)
    if end < begin or end > stop or attributes & search[OTHERS]:
        return False
    if count < 0 or count > min(search[MOST_OF_BATCH], (end - begin) // SMALLEST_RECORD):
        return False
    if end - begin > search[MOST_BYTES]:
        return False
    stored = _int32(data, at + _CRC_AT) & _UNSIGNED
    if search[IS_CHECKED] and checksum(data, at + _CHECKED_FROM, end, table) != stored:
        return False
    has_times = attributes & APPEND_TIME == 0
    batch[START], batch[END], batch[COUNT] = begin, end, count
    batch[BASE_OFFSET], batch[HAS_TIMES] = _int64(data, at), np.int64(has_times)
    batch[BASE_TIME] = _int64(data, at + (_FIRST_TIME_AT if has_times else _LAST_TIME_AT))
    batch[POSITION] = search[NEXT_POSITION]
    search[NEXT_POSITION] = batch[BASE_OFFSET] + _int32(data, at + _LAST_DELTA_AT) + 1
    search[N_RECORDS] += count
    search[AT] = end
    return True


@kernel
def _int32(data, at: int) -> Any:
    """Return the signed number of four bytes at a place, the highest byte first."""
    number: Any = np.int64(0)
    for byte in range(4):
        number = number << 8 | np.int64(data[at + byte])
    return (number ^ 0x8000_0000) - 0x8000_0000


@kernel
def _int64(data, at: int) -> Any:
    """Return the signed number of eight bytes at a place, the highest byte first."""
    number: Any = np.int64(0)
    for byte in range(8):
        number = number << 8 | np.int64(data[at + byte])
    return number
