"""Offered records: parts of runs for which the client has no room yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import length_hint
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Producer

from topics.clients.native_producer import NativeProducer
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Headers, Ints64
from topics.columns.spans import Spans

COPIED_BYTES = 64 * 1024  # largest buffer of records that are copied to be produced together


@dataclass(slots=True)
class Offered:
    """Records of one topic that the client has not taken yet; columns of equal length.

    `hand_to` and `hand_to_native` return how many records the client has taken, and why it has not taken the
    next one (None: there is no room for it, or no next record).
    """

    topic: str
    partition: int | Ints64  # one for all records, or int64[n]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    timestamps: Any  # int64[n] or a sequence
    headers: Sequence[Headers] | None

    def partition_of(self, at: int) -> int:
        """Return the partition of a record."""
        return self.partition if isinstance(self.partition, int) else int(self.partition[at])

    def hand_to(self, producer: Producer) -> tuple[int, KafkaError | None]:
        """Give the records to confluent-kafka's client one by one.

        `produce_batch` would not be faster, and takes no timestamps and no headers.
        """
        values = iter(self.values)
        is_single = isinstance(self.partition, int)
        places = repeat(self.partition) if is_single else iter(self.partition.tolist())  # type: ignore[union-attr]
        columns: list[Iterable[Any]] = [repeat(self.topic), values, self.keys, places]
        columns += [repeat(None), repeat(None), self.timestamps]
        if self.headers is not None:
            columns.append(self.headers)
        error = None
        try:
            deque(map(producer.produce, *columns), maxlen=0)
        except BufferError:
            pass
        except KafkaException as failure:
            error = failure.args[0]
        else:
            return len(self.values), None
        # The refused record is the last one that came out of the iterator.
        return len(self.values) - length_hint(values) - 1, error

    def hand_to_native(self, producer: NativeProducer) -> tuple[int, KafkaError | None]:
        """Give the records to librdkafka itself, in one call."""
        self.values, self.keys = Spans.of(self.values), Spans.of(self.keys)
        if self.headers is not None:
            self.headers = HeaderColumns.of(self.headers)
        try:
            return producer.produce_columns(
                self.topic, self.partition, self.values, self.keys, self.timestamps, self.headers
            )
        except KafkaException as failure:
            return 0, failure.args[0]

    def forget(self, n: int) -> None:
        """Forget the first n records, which the client has taken."""
        self.values, self.keys, self.timestamps = self.values[n:], self.keys[n:], self.timestamps[n:]
        if self.headers is not None:
            self.headers = self.headers[n:]
        if not isinstance(self.partition, int):
            self.partition = self.partition[n:]

    @property
    def is_small(self) -> bool:
        """Whether copying the buffers of its columns costs little."""
        columns = (self.values, self.keys)
        copied = sum(
            [len(column.buffer) if isinstance(column, Spans) else COPIED_BYTES for column in columns]
        )
        return copied < COPIED_BYTES

    @staticmethod
    def joined(parts: Sequence[Offered]) -> Offered:
        """Return the records of one or more parts, concatenated; either all have headers or none."""
        if len(parts) == 1:
            return parts[0]
        headers = [HeaderColumns.of(part.headers) for part in parts if part.headers is not None]
        return Offered(
            parts[0].topic,
            np.concatenate([partition_of_each(part.partition, len(part.values)) for part in parts]),
            Spans.joined([Spans.of(part.values) for part in parts]),
            Spans.joined([Spans.of(part.keys) for part in parts]),
            np.concatenate([np.asarray(part.timestamps, dtype=np.int64) for part in parts]),
            HeaderColumns.joined(headers) if headers else None,
        )


def partition_of_each(partition: int | Ints64, n: int) -> Ints64:
    """Return the partition of each of n records."""
    return np.full(n, partition, dtype=np.int64) if isinstance(partition, int) else partition


def joined_where_small(offered: Sequence[Offered]) -> list[Offered]:
    """Return the same records with the small parts of a topic joined; records of a partition keep their
    order.
    """
    groups: list[list[Offered]] = []
    growing: dict[str, list[Offered]] = {}  # by topic, the group of small parts that its next part may join
    for part in offered:
        group, is_small = growing.pop(part.topic, None), part.is_small
        if group is not None and is_small and (group[-1].headers is None) == (part.headers is None):
            group.append(part)
        else:
            group = [part]
            groups.append(group)
        if is_small:
            growing[part.topic] = group
    return [Offered.joined(group) for group in groups]
