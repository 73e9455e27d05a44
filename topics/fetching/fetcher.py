# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Fetcher: record batches of partitions, outside any group, committed records only, inflated on access.

Fetched batches stay here as the broker sent them, at most one answer per partition. The event loop runs in
the thread of the caller: between calls nothing is read, and the connections stay open.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, cast

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import KafkaError
from aiokafka.protocol.fetch import FetchRequest
from confluent_kafka import KafkaError as Codes

from topics.columns.headers import ended_at_nul
from topics.columns.spans import RecordSpans
from topics.fetching.batches import (
    Limit,
    damaged,
    is_skipped,
    is_v2,
    old_opened,
    opened,
    records_of,
    spans_of,
)
from topics.fetching.connection import connection_arguments
from topics.fetching.fetched_records import FetchedRecords
from topics.fetching.frames import MOST_BYTES, FrameError, bound_frames, frame_bound, frame_error
from topics.fetching.oversized import SUSPECT_WAIT_MS, OversizedAnswers
from topics.fetching.record import Record
from topics.fetching.refused import BATCH_BYTES, RefusedBatch

logger = logging.getLogger(__name__)

Place = tuple[str, int]
"""Topic and partition."""
Ranges = Iterable[tuple[int, int]]
Read = Record | RecordSpans | RefusedBatch
"""A record, the records of a batch, or a batch of which no record is read."""

FETCH_BYTES: Final = 16 << 20  # bytes of one answer
PARTITION_BYTES: Final = 1 << 20
WAIT_MS: Final = 500
AGAIN_S: Final = 0.1  # after a failure
UNKNOWN_S: Final = 5.0  # time in which a broker may still learn of a new topic
COMMITTED: Final = 1  # isolation level of a fetch
NOT_FETCHED: Final = -1
"""The position of a partition that is not fetched."""

_NO_LEADER: Final = frozenset(
    {Codes.NOT_LEADER_FOR_PARTITION, Codes.LEADER_NOT_AVAILABLE, Codes.FENCED_LEADER_EPOCH}
    | {Codes.UNKNOWN_LEADER_EPOCH, Codes.REPLICA_NOT_AVAILABLE, Codes.UNKNOWN_TOPIC_OR_PART}
    | {Codes.BROKER_NOT_AVAILABLE, Codes.KAFKA_STORAGE_ERROR, Codes.OFFSET_NOT_AVAILABLE}
)
"""Errors that pass by themselves, or with another leader; librdkafka does not report them either."""


@dataclass(slots=True)
class Taken:
    """The records read of one partition, and its position."""

    records: list[Read]
    position: int  # offset of the next record
    end: int | None = None  # the last stable offset, if no record is left before it


@dataclass(slots=True)
class _Partition:
    position: int
    is_paused: bool = False
    fetched: Any = None  # PartitionRecords, from the position on
    stable: int | None = None  # the last stable offset in the broker's last answer
    is_behind: bool = True  # whether no answer has reported the end at this position yet
    missing_since: float | None = None
    failure: int | None = None  # code of an error to report
    detail: str | None = None  # about the last failure


class Fetcher:
    """Fetches partitions from given positions on."""

    def __init__(self, kafka: Mapping[str, Any], limit: Limit | None = None, *, spans: bool = False) -> None:
        """`kafka` holds client properties under librdkafka's names; the broker is reached at the first
        `wait`.

        `spans`: `take` returns the records of a batch together, as spans over its bytes.
        """
        self._spans = spans
        self._arguments = connection_arguments(kafka)
        self.limit = limit or Limit()
        self._wait_ms = int(kafka.get("fetch.wait.max.ms", WAIT_MS))
        self._fetch_bytes = min(int(kafka.get("fetch.max.bytes", FETCH_BYTES)), FETCH_BYTES)
        self._partition_bytes = int(kafka.get("max.partition.fetch.bytes", PARTITION_BYTES))
        receive_max = int(kafka.get("receive.message.max.bytes", MOST_BYTES))
        self._frame_bytes = frame_bound(receive_max, int(kafka.get("fetch.max.bytes", 50 << 20)))
        self._oversized = OversizedAnswers[Place]()
        self._made: asyncio.AbstractEventLoop | None = None
        self._client: AIOKafkaClient | None = None
        self._requests: dict[int, asyncio.Task[Any]] = {}
        self._waiting: asyncio.Task[None] | None = None
        self._places: dict[Place, _Partition] = {}

    def close(self) -> None:
        """Close the connections."""
        loop, self._made = self._made, None
        if loop is not None:
            loop.run_until_complete(self._close())
            loop.close()

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        if self._made is None:
            self._made = asyncio.new_event_loop()
        return self._made

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Fetch exactly these partitions, from these positions on."""
        self._oversized.forget(self._places)
        self._places = {place: _Partition(at) for place, at in positions.items()}

    def add(self, positions: Mapping[Place, int]) -> None:
        """Fetch these partitions, too."""
        self._places |= {place: _Partition(at) for place, at in positions.items()}

    def drop(self, places: Iterable[Place]) -> None:
        """Stop fetching these partitions."""
        for place in places:
            self._places.pop(place, None)
            self._oversized.forget([place])

    def seek(self, place: Place, position: int) -> None:
        """Continue a partition at another offset."""
        self._places[place] = _Partition(position, self._places[place].is_paused)
        self._oversized.forget([place])

    def position(self, place: Place) -> int:
        """Return the offset of the next record of a partition; NOT_FETCHED if it is not fetched."""
        return self._places[place].position if place in self._places else NOT_FETCHED

    def pause(self, places: Iterable[Place], paused: bool = True) -> None:
        """Pause these partitions, which then return nothing, or resume them."""
        for place in places:
            if place in self._places:
                self._places[place].is_paused = paused

    def wait(self, seconds: float, before: Mapping[Place, int] | None = None) -> None:
        """Return when records or failures are ready for `take` with the same `before`, or when the time is
        over.
        """
        self._loop.run_until_complete(self._wait(seconds, before))

    def failures(self) -> list[tuple[Place, int, int]]:
        """Return partitions that cannot be fetched, each with its position and the error code; each failure
        once.
        """
        failures = []
        for place, partition in self._places.items():
            if partition.failure is not None:
                failures.append((place, partition.position, partition.failure))
                partition.failure = None
        return failures

    def detail(self, place: Place) -> str | None:
        """Return a sentence about the last failure of a partition; None: its code suffices."""
        return self._places[place].detail if place in self._places else None

    def take(
        self, most: int, before: Mapping[Place, int] | None = None, unread: Ranges = ()
    ) -> dict[Place, Taken]:
        """Return fetched records: about `most` of them, or the bytes that one batch may have.

        Batches that begin at the offset in `before` or later are not opened. Batches whose last offset lies
        in one of the ranges `unread` are skipped. A batch with a wrong checksum counts as a failure and is
        fetched again.
        """
        taken_by_place: dict[Place, Taken] = {}
        # Batches that a worker has processed may be large, but not all of a fetch is opened at once.
        budget = _Budget(most, min(self.limit.most_bytes, BATCH_BYTES))
        for place, partition in self._places.items():
            if partition.is_paused or not budget.is_left:
                continue
            stop = None if before is None else before.get(place)
            if partition.fetched is not None and not _is_beyond(partition.fetched, stop):
                fetched = self._read(partition, budget, stop, tuple(unread))
                taken_by_place[place] = fetched
            if partition.fetched is None and partition.is_behind and self._is_at_end(partition):
                partition.is_behind = False
                here = taken_by_place.setdefault(place, Taken([], partition.position))
                here.end = partition.stable
        return taken_by_place

    # -- batches ------------------------------------------------------------------------------------------

    def _read(
        self,
        partition: _Partition,
        budget: _Budget,
        stop: int | None,
        unread: Collection[tuple[int, int]],
    ) -> Taken:
        records, taken = partition.fetched, list[Read]()
        memory = records._records
        records._records_iterator = None
        while memory.has_next() and budget.is_left and not _is_beyond(records, stop):
            position = records.next_fetch_offset
            batch = memory.next_batch()
            if not batch.validate_crc():
                partition.failure, partition.detail = Codes.INVALID_MSG, None
                partition.fetched = None  # it is fetched again
                partition.position = position
                return Taken(taken, position)
            last = batch.next_offset - 1
            if not is_skipped(records, batch) and not any(first <= last < end for first, end in unread):
                taken += self._opened(batch, memory, position, budget)
            records.next_fetch_offset = batch.next_offset
        partition.position, partition.is_behind = records.next_fetch_offset, True
        if not memory.has_next():
            partition.fetched = None
            if partition.stable is not None and partition.position < partition.stable:
                partition.stable = None  # the next answer has the end
        return Taken(_joined(taken) if self._spans else taken, partition.position)

    def _opened(self, batch: Any, memory: FetchedRecords, position: int, budget: _Budget) -> list[Read]:
        log, start, end = memory.log, memory.start, memory.end
        try:
            if is_v2(batch):
                opened_batch = opened(log, start, end, position, self.limit)
                if isinstance(opened_batch, RefusedBatch):
                    budget.spend(1, opened_batch.inflated)
                    return [opened_batch]
                size = len(opened_batch.payload or b"")
                if self._spans and (spans := spans_of(opened_batch, position)) is not None:
                    budget.spend(len(spans), size)
                    return [spans] if len(spans) else []
                batch_records = records_of(opened_batch)
                budget.spend(len(batch_records), size)
            else:
                read = old_opened(batch, log, start, end, position, self.limit)
                if isinstance(read, RefusedBatch):
                    budget.spend(1, read.inflated)
                    return [read]
                budget.spend(len(read[0]), read[1])
                return list(read[0])
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever aiokafka's readers raise about it
            return [damaged(log, start, end, position, error)]
        return [
            Record(
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                ended_at_nul(record.headers) if record.headers else (),
            )
            for record in batch_records
            if record.offset >= position
        ]

    # -- requests -----------------------------------------------------------------------------------------

    def _has_some(self, before: Mapping[Place, int] | None) -> bool:
        return any(
            partition.failure is not None
            or (
                not partition.is_paused
                and self._is_ready(partition, None if before is None else before.get(place))
            )
            for place, partition in self._places.items()
        )

    def _is_ready(self, partition: _Partition, stop: int | None) -> bool:
        if partition.fetched is not None:
            return not _is_beyond(partition.fetched, stop)
        return partition.is_behind and self._is_at_end(partition)

    @staticmethod
    def _is_at_end(partition: _Partition) -> bool:
        return partition.stable is not None and partition.position >= partition.stable

    async def _wait(self, seconds: float, before: Mapping[Place, int] | None) -> None:
        deadline = time.monotonic() + seconds
        while not self._has_some(before):
            self._plan()
            seconds_left = deadline - time.monotonic()
            waits = {*self._requests.values(), *([self._waiting] if self._waiting else [])}
            if seconds_left <= 0 and seconds > 0:
                return
            if not waits:
                await asyncio.sleep(max(seconds_left, 0.0))
                return
            answered, _ = await asyncio.wait(
                waits, timeout=max(seconds_left, 0.0), return_when=asyncio.FIRST_COMPLETED
            )
            if not answered:
                return
        self._plan()  # the broker answers while the caller processes these records

    def _plan(self) -> None:
        """Send a fetch to each broker without an open request, for the partitions that it leads."""
        if self._waiting is not None:
            if not self._waiting.done():
                return
            self._waiting = None
        for node in [node for node, request in self._requests.items() if request.done()]:
            self._requests.pop(node).result()
        asked: dict[int, dict[Place, _Partition]] = {}
        lacks = self._client is None
        for place, partition in self._places.items():
            if partition.is_paused or partition.fetched is not None or self._client is None:
                continue
            leader = self._client.cluster.leader_for_partition(TopicPartition(*place))
            if leader is None or leader < 0:
                lacks = True
                self._miss(place, partition)
            elif leader not in self._requests:
                asked.setdefault(leader, {})[place] = partition
        if lacks and self._places:
            self._waiting = self._loop.create_task(self._learn())
        for node, partitions in asked.items():
            chosen = {place: partitions[place] for place in self._oversized.chosen(node, partitions)}
            if chosen:
                self._requests[node] = self._loop.create_task(self._fetch(node, chosen))
        if not self._requests and self._waiting is None and asked:  # all are to be requested later
            pause = max(0.0, min(AGAIN_S, self._oversized.seconds_to_next()))
            self._waiting = self._loop.create_task(asyncio.sleep(pause))

    def _miss(self, place: Place, partition: _Partition) -> None:
        """Note that a partition has no leader; report denied access, and a leader that stays missing."""
        assert self._client is not None
        now = time.monotonic()
        if place[0] in self._client.cluster.unauthorized_topics:
            partition.failure = Codes.TOPIC_AUTHORIZATION_FAILED
        elif self._client.cluster.partitions_for_topic(place[0]) is not None:
            partition.missing_since = None
        elif partition.missing_since is None:
            partition.missing_since = now
        elif now - partition.missing_since > UNKNOWN_S:
            partition.failure, partition.missing_since = Codes.UNKNOWN_TOPIC_OR_PART, now

    async def _learn(self) -> None:
        """Look up the leaders of the partitions; after a failure wait a moment."""
        began = time.monotonic()
        try:
            if self._client is None:
                client = AIOKafkaClient(**self._arguments)
                bound_frames(client, self._frame_bytes)
                client._topics = {topic for topic, _ in self._places}
                try:
                    await client.bootstrap()
                except BaseException:
                    await client.close()
                    raise
                self._client = client
            topics = {topic for topic, _ in self._places}
            await self._client.set_topics(topics)
            if any(
                self._client.cluster.leader_for_partition(TopicPartition(*place)) in (None, -1)
                for place in self._places
            ):
                await self._client.force_metadata_update()
        except (KafkaError, OSError, TimeoutError):
            pass  # librdkafka's client, which handles offsets and groups, reports the reason
        await asyncio.sleep(max(0.0, AGAIN_S - (time.monotonic() - began)) if not self._knows_all else 0.0)

    @property
    def _knows_all(self) -> bool:
        return self._client is not None and all(
            self._client.cluster.leader_for_partition(TopicPartition(*place)) not in (None, -1)
            for place in self._places
        )

    async def _fetch(self, node: int, asked: Mapping[Place, _Partition]) -> None:
        by_topic: dict[str, list[tuple[int, int, int]]] = {}
        for (topic, number), partition in asked.items():
            by_topic.setdefault(topic, []).append((number, partition.position, self._partition_bytes))
        wait_ms = min(SUSPECT_WAIT_MS, self._wait_ms) if self._oversized.has(asked) else self._wait_ms
        request = FetchRequest(wait_ms, 1, self._fetch_bytes, COMMITTED, list(by_topic.items()))
        assert self._client is not None
        try:
            response = await self._client.send(node, request)
        except (KafkaError, OSError, TimeoutError) as error:
            too_long = frame_error(error)
            if too_long is not None:
                self._refuse(asked, too_long)
            self._client.force_metadata_update()
            await asyncio.sleep(AGAIN_S)
            return
        self._oversized.forget(asked)
        moved = failed = False
        for topic, partitions in response.topics:
            for number, code, _, stable, *rest in partitions:
                place = (topic, number)
                partition = asked[place]
                if partition is not self._places.get(place):
                    continue  # assigned or sought since: the old answer no longer applies
                if code == 0:
                    self._came(place, partition, stable, rest)
                elif code in _NO_LEADER:
                    moved = True
                    self._miss(place, partition)
                else:
                    partition.failure, partition.detail, failed = code, None, True
        if moved:
            await self._client.force_metadata_update()
        if moved or failed:  # a broker returns an error at once
            await asyncio.sleep(AGAIN_S)

    def _refuse(self, asked: Mapping[Place, _Partition], error: FrameError) -> None:
        """Report the partition whose batch is too large for an answer, once it is known."""
        place = self._oversized.failed(asked)
        if place is not None and asked[place] is self._places.get(place):
            partition = asked[place]
            where = f"topic {place[0]} partition {place[1]} is not read at offset {partition.position}"
            partition.failure, partition.detail = Codes.MSG_SIZE_TOO_LARGE, f"{where}: {error.remedy}"
            logger.error("%s", partition.detail)

    def _came(self, place: Place, partition: _Partition, stable: int, rest: list[Any]) -> None:
        """Store an answer; `rest` holds the partition's further fields: aborted transactions, then, last, its
        batches.
        """
        partition.stable, partition.missing_since = stable, None
        aborted = rest[-3] if len(rest) > _REST_BEFORE_V11 else rest[-2]
        memory = FetchedRecords(rest[-1] or b"")
        if memory.has_next():
            partition.fetched = PartitionRecords(
                TopicPartition(*place), memory, aborted, partition.position, None, None, False, READ_COMMITTED
            )

    async def _close(self) -> None:
        tasks = [*self._requests.values(), *([self._waiting] if self._waiting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()


@dataclass(slots=True)
class _Budget:
    """The records and bytes that one `take` may still read."""

    records: int
    bytes_: int

    @property
    def is_left(self) -> bool:
        return self.records > 0 and self.bytes_ > 0

    def spend(self, records: int, bytes_: int) -> None:
        self.records -= records
        self.bytes_ -= bytes_


_REST_BEFORE_V11: Final = 3
"""Fields after the last stable offset: log start, aborted transactions, batches; v11 has the replica, too."""


def _is_beyond(records: Any, stop: int | None) -> bool:
    return stop is not None and records.next_fetch_offset >= stop


def _joined(read: list[Read]) -> list[Read]:
    """Return the same records, those of batches that follow each other together."""
    joined: list[Read] = []
    for is_spans, group in groupby(read, lambda part: isinstance(part, RecordSpans)):
        parts = [*group]
        joined += [RecordSpans.joined(cast("list[RecordSpans]", parts))] if is_spans else parts
    return joined
