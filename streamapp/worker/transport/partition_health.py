# ruff: noqa: SLF001 - what is changed of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Partition health: which partitions the broker serves (a leader is known, the newest fetch was accepted).

A partition that the broker does not serve makes its co-partitioned topics wait, and a restart of the worker
would not help: such a wait must not make the worker unhealthy. A fetch that is never sent, or never ends, is
no refusal: then the worker itself is at fault.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Any, Final

from aiokafka.errors import KafkaError, NoError, OffsetOutOfRangeError, for_code
from aiokafka.protocol.fetch import FetchRequest
from faust.types import TP

from topics.fetching.frames import FrameError, frame_error
from topics.fetching.oversized import SUSPECT_WAIT_MS, OversizedAnswers

logger = logging.getLogger(__name__)

NO_LEADER: Final = "no leader is known"
ANSWERS: Final = (NoError, OffsetOutOfRangeError)  # of a broker that has the partition


class PartitionHealth:
    """Listens to the fetches of aiokafka's client, in the loop of the consumer's thread."""

    def __init__(self, client: Any) -> None:
        self.oversized = OversizedAnswers[tuple[str, int]]()
        self._cluster = client.cluster
        self._led: set[tuple[str, int]] = set()
        """Partitions that have a leader by the newest metadata; not all of them."""
        client.cluster.add_listener(lambda _: self._led.clear())
        self._refused: dict[tuple[str, int], str] = {}  # why the newest fetch brought nothing
        self._send = client.send
        client.send = self._send_and_record

    def leaderless(self, partitions: Iterable[TP]) -> list[TP]:
        """Return the partitions without a known leader."""
        leader = self._cluster.leader_for_partition
        unknown = [tp for tp in partitions if tp not in self._led]
        leaderless = [tp for tp in unknown if leader(tp) in (None, -1)]
        self._led.update(unknown)
        self._led.difference_update(leaderless)
        return leaderless

    def unserved(self, partitions: Collection[TP]) -> dict[TP, str]:
        """Return the partitions that the broker does not serve, with the reason."""
        if not self._refused and self._led.issuperset(partitions):
            return {}
        asked = list(partitions)
        unserved = dict.fromkeys(self.leaderless(asked), NO_LEADER)
        if self._refused:
            unserved = {tp: self._refused[tp] for tp in asked if tp in self._refused} | unserved
        return unserved

    def limit_fetches(self, fetcher: Any) -> None:
        """Make aiokafka's fetcher request partitions one by one if a batch makes their answers too long."""
        plan = fetcher._get_actions_per_node

        def limited(assignment: Any) -> Any:
            fetches, resets, timeout, invalid_metadata, resumed = plan(assignment)
            timeout = min(timeout, self.oversized.seconds_to_next())
            return self._limited(fetches), resets, timeout, invalid_metadata, resumed

        fetcher._get_actions_per_node = limited

    def _limited(self, fetches: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        if not self.oversized:
            return fetches
        limited = []
        for node_id, request in fetches:
            asked = _places(request)
            if not self.oversized.has(asked):
                limited.append((node_id, request))
                continue
            chosen = self.oversized.chosen(node_id, asked)
            topics = [
                (topic, [row for row in rows if (topic, row[0]) in chosen]) for topic, rows in request.topics
            ]
            request._topics = [(topic, rows) for topic, rows in topics if rows]
            if self.oversized.has(chosen):
                request._max_wait_ms = min(SUSPECT_WAIT_MS, request._max_wait_ms)
            if chosen:
                limited.append((node_id, request))
        return limited

    def _too_long(self, asked: list[tuple[str, int]], error: FrameError) -> None:
        tp = self.oversized.failed(asked)
        if tp is not None:
            self._refused[tp] = error.remedy
            logger.error("topic %s partition %d is not read: %s", *tp, error.remedy)

    async def _send_and_record(self, node_id: int, request: Any, **options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return await self._send(node_id, request, **options)
        try:
            response = await self._send(node_id, request, **options)
        except KafkaError as error:
            asked = _places(request)
            if (too_long := frame_error(error)) is not None:
                self._too_long(asked, too_long)
                raise
            self._refused.update(dict.fromkeys(asked, f"broker {node_id}: {type(error).__name__}"))
            raise
        if self.oversized:
            self.oversized.forget(_places(request))
        for topic, rows in response.topics:
            for partition, code, *_ in rows:
                if code or self._refused:
                    self._note((topic, partition), code, node_id)
        return response

    def _note(self, place: tuple[str, int], code: int, node_id: int) -> None:
        """Note the error, or that there is none, of a partition in an answer."""
        error_type = for_code(code)
        if error_type in ANSWERS:
            self._refused.pop(place, None)
        else:
            self._refused[place] = f"broker {node_id}: {error_type.__name__}"


def _places(request: Any) -> list[tuple[str, int]]:
    """Return topic and number of the partitions that a fetch requests."""
    return [(topic, partition) for topic, rows in request.topics for partition, *_ in rows]
