"""Replay of existing topics: their records of a range of time, sent again unchanged, in the order of time.

Keys, values, headers and timestamps stay the same; the partition follows from the key and the number of
partitions of the target topic. The range is fixed before the first record is sent: the replay does not wait
for later records or open transactions.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from topics.clients.access import denied_kind
from topics.clients.cluster import Cluster
from topics.clients.partitioner import partition_of
from topics.clients.sender import Sender
from topics.clients.without_group import without_group
from topics.columns.headers import UNREADABLE, headers_of
from topics.errors import BrokerError, CatalogueError
from topics.fetching.batches import Limit
from topics.fetching.bounded_consumer import BoundedConsumer
from topics.fetching.message import REFUSED

logger = logging.getLogger(__name__)

BATCH: Final = 2000
POLL_S: Final = 0.1
AHEAD: Final = 4000  # records of a partition that wait for other partitions before this one is paused
PROGRESS_S: Final = 0.1
SILENCE_S: Final = 120.0
"""Seconds for which a partition with remaining records may return none: a busy broker needs some."""

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TopicReplayPlan:
    """The topics and the range of time that are sent again, and the target topics."""

    targets: Mapping[str, str]  # source topic → topic that gets its records
    from_ms: int | None = None  # the first time, ms since the epoch; None: from the beginning
    to_ms: int | None = None  # the first time that is no longer sent; None: to the end
    rate: float | None = None  # records per second; None: as fast as possible
    records: int | None = None  # largest number of records

    def __post_init__(self) -> None:
        """Refuse a plan that sends nothing, or that reads its own output."""
        for source, target in self.targets.items():
            if target in self.targets:
                message = (
                    f"from_topic={source!r} must not be sent to {target!r}, which is read too; give the "
                    "topics of the target another prefix (--topics-prefix)"
                )
                raise ValueError(message)
        if self.from_ms is not None and self.to_ms is not None and self.from_ms >= self.to_ms:
            message = f"from={self.from_ms} must be before to={self.to_ms}"
            raise ValueError(message)
        if self.rate is not None and not self.rate > 0:
            message = f"rate={self.rate} must be above 0"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class TopicReplayProgress:
    """The progress of a replay, and its result at the end."""

    records: int  # sent by this run
    by_topic: Mapping[str, int]  # the same by source topic
    left_out: int  # records without a key, which go to no model, or with header names that are not text
    next_ms: int | None  # timestamp of the first record that was not sent; None: all were sent
    seconds: float
    stopped: bool = False


class TopicReplay:
    """Sends records of topics again; `run` in one thread, `stop` from any thread or a signal handler."""

    def __init__(self, plan: TopicReplayPlan, kafka: Mapping[str, Any], limit: Limit | None = None) -> None:
        """Reach the broker, and find the start and end of the range in each partition; `limit` bounds an
        inflated batch.
        """
        self.plan = plan
        self._stop = threading.Event()
        self._cluster = cluster = Cluster(kafka)
        counts = {name: cluster.partition_count(name) for name in (*plan.targets, *plan.targets.values())}
        self._partitions = {source: counts[target] for source, target in plan.targets.items()}
        if len(set(self._partitions.values())) > 1:
            message = f"targets must have equally many partitions, these have {self._partitions}"
            raise CatalogueError(message)
        self._consumer = BoundedConsumer({**without_group(kafka, "error"), "log_level": 0}, limit)
        try:
            everywhere = [(name, number) for name in plan.targets for number in range(counts[name])]
            self._ranges = {place: span for place in everywhere if (span := self._span(place)) is not None}
            self._sender = Sender(kafka, self._stop.is_set)
        except BaseException:
            self._consumer.close()
            raise
        self._waiting: dict[Place, deque[Message]] = {place: deque() for place in self._ranges}
        self._open = set(self._ranges)  # partitions with remaining records
        self._paused: set[Place] = set()
        self._sent = dict.fromkeys(plan.targets, 0)
        self._left_out = 0
        self._left: int | None = None  # timestamp of the next record when the replay ended

    def stop(self) -> None:
        """Make `run` end soon; sent records are flushed."""
        self._stop.set()

    def run(self, progress: Callable[[TopicReplayProgress], object] | None = None) -> TopicReplayProgress:
        """Send everything and return the result; raise DeliveryError if a record was not delivered."""
        with closing(self._sender), closing(self._consumer):
            started = reported = time.monotonic()
            self._consumer.assign(
                [TopicPartition(topic, number, span[0]) for (topic, number), span in self._ranges.items()]
            )
            for message in self._in_order():
                if self._is_full() or not self._wait_for(started):
                    self._left = message.timestamp()[1]
                    break
                self._send(message)
                if progress and time.monotonic() - reported >= PROGRESS_S:
                    reported = time.monotonic()
                    progress(self._state(started))
            self._sender.flush()
            report = self._state(started, stopped=self._stop.is_set())
            if progress:
                progress(report)
            return report

    def _span(self, place: Place) -> tuple[int, int] | None:
        """Return the offsets of a log from which and before which it is read; None if there is nothing to
        read.

        The log is read to its end: a record earlier than `to_ms` may come after a later one. The broker's
        offset for a time may also be a marker of a transaction, which has the time of the commit.
        """
        here = TopicPartition(*place)
        try:
            first, end = self._consumer.get_watermark_offsets(here, timeout=self._cluster.timeout)
            start = self._at(place, self.plan.from_ms, first, end)
        except KafkaException as failure:
            raise self._cluster.error(failure, place[0], "Read", "topic") from None
        return (start, end) if start < end else None

    def _at(self, place: Place, time_ms: int | None, default: int, end: int) -> int:
        """Return the first offset whose record has this time or a later one."""
        if time_ms is None:
            return default
        asked = TopicPartition(*place, time_ms)
        (position,) = self._consumer.offsets_for_times([asked], timeout=self._cluster.timeout)
        return end if position.offset < 0 else min(int(position.offset), end)

    def _in_order(self) -> Iterator[Message]:
        """Yield records by time, in the order of each partition; equal times by topic and partition.

        Before a later record is yielded, every partition with remaining records must have one here.
        """
        order = {place: number for number, place in enumerate(sorted(self._ranges))}
        ready: list[tuple[int, int, Place]] = []
        late: dict[Place, int] = {}  # records out of order get the time of the record before them
        queued: set[Place] = set()
        silent_since = time.monotonic()
        while not self._stop.is_set():
            for place, messages in self._waiting.items():
                if messages and place not in queued:
                    late[place] = max(late.get(place, 0), messages[0].timestamp()[1])
                    heapq.heappush(ready, (late[place], order[place], place))
                    queued.add(place)
            if ready and self._open <= queued:
                _, _, place = heapq.heappop(ready)
                queued.remove(place)
                yield self._waiting[place].popleft()
                silent_since = time.monotonic()
                continue
            if not ready and not self._open:
                return
            if self._take():
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since > SILENCE_S:
                topic, partition = min(self._open - queued)
                message = f"{topic}-{partition} was not served for {SILENCE_S:g} s; see the brokers"
                raise BrokerError(message)

    def _take(self) -> bool:
        """Fetch the records that come within a moment; return whether any came."""
        self._balance()
        messages = self._consumer.consume(BATCH, POLL_S)
        for message in messages:
            error, topic, partition = message.error(), message.topic(), message.partition()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its own code
                self._raise_for(error, topic or "")
                continue
            place, offset = (str(topic), int(partition or 0)), int(message.offset() or 0)
            if place not in self._open:
                continue
            stop = self._ranges[place][1]
            if error is None and offset < stop and self._is_meant(message):
                self._waiting[place].append(message)
            if offset + (error is None) >= stop or error is not None:
                self._open.discard(place)  # only markers are left before the end of the range
                self._consumer.pause([TopicPartition(*place)])
        return bool(messages)

    def _is_meant(self, message: Message) -> bool:
        begin, end, at = self.plan.from_ms, self.plan.to_ms, message.timestamp()[1]
        return (begin is None or at >= begin) and (end is None or at < end)

    def _balance(self) -> None:
        """Pause partitions that are far ahead of the rest."""
        full = {place for place in self._open if len(self._waiting[place]) >= AHEAD}
        if begin := full - self._paused:
            self._consumer.pause([TopicPartition(*place) for place in begin])
        if end := (self._paused - full) & self._open:
            self._consumer.resume([TopicPartition(*place) for place in end])
        self._paused = full

    def _raise_for(self, error: KafkaError, topic: str) -> None:
        kind = denied_kind(error.code())
        if kind == "group":
            return  # librdkafka looks for the coordinator of a group although none is joined
        if kind is not None or error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its own code
            raise self._cluster.error(KafkaException(error), topic, "Read", "topic")
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            raise BrokerError(error.str())
        if error.code() in REFUSED:
            logger.warning("not sent: %s", error.str())

    def _send(self, message: Message) -> None:
        key, topic, headers = message.key(), str(message.topic()), headers_of(message)
        if key is None or headers is UNREADABLE:
            self._left_out += 1
            return
        key = key.encode() if isinstance(key, str) else key
        partition = partition_of(key, self._partitions[topic])
        value: Any = message.value()
        record = [value], [key], [message.timestamp()[1]], [list(headers)]
        self._sender.send_run(self.plan.targets[topic], partition, *record)
        self._sent[topic] += 1

    def _is_full(self) -> bool:
        return self.plan.records is not None and sum(self._sent.values()) >= self.plan.records

    def _wait_for(self, started: float) -> bool:
        """Wait until the next record is due; return whether it is still to be sent."""
        if self.plan.rate is None:
            return not self._stop.is_set()
        due = started + sum(self._sent.values()) / self.plan.rate
        return not self._stop.wait(max(0.0, due - time.monotonic()))

    def _state(self, started: float, *, stopped: bool = False) -> TopicReplayProgress:
        waiting = [messages[0].timestamp()[1] for messages in self._waiting.values() if messages]
        waiting += [] if self._left is None else [self._left]
        seconds = time.monotonic() - started
        n = sum(self._sent.values())
        return TopicReplayProgress(
            n, dict(self._sent), self._left_out, min(waiting, default=None), seconds, stopped
        )


def target_of(source: str, names: Sequence[str]) -> str | None:
    """Return the name (without prefix) with which a topic's name ends, or None."""
    ends = ((name, (f".{name}", f"-{name}", f"_{name}")) for name in names)
    return next((name for name, ending in ends if source == name or source.endswith(ending)), None)
