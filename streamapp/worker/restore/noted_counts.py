"""Noted counts: the number of partitions of each topic when the journal of a partition was last written.

Committed offsets hold that number, too, but they expire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import TopicPartition

from streamapp.errors import NotYetError
from streamapp.worker.journal.offset_metadata import UNKNOWN, metadata_of
from streamapp.worker.journal.partition_count import count_in
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.restore.tail import Log
from topics.errors import BrokerError

WINDOW: Final = 16
"""Offsets looked at first; a commit takes two of them (its marker is the second)."""


def noted_counts(kafka: Mapping[str, Any], group: str, journal: str, partitions: int) -> list[TopicPartition]:
    """Return the partitions of the journal, each with the count that it holds as metadata; BrokerError.

    The metadata is that of a committed offset; it is empty if the journal holds no count.
    """
    with LogReader(kafka, group, lambda: False) as reader:
        try:
            counts = [noted_count(reader.of(journal, n), journal, n) for n in range(partitions)]
        except NotYetError as error:
            message = f"the journal cannot be read: {error}; start the worker again when its broker answers"
            raise BrokerError(message) from error
    return [
        TopicPartition(journal, number, metadata=metadata_of(UNKNOWN, count))
        for number, count in enumerate(counts)
    ]


def noted_count(log: Log, journal: str, partition: int) -> int | None:
    """Return the count in the newest journal record that has one; None: none has."""
    first, end = log.range()
    window = WINDOW
    while first < end:
        start = max(first, end - window)
        counts = list(_counts(log, journal, partition, start))
        if counts or start == first:
            return counts[-1] if counts else None
        window *= 8
    return None


def _counts(log: Log, journal: str, partition: int, start: int) -> Iterator[int]:
    log.open(journal, partition, start)
    for raw in log.to_end():
        for headers in raw.headers:
            count = count_in(headers)
            if count is not None:
                yield count
