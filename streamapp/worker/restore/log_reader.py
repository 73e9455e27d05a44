"""Log reader: reads logs from given positions, outside the group; committed records only."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, cast

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streamapp.errors import NotYetError
from streamapp.worker.journal.entry import Ranges
from streamapp.worker.journal.offset_metadata import UNKNOWN, id_in, is_anew, metadata_of, partitions_in
from streamapp.worker.restore.errors import AbandonedError, RestoreError, ways_out
from topics.clients.access import Access, denied_kind
from topics.clients.cluster import NOT_YET, Cluster
from topics.columns.headers import headers_of
from topics.columns.records import RawRecords
from topics.columns.spans import RecordSpans
from topics.errors import BrokerError
from topics.fetching.batches import Limit
from topics.fetching.bounded_consumer import BoundedConsumer
from topics.fetching.message import REFUSED, FetchedRun

logger = logging.getLogger(__name__)

BATCH: Final = 10_000  # records
POLL_S: Final = 0.05  # to wait for the next record or the end of the log
END_WAIT_MS: Final = 10  # how long the broker waits for more records before it reports the end of a log
REQUEST_S: Final = 10.0
SILENCE_S: Final = 15.0  # without records and without the log's end: its broker does not serve it

PASSING: Final = (
    *(code for code in NOT_YET if code != KafkaError.UNKNOWN_TOPIC_OR_PART),
    KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's own codes look so
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
)
"""Errors while reading from which the client recovers without help."""


class Offset(NamedTuple):
    """The position that a group has committed in a partition."""

    position: int | None  # None: nothing
    topic_id: str  # of the topic that the position belongs to; "": not known
    anew: bool = False  # committed while the partition had no owner: no task from before may continue there
    partitions: int | None = None  # number of partitions of the topic then; None: not noted


class LogReader:
    """Reads one partition of one topic at a time, from a position on."""

    def __init__(
        self, kafka: Mapping[str, Any], group: str, abandoned: Callable[[], bool], *, in_runs: bool = False
    ) -> None:
        """`group`: whose offsets `committed` reads; `abandoned`: whether reading has become pointless;
        `in_runs`: find records with a compiled kernel, for readers of very many.
        """
        self._abandoned = abandoned
        self._kafka = kafka
        self._access = Access.of(kafka)
        self._group = group
        self._consumer = BoundedConsumer(
            {
                **Cluster.properties(kafka),
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": END_WAIT_MS,
            },
            runs=in_runs,
        )
        self._topic, self._partition, self.position = "", -1, 0
        self._ahead: list[RawRecords] = []
        self._misses_nothing = False
        self._silent_since: float | None = None
        self.end: int | None = None  # last stable offset, once it was reached

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def release(self) -> None:
        """Read nothing until the next `reuse`."""
        self._consumer.unassign()
        self._ahead = []

    def reuse(self, abandoned: Callable[[], bool]) -> None:
        """Start over for another restore, and discard the client's connection errors so far."""
        self._abandoned = abandoned
        while self._consumer.consume(BATCH, 0):
            pass

    def committed(self, topics: Iterable[str], partition: int) -> dict[str, int | None]:
        """Return the group's stable committed position of a partition in each topic (None: never committed).

        Raise NotYetError while a transaction with their offsets is open: records that it commits would be
        processed twice.
        """
        return {topic: offset.position for topic, offset in self.offsets(topics, partition).items()}

    def offsets(
        self, topics: Iterable[str], partition: int, timeout_s: float = REQUEST_S
    ) -> dict[str, Offset]:
        """Return the committed positions with the ids of the topics that they belong to.

        `timeout_s`: seconds that the client waits for the end of a pending transaction.
        """
        places = [TopicPartition(topic, partition) for topic in topics]
        try:
            positions = self._consumer.committed(places, timeout=timeout_s)
        except KafkaException as failure:
            raise self._not_now(failure.args[0], "the group's offsets") from None
        for position in positions:
            if position.error is not None:
                raise self._not_now(position.error, f"topic {position.topic} partition {partition}")
        offsets = {
            position.topic: Offset(
                position.offset if position.offset >= 0 else None,
                id_in(position.metadata),
                is_anew(position.metadata),
                partitions_in(position.metadata),
            )
            for position in positions
        }
        return {place.topic: offsets[place.topic] for place in places}

    def commit(
        self,
        positions: Mapping[str, int],
        partition: int,
        topic_ids: Mapping[str, str],
        partitions: int | None = None,
    ) -> None:
        """Commit positions of a partition for the group, which must have no members.

        `partitions`: of each topic, noted with its position; None: keep the number noted with the previous
        position, if that was of the same topic. A worker that was frozen during this, and has a task at these
        positions, will not keep it. Raise BrokerError if the broker refuses them, as it does when the group
        has got members.
        """
        before = {} if partitions is not None else self.offsets(positions, partition)
        places = []
        for topic, at in positions.items():
            count, earlier = partitions, before.get(topic)
            if earlier is not None and earlier.topic_id in (UNKNOWN, topic_ids[topic]):
                count = earlier.partitions
            metadata = metadata_of(topic_ids[topic], count, anew=True)
            places.append(TopicPartition(topic, partition, at, metadata=metadata))
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as failure:
            denied = denied_kind(failure.args[0].code())
            if denied is not None:
                named = [self._group] if denied == "group" else list(positions)
                denials = "; ".join(self._access.denied(denied, name, "Read") for name in named)
                raise BrokerError(denials) from None
            message = (
                f"partition {partition}: its offsets cannot be committed for group {self._group}: "
                f"{failure.args[0].str()}; the group must have no members, try again"
            )
            raise BrokerError(message) from None

    def of(self, topic: str, partition: int) -> Self:
        """Select a partition of a topic, without reading yet."""
        self._topic, self._partition = topic, partition
        return self

    def range(self) -> tuple[int, int]:
        """Return the first offset of the log and its last stable one."""
        return self._ends(TopicPartition(self._topic, self._partition))

    def is_empty(self) -> bool:
        """Whether nothing was ever committed to the log; aborted transactions leave nothing but offsets."""
        if self.range()[0] > 0:
            return False  # its beginning was truncated
        self.open(self._topic, self._partition)
        return next(self.to_end(), None) is None

    def _ends(self, here: TopicPartition) -> tuple[int, int]:
        try:
            first, end = self._consumer.get_watermark_offsets(here, timeout=REQUEST_S)
        except KafkaException as failure:  # the broker is away: the log's contents are not known yet
            raise self._not_now(failure.args[0], f"topic {here.topic} partition {here.partition}") from None
        return first, end

    def _not_now(self, error: KafkaError, what: str) -> Exception:
        """Return the error of a failed request: NotYetError, to try again, unless the request was denied."""
        denied = denied_kind(error.code())
        if error.code() == KafkaError._UNKNOWN_PARTITION and self._is_hidden(self._topic):  # noqa: SLF001
            denied = "topic"
        if denied is None:
            return NotYetError(f"{what}: {error.str()}")
        return BrokerError(
            self._access.denied(denied, self._group if denied == "group" else self._topic, "Read")
        )

    def _is_hidden(self, topic: str) -> bool:
        """Whether this client may not see a topic; False if the broker is away."""
        try:
            return bool(Cluster(self._kafka, REQUEST_S, patience_s=0.0).hidden([topic]))
        except BrokerError:
            return False

    def offset_at(self, timestamp: int) -> int:
        """Return the first offset whose record has at least a timestamp (ms), or the end if there is none."""
        place = TopicPartition(self._topic, self._partition, timestamp)
        what = f"topic {self._topic} partition {self._partition}"
        try:
            (offset,) = self._consumer.offsets_for_times([place], timeout=REQUEST_S)
        except KafkaException as failure:
            raise self._not_now(failure.args[0], what) from None
        return int(offset.offset) if offset.offset >= 0 else self.range()[1]

    def open(
        self, topic: str, partition: int, position: int | None = None, limit: Limit | None = None
    ) -> None:
        """Go to a position (default: the beginning of the log).

        `limit`: of a batch of processed records, each of which must be there. Without it a refused batch is
        passed over: no worker wrote it.
        """
        self._topic, self._partition = topic, partition
        self._consumer.limit, self._consumer.before, self._consumer.unread = limit or Limit(), None, ()
        self._misses_nothing = limit is not None
        first, _ = self._ends(TopicPartition(topic, partition))
        if position is not None and first > position:
            reason = (
                f"topic {topic} begins at offset {first}, but records from {position} on are needed (its "
                "retention.ms is too short)"
            )
            raise RestoreError(partition, reason, ways_out(partition))
        self.position = first if position is None else position
        self._ahead, self.end, self._silent_since = [], None, None
        self._consumer.assign([TopicPartition(topic, partition, self.position)])

    def to_end(self) -> Iterator[RawRecords]:
        """Yield the records from the position to the last stable offset, in pieces."""
        self.end = None
        while self.end is None:
            yield from self._read(None)

    def up_to(self, position: int, unread: Ranges = ()) -> Iterator[RawRecords]:
        """Yield the records from the current position to before `position`, in pieces.

        `unread`: offsets of batches that are passed over without decompression; batches after `position` are
        not decompressed either.
        """
        self._consumer.before = {(self._topic, self._partition): position}
        self._consumer.unread = unread
        self._ahead = _without(unread, self._ahead)
        while not self._has_reached(position):
            yield from self._read(position)
            if self.end is not None and self.end < position > self.position:
                if self.range()[1] >= position:  # after a change of leaders fetches may stop short
                    message = f"topic {self._topic} partition {self._partition}: its end is not served yet"
                    raise NotYetError(message)
                reason = (
                    f"topic {self._topic} ends at offset {self.end}, but records up to {position} were "
                    "processed: it was created again, or truncated"
                )
                raise RestoreError(self._partition, reason)

    def _has_reached(self, position: int) -> bool:
        """Whether nothing before a position is left; batches that are passed over have no records."""
        if not self._ahead:
            behind = self._consumer.next_offset((self._topic, self._partition))
            self.position = max(self.position, min(behind, position))
        return self.position >= position

    def _read(self, to: int | None) -> Iterator[RawRecords]:
        runs = self._ahead or self._poll()
        due, self._ahead = (runs, []) if to is None else _parted(runs, to)
        if self._ahead and to is not None:
            self.position = to
        elif due:
            self.position = due[-1].offsets[-1] + 1
        if self.end is not None and not self._ahead:
            self.position = max(self.position, self.end)
        yield from due

    def _poll(self) -> list[RawRecords]:
        if self._abandoned():
            raise AbandonedError
        self.end = None
        good: list[Message | FetchedRun] = []
        for message in self._arrived():
            error = message.error()
            if error is None:
                good.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                self.end = message.offset()
            elif denied_kind(error.code()) == "group":
                continue  # reading does not need the coordinator that the client looks for; `offsets` raises
            elif denied_kind(error.code()) is not None:
                raise self._not_now(error, "")
            elif error.code() in REFUSED and not self._misses_nothing:
                logger.warning("%s", error.str())
            elif error.code() not in PASSING:
                raise RestoreError(self._partition, f"topic {self._topic}: {error.str()}")
        runs = _without(self._consumer.unread, self._runs(good))
        self._listen(bool(runs) or self.end is not None)
        return runs

    def _arrived(self) -> list[Message]:
        """Return the messages that have arrived. A request for a batch waits until the batch is complete."""
        here = self._consumer.consume(BATCH, 0)
        if here:
            return here
        first = self._consumer.consume(1, POLL_S)
        return [*first, *self._consumer.consume(BATCH - 1, 0)] if first else []

    def _listen(self, heard: bool) -> None:
        """Raise NotYetError when the log was silent for too long."""
        now = time.monotonic()
        if heard:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        elif now - self._silent_since > SILENCE_S:
            reason = f"topic {self._topic} partition {self._partition}: nothing is read, has it a leader?"
            raise NotYetError(reason)

    def _runs(self, fetched: list[Message | FetchedRun]) -> list[RawRecords]:
        """Return fetched records as columns, in as few parts as possible."""
        runs: list[RawRecords] = []
        for is_run, parts in groupby(fetched, lambda part: isinstance(part, FetchedRun)):
            if is_run:
                spans = RecordSpans.joined([cast(FetchedRun, part).records for part in parts])
                runs.append(RawRecords.over(self._topic, self._partition, spans))
            else:
                runs.append(self._columns(cast("list[Message]", [*parts])))
        return runs

    def _columns(self, messages: list[Message]) -> RawRecords:
        return RawRecords(
            self._topic,
            self._partition,
            [cast(int, message.offset()) for message in messages],
            [message.timestamp()[1] for message in messages],
            [message.key() for message in messages],
            [message.value() for message in messages],
            [headers_of(message) for message in messages],
        )


def _parted(runs: list[RawRecords], to: int) -> tuple[list[RawRecords], list[RawRecords]]:
    """Return the records before an offset, and the others."""
    for number, raw in enumerate(runs):
        if raw.offsets[-1] >= to:
            n = bisect_left(raw.offsets, to)
            before = [raw.part(0, n)] if n else []
            return [*runs[:number], *before], [raw.part(n, len(raw)), *runs[number + 1 :]]
    return runs, []


def _without(ranges: Iterable[tuple[int, int]], runs: list[RawRecords]) -> list[RawRecords]:
    """Return the records whose offsets are in none of some ranges; end: the first offset after a range."""
    for first, end in ranges:
        kept: list[RawRecords] = []
        for raw in runs:
            offsets = np.asarray(raw.offsets)
            is_kept = (offsets < first) | (offsets >= end)
            if is_kept.all():
                kept.append(raw)
            elif is_kept.any():
                kept.append(raw.chosen(np.flatnonzero(is_kept)))
        runs = kept
    return runs
