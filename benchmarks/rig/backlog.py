"""Backlog: records on a topic, encoded once and read by every system and every repetition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.rig.encoding import values
from benchmarks.rig.producing import Backfill
from benchmarks.rig.stream import Rows
from topics.clients.partitioner import partition_of


@dataclass(frozen=True, eq=False)
class Backlog:
    """The content of `topic`: its records, their rows, and the true classes in order by partition."""

    topic: str
    format: str
    partitions: int
    records: int
    rows: int
    bytes: int  # bytes of all values
    truth: tuple[npt.NDArray[np.int8], ...]  # one int8[rows of the partition] per partition

    @property
    def rows_per_record(self) -> int:
        return -(-self.rows // self.records)


def load(bootstrap: str, topic: str, rows: Rows, form: str, partitions: int) -> Backlog:
    """Produce `rows` to `topic`, each to the murmur2 partition of its key; return the resulting backlog."""
    keys = [key.encode() for key in rows.keys]
    places = [partition_of(key, partitions) for key in keys]
    key_of_row = rows.key.tolist()
    with Backfill(bootstrap) as backfill:
        for first, value in values(rows, form):
            key = key_of_row[first]
            backfill.send(topic, value, keys[key], places[key])
    return Backlog(
        topic, form, partitions, backfill.records, len(rows), backfill.bytes, truth(rows, partitions)
    )


def truth(rows: Rows, partitions: int) -> tuple[npt.NDArray[np.int8], ...]:
    """Return the true classes in the order of each partition."""
    places = np.array([partition_of(key.encode(), partitions) for key in rows.keys])[rows.key]
    return tuple(rows.y[places == partition] for partition in range(partitions))
