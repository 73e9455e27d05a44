"""Label loop: tracks which sent rows have gone through the loop, so that a replay can wait for the rest.

A row has gone through when the workers have processed it, the oracle has handled its requests (answered,
declined, lost, or none were made), and the workers have processed the oracle's answers. Offsets alone show
all of this, for any content of the records:

    rows ──> instances ── workers' offsets ──> label-requests ── oracle's offsets
                                                                       │
                                               workers' offsets ── labels

A *mark* is set after rows and moves through the topics in order: it leaves a topic when the reading group has
committed the end that the topic had when the mark arrived. So nothing depends on how many labels are
requested: without a request a mark finds the end already committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from topics.clients.cluster import NOT_YET, UNANSWERED, Cluster
from topics.clients.consumer_group import raise_if_denied
from topics.definitions import TopicNames
from topics.errors import UnansweredError
from topics.replay.replay_plan import ReplayPlan

_PASSING = (*NOT_YET, *UNANSWERED)


class Station(NamedTuple):
    """A topic of the loop, and the group that reads it."""

    topic: str
    group: str


@dataclass(frozen=True, slots=True)
class LoopGroups:
    """The consumer groups of a label loop."""

    workers: str
    oracle: str
    feature_oracle: str


def stations_of(plan: ReplayPlan, groups: LoopGroups) -> list[Station]:
    """Return the stations of a row: topics in the order in which the row leads to records in them."""
    names = plan.names
    way = [Station(names.instances, groups.workers)]
    if plan.withhold:
        way.append(Station(names.feature_requests, groups.feature_oracle))
        way.append(Station(names.feature_values, groups.workers))
    if plan.labels == "none":
        way.append(Station(names.label_requests, groups.oracle))
    if plan.labels != "with":
        way.append(Station(names.labels, groups.workers))
    return way


@dataclass(slots=True)
class _Mark:
    rows: int  # sent before the mark
    station: int = 0
    ends: Sequence[int] | None = None  # of its station, by partition; None: not checked yet


class LabelLoop:
    """Marks on their way. Methods wait for the broker as long as a request may take."""

    def __init__(self, kafka: Mapping[str, Any], names: TopicNames, way: Sequence[Station]) -> None:
        """`kafka` holds client properties under Kafka's names; for `way` see `stations_of`."""
        self._way = way
        self._cluster = Cluster(kafka, patience_s=0.0)  # the next check tries again
        n = self._cluster.partition_count(names.instances)
        self._places = {s.topic: [TopicPartition(s.topic, p) for p in range(n)] for s in way}
        self._clients = ExitStack()
        self._consumers = {group: self._consumer(kafka, group) for group in {s.group for s in way}}
        self._first = self._offsets(OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        self._marks: deque[_Mark] = deque()
        self._behind: dict[Station, int] = {}
        self.settled = 0
        """Rows that had gone through at the last check."""

    def _consumer(self, kafka: Mapping[str, Any], group: str) -> Consumer:
        # It never joins; offsets of an open transaction are left to the next check.
        reading = {"group.id": group, "isolation.level": "read_uncommitted"}
        return self._clients.enter_context(closing(Consumer(self._cluster.properties(kafka) | reading)))

    def close(self) -> None:
        """Close the clients."""
        self._clients.close()

    def mark(self, rows: int) -> None:
        """Note that the broker has all records of the first `rows` rows."""
        self._marks.append(_Mark(rows))

    def look(self) -> None:
        """Read the offsets of each group from the broker, and move the marks; raise BrokerError if it
        refuses.

        If the broker does not answer in time, or coordinators move, no mark moves.
        """
        try:
            committed = {station: self._committed(station) for station in self._way}
            # Read after the offsets: a mark that leaves one station finds at the next all records of its
            # rows.
            ends = self._offsets(OffsetSpec.latest())  # type: ignore[no-untyped-call]
        except UnansweredError:
            return
        self._behind = {
            station: sum(max(0, end - at) for end, at in zip(ends[station.topic], here, strict=True))
            for station, here in committed.items()
        }
        for mark in self._marks:
            self._move(mark, committed, ends)
        while self._marks and self._marks[0].station == len(self._way):
            self.settled = self._marks.popleft().rows

    def _move(
        self,
        mark: _Mark,
        committed: Mapping[Station, Sequence[int]],
        ends: Mapping[str, Sequence[int]],
    ) -> None:
        while mark.station < len(self._way):
            station = self._way[mark.station]
            if mark.ends is None:
                mark.ends = ends[station.topic]
            if any(at < end for at, end in zip(committed[station], mark.ends, strict=True)):
                return
            mark.station, mark.ends = mark.station + 1, None

    @property
    def missing(self) -> str:
        """The records that each group had yet to process at the last check, in words."""
        lags = [f"{station.group} has {n:,} of {station.topic}" for station, n in self._behind.items() if n]
        return "; ".join(lags) or "the broker does not report the positions of the groups"

    def _committed(self, station: Station) -> list[int]:
        """Return the group's position in each partition; without a position, the log's beginning."""
        places = self._places[station.topic]
        try:
            positions = self._consumers[station.group].committed(places, timeout=self._cluster.timeout)
            for position in positions:
                if position.error is not None:
                    raise KafkaException(position.error)
        except KafkaException as failure:
            raise_if_denied(self._cluster, station.group)
            if failure.args[0].code() in _PASSING:
                raise UnansweredError(failure.args[0].str()) from None
            raise self._cluster.error(failure, station.group, "Describe", "group") from None
        at = {position.partition: position.offset for position in positions}
        first = self._first[station.topic]
        return [at[n] if at[n] >= 0 else first[n] for n in range(len(places))]

    def _offsets(self, spec: OffsetSpec) -> dict[str, list[int]]:
        every = [place for places in self._places.values() for place in places]
        offsets = self._cluster.offsets(every, spec)
        return {
            topic: [offsets[topic, place.partition] for place in places]
            for topic, places in self._places.items()
        }
