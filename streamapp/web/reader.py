"""Reader: requests, answers to them and controls, from where the store has them on; without a group.

Controls are read for the names of classes and features. What was read and the positions behind it are stored
together.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)

from streamapp.web.clock import now_ms
from streamapp.web.decoding import declared_in, feature_requests_of, labels_of, requests_of, values_of
from streamapp.web.label_queue import LabelQueue
from topics.access import Access, denied_kind
from topics.cluster import TIMEOUT_S, Cluster
from topics.definitions import TopicNames
from topics.errors import BrokerError, CatalogueError

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
BATCH_RECORDS: Final = 50  # of a transaction, which nobody should wait for
BATCH_BYTES: Final = 8 << 20
TIDY_S: Final = 5.0
QUEUED_KB: Final = 16_384  # what librdkafka fetches ahead


class Reader:
    """A consumer that assigns itself all partitions; `run` in one thread, `stop` from any."""

    def __init__(
        self, kafka: Mapping[str, Any], names: TopicNames, queue: LabelQueue, since_ms: int | None = None
    ) -> None:
        """Reach the broker; `since_ms`: where topics begin of which nothing was read yet."""
        self._names, self._queue, self._since_ms = names, queue, since_ms
        self._access = Access.of(kafka)
        self._stop = threading.Event()
        self._doubts: list[int] = []  # answers that are decided when answers are read up to `_ends`
        self._ends: dict[tuple[str, int], int] = {}
        self._reached: dict[tuple[str, int], int] = {}  # of the answers: the offset behind what was read
        self._answers = (names.labels, *((names.feature_values,) if names.features else ()))
        asked = (names.label_requests, *((names.feature_requests,) if names.features else ()))
        self._topics = (names.controls, *self._answers, *asked)
        self._partitions = _partitions(kafka, self._topics)
        if queue.begin(_origin(kafka, names, self._topics)):
            logger.warning("the topics are not those of the store; it is filled anew")
        self._consumer = Consumer(
            {
                **{key: value for key, value in kafka.items() if key != "group.instance.id"},
                "group.id": "none",  # librdkafka wants a name; nothing is committed and no group is joined
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "queued.max.messages.kbytes": QUEUED_KB,
                "error_cb": _log_error,
            },
            logger=logger,
        )

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    def run(self) -> None:
        """Read until stopped; raises what no waiting will cure."""
        try:
            self._consumer.assign(self._places())
            tidied = time.monotonic()
            while not self._stop.is_set():
                self._take()
                self._decide_doubts()
                if time.monotonic() - tidied >= TIDY_S:
                    tidied = time.monotonic()
                    self._queue.tidy(now_ms())
        finally:
            self._consumer.close()

    def _places(self) -> list[TopicPartition]:
        """Return where to begin: behind what is stored, else at `since`, else at the beginning."""
        places = []
        for topic in self._topics:
            stored = self._queue.positions(topic)
            missing = [n for n in range(self._partitions) if n not in stored]
            found = {place.partition: place for place in self._sought(topic, missing)}
            for number in range(self._partitions):
                place = found.get(number, TopicPartition(topic, number, stored.get(number, OFFSET_BEGINNING)))
                places.append(place)
                if topic in self._answers:
                    self._reached[topic, number] = max(0, place.offset)
        return places

    def _sought(self, topic: str, numbers: list[int]) -> list[TopicPartition]:
        """Return the places of the time `since`; of controls all are read, whatever their age."""
        if self._since_ms is None or topic == self._names.controls or not numbers:
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
        while count < BATCH_RECORDS and size < BATCH_BYTES:
            message = self._consumer.poll(wait)
            if message is None:
                break
            wait = 0.0
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own codes look so
                    self._raise_or_log(error, topic)
                elif (
                    topic is not None
                    and topic in self._answers
                    and partition is not None
                    and offset is not None
                ):
                    self._reached[topic, partition] = max(self._reached[topic, partition], offset)
                continue
            assert topic is not None and partition is not None
            runs[topic, partition].append(message)
            count += 1
            size += len(message.value() or b"")
        if runs:
            self._store(runs)

    def _store(self, runs: Mapping[tuple[str, int], list[Message]]) -> None:
        requests, labels, values, classes, attributes, positions = [], [], [], [], [], {}
        for (topic, partition), messages in runs.items():
            if topic == self._names.label_requests:
                requests += requests_of(messages)
            elif topic == self._names.feature_requests:
                requests += feature_requests_of(messages)
            elif topic == self._names.labels:
                labels += labels_of(messages)
            elif topic == self._names.feature_values:
                values += values_of(messages)
            else:
                of_classes, of_features = declared_in(messages)
                classes += of_classes
                attributes += of_features
            positions[topic, partition] = (messages[-1].offset() or 0) + 1
        self._queue.apply(requests, labels, positions, now_ms(), classes, values, attributes)
        for (topic, partition), offset in positions.items():
            if topic in self._answers:
                self._reached[topic, partition] = max(self._reached[topic, partition], offset)

    def _decide_doubts(self) -> None:
        """Let answers in doubt be decided when all answers are read that the topics have by now."""
        if not self._doubts and (doubts := self._queue.in_doubt()):
            self._ends = self._answer_ends()  # after the question: what is in doubt comes no later than now
            self._doubts = doubts if self._ends else []
        if self._doubts and all(self._reached[place] >= end for place, end in self._ends.items()):
            self._queue.caught_up(self._doubts)
            self._doubts = []

    def _answer_ends(self) -> dict[tuple[str, int], int]:
        """Return the end of each partition of each topic of answers; none if the broker is away."""
        ends: dict[tuple[str, int], int] = {}
        for topic, number in [(topic, n) for topic in self._answers for n in range(self._partitions)]:
            try:
                found = self._consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S)
            except KafkaException as failure:
                self._raise_or_log(failure.args[0], topic)
                return {}
            if found is None:
                return {}
            first, ends[topic, number] = found
            # What is gone cannot be read.
            self._reached[topic, number] = max(self._reached[topic, number], first)
        return ends

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


def _origin(kafka: Mapping[str, Any], names: TopicNames, topics: tuple[str, ...]) -> dict[str, str]:
    """Return what tells these topics from others, also from earlier ones of the same names."""
    cluster = Cluster(kafka)
    futures = cluster.client.describe_topics(TopicCollection(list(topics)), request_timeout=cluster.timeout)
    found = {
        topic: str(cluster.result(future, topic, "Describe", "topic").topic_id)
        for topic, future in futures.items()
    }
    return {"prefix": names.prefix, "cluster": cluster.id or "", **found}


def _log_error(error: KafkaError) -> None:
    logger.warning("consumer: %s", error.str())
