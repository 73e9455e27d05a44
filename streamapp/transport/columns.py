# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Columns: fetched record batches without an object per record.

What aiokafka's fetcher buffered (`FetchResult`) is read here: its reader gives the batches, with the same
rules for aborted transactions, control batches and compaction holes as
`aiokafka.consumer.fetcher.PartitionRecords`; a kernel finds the records in them. What the kernel refuses, and
batches of the formats before v2, aiokafka's reader reads, or says what is wrong with them.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

import numpy as np
from aiokafka.codec import gzip_decode, lz4_decode, snappy_decode, zstd_decode
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch

from streamapp.transport.checksum import TABLES, crc32c
from streamapp.transport.record_batches import BATCH_COLUMNS, SMALLEST_RECORD, read_records
from streamapp.transport.runs import FetchedColumns
from streamapp.transport.undecodable import read_tolerantly
from topics.headers import ended_at_nul
from topics.spans import ROWS, RecordSpans

MAX_RECORDS = 10_000  # decoded at once, of one partition (and what else is in the last batch)

V2: Final = 2
HEAD: Final = Struct(">qiibIhiqqqhii")
"""Of a batch in format v2: base offset, bytes that follow, leader epoch, magic, CRC, attributes, last offset
delta, first and largest timestamp, producer id, its epoch, base sequence, number of records."""
CRC_AT, CHECKED_FROM = 17, 21
"""The checksum is that of all behind it."""
_CRC: Final = Struct(">I")
_LARGE: Final = 2048
"""Bytes of a batch for which our kernel is worth its call; aiokafka verifies others."""
COMPRESSION, APPEND_TIME = 0x07, 0x08
"""Of the attributes."""
_DECOMPRESS: Final = {0: bytes, 1: gzip_decode, 2: snappy_decode, 3: lz4_decode, 4: zstd_decode}


def decode(records: Any, log_end: int | None, most: int | None = None) -> FetchedColumns:
    """Consume batches of an aiokafka `PartitionRecords` and return their records as columns.

    Compressed batches may hold a hundred times the bytes that were fetched: after `most` records (default:
    `MAX_RECORDS`) the rest is left (`has_more`). `records.next_fetch_offset` has moved behind the last batch,
    as if it had been iterated over.
    """
    most = MAX_RECORDS if most is None else most
    memory = records._records
    # aiokafka's own iterator and the records refer to each other: what was fetched would be kept until the
    # collector runs, which is seldom where few objects are made.
    records._records_iterator = None
    position: int = records.next_fetch_offset
    found = _Found(memory.log)
    try:
        while memory.has_next() and found.count < most:
            batch = memory.next_batch()
            if records._check_crcs and not _is_intact(batch, memory):
                msg = f"Invalid CRC - {records._tp}"
                raise CorruptRecordException(msg)
            if not _is_skipped(records, batch):
                found.add(batch, memory.start, memory.end, position)
            position = batch.next_offset
    except Exception:
        found.records()  # if an earlier batch is malformed, that is the error
        raise
    fetched = found.records()
    records.next_fetch_offset = position
    return FetchedColumns(fetched, position, log_end)


def has_more(records: Any) -> bool:
    """Tell whether `decode` left something."""
    return bool(records._records.has_next())


def _is_intact(batch: Any, memory: Any) -> bool:
    """Tell whether a batch, the last one that was taken from memory, has the checksum that it says."""
    log, start, end = memory.log, memory.start, memory.end
    if end - start >= _LARGE and isinstance(batch, DefaultRecordBatch) and batch.magic == V2:
        said = _CRC.unpack_from(log, start + CRC_AT)[0]
        found = crc32c(np.frombuffer(log, dtype=np.uint8), start + CHECKED_FROM, end, TABLES)
        return bool(said == found)
    return bool(batch.validate_crc())


def _is_skipped(records: Any, batch: Any) -> bool:
    """Tell whether a batch holds no records for us: a control batch, or one of an aborted transaction."""
    if records._isolation_level == READ_COMMITTED and batch.producer_id is not None:
        records._consume_aborted_up_to(batch.base_offset)
        if batch.is_control_batch and records._contains_abort_marker(batch):
            records._aborted_producers.discard(batch.producer_id)
        if batch.is_transactional and batch.producer_id in records._aborted_producers:
            return True
    return bool(batch.is_control_batch)


class _Found:
    """The batches of a fetch that hold records for us."""

    def __init__(self, log: bytes) -> None:
        """`log`: all batches, as the broker sent them."""
        self._log = log
        self._parts: list[RecordSpans] = []
        self._batches: list[tuple[Any, int, int, int]] = []
        """Those of format v2 that wait to be read together: as `add` takes them."""
        self.count = 0
        """Records, if all that lie before our position are counted, too."""

    def add(self, batch: Any, start: int, end: int, position: int) -> None:
        """Take in the batch that lies there in the log; `position`: the first offset that is wanted."""
        if isinstance(batch, DefaultRecordBatch) and batch.magic == V2:
            self._batches.append((batch, start, end, position))
            self.count += HEAD.unpack_from(self._log, start)[-1]
        else:
            self._read_waiting()
            self._parts.append(self._by_aiokafka(batch, start, end, position))
            self.count += len(self._parts[-1])

    def records(self) -> RecordSpans:
        """Return the records of all batches."""
        self._read_waiting()
        return RecordSpans.joined(self._parts)

    def _read_waiting(self) -> None:
        if self._batches:
            read = self._by_kernel()
            parts = [self._by_aiokafka(*each) for each in self._batches] if read is None else [read]
            self._parts += parts
            self._batches = []

    def _by_kernel(self) -> RecordSpans | None:
        """Return the records of the batches that wait, None: one of them is not as it should be."""
        is_plain = not any(batch.compression_type for batch, *_ in self._batches)
        buffers: list[bytes] = [self._log] if is_plain else []
        table = np.empty((len(self._batches), BATCH_COLUMNS), dtype=np.int64)
        at = n = 0
        for row, (batch, start, end, position) in enumerate(self._batches):
            base, *_, attributes, _, first_time, last_time, _, _, _, count = HEAD.unpack_from(
                self._log, start
            )
            begin, stop = start + HEAD.size, end
            if not is_plain:
                decompress = _DECOMPRESS.get(batch.compression_type)
                if decompress is None:
                    return None
                try:
                    buffers.append(decompress(self._log[begin:end]))
                except Exception:  # noqa: BLE001 - aiokafka's reader says it, when it is this batch's turn
                    return None
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
        found = read_records(np.frombuffer(buffer, dtype=np.uint8), table, records)
        return None if found < 0 else RecordSpans(buffer, records[:, :found])

    def _by_aiokafka(self, batch: Any, start: int, end: int, position: int) -> RecordSpans:
        try:
            some: list[Any] = list(batch)
        except UnicodeDecodeError:
            some = list(read_tolerantly(self._log[start:end]))
        if some and some[0].offset < position:  # a compressed batch is sent whole, from its first record on
            some = [record for record in some if record.offset >= position]
        return RecordSpans.of(
            [record.offset for record in some],
            [record.timestamp for record in some],
            [record.key for record in some],
            [record.value for record in some],
            [ended_at_nul(record.headers) if record.headers else () for record in some],
        )
