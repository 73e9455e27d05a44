"""What record batches hold, read by aiokafka's reader."""

from __future__ import annotations

from typing import Any

from aiokafka.record.memory_records import MemoryRecords

from topics.fetching.batches import HEAD


def records_of(wire: bytes) -> list[tuple[int, bytes | None, bytes | None, int, Any]]:
    """Return offset, key, value, timestamp and headers of each record of a batch with a valid checksum."""
    reader = MemoryRecords(wire)
    batch = reader.next_batch()
    assert batch is not None
    assert batch.validate_crc()
    assert not reader.has_next()
    records = [
        (record.offset, record.key, record.value, record.timestamp, [*record.headers]) for record in batch
    ]
    assert max(record[3] for record in records) == HEAD.unpack_from(wire)[8]
    return records


def numbers_of(wire: bytes) -> tuple[int, int, int]:
    """Return producer id, epoch and first sequence number of a batch."""
    head = HEAD.unpack_from(wire)
    return head[9], head[10], head[11]
