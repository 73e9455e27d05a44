"""Messages: a record or an error with the methods of confluent-kafka's Message, and runs of records."""

from __future__ import annotations

from typing import Final

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError

from topics.columns.headers import Headers
from topics.columns.spans import OFFSET, RecordSpans
from topics.errors import Reason
from topics.fetching.refused import RefusedBatch

REFUSED: Final = (KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG)  # noqa: SLF001 - librdkafka's own codes
"""Errors that stand for a batch of which no record is read."""


class FetchedMessage:
    """A record; with an error it has no key, value or headers."""

    __slots__ = ("_error", "_headers", "_key", "_offset", "_partition", "_timestamp", "_topic", "_value")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = -1,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Headers = (),
        error: KafkaError | None = None,
    ) -> None:
        """`timestamp`: ms since the epoch."""
        self._topic, self._partition, self._offset = topic, partition, offset
        self._timestamp, self._key, self._value = timestamp, key, value
        self._headers, self._error = headers, error

    @classmethod
    def refused(cls, topic: str, partition: int, batch: RefusedBatch) -> FetchedMessage:
        """Return the error that stands for a batch of which no record is read."""
        too_large = batch.reason is Reason.BATCH_TOO_LARGE
        code = KafkaError._BAD_COMPRESSION if too_large else KafkaError._BAD_MSG  # noqa: SLF001 - its own codes
        detail = f"topic {topic} partition {partition} is read on after a batch: {batch.detail}"
        return cls(topic, partition, batch.first, error=KafkaError(code, detail))

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp, and the timestamp."""
        return TIMESTAMP_CREATE_TIME, self._timestamp

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> Headers:
        """Return names and values; `topics.columns.headers.UNREADABLE` if a name is not UTF-8."""
        return self._headers

    def error(self) -> KafkaError | None:
        return self._error


class FetchedRun:
    """Consecutive records of a partition, in place of a message for each."""

    __slots__ = ("records",)

    def __init__(self, records: RecordSpans) -> None:
        """`records`: at least one."""
        self.records = records

    def offset(self) -> int:
        """Return the offset of the first record."""
        return int(self.records.table[OFFSET, 0])

    def error(self) -> None:
        """Return None: records are no error."""
