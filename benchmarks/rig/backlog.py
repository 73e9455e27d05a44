"""A backlog on a topic: encoded once, read by every system and every repetition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import orjson
from confluent_kafka import Producer

from benchmarks.rig.stream import NAMES, Rows
from topics.partitioner import partition_of

BLOCK_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Backlog:
    """What lies on `topic`: its records, their rows, and the true classes in the order of each partition."""

    topic: str
    format: str
    partitions: int
    records: int
    rows: int
    bytes: int  # of all values
    truth: tuple[npt.NDArray[np.int8], ...]  # one int8[rows of the partition] per partition

    @property
    def rows_per_record(self) -> int:
        return -(-self.rows // self.records)


def values(rows: Rows, format: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield (first row, rows, value) of every record."""
    if format == "json":
        labels = rows.y.astype(str).tolist()
        for number, (x, label) in enumerate(zip(rows.x.tolist(), labels, strict=True)):
            yield number, 1, orjson.dumps({"features": dict(zip(NAMES, x, strict=True)), "label": label})
    else:
        raise NotImplementedError(format)


def load(bootstrap: str, topic: str, rows: Rows, format: str, partitions: int) -> Backlog:
    """Produce `rows` to `topic`, each to the murmur2 partition of its key; return what lies there now."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 500_000,
            "enable.idempotence": True,
        }
    )
    partition_of_key = [partition_of(key.encode(), partitions) for key in rows.keys]
    names = [key.encode() for key in rows.keys]
    key_of_row = rows.key.tolist()
    records = size = 0
    failures: list[str] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failures.append(str(error))

    for first, _, value in values(rows, format):
        key = key_of_row[first]
        while True:
            try:
                producer.produce(topic, value, names[key], partition_of_key[key], on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
        records += 1
        size += len(value)
        if not records & 0xFFF:
            producer.poll(0)
    left = producer.flush(120)
    if left or failures:
        message = f"{left} records were not delivered, {len(failures)} failed: {failures[:1]}"
        raise RuntimeError(message)
    partition_of_row = np.array(partition_of_key)[rows.key]
    truth = tuple(rows.y[partition_of_row == partition] for partition in range(partitions))
    return Backlog(topic, format, partitions, records, len(rows), size, truth)
