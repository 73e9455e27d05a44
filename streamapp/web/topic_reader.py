"""Topic reader: committed records of all partitions of some topics, from stored positions on, no group.

Subclasses store the records, together with the next offsets.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)

from streamapp.web.disk_patience import store_patiently
from topics.clients.access import Access, denied_kind
from topics.clients.cluster import TIMEOUT_S, Cluster
from topics.clients.without_group import without_group
from topics.errors import BrokerError, CatalogueError
from topics.fetching.bounded_consumer import BoundedConsumer
from topics.fetching.message import REFUSED

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
BATCH_BYTES: Final = 8 << 20

Runs = Mapping[tuple[str, int], list[Message]]
"""Records by topic and partition, in their order."""
Positions = Mapping[tuple[str, int], int]
"""Offset of the next record by topic and partition."""


class TopicReader(ABC):
    """A consumer that assigns itself all partitions; `run` in one thread, `stop` from any."""

    batch_records = 500
    """Records that are stored together, at most."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        prefix: str,
        topics: tuple[str, ...],
        since_ms: int | None = None,
        *,
        whole: tuple[str, ...] = (),
    ) -> None:
        """Connect to the broker.

        `since_ms`: time from which topics are read of which nothing is stored; topics of `whole` are read
        from their beginning.
        """
        self._since_ms, self._whole = since_ms, whole
        self._access = Access.of(kafka)
        self._stop = threading.Event()
        self._topics = topics
        self._partitions = _partitions(kafka, topics)
        if self._begin(_origin(kafka, prefix, topics)):
            logger.warning("the store is from other topics; it is filled again")
        self._consumer = BoundedConsumer(
            {**without_group(kafka, "earliest"), "error_cb": _log_error}, logger=logger
        )

    # -- for subclasses ----------------------------------------------------------------------------------

    @abstractmethod
    def _begin(self, origin: dict[str, str]) -> bool:
        """Compare the topics with the topics of the store; True: they differ, and the store was emptied."""

    @abstractmethod
    def _stored(self, topic: str) -> Mapping[int, int]:
        """Return the next offset of each partition in the store."""

    @abstractmethod
    def _store(self, runs: Runs, positions: Positions) -> None:
        """Store the records and the next offsets together."""

    def _starts(self, topic: str, partition: int, offset: int) -> None:  # noqa: B027 - need not
        """Called with the offset at which reading begins; negative: at the beginning."""

    def _ends(self, topic: str, partition: int, offset: int) -> None:  # noqa: B027 - need not
        """Called when all records before an offset have been read, for the moment."""

    def _between(self) -> None:  # noqa: B027 - as above
        """Called between two reads."""

    # -- reading ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    def run(self) -> None:
        """Read until stopped; raises errors that waiting cannot cure."""
        try:
            self._consumer.assign(self._places())
            while not self._stop.is_set():
                self._take()
                self._between()
        finally:
            self._consumer.close()

    def _places(self) -> list[TopicPartition]:
        """Return where to begin: at the stored offset, else at the time `since`, else at the beginning."""
        places = []
        for topic in self._topics:
            stored = self._stored(topic)
            missing = [n for n in range(self._partitions) if n not in stored]
            sought = {place.partition: place for place in self._sought(topic, missing)}
            for number in range(self._partitions):
                place = sought.get(
                    number, TopicPartition(topic, number, stored.get(number, OFFSET_BEGINNING))
                )
                places.append(place)
                self._starts(topic, number, place.offset)
        return places

    def _sought(self, topic: str, numbers: list[int]) -> list[TopicPartition]:
        """Return the offsets of the time `since`."""
        if self._since_ms is None or topic in self._whole or not numbers:
            return []
        try:
            return self._consumer.offsets_for_times(
                [TopicPartition(topic, number, self._since_ms) for number in numbers], timeout=TIMEOUT_S
            )
        except KafkaException as failure:
            message = f"--since: the broker did not report the beginning of {topic}: {failure.args[0].str()}"
            raise BrokerError(message) from None

    def _take(self) -> None:
        """Read the records that come within a moment, and store them."""
        runs: dict[tuple[str, int], list[Message]] = defaultdict(list)
        ends: dict[tuple[str, int], int] = {}
        count = size = 0
        wait = POLL_S
        while count < self.batch_records and size < BATCH_BYTES:
            message = self._consumer.poll(wait)
            if message is None:
                break
            wait = 0.0
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own codes look so
                    self._raise_or_log(error, topic)
                    if error.code() in REFUSED and topic is not None and partition is not None:
                        ends[topic, partition] = self._consumer.next_offset((topic, partition))
                        count += 1
                elif topic is not None and partition is not None and offset is not None:
                    self._ends(topic, partition, offset)
                continue
            assert topic is not None and partition is not None
            runs[topic, partition].append(message)
            ends[topic, partition] = (offset or 0) + 1
            count += 1
            size += len(message.value() or b"")
        if ends:
            what = f"what is read of {', '.join(self._topics)}"
            store_patiently(what, partial(self._store, runs, ends), self._stop)

    def _raise_or_log(self, error: KafkaError, topic: str | None) -> None:
        """Raise an error that waiting cannot cure; a broker that cannot be reached may come back."""
        denied = denied_kind(error.code())
        if denied == "group":
            return  # librdkafka looks for the coordinator of a group, which this consumer does not join
        if denied is not None:
            raise BrokerError(self._access.denied(denied, topic or "", "Read,Describe"))
        if error.fatal() or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            message = f"{topic} cannot be read any more: {error.str()}"
            raise BrokerError(message)
        _log_error(error)


def _partitions(kafka: Mapping[str, Any], topics: tuple[str, ...]) -> int:
    """Return the common number of partitions: a label goes to the partition number of its request."""
    cluster = Cluster(kafka)
    counts = {topic: cluster.partition_count(topic) for topic in topics}
    if len(set(counts.values())) != 1:
        message = f"topics must have equally many partitions, these have {counts}; see 'grove topics check'"
        raise CatalogueError(message)
    return counts[topics[0]]


def _origin(kafka: Mapping[str, Any], prefix: str, topics: tuple[str, ...]) -> dict[str, str]:
    """Return prefix, cluster id and topic ids, which differ for topics that were deleted and made again."""
    cluster = Cluster(kafka)
    futures = cluster.client.describe_topics(TopicCollection(list(topics)), request_timeout=cluster.timeout)
    ids = {
        topic: str(cluster.result(future, topic, "Describe", "topic").topic_id)
        for topic, future in futures.items()
    }
    return {"prefix": prefix, "cluster": cluster.id or "", **ids}


def _log_error(error: KafkaError) -> None:
    logger.warning("consumer: %s", error.str())
