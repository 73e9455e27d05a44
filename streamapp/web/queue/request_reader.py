"""Reader: requests, answers, controls and audit, from the positions in the store on, without a group.

Controls are read for the names of classes and features, audit entries for the quality of annotators. Records
and the next offsets are stored together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition

from streamapp.web.clock import now_ms
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.record_decoding import (
    audit_entries_of,
    class_controls_of,
    declared_in,
    feature_requests_of,
    labels_of,
    requests_of,
    values_of,
)
from streamapp.web.topic_reader import Positions, Runs, TopicReader
from topics.clients.cluster import TIMEOUT_S
from topics.codecs.avro.output_reader import AS_WRITTEN, OutputReader
from topics.definitions import TopicNames

TIDY_S: Final = 5.0


class Reader(TopicReader):
    """Fills the label queue; `run` in one thread, `stop` from any."""

    batch_records = 50  # of a transaction, so that annotators do not wait long for it

    def __init__(
        self,
        kafka: Mapping[str, Any],
        names: TopicNames,
        queue: LabelQueue,
        since_ms: int | None = None,
        outputs: OutputReader = AS_WRITTEN,
    ) -> None:
        """Connect to the broker; `since_ms`: time from which topics are read of which nothing is stored."""
        self._names, self._queue, self._outputs = names, queue, outputs
        self._tidied = time.monotonic()
        self._holds_votes = True
        self._held_until: dict[tuple[str, int], int] | None = None
        queue.outbox.hold_votes(True)
        self._doubts: list[int] = []  # answers to decide when the topics of answers are read up to `_awaited`
        self._awaited: dict[tuple[str, int], int] = {}
        self._reached: dict[tuple[str, int], int] = {}  # next offset in the topics of answers
        self._answers = (names.labels, *((names.feature_values,) if names.features else ()))
        self._watched = (*self._answers, names.audit)
        asked = (names.label_requests, *((names.feature_requests,) if names.features else ()))
        topics = (names.controls, *self._answers, *asked, names.audit)
        super().__init__(kafka, names.prefix, topics, since_ms, whole=(names.controls, names.audit))

    def _begin(self, origin: dict[str, str]) -> bool:
        return self._queue.topics.begin(origin)

    def _stored(self, topic: str) -> Mapping[int, int]:
        return self._queue.topics.positions(topic)

    def _starts(self, topic: str, partition: int, offset: int) -> None:
        if topic in self._watched:
            self._reached[topic, partition] = max(0, offset)

    def _ends(self, topic: str, partition: int, offset: int) -> None:
        if topic in self._watched:
            self._reached[topic, partition] = max(self._reached[topic, partition], offset)

    def _store(self, runs: Runs, positions: Positions) -> None:
        requests, labels, values, classes, attributes, controls, audit = [], [], [], [], [], [], []
        for (topic, _), messages in runs.items():
            if topic == self._names.label_requests:
                requests += requests_of(messages, self._outputs)
            elif topic == self._names.feature_requests:
                requests += feature_requests_of(messages)
            elif topic == self._names.labels:
                labels += labels_of(messages, self._outputs)
            elif topic == self._names.feature_values:
                values += values_of(messages, self._outputs)
            elif topic == self._names.audit:
                audit += audit_entries_of(messages)
            else:
                of_classes, of_features = declared_in(messages, self._outputs)
                classes += of_classes
                attributes += of_features
                controls += class_controls_of(messages, self._outputs)
        self._queue.topics.apply(
            requests, labels, positions, now_ms(), classes, values, attributes, controls, audit
        )
        for (topic, partition), offset in positions.items():
            self._ends(topic, partition, offset)

    def _between(self) -> None:
        self._decide_doubts()
        if self._holds_votes:
            self._let_votes_go()
        if time.monotonic() - self._tidied >= TIDY_S:
            self._tidied = time.monotonic()
            self._queue.topics.tidy(now_ms())

    def _let_votes_go(self) -> None:
        """Let votes be settled once the outcomes that the topic `audit` had at the start are read."""
        if self._held_until is None:
            self._held_until = self._ends_of((self._names.audit,)) or None
        ends = self._held_until or {}
        if ends and all(self._reached[place] >= end for place, end in ends.items()):
            self._queue.outbox.hold_votes(False)
            self._holds_votes = False

    def _decide_doubts(self) -> None:
        """Decide answers in doubt once all answers that the topics have now are read."""
        if not self._doubts and (doubts := self._queue.outbox.in_doubt()):
            self._awaited = self._ends_of(self._answers)  # after `in_doubt`: no doubt is about a later answer
            self._doubts = doubts if self._awaited else []
        if self._doubts and all(self._reached[place] >= end for place, end in self._awaited.items()):
            self._queue.outbox.caught_up(self._doubts)
            self._doubts = []

    def _ends_of(self, topics: tuple[str, ...]) -> dict[tuple[str, int], int]:
        """Return the end offsets of these topics; empty if the broker cannot be reached."""
        ends: dict[tuple[str, int], int] = {}
        for topic, number in [(topic, n) for topic in topics for n in range(self._partitions)]:
            try:
                offsets = self._consumer.get_watermark_offsets(TopicPartition(topic, number), TIMEOUT_S)
            except KafkaException as failure:
                self._raise_or_log(failure.args[0], topic)
                return {}
            first, ends[topic, number] = offsets
            # Records before the first offset are deleted and cannot be read.
            self._reached[topic, number] = max(self._reached[topic, number], first)
        return ends
