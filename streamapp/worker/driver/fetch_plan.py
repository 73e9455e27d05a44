# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Fetch plan: the requests of aiokafka's fetcher, planned from what is known of an assignment.

aiokafka looks up leader and state of each partition whenever its fetcher wakes up, several times a round.
Leaders change with metadata, and partitions with the assignment: between these, only positions change. Where
anything else is to be decided (a partition without leader or position, a pause, a replica to read from),
aiokafka's own plan is made.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from aiokafka.protocol.fetch import FetchRequest

Rows = list[tuple[int, Any, Any]]
"""Number, TopicPartition and state of partitions."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The partitions of an assignment by their leaders."""

    assignment: Any
    by_node: dict[int, list[tuple[str, Rows]]]  # of each broker, by topic
    is_complete: bool  # each partition has a leader


class FetchPlan:
    """Plans the requests of a fetcher, in the loop of the consumer's thread."""

    def __init__(self, fetcher: Any, cluster: Any) -> None:
        """`cluster`: aiokafka's metadata."""
        self._fetcher = fetcher
        self._cluster = cluster
        self._plan = fetcher._get_actions_per_node
        self._layout: Layout | None = None
        self._turns: Counter[int] = Counter()  # requests so far, by broker
        cluster.add_listener(self._forget)
        fetcher._get_actions_per_node = self._planned

    def _forget(self, _cluster: Any) -> None:
        self._layout = None

    def _planned(self, assignment: Any) -> Any:
        """Return requests, resets, seconds to wait, whether metadata is invalid, and partitions to resume."""
        layout = self._layout
        if layout is None or layout.assignment is not assignment:
            layout = self._layout = self._laid_out(assignment)
        if not layout.is_complete or self._fetcher._preferred_read_replica:
            return self._plan(assignment)
        requests = []
        for node, topics in layout.by_node.items():
            if node in self._fetcher._in_flight:
                continue
            rows = self._rows(topics, self._turns[node])
            if rows is None:
                return self._plan(assignment)
            if rows:
                self._turns[node] += 1
                requests.append((node, self._request(rows)))
        return requests, {}, self._fetcher._fetcher_timeout, False, []

    def _laid_out(self, assignment: Any) -> Layout:
        by_node: dict[int, dict[str, Rows]] = {}
        is_complete = True
        for tp in sorted(assignment.tps):
            leader = self._cluster.leader_for_partition(tp)
            is_complete &= leader not in (None, -1)
            row = tp.partition, tp, assignment.state_value(tp)
            by_node.setdefault(leader, {}).setdefault(tp.topic, []).append(row)
        return Layout(assignment, {node: [*topics.items()] for node, topics in by_node.items()}, is_complete)

    def _rows(
        self, topics: list[tuple[str, Rows]], turn: int
    ) -> list[tuple[str, list[tuple[int, int, int]]]] | None:
        """Return what is requested of each topic; None: a partition has no position, or is paused.

        Each turn begins elsewhere: an answer is filled in this order, unless there is a session.
        """
        waiting, most = self._fetcher._records, self._fetcher._max_partition_fetch_bytes
        requested = []
        for topic, partitions in _rotated(topics, turn):
            asked = [row for row in _rotated(partitions, turn // len(topics)) if row[1] not in waiting]
            if [state for _, _, state in asked if state._position is None or state._paused]:
                return None
            if asked:
                requested.append((topic, [(number, state._position, most) for number, _, state in asked]))
        return requested

    def _request(self, topics: list[tuple[str, list[tuple[int, int, int]]]]) -> FetchRequest:
        fetcher = self._fetcher
        limits = fetcher._fetch_max_wait_ms, fetcher._fetch_min_bytes, fetcher._fetch_max_bytes
        return FetchRequest(*limits, fetcher._isolation_level, topics, rack_id=fetcher._client_rack or "")


def _rotated(things: list[Any], turn: int) -> list[Any]:
    first = turn % len(things)
    return things[first:] + things[:first]
