"""Bounded consumer: confluent-kafka's for groups and offsets, with records inflated within bounds.

librdkafka inflates a batch as soon as it arrives, gzip to any size. If a batch is too large for it, it
reports an error and the reader never gets past that batch. So librdkafka fetches nothing here: its partitions
are paused, and `fetcher.py` reads them. A refused batch comes as one message with an error, and reading goes
on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from topics.client_calls import end_or_abandon
from topics.columns.spans import RecordSpans
from topics.fetching.batches import Limit
from topics.fetching.connection import is_reachable
from topics.fetching.fetcher import NOT_FETCHED, Fetcher, Place, Ranges
from topics.fetching.message import FetchedMessage, FetchedRun
from topics.fetching.record import Record
from topics.tokens.sign_in import wait_for_token

LOGICAL: Final = (OFFSET_BEGINNING, OFFSET_END)
"""Places of a log that need no committed position."""
EVENTS: Final = 100  # events of librdkafka that one call handles
OFFSETS_S: Final = 1.0  # timeout to look up the start of a partition, which is then tried again
SLICE_S: Final = 0.1  # between two checks of the group while waiting for records

RESETS: Final = {
    "earliest": "earliest",
    "beginning": "earliest",
    "smallest": "earliest",
    "latest": "latest",
    "end": "latest",
    "largest": "latest",
}
"""Where a partition without a position begins, by the value of `auto.offset.reset` and its synonyms in
librdkafka; its remaining value is `error`.
"""

Fetched = FetchedMessage | FetchedRun
Rebalanced = Callable[[Consumer, list[TopicPartition]], None]


class BoundedConsumer:
    """A consumer with the methods of confluent-kafka's consumer that streamgrove uses.

    If aiokafka does not support the authentication, librdkafka fetches, without bounds.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        limit: Limit | None = None,
        *,
        runs: bool = False,
        **further: Any,
    ) -> None:
        """`properties` are librdkafka's; `further` are further arguments of confluent-kafka's consumer.

        `runs`: `consume` returns records that were fetched together as one `FetchedRun`, which counts as one
        message; records that librdkafka fetches still come one by one.

        Waits for a token if one is needed; may raise TokenError.
        """
        wait_for_token(properties)
        self._consumer = Consumer(dict(properties), **further)
        self._fetcher = Fetcher(properties, limit, spans=runs) if is_reachable(properties) else None
        self._reset = RESETS.get(str(properties.get("auto.offset.reset", "latest")).lower(), "error")
        self._tells_ends = str(properties.get("enable.partition.eof", False)).lower() == "true"
        self._is_subscribed = False
        self._unplaced: dict[Place, int] = {}  # assigned partitions whose position is not known yet
        self._ready: dict[Place, deque[Fetched]] = {}
        self._paused: set[Place] = set()
        self.before: Mapping[Place, int] | None = None
        """By partition: batches from this offset on are not opened; None: all may be opened."""
        self.unread: Ranges = ()
        """Batches whose last offset lies in one of these ranges are skipped."""

    @property
    def limit(self) -> Limit:
        """The largest batch that is accepted."""
        return Limit() if self._fetcher is None else self._fetcher.limit

    @limit.setter
    def limit(self, limit: Limit) -> None:
        if self._fetcher is not None:
            self._fetcher.limit = limit

    # -- consuming -------------------------------------------------------------------------------------------

    def assign(self, partitions: list[TopicPartition]) -> None:
        if self._fetcher is None:
            self._consumer.assign(partitions)
            return
        self._fetcher.assign({})
        self._ready, self._paused = {}, set()
        self._unplaced = {(tp.topic, tp.partition): tp.offset for tp in partitions}
        self._place()

    def unassign(self) -> None:
        if self._fetcher is None:
            self._consumer.unassign()
        else:
            self.assign([])

    def subscribe(
        self,
        topics: list[str],
        on_assign: Rebalanced | None = None,
        on_revoke: Rebalanced | None = None,
        on_lost: Rebalanced | None = None,
    ) -> None:
        callbacks = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
        if self._fetcher is None:
            self._consumer.subscribe(topics, **{name: call for name, call in callbacks.items() if call})
            return
        self._is_subscribed = True

        def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            consumer.assign(partitions)
            consumer.pause(partitions)
            self._unplaced |= {(tp.topic, tp.partition): tp.offset for tp in partitions}
            if on_assign is not None:
                on_assign(consumer, partitions)

        def revoked(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            if on_revoke is not None:
                on_revoke(consumer, partitions)
            self._drop(partitions)

        def lost(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            call = on_lost or on_revoke
            if call is not None:
                call(consumer, partitions)
            self._drop(partitions)

        self._consumer.subscribe(topics, on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def pause(self, partitions: list[TopicPartition]) -> None:
        self._pause(partitions, paused=True)

    def resume(self, partitions: list[TopicPartition]) -> None:
        self._pause(partitions, paused=False)

    def _pause(self, partitions: list[TopicPartition], *, paused: bool) -> None:
        if self._fetcher is None:
            (self._consumer.pause if paused else self._consumer.resume)(partitions)
            return
        places = {(tp.topic, tp.partition) for tp in partitions}
        self._paused = self._paused | places if paused else self._paused - places
        self._fetcher.pause(places, paused)

    def poll(self, seconds: float) -> Any:
        """Return the next message; None if none came in time."""
        return next(iter(self.consume(1, seconds)), None)

    def consume(self, most: int, seconds: float) -> list[Any]:
        """Return up to `most` messages; wait until there is one, or the time is over."""
        if self._fetcher is None:
            return list(self._consumer.consume(most, seconds))
        deadline = time.monotonic() + seconds
        messages = self._heard() or self._given(most)
        while not messages:
            if self._unplaced:
                began = time.monotonic()
                self._place()
                deadline += time.monotonic() - began  # the time is for fetches, not for these questions
            seconds_left = deadline - time.monotonic()
            self._fetcher.wait(min(max(seconds_left, 0.0), SLICE_S), self.before)
            self._read(most)
            messages = self._heard() or self._given(most)
            if seconds_left <= 0:
                break
        return messages

    def _given(self, most: int) -> list[Fetched]:
        """Return ready messages of partitions that are not paused."""
        ready: list[Fetched] = []
        for place, messages in self._ready.items():
            if place not in self._paused:
                while messages and len(ready) < most:
                    ready.append(messages.popleft())
        return ready

    def _heard(self) -> list[Any]:
        """Return errors of librdkafka, and let it call the callbacks of the group."""
        errors = []
        for _ in range(EVENTS):
            message = self._consumer.poll(0)
            if message is None:
                break
            error = message.error()
            # A record here was fetched before its partition was paused; it is read again below.
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its own code
                errors.append(message)
        return errors

    def _read(self, most: int) -> None:
        """Make messages of the fetched records."""
        assert self._fetcher is not None
        for (topic, partition), fetched in self._fetcher.take(most, self.before, self.unread).items():
            ready = self._ready.setdefault((topic, partition), deque())
            for record in fetched.records:
                if isinstance(record, Record):
                    ready.append(FetchedMessage(topic, partition, *record))
                elif isinstance(record, RecordSpans):
                    ready.append(FetchedRun(record))
                else:
                    ready.append(FetchedMessage.refused(topic, partition, record))
            if fetched.end is not None and self._tells_ends:
                end = KafkaError(KafkaError._PARTITION_EOF, "end of partition")  # noqa: SLF001 - its own code
                ready.append(FetchedMessage(topic, partition, fetched.position, error=end))
        for place, position, code in self._fetcher.failures():
            self._fail(place, position, code, self._fetcher.detail(place))

    def _fail(self, place: Place, position: int, code: int, detail: str | None = None) -> None:
        assert self._fetcher is not None
        if code == KafkaError.OFFSET_OUT_OF_RANGE:
            self._fetcher.drop([place])
            if self._reset != "error":
                self._unplaced[place] = OFFSET_BEGINNING if self._reset == "earliest" else OFFSET_END
                return
            code = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - librdkafka's own code
        error = KafkaError(code) if detail is None else KafkaError(code, detail)
        self._ready.setdefault(place, deque()).append(FetchedMessage(*place, position, error=error))

    def next_offset(self, place: Place) -> int:
        """Return the offset after the last message of a partition that was handed out; -1: unknown."""
        if ready := self._ready.get(place):
            return ready[0].offset()
        return NOT_FETCHED if self._fetcher is None else self._fetcher.position(place)

    # -- positions ----------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Look up where assigned partitions begin; the next call retries those that fail."""
        assert self._fetcher is not None
        positions = {place: at for place, at in self._unplaced.items() if at >= 0}
        unknown = [place for place in self._unplaced if place not in positions]
        unanswered: set[Place] = set()  # a committed position may exist: no other may replace it
        try:
            # After OFFSET_OUT_OF_RANGE the committed position is the one that the log no longer has.
            committed = [place for place in unknown if self._unplaced[place] not in LOGICAL]
            if self._is_subscribed and committed:
                asked = [TopicPartition(*place) for place in committed]
                for tp in self._consumer.committed(asked, timeout=OFFSETS_S):
                    if tp.error is not None:
                        unanswered.add((tp.topic, tp.partition))
                    elif tp.offset >= 0:
                        positions[tp.topic, tp.partition] = tp.offset
            for place in unknown:
                if place not in positions and place not in unanswered:
                    # If this fails, all others come before it the next time.
                    at = self._unplaced[place] = self._unplaced.pop(place)
                    first, end = self.get_watermark_offsets(TopicPartition(*place), OFFSETS_S)
                    from_first = at == OFFSET_BEGINNING or (at != OFFSET_END and self._reset == "earliest")
                    positions[place] = first if from_first else end
        except KafkaException:
            pass  # the broker or the coordinator is away; `poll` reports denied access
        self._fetcher.add(positions)
        self._fetcher.pause(self._paused & positions.keys())
        for place in positions:
            del self._unplaced[place]

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        assert self._fetcher is not None
        places = [(tp.topic, tp.partition) for tp in partitions]
        self._fetcher.drop(places)
        self._paused.difference_update(places)
        for place in places:
            self._unplaced.pop(place, None)
            self._ready.pop(place, None)

    # -- librdkafka ------------------------------------------------------------------------------------------

    def assignment(self) -> list[TopicPartition]:
        return list(self._consumer.assignment())

    def commit(self, **arguments: Any) -> Any:
        return self._consumer.commit(**arguments)

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return list(self._consumer.committed(partitions, timeout=timeout))

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        """Return the first offset of a log and its end; KafkaException if its leader does not report them."""
        offsets = self._consumer.get_watermark_offsets(partition, timeout=timeout)
        if offsets is None or min(offsets) < 0:
            message = f"{partition.topic}-{partition.partition}: its leader did not report the log"
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, message))
        return int(offsets[0]), int(offsets[1])

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """Return the first offset of each partition with its time or a later one, -1 if there is none.

        KafkaException if a leader does not report it: the offset beside an error would look like the end.
        """
        offsets = list(self._consumer.offsets_for_times(partitions, timeout=timeout))
        for offset in offsets:
            if offset.error is not None:
                raise KafkaException(offset.error)
        return offsets

    def close(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()
        end_or_abandon("the consumer: close", self._consumer.close)
