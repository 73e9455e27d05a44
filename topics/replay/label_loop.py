"""Label loop: which of the rows that were sent have gone through it, so that a replay can wait for the rest.

A row has gone through when the workers have processed it, the oracle has dealt with the requests it has led
to (answered, declined, lost, or none were made), and the workers have processed what the oracle answered. All
of that can be seen by offsets, whatever the records hold:

    rows ──> instances ── workers' offsets ──> label-requests ── oracle's offsets
                                                                       │
                                               workers' offsets ── labels

A *mark* is set behind rows and goes through the topics one after the other: it leaves a topic when the group
that reads it has committed the end that the topic had when the mark came. So nothing depends on how many
labels are asked for: without a request a mark finds the end committed at once.
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
from topics.replay.plan import ReplayPlan

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
    """Return the way of a row: topics in the order in which it leads to records of them."""
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
    rows: int  # sent before it
    station: int = 0
    ends: Sequence[int] | None = None  # of its station, by partition; None: it has come since the last look


class LabelLoop:
    """Marks on their way. Methods wait for the broker, for as long as a request may take."""

    def __init__(self, kafka: Mapping[str, Any], names: TopicNames, way: Sequence[Station]) -> None:
        """`kafka`: client properties under Kafka's names; `way`: see `stations_of`."""
        self._way = way
        self._cluster = Cluster(kafka, patience_s=0.0)  # the next look asks again
        n = self._cluster.partition_count(names.instances)
        self._places = {s.topic: [TopicPartition(s.topic, p) for p in range(n)] for s in way}
        self._clients = ExitStack()
        self._consumers = {group: self._consumer(kafka, group) for group in {s.group for s in way}}
        self._first = self._offsets(OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        self._marks: deque[_Mark] = deque()
        self._behind: dict[Station, int] = {}
        self.settled = 0
        """Rows that have gone through, by the last look."""

    def _consumer(self, kafka: Mapping[str, Any], group: str) -> Consumer:
        # It never joins; offsets of a transaction that is open are not waited for: the next look has them.
        given = {"group.id": group, "isolation.level": "read_uncommitted"}
        return self._clients.enter_context(closing(Consumer(self._cluster.properties(kafka) | given)))

    def close(self) -> None:
        """Close the clients."""
        self._clients.close()

    def mark(self, rows: int) -> None:
        """Note that the broker has all records of so many rows."""
        self._marks.append(_Mark(rows))

    def look(self) -> None:
        """Ask the broker how far each group is, and move the marks on; BrokerError if it refuses to tell.

        A broker that does not answer in time, or whose coordinators move, moves nothing.
        """
        try:
            committed = {station: self._committed(station) for station in self._way}
            # After the offsets: a mark that has left one station finds at the next all that came of its rows.
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
        """What lay ahead of each group at the last look, in words."""
        left = [f"{station.group} has {n:,} of {station.topic}" for station, n in self._behind.items() if n]
        return "; ".join(left) or "the broker does not say how far the groups are"

    def _committed(self, station: Station) -> list[int]:
        """Return the group's position in each partition; where it has none, the log's beginning."""
        places = self._places[station.topic]
        try:
            found = self._consumers[station.group].committed(places, timeout=self._cluster.timeout)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as failure:
            raise_if_denied(self._cluster, station.group)
            if failure.args[0].code() in _PASSING:
                raise UnansweredError(failure.args[0].str()) from None
            raise self._cluster.error(failure, station.group, "Describe", "group") from None
        at = {each.partition: each.offset for each in found}
        first = self._first[station.topic]
        return [at[n] if at[n] >= 0 else first[n] for n in range(len(places))]

    def _offsets(self, spec: OffsetSpec) -> dict[str, list[int]]:
        every = [place for places in self._places.values() for place in places]
        found = self._cluster.offsets(every, spec)
        return {
            topic: [found[topic, place.partition] for place in places]
            for topic, places in self._places.items()
        }
