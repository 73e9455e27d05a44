"""Partition health: which partitions the broker serves (a leader is known, the newest fetch was accepted).

A partition that the broker does not serve makes its co-partitioned topics wait, and a restart of the worker
would not help: such a wait must not make the worker unhealthy. A fetch that is never sent, or never ends, is
no refusal: then the worker itself is at fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from aiokafka.errors import KafkaError, NoError, OffsetOutOfRangeError, for_code
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition
from faust.types import TP

NO_LEADER: Final = "no leader is known"
ANSWERS: Final = (NoError, OffsetOutOfRangeError)  # of a broker that has the partition


class PartitionHealth:
    """Listens to the fetches of aiokafka's client, in the loop of the consumer's thread."""

    def __init__(self, client: Any) -> None:
        self._cluster = client.cluster
        self._refused: dict[tuple[str, int], str] = {}  # why the newest fetch brought nothing
        self._send = client.send
        client.send = self._send_and_record

    def leaderless(self, partitions: Iterable[TP]) -> list[TP]:
        """Return the partitions without a known leader."""
        return [
            tp for tp in partitions if self._cluster.leader_for_partition(TopicPartition(*tp)) in (None, -1)
        ]

    def unserved(self, partitions: Iterable[TP]) -> dict[TP, str]:
        """Return the partitions that the broker does not serve, with the reason."""
        asked = list(partitions)
        refused = {tp: self._refused[tp] for tp in asked if tp in self._refused}
        return refused | dict.fromkeys(self.leaderless(asked), NO_LEADER)

    async def _send_and_record(self, node_id: int, request: Any, **options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return await self._send(node_id, request, **options)
        asked = [(topic, partition) for topic, rows in request.topics for partition, *_ in rows]
        try:
            response = await self._send(node_id, request, **options)
        except KafkaError as error:
            self._refused.update(dict.fromkeys(asked, f"broker {node_id}: {type(error).__name__}"))
            raise
        for topic, rows in response.topics:
            for partition, code, *_ in rows:
                error_type = for_code(code)
                if error_type in ANSWERS:
                    self._refused.pop((topic, partition), None)
                else:
                    self._refused[topic, partition] = f"broker {node_id}: {error_type.__name__}"
        return response
