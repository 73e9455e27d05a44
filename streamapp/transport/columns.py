# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Columns: fetched record batches without an object per record.

aiokafka makes a `ConsumerRecord` of every record (1.1 µs); its compiled batch decoder alone needs a fraction
of that. So what its fetcher buffered (`FetchResult`) is decoded here batch by batch, with the same rules for
aborted transactions, control batches and compaction holes as `aiokafka.consumer.fetcher.PartitionRecords`.
"""

from __future__ import annotations

from typing import Any

from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import CorruptRecordException

from streamapp.transport.runs import FetchedColumns
from streamapp.transport.undecodable import read_tolerantly
from topics.headers import ended_at_nul

MAX_RECORDS = 10_000  # decoded at once, of one partition (and what else is in the last batch)


def decode(records: Any, log_end: int | None, most: int | None = None) -> FetchedColumns:
    """Consume batches of an aiokafka `PartitionRecords` and return their records as columns.

    Compressed batches may hold a hundred times the bytes that were fetched: after `most` records (default:
    `MAX_RECORDS`) the rest is left (`has_more`). `records.next_fetch_offset` has moved behind the last batch,
    as if it had been iterated over.
    """
    fetched: list[Any] = []
    most = MAX_RECORDS if most is None else most
    memory = records._records
    position: int = records.next_fetch_offset
    while memory.has_next() and len(fetched) < most:
        batch = memory.next_batch()
        if records._check_crcs and not batch.validate_crc():
            msg = f"Invalid CRC - {records._tp}"
            raise CorruptRecordException(msg)
        if not _is_skipped(records, batch):
            try:
                some: list[Any] = list(batch)
            except UnicodeDecodeError:
                some = list(read_tolerantly(memory, batch.base_offset))
            if (
                some and some[0].offset < position
            ):  # a compressed batch is sent whole, from its first record on
                some = [record for record in some if record.offset >= position]
            fetched += some
        position = batch.next_offset
    records.next_fetch_offset = position
    values = [record.value for record in fetched]
    return FetchedColumns(
        offsets=[record.offset for record in fetched],
        timestamps=[record.timestamp for record in fetched],
        keys=[record.key for record in fetched],
        values=values,
        headers=[ended_at_nul(record.headers) if record.headers else () for record in fetched],
        size=sum(map(len, filter(None, values))),
        position=position,
        log_end=log_end,
    )


def has_more(records: Any) -> bool:
    """Tell whether `decode` left something."""
    return bool(records._records.has_next())


def _is_skipped(records: Any, batch: Any) -> bool:
    """Tell whether a batch holds no records for us: a control batch, or one of an aborted transaction."""
    if records._isolation_level == READ_COMMITTED and batch.producer_id is not None:
        records._consume_aborted_up_to(batch.base_offset)
        if batch.is_control_batch and records._contains_abort_marker(batch):
            records._aborted_producers.discard(batch.producer_id)
        if batch.is_transactional and batch.producer_id in records._aborted_producers:
            return True
    return bool(batch.is_control_batch)
