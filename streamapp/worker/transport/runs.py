"""Runs in time order: in which order the records of a partition's input topics are processed.

After an outage, runs in the order of polls would answer an hour of instances before they learn one label. So
each input topic of a partition has a bounded read-ahead here, and the next run comes from the topic whose
head is the oldest:

    controls    ──●────────────────────      topics in causal order: a control comes before the instances it
    instances   ──●●●●●●●●●●●●●●●●●●●●●      is for, an instance before its label
    labels      ─────────●──●───●──────
                         └─ head + input.skew.ms: so far may `instances` run ahead of `labels`

A run goes up to the heads of the remaining topics. It may pass the head of a topic that is *later* in the
causal order by `input.skew.ms` (bigger runs), never the head of an earlier topic: else labels would overtake
their instances.

A topic that is empty here holds back the remaining topics while the broker has records of it that were not
fetched yet, or has not answered whether it has any. `max.task.idle.ms` is Kafka Streams': 0 waits only for
records already at the broker, a larger value waits that long for records that a producer may still send, and
-1 does not wait at all.

Pure: no clock, no broker. Offsets and positions are counted as aiokafka does: a position is the offset of the
next record to fetch, and it moves past transaction markers, aborted batches and compaction holes.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from streamapp.worker.transport.novelty import NOVEL_RECORDS, look_novel
from topics.columns.records import RawRecords
from topics.columns.spans import OFFSET, TIMESTAMP, Ints64, RecordSpans
from topics.fetching.refused import NO_REFUSED, RefusedBatch

logger = logging.getLogger(__name__)

MAX_AHEAD_BYTES = 4 << 20  # of a topic, fetched ahead; a fetch may bring one more
BACKLOG_RECORDS = 2000  # computed in some milliseconds: time for a fetch
BACKLOG_BYTES = 1 << 19  # the same for large records
COPIED_BYTES = 16 << 10  # of a fetch that is copied if earlier records still wait
MAX_RUN_BYTES = 1 << 20  # a run holds the event loop; blocks (many rows a record) are bounded by their bytes
PATIENCE_S = 1.0  # for which a partition may hold up the fetches of other partitions
LONGEST_PATIENCE_S = 64.0  # the same for a partition that has given back its batches several times


@dataclass(slots=True, eq=False)
class FetchedColumns:
    """Records fetched from one topic partition, and the state of its log according to the fetch."""

    records: RecordSpans
    position: int  # of the next fetch; past markers and holes
    log_end: int | None  # last stable offset when the broker answered; None: it has not answered yet
    refused: tuple[RefusedBatch, ...] = ()  # a record without content, at its first offset, stands for each
    inflated: int = 0  # bytes of their decompressed batches

    def __len__(self) -> int:
        return len(self.records)


NOTHING_SPECIAL: Final = (frozenset[int](), NO_REFUSED, MappingProxyType[int, str]({}))
"""The last members of a run without special records."""


@dataclass(slots=True, eq=False)
class Run:
    """Consecutive records of one topic of the partition, and the position once they are processed.

    Nothing changes a run; it is not frozen, because that takes three times as long to make.
    """

    topic: str
    raw: RawRecords
    position: int
    skipped: frozenset[int] = frozenset()  # offsets that are to become dead letters
    refused: Mapping[int, RefusedBatch] = field(
        default_factory=lambda: NO_REFUSED
    )  # by the offset of the record that stands for the batch
    unknown: Mapping[int, str] = field(default_factory=dict)
    """By offset, why a schema cannot be had; such records become dead letters."""

    def cut(self, n: int) -> tuple[Run, Run]:
        """Return the run of the first n records, and the run of the others; there are more than n."""
        raw, end = self.raw, self.raw.offsets[n]
        first, rest = (
            {offset: batch for offset, batch in self.refused.items() if (offset < end) is is_first}
            for is_first in (True, False)
        )
        unknown, later = (
            {offset: number for offset, number in self.unknown.items() if (offset < end) is is_first}
            for is_first in (True, False)
        )
        return (
            replace(self, raw=raw.part(0, n), position=end, refused=first, unknown=unknown),
            replace(self, raw=raw.part(n, len(raw)), refused=rest, unknown=later),
        )


class Place(NamedTuple):
    """A topic partition; as a key it equals the TP of Faust."""

    topic: str
    partition: int


class ReadAhead:
    """Fetched records of one topic partition that wait for their turn."""

    def __init__(self, topic: str, partition: int, position: int) -> None:
        self.topic = topic
        self.partition = partition
        self.place = Place(topic, partition)
        self.position = position  # of the next fetch
        self.log_end: int | None = None
        self.idle_since: float | None = None  # since when it is empty and the broker has no more
        self.cut_off = False  # the log does not have `position` any more
        self.released = False  # not requested: records were fetched, and another topic comes first
        self._parts: deque[RecordSpans] = deque()
        self.n = 0  # records that wait
        self._record_bytes = 0.0  # mean of the newest fetch
        self._refused: dict[int, RefusedBatch] = {}  # by the offset of the record that stands for the batch
        self._inflated = 0
        self._most = math.inf  # records of the next run

    @property
    def inflated(self) -> int:
        """Bytes of decompressed batches that wait: they stay until the last record is handed out."""
        return self._inflated if self.n else 0

    def __len__(self) -> int:
        """Return the number of records that wait."""
        return self.n

    @property
    def size(self) -> float:
        """Approximate bytes that wait."""
        return len(self) * self._record_bytes

    @property
    def head(self) -> int:
        """Timestamp of the oldest record that waits."""
        return int(self._parts[0].table[TIMESTAMP, 0])

    @property
    def next(self) -> int:
        """Return the position up to which everything was handed out."""
        return int(self._parts[0].table[OFFSET, 0]) if self.n else self.position

    @property
    def lag(self) -> int | None:
        """Records (offsets, to be exact) at the broker that were not fetched; None: not known yet."""
        return None if self.log_end is None else max(0, self.log_end - self.position)

    def go_on(self, position: int, log_end: int) -> None:
        """Continue fetching at another position: fetched records are handed out, the gap is lost."""
        assert not len(self), "the records that wait come first"
        self.position, self.log_end = position, log_end
        self.cut_off = False

    def add(self, columns: FetchedColumns) -> None:
        """Append fetched records."""
        self.position = columns.position
        self.log_end = columns.log_end
        self.cut_off = False
        spans = columns.records
        n = spans.table.shape[1]
        if not n:
            return
        self._inflated = columns.inflated + (self._inflated if self.n else 0)
        # Small fetches of several partitions share a buffer, which records that wait for long would keep.
        is_copied = self.n > 0 and spans.content_bytes <= COPIED_BYTES
        self._parts.append(spans.apart() if is_copied else spans)
        if columns.refused:
            self._refused.update({batch.first: batch for batch in columns.refused})
        self.n += n
        self._record_bytes = spans.content_bytes / n

    def release(self) -> None:
        """Forget the records that wait: they are fetched again from the head on."""
        self.position = self.next
        self.released = True
        self._parts.clear()
        self._refused.clear()
        self.n = self._inflated = 0

    def request_again(self) -> int:
        """Return the position of the records that were given back: they are requested from now on."""
        self.released = False
        return self.position

    def take(self, limit: float, max_records: int) -> Run:
        """Hand out at least one record, and more while their timestamps are at most `limit`."""
        n, most_now = self.n, self._most
        self._most *= 2
        if n <= NOVEL_RECORDS and n <= max_records and n <= most_now and limit == math.inf:
            whole = self._parts[0]  # of a small run, as in a trickle, if there is no other part
            is_whole = whole.table.shape[1] == n and whole.content_bytes <= MAX_RUN_BYTES
            if is_whole and not self._refused:
                self._parts.pop()
                self.n = 0
                raw = RawRecords.over(self.topic, self.partition, whole)
                return Run(self.topic, raw, self.position, *NOTHING_SPECIAL)
        most = int(min(n, max_records, most_now))
        if self._record_bytes:
            most = min(most, max(1, int(MAX_RUN_BYTES / self._record_bytes)))
        if most > NOVEL_RECORDS and look_novel(self._parts[0].part(0, min(len(self._parts[0]), most))):
            most = NOVEL_RECORDS
        parts: list[RecordSpans] = []
        while most:
            part = self._parts.popleft()
            n = min(len(part), most)
            due = _up_to(part.table[TIMESTAMP, :n], limit)
            most = most - due if due == n else 0
            if not due and not parts:
                due = 1  # the head is always due
            if due:
                parts.append(part.part(0, due))
            if due < len(part):
                self._parts.appendleft(part.part(due, len(part)))
            self.n -= due
        raw = RawRecords.over(self.topic, self.partition, RecordSpans.joined(parts))
        return Run(self.topic, raw, self.next, refused=self._refused_up_to(raw.offsets[-1]))

    def give_back(self, run: Run, processed: int) -> None:
        """Take back the end of the last run, of which only so many records were processed.

        The next runs are small as well: each run is decoded before it is cut.
        """
        self._parts.appendleft(run.raw.spans)
        self.n += len(run.raw)
        self._refused.update(run.refused)
        self._most = 2.0 * processed  # a float stops at infinity; an int would grow at every run

    def _refused_up_to(self, last: int) -> Mapping[int, RefusedBatch]:
        """Hand out the refused batches of a run that ends at an offset."""
        if not self._refused:
            return NO_REFUSED
        offsets = [offset for offset in self._refused if offset <= last]
        return {offset: self._refused.pop(offset) for offset in offsets}


class TimeOrder:
    """The input topics of one partition, merged into runs."""

    def __init__(
        self,
        partition: int,
        positions: Iterable[tuple[str, int]],
        *,
        skew_ms: int,
        max_idle_ms: int,
        max_records: int,
    ) -> None:
        """`positions`: where reading starts, per topic, in causal order."""
        self.partition = partition
        self.topics = {topic: ReadAhead(topic, partition, at) for topic, at in positions}
        self._order: Sequence[ReadAhead] = tuple(self.topics.values())
        self._skew_ms = skew_ms
        self._max_idle = max_idle_ms / 1000
        self._max_records = max_records
        self._waits_since: float | None = None  # with batches, for a topic that holds them back
        self._patience = PATIENCE_S

    def add(self, topic: str, columns: FetchedColumns) -> None:
        """Append fetched records of `topic`."""
        self.topics[topic].add(columns)

    @property
    def n_waiting(self) -> int:
        """The number of records that wait here."""
        return sum([ahead.n for ahead in self._order])

    @property
    def is_at_rest(self) -> bool:
        """Whether no record waits here, and none was given back."""
        return not [ahead for ahead in self._order if ahead.n or ahead.released]

    def wanted(self, now: float = 0.0) -> list[ReadAhead]:
        """Return the topics to fetch at `now`: those that do not hold two runs, or some megabytes, yet.

        A topic that is cut off is requested again when its fetched records are handed out. A topic whose
        records were given back is requested again when no other topic is waited for.
        """
        if self.is_at_rest:
            return [*self._order]
        any_released = any(ahead.released for ahead in self._order)
        is_waiting = any_released and any(not ahead.released for ahead in self.awaited(now))
        return [
            ahead
            for ahead in self._order
            if len(ahead) < 2 * self._max_records
            and ahead.size < MAX_AHEAD_BYTES
            and not (ahead.cut_off and len(ahead))
            and not (ahead.released and is_waiting)
        ]

    def is_stalled(self, now: float) -> bool:
        """Return whether decompressed batches have waited here for another topic, longer than they may while
        other partitions have no room; the wait is counted from the first call that finds it.
        """
        if not (self.inflated and self.awaited(now)):
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = now
        return self._waits_since is not None and now - self._waits_since >= self._patience

    def release(self, now: float) -> None:
        """Forget the batches that wait at `now`, to fetch them again later, and log it.

        Each time the partition may hold the batches longer, until a run is due: on a slow machine it would
        otherwise never have the batches of two topics together.
        """
        awaited = [f"{ahead.topic}-{ahead.partition}" for ahead in self.awaited(now)]
        size = self.inflated
        for ahead in self._order:
            if ahead.inflated and not ahead.cut_off:  # the log may not have the records of the latter
                ahead.release()
        logger.warning(
            "partition %d gives back decompressed batches of %d bytes, which waited for %s for %g s and "
            "filled fetch.decompressed.max.bytes: other partitions need the room; they are fetched again",
            *(self.partition, size - self.inflated, ", ".join(awaited), self._patience),
        )
        self._waits_since = None
        self._patience = min(2 * self._patience, LONGEST_PATIENCE_S)

    @property
    def inflated(self) -> int:
        """Bytes of decompressed batches that wait here."""
        return sum(ahead.inflated for ahead in self._order)

    def has_backlog(self, now: float) -> bool:
        """Return whether a run is due at `now` that is large enough to be worth its cost."""
        if self.is_at_rest:
            return False
        records = min(BACKLOG_RECORDS, self._max_records)
        is_large = any(len(ahead) >= records or ahead.size >= BACKLOG_BYTES for ahead in self._order)
        return is_large and not self.awaited(now)

    def seconds_to_idle(self, now: float) -> float:
        """Return the time until `max.task.idle.ms` is over for a topic that holds back other topics."""
        if self._max_idle <= 0:
            return math.inf
        since = [ahead.idle_since for ahead in self._order if ahead.idle_since is not None]
        waits = [at + self._max_idle - now for at in since if at + self._max_idle > now]
        return min(waits, default=math.inf)

    def awaited(self, now: float) -> list[ReadAhead]:
        """Return the empty topics that hold back other topics at `now` (seconds of a monotonic clock)."""
        return [ahead for ahead in self._order if self._holds_back(ahead, now)]

    def next_run(self, now: float, most: int | None = None) -> Run | None:
        """Hand out the next run, or nothing while a topic is waited for or all are empty.

        `most`: limit of records, if it is lower than the limit of a run.
        """
        only, is_only = None, True
        for ahead in self._order:  # without calls: a round looks at each topic of each partition
            if ahead.n:
                only, is_only = ahead, only is None
            elif not self._max_idle and (ahead.log_end is None or ahead.log_end > ahead.position):
                return None  # the broker has records of it
        if (self._max_idle > 0 and self.awaited(now)) or only is None:
            return None
        self._waits_since, self._patience = None, PATIENCE_S
        records = self._max_records if most is None or most > self._max_records else most
        if is_only:
            return only.take(math.inf, records)
        full = [ahead for ahead in self._order if ahead.n]
        chosen = min(full, key=lambda ahead: ahead.head)  # the first of equals: causal order
        return chosen.take(self._limit(chosen, full), records)

    def give_back(self, run: Run, processed: int) -> None:
        """Take back the end of the last run of a topic, of which only so many records were processed."""
        self.topics[run.topic].give_back(run, processed)

    def _limit(self, chosen: ReadAhead, full: list[ReadAhead]) -> float:
        limit: float = math.inf
        allowed = 0  # turns into the skew behind `chosen`
        for ahead in full:
            if ahead is chosen:
                allowed = self._skew_ms
            else:
                limit = min(limit, ahead.head + allowed)
        return limit

    def _holds_back(self, ahead: ReadAhead, now: float) -> bool:
        if len(ahead) or self._max_idle < 0:
            ahead.idle_since = None
            return False
        if ahead.lag != 0:
            ahead.idle_since = None
            return True
        if ahead.idle_since is None:
            ahead.idle_since = now
        return now - ahead.idle_since < self._max_idle


def wanted_of(orders: Sequence[TimeOrder], most_inflated: int, now: float = 0.0) -> list[ReadAhead]:
    """Return the topics to fetch of all partitions at `now` (seconds of a monotonic clock).

    While the waiting batches together have `most_inflated` bytes or more, only the partition that holds the
    most is fetched: it gets the records that it waits for, and then there is room for the remaining
    partitions. These records may never come (their topic has no leader, or `max.task.idle.ms` is long). So a
    partition that has waited for long gives back its batches, and gets them again when the records have come.
    """
    holding = [order for order in orders if order.n_waiting and order.inflated]
    holding.sort(key=lambda order: -order.inflated)
    stalled = [order for order in holding if order.is_stalled(now)]
    inflated = sum(order.inflated for order in holding)
    for order in stalled:
        if inflated < most_inflated or len(orders) == 1:
            break
        inflated -= order.inflated
        order.release(now)
        inflated += order.inflated
    if inflated >= most_inflated:
        return max(holding, key=lambda order: order.inflated).wanted(now)
    return [ahead for order in orders for ahead in order.wanted(now)]


def _up_to(timestamps: Ints64, limit: float) -> int:
    """Return how many leading timestamps are at most `limit`."""
    if limit == math.inf:
        return len(timestamps)
    is_later = timestamps > limit
    return int(is_later.argmax()) if is_later.any() else len(timestamps)


def is_in_log(position: int, log: tuple[int, int]) -> bool:
    """Return whether a position is from the first offset of a log to its end; `log`: these two offsets."""
    first, end = log
    return first <= position <= max(first, end)
