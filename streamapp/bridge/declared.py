"""Declared classes: the classes that a model allows now, read from the controls before a label is sent.

A label of another class would be a dead letter of the worker, and its request would be closed for all
annotators.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from streamapp.web.queue.closed_classes import NOTHING, Declared, after, lets_in
from streamapp.web.queue.record_decoding import class_controls_of
from topics.clients.access import Access, denied_kind
from topics.clients.cluster import TIMEOUT_S, Cluster
from topics.clients.without_group import without_group
from topics.errors import BrokerError
from topics.fetching.bounded_consumer import BoundedConsumer

BATCH: Final = 500
POLL_S: Final = 0.2


class NotReadError(BrokerError):
    """Controls that cannot be read at the moment; the label is sent later."""


class DeclaredClasses:
    """A consumer of all controls without a group, for one thread at a time."""

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        """Connect to the broker; raises errors of the topic."""
        self._topic, self._access = topic, Access.of(kafka)
        self._declared: dict[str, Declared] = {}
        self._reached: dict[int, int] = {}
        self.partitions = Cluster(kafka).partition_count(topic)
        self._consumer = BoundedConsumer({**without_group(kafka, "earliest"), "log_level": 0})
        self._consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(self.partitions)])

    def of(self, key: str, partition: int) -> tuple[str, ...] | None:
        """Return the classes that the model of a key allows now, None: any.

        NotReadError if the controls cannot be read up to their end, BrokerError if access is denied.
        """
        self._catch_up(partition)
        return lets_in(self._declared.get(key, NOTHING), ())

    def close(self) -> None:
        self._consumer.close()

    def _catch_up(self, partition: int) -> None:
        end = self._end(partition)
        deadline = time.monotonic() + TIMEOUT_S
        while self._reached.get(partition, 0) < end:
            self._take(self._consumer.consume(BATCH, POLL_S))
            if time.monotonic() > deadline:
                place = f"{self._topic} {partition}:{self._reached.get(partition, 0)}"
                message = f"controls were not read up to {end:,} in {TIMEOUT_S:g} s, but to {place}"
                raise NotReadError(message)

    def _end(self, partition: int) -> int:
        try:
            _, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), TIMEOUT_S)
        except KafkaException as failure:
            raise self._failed(failure.args[0]) from None
        return end

    def _take(self, messages: Sequence[Message]) -> None:
        runs: dict[int, list[Message]] = {}
        for message in messages:
            partition, offset, error = int(message.partition() or 0), message.offset(), message.error()
            if error is None:
                runs.setdefault(partition, []).append(message)
                self._reached[partition] = int(offset or 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own codes look so
                self._reached[partition] = max(self._reached.get(partition, 0), int(offset or 0))
            elif error.fatal() or denied_kind(error.code()) == "topic":
                raise self._failed(error)
        for run in runs.values():
            for control in class_controls_of(run):
                self._declared[control.key] = after(self._declared.get(control.key, NOTHING), control)

    def _failed(self, error: KafkaError) -> BrokerError:
        if denied_kind(error.code()) == "topic":
            return BrokerError(self._access.denied("topic", self._topic, "Read"))
        return NotReadError(f"{self._topic} cannot be read: {error.str()}")
