"""Requests as they are consumed from their topic, and the commits of finished requests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from topics.clients.access import Access, denied_kind
from topics.errors import BrokerError
from topics.fetching.bounded_consumer import BoundedConsumer
from topics.oracle.assignment import Assignment

logger = logging.getLogger(__name__)

BATCH_REQUESTS = 1000
SESSION_MS = 10_000  # after an outage of the broker, librdkafka may need a session timeout to rejoin


class RequestTopic:
    """A consumer of requests with its own group.

    `finish` is called before partitions go to another consumer (a last chance to finish and commit), `forget`
    after they are revoked.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        topic: str,
        group_id: str,
        finish: Callable[[], None],
        forget: Callable[[set[int]], None],
    ) -> None:
        self._topic, self._group = topic, group_id
        self._access = Access.of(kafka)
        self._finish = finish
        self._forget = forget
        self._assignment = Assignment()
        self._trackers: dict[int, OffsetTracker] = {}
        self._heard = np.inf
        self._paused = False
        # The oracle's own identity: the worker's would remove the worker from its group.
        properties = {key: value for key, value in kafka.items() if key != "group.instance.id"}
        self._consumer = BoundedConsumer(
            {
                "session.timeout.ms": SESSION_MS,
                **properties,
                "group.id": group_id,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "error_cb": _log_error,
            },
            logger=logger,
        )
        self._consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    @property
    def read(self) -> bool:
        return self._assignment.read

    @property
    def silent_seconds(self) -> float:
        """Return the time since everything has been read and no request has come."""
        return time.monotonic() - self._heard if self.read else 0.0

    def consume(self, seconds: float, most: int = BATCH_REQUESTS) -> list[Message]:
        """Return the requests that come within a time; each has to be finished before it is committed.

        `most` is the room for requests; at 0 nothing is fetched, but group events are processed.
        """
        self._pause(most <= 0)
        requests = []
        for message in self._consumer.consume(min(max(most, 1), BATCH_REQUESTS), seconds):
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's
                self._raise_or_log(error)
                continue
            partition, offset = place(message)
            if error is None:
                # A rebalance within `consume` may have taken the partition away.
                if self._assignment.has(partition):
                    self._assignment.came(partition)
                    self._trackers.setdefault(partition, OffsetTracker()).begin(offset)
                    requests.append(message)
            else:
                self._assignment.ended(partition)
                if self._assignment.has(partition):
                    self._trackers.setdefault(partition, OffsetTracker()).reach(offset)
        if requests:
            self._heard = time.monotonic()
        return requests

    def _pause(self, paused: bool) -> None:
        """Pause or resume fetching, including partitions that were added since."""
        if paused:
            self._consumer.pause(self._consumer.assignment())
        elif self._paused:
            self._consumer.resume(self._consumer.assignment())
        self._paused = paused

    def finish(self, partition: int, offset: int) -> None:
        """Note that a request needs no more work."""
        if partition in self._trackers:
            self._trackers[partition].finish(offset)

    def commit(self) -> None:
        """Commit finished requests, in each partition up to the first unfinished one."""
        committable = {partition: tracker.committable() for partition, tracker in self._trackers.items()}
        offsets = {partition: offset for partition, offset in committable.items() if offset is not None}
        if not offsets:
            return
        places = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as failure:
            # A rebalance or an outage came between: requests without commit are answered again.
            logger.warning("commit of %s: %s", self._topic, failure.args[0].str())
            return
        for partition, offset in offsets.items():
            self._trackers[partition].committed(offset)

    def close(self) -> None:
        self._consumer.close()

    def _raise_or_log(self, error: KafkaError) -> None:
        """Raise errors that waiting will not cure; an unreachable broker comes back."""
        denied = denied_kind(error.code())
        if denied is not None:
            name = self._group if denied == "group" else self._topic
            raise BrokerError(self._access.denied(denied, name, "Read"))
        if error.fatal():
            message = f"{self._topic} cannot be consumed: {error.str()}"
            raise BrokerError(message)
        _log_error(error)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = sorted(tp.partition for tp in partitions)
        self._assignment.add(numbers)
        self._heard = time.monotonic()
        logger.info("requests of %s, partitions %s", self._topic, numbers)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._finish()
        self._drop(partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._drop(partitions)

    def _drop(self, partitions: list[TopicPartition]) -> None:
        gone = {tp.partition for tp in partitions}
        self._forget(gone)
        for partition in gone:
            self._trackers.pop(partition, None)
        self._assignment.drop(gone)


class OffsetTracker:
    """Offsets of one partition, begun in order and finished in any order: no commit precedes its answer."""

    def __init__(self) -> None:
        self._open: dict[int, None] = {}  # in ascending order
        self._next = -1  # after the highest offset begun, or after the end if it was reached
        self._committed = -1

    def begin(self, offset: int) -> None:
        """Note a consumed record."""
        self._open[offset] = None
        self._next = offset + 1

    def reach(self, offset: int) -> None:
        """Note that no record was left up to an offset: markers of transactions take offsets, too."""
        self._next = max(self._next, offset)

    def finish(self, offset: int) -> None:
        """Note that a record needs no more work."""
        del self._open[offset]

    def committable(self) -> int | None:
        """Return the offset to commit: the first unfinished record; None if it is committed already."""
        offset = next(iter(self._open), self._next)
        if offset < 0 or offset == self._committed:
            return None
        return offset

    def committed(self, offset: int) -> None:
        self._committed = offset


def place(message: Message) -> tuple[int, int]:
    """Return partition and offset of a consumed message."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset


def _log_error(error: KafkaError) -> None:
    logger.warning("consumer: %s", error.str())
