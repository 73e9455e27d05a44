"""Topic reader: all partitions of some topics, committed records only, from stored positions on, no group.

What is read is handed to whoever stores it, together with the positions behind it.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)

from topics.clients.access import Access, denied_kind
from topics.clients.cluster import TIMEOUT_S, Cluster
from topics.clients.without_group import without_group
from topics.errors import BrokerError, CatalogueError
from topics.fetching.consumer import BoundedConsumer

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
BATCH_BYTES: Final = 8 << 20

Runs = Mapping[tuple[str, int], list[Message]]
"""Records by topic and partition, in their order."""
Positions = Mapping[tuple[str, int], int]
"""Offsets behind what was read."""


class TopicReader(ABC):
    """A consumer that assigns itself all partitions; `run` in one thread, `stop` from any."""

    batch_records = 500
    """How many at most are stored together."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        prefix: str,
        topics: tuple[str, ...],
        since_ms: int | None = None,
        *,
        whole: tuple[str, ...] = (),
    ) -> None:
        """Reach the broker.

        `since_ms`: where topics begin of which nothing was read; those of `whole` begin at their beginning.
        """
        self._since_ms, self._whole = since_ms, whole
        self._access = Access.of(kafka)
        self._stop = threading.Event()
        self._topics = topics
        self._partitions = _partitions(kafka, topics)
        if self._begin(_origin(kafka, prefix, topics)):
            logger.warning("the topics are not those of the store; it is filled anew")
        self._consumer = BoundedConsumer(
            {**without_group(kafka, "earliest"), "error_cb": _log_error}, logger=logger
        )

    # -- what is done with it -----------------------------------------------------------------------------

    @abstractmethod
    def _begin(self, origin: dict[str, str]) -> bool:
        """Compare the topics with those of the store; True: they are others, and it was emptied."""

    @abstractmethod
    def _stored(self, topic: str) -> Mapping[int, int]:
        """Return the offset behind what is stored of each partition."""

    @abstractmethod
    def _store(self, runs: Runs, positions: Positions) -> None:
        """Store what was read, and the offsets behind it, together."""

    def _starts(self, topic: str, partition: int, offset: int) -> None:  # noqa: B027 - need not
        """Hear where reading begins; negative: at the beginning."""

    def _ends(self, topic: str, partition: int, offset: int) -> None:  # noqa: B027 - need not
        """Hear that there is nothing more before an offset, for the moment."""

    def _between(self) -> None:  # noqa: B027 - as above
        """Do what is due between two reads."""

    # -- reading ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    def run(self) -> None:
        """Read until stopped; raises what no waiting will cure."""
        try:
            self._consumer.assign(self._places())
            while not self._stop.is_set():
                self._take()
                self._between()
        finally:
            self._consumer.close()

    def _places(self) -> list[TopicPartition]:
        """Return where to begin: behind what is stored, else at `since`, else at the beginning."""
        places = []
        for topic in self._topics:
            stored = self._stored(topic)
            missing = [n for n in range(self._partitions) if n not in stored]
            found = {place.partition: place for place in self._sought(topic, missing)}
            for number in range(self._partitions):
                place = found.get(number, TopicPartition(topic, number, stored.get(number, OFFSET_BEGINNING)))
                places.append(place)
                self._starts(topic, number, place.offset)
        return places

    def _sought(self, topic: str, numbers: list[int]) -> list[TopicPartition]:
        """Return the places of the time `since`."""
        if self._since_ms is None or topic in self._whole or not numbers:
            return []
        try:
            return self._consumer.offsets_for_times(
                [TopicPartition(topic, number, self._since_ms) for number in numbers], timeout=TIMEOUT_S
            )
        except KafkaException as failure:
            message = f"--since: the broker did not say where {topic} begins: {failure.args[0].str()}"
            raise BrokerError(message) from None

    def _take(self) -> None:
        """Read what comes within a moment, and store it."""
        runs: dict[tuple[str, int], list[Message]] = defaultdict(list)
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
                elif topic is not None and partition is not None and offset is not None:
                    self._ends(topic, partition, offset)
                continue
            assert topic is not None and partition is not None
            runs[topic, partition].append(message)
            count += 1
            size += len(message.value() or b"")
        if runs:
            self._store(runs, {place: (found[-1].offset() or 0) + 1 for place, found in runs.items()})

    def _raise_or_log(self, error: KafkaError, topic: str | None) -> None:
        """Raise what no waiting will cure; a broker that is away comes back."""
        denied = denied_kind(error.code())
        if denied == "group":
            return  # librdkafka looks for the coordinator of a group that is not joined
        if denied is not None:
            raise BrokerError(self._access.denied(denied, topic or "", "Read,Describe"))
        if error.fatal() or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            message = f"{topic} cannot be read any more: {error.str()}"
            raise BrokerError(message)
        _log_error(error)


def _partitions(kafka: Mapping[str, Any], topics: tuple[str, ...]) -> int:
    """Return the number of partitions of the topics, which is one: a label goes where its request was."""
    cluster = Cluster(kafka)
    counts = {topic: cluster.partition_count(topic) for topic in topics}
    if len(set(counts.values())) != 1:
        message = f"topics must have equally many partitions, these have {counts}; see 'grove topics check'"
        raise CatalogueError(message)
    return counts[topics[0]]


def _origin(kafka: Mapping[str, Any], prefix: str, topics: tuple[str, ...]) -> dict[str, str]:
    """Return what tells these topics from others, also from earlier ones of the same names."""
    cluster = Cluster(kafka)
    futures = cluster.client.describe_topics(TopicCollection(list(topics)), request_timeout=cluster.timeout)
    found = {
        topic: str(cluster.result(future, topic, "Describe", "topic").topic_id)
        for topic, future in futures.items()
    }
    return {"prefix": prefix, "cluster": cluster.id or "", **found}


def _log_error(error: KafkaError) -> None:
    logger.warning("consumer: %s", error.str())
