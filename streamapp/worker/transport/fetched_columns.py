# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Columns: fetched record batches without an object per record.

This module reads the buffers of aiokafka's fetcher (`FetchResult`). aiokafka's reader returns the batches,
with the same rules for aborted transactions, control batches and compaction holes as
`aiokafka.consumer.fetcher.PartitionRecords`; a kernel finds the records in them. aiokafka's reader also reads
batches that the kernel refuses; `topics/fetching/old_formats.py` reads the formats before v2. A batch
that none of them can read, or that decompresses to too many bytes, is refused: one record without content
stands for it, and becomes a dead letter.

Plain batches (`topics/columns/plain_batches.py`) are found by a kernel, all that follow each other in one
call; this module handles the others one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

import numpy as np
from aiokafka.errors import CorruptRecordException

from streamapp.worker.transport.runs import FetchedColumns
from topics.columns.checksum import TABLES, crc32c
from topics.columns.headers import ended_at_nul
from topics.columns.plain_batches import (
    AT,
    ATTRIBUTES_AT,
    COMPRESSION,
    CONTROL,
    IS_CHECKED,
    MAGIC_AT,
    MOST_BYTES,
    MOST_OF_BATCH,
    MOST_RECORDS,
    N_RECORDS,
    NEXT_POSITION,
    OTHERS,
    SEARCH_FIELDS,
    TRANSACTIONAL,
    V2,
    find_plain,
    read_logs,
)
from topics.columns.record_batches import BATCH_COLUMNS, END, POSITION, SMALLEST_RECORD, START, read_records
from topics.columns.spans import ROWS, RecordSpans
from topics.fetching.batches import (
    APPEND_TIME,
    HEAD,
    SMALLEST_HEADER,
    Batch,
    Limit,
    damaged,
    is_skipped,
    is_v2,
    old_opened,
    opened,
    records_of,
)
from topics.fetching.fetched_records import FetchedRecords
from topics.fetching.refused import RefusedBatch

MAX_RECORDS = 10_000  # decoded in one call, of one partition (and the rest of the last batch)
MOST_FOUND: Final = 256
"""Plain batches of one call of the kernel."""

CRC_AT, CHECKED_FROM = 17, 21
"""Offset of the checksum in a batch, and of the first byte that it covers, up to the batch's end."""
_CRC: Final = Struct(">I")
_SMALL: Final = 16 << 10
"""Bytes of a partition's fetch that is read together with other partitions': they are copied."""
_LARGE: Final = 2048
"""Bytes from which a batch's checksum is verified by our kernel; aiokafka verifies smaller batches."""


def decode(
    records: Any, log_end: int | None, most: int | None = None, limit: Limit | None = None
) -> FetchedColumns:
    """Consume batches of an aiokafka `PartitionRecords` and return their records as columns.

    Compressed batches may hold a hundred times the bytes that were fetched: after `most` records (default:
    `MAX_RECORDS`), or after the bytes that one batch may decompress to, the rest is left (`has_more`).
    `records.next_fetch_offset` is then after the last batch, as if all records had been iterated over.
    """
    most = MAX_RECORDS if most is None else most
    limit = limit or Limit()
    memory = records._records
    # aiokafka's own iterator and the records refer to each other: the fetched bytes would be kept until the
    # collector runs, which is seldom where few objects are made.
    records._records_iterator = None
    position: int = records.next_fetch_offset
    columns = _Found(memory.log, limit)
    while memory.has_next() and columns.count < most and columns.inflated < limit.most_bytes:
        if (after := columns.add_plain(records, position, most)) is not None:
            position = after
            continue
        batch = memory.next_batch()
        if records._check_crcs and not _is_intact(batch, memory):
            msg = f"Invalid CRC - {records._tp}"
            raise CorruptRecordException(msg)
        if not is_skipped(records, batch):
            columns.add(batch, memory.start, memory.end, position)
        position = batch.next_offset
    fetched = columns.records()
    records.next_fetch_offset = position
    return FetchedColumns(fetched, position, log_end, tuple(columns.refused), columns.inflated)


def decode_small(
    fetched: Sequence[tuple[Any, int | None]], limit: Limit | None = None
) -> list[FetchedColumns | None]:
    """Consume small fetches of several partitions: each an aiokafka `PartitionRecords`, and the log's end.

    They are read in one call, with the result of `decode`; None: `decode` has to read it. The columns share
    one buffer.
    """
    limit = limit or Limit()
    columns: list[FetchedColumns | None] = [None] * len(fetched)
    numbers = [number for number, (records, _) in enumerate(fetched) if _is_small(records)]
    if len(numbers) < 2:
        return columns
    logs = [fetched[number][0]._records.log for number in numbers]
    buffer = b"".join(logs)
    places = np.empty((len(logs), 3), dtype=np.int64)
    places[:, 1] = np.cumsum([*map(len, logs)])
    places[0, 0], places[1:, 0] = 0, places[:-1, 1]
    places[:, 2] = [fetched[number][0].next_fetch_offset for number in numbers]
    table = np.empty((ROWS, len(buffer) // SMALLEST_RECORD), dtype=np.int64)
    search = np.zeros(SEARCH_FIELDS + BATCH_COLUMNS, dtype=np.int64)
    search[[MOST_OF_BATCH, MOST_BYTES]] = limit.most_records, SMALLEST_HEADER * limit.most_headers
    search[[IS_CHECKED, OTHERS]] = 1, COMPRESSION
    results = np.empty((len(logs), 4), dtype=np.int64)
    read_logs(np.frombuffer(buffer, dtype=np.uint8), TABLES, places, search, table, results)
    # The table has room for the most records that the bytes can hold; only those that came are kept.
    table, start = table[:, : int(np.maximum(results[:, 0], 0).sum())].copy(), 0
    for number, (n, position, *sizes) in zip(numbers, results.tolist(), strict=True):
        if n < 0:
            continue
        records, log_end = fetched[number]
        records._records_iterator = None  # as in `decode`
        records._records.go_on_at(records._records.size)
        records.next_fetch_offset = position
        spans = RecordSpans(buffer, table[:, start : start + n], *sizes)
        columns[number] = FetchedColumns(spans, position, log_end)
        start += n
    return columns


def _is_small(records: Any) -> bool:
    """Return whether a fetch is small, untouched, and without aborted transactions."""
    memory = records._records
    if type(memory) is not FetchedRecords or memory.end or not records._check_crcs:
        return False
    if records._aborted_transactions or records._aborted_producers:
        return False
    return memory.size <= _SMALL


def has_more(records: Any) -> bool:
    """Return whether `decode` left batches."""
    return bool(records._records.has_next())


def _is_intact(batch: Any, memory: Any) -> bool:
    """Return whether a batch, the last one taken from memory, matches the checksum in its header."""
    log, start, end = memory.log, memory.start, memory.end
    if end - start >= _LARGE and is_v2(batch):
        stored = _CRC.unpack_from(log, start + CRC_AT)[0]
        computed = crc32c(np.frombuffer(log, dtype=np.uint8), start + CHECKED_FROM, end, TABLES)
        return bool(stored == computed)
    return bool(batch.validate_crc())


class _Found:
    """The batches of a fetch that hold wanted records."""

    def __init__(self, log: bytes, limit: Limit) -> None:
        """`log`: all batches, as the broker sent them."""
        self._log = log
        self._limit = limit
        self._parts: list[RecordSpans] = []
        self._batches: list[tuple[Batch, int]] = []
        """Batches of format v2 that wait to be read together, each with its first wanted offset."""
        self.count = 0
        """Records, including those before the wanted position."""
        self.inflated = 0
        """Bytes of the decompressed batches, including refused batches."""
        self.refused: list[RefusedBatch] = []

    def add(self, batch: Any, start: int, end: int, position: int) -> None:
        """Add the batch from `start` to `end` of the log; `position`: its first wanted offset."""
        if is_v2(batch):
            opened_batch = opened(self._log, start, end, position, self._limit)
            if isinstance(opened_batch, RefusedBatch):
                self._refuse(opened_batch)
                return
            self.inflated += len(opened_batch.payload or b"")
            self._batches.append((opened_batch, position))
            self.count += HEAD.unpack_from(self._log, start)[-1]
        else:
            self._read_waiting()
            self._add_old(batch, start, end, position)

    def add_plain(self, records: Any, position: int, most: int) -> int | None:
        """Add the plain batches that come next, up to `most` records in all; return the position after them.

        `position`: the first wanted offset. None: the next batch is not plain.
        """
        log, memory = self._log, records._records
        others = COMPRESSION | CONTROL
        if records._aborted_transactions or records._aborted_producers:
            others |= TRANSACTIONAL
        at = memory.end
        if len(log) - at < HEAD.size or log[at + MAGIC_AT] != V2 or log[at + ATTRIBUTES_AT] & others:
            return None
        search = np.zeros(SEARCH_FIELDS, dtype=np.int64)
        search[AT], search[NEXT_POSITION], search[MOST_RECORDS] = at, position, most - self.count
        search[MOST_OF_BATCH] = self._limit.most_records
        search[MOST_BYTES] = SMALLEST_HEADER * self._limit.most_headers
        search[IS_CHECKED], search[OTHERS] = records._check_crcs, others
        table = np.empty((min((len(log) - at) // HEAD.size, MOST_FOUND), BATCH_COLUMNS), dtype=np.int64)
        data = np.frombuffer(log, dtype=np.uint8)
        n_found = find_plain(data, TABLES, search, table)
        if not n_found:
            return None
        self._read_waiting()
        at, after, n = search[[AT, NEXT_POSITION, N_RECORDS]].tolist()
        spans = np.empty((ROWS, n), dtype=np.int64)
        n_read = read_records(data, table[:n_found], spans)
        if n_read >= 0:
            self._parts.append(RecordSpans(log, spans[:, :n_read]))
            self.count += n
        else:
            for begin, end, first in table[:n_found, [START, END, POSITION]].tolist():
                self._batches.append((Batch(log, begin - HEAD.size, end, None), first))
                self.count += HEAD.unpack_from(log, begin - HEAD.size)[-1]
            self._read_waiting()
        memory.go_on_at(at)
        return int(after)

    def records(self) -> RecordSpans:
        """Return the records of all batches."""
        self._read_waiting()
        return RecordSpans.joined(self._parts)

    def _refuse(self, batch: RefusedBatch) -> None:
        """Add one record without content in place of a batch."""
        self._read_waiting()
        self.refused.append(batch)
        self._parts.append(RecordSpans.of([batch.first], [batch.timestamp], [None], [None], [()]))
        self.count += 1
        self.inflated += batch.inflated

    def _read_waiting(self) -> None:
        waiting, self._batches = self._batches, []
        if not waiting:
            return
        read = self._by_kernel(waiting)
        if read is not None:
            self._parts.append(read)
            return
        for batch, position in waiting:
            try:
                self._parts.append(_spans(records_of(batch), position))
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever aiokafka's readers raise about it
                self._refuse(damaged(self._log, batch.start, batch.end, position, error))

    def _by_kernel(self, batches: Sequence[tuple[Batch, int]]) -> RecordSpans | None:
        """Return the records of the batches; None: one of them is damaged or unusual."""
        is_plain = all(batch.payload is None for batch, _ in batches)
        buffers: list[bytes] = [self._log] if is_plain else []
        table = np.empty((len(batches), BATCH_COLUMNS), dtype=np.int64)
        at = n = 0
        for row, (batch, position) in enumerate(batches):
            base, *_, attributes, _, first_time, last_time, _, _, _, count = HEAD.unpack_from(
                self._log, batch.start
            )
            begin, stop = batch.start + HEAD.size, batch.end
            if not is_plain:
                buffers.append(self._log[begin:stop] if batch.payload is None else batch.payload)
                begin, stop = at, at + len(buffers[-1])
                at = stop
            if not 0 <= count <= (stop - begin) // SMALLEST_RECORD:
                return None
            has_times = not attributes & APPEND_TIME
            time = first_time if has_times else last_time
            table[row] = begin, stop, count, base, time, has_times, position
            n += count
        buffer = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        records = np.empty((ROWS, n), dtype=np.int64)
        n_read = read_records(np.frombuffer(buffer, dtype=np.uint8), table, records)
        return None if n_read < 0 else RecordSpans(buffer, records[:, :n_read])

    def _add_old(self, batch: Any, start: int, end: int, position: int) -> None:
        """Add a batch of another format than v2."""
        read = old_opened(batch, self._log, start, end, position, self._limit)
        if isinstance(read, RefusedBatch):
            self._refuse(read)
            return
        records, inflated = read
        self._parts.append(_spans(records, position))
        self.count += len(records)
        self.inflated += inflated


def _spans(fetched: list[Any], position: int) -> RecordSpans:
    """Return records that aiokafka has read, without those before a position."""
    if fetched and fetched[0].offset < position:  # a compressed batch is sent whole, from its first record on
        fetched = [record for record in fetched if record.offset >= position]
    return RecordSpans.of(
        [record.offset for record in fetched],
        [record.timestamp for record in fetched],
        [record.key for record in fetched],
        [record.value for record in fetched],
        [ended_at_nul(record.headers) if record.headers else () for record in fetched],
    )
