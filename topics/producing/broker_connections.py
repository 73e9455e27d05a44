# ruff: noqa: SLF001 - what is read of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Broker connections: aiokafka's, with metadata, coordinators and the pauses that brokers ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal

from aiokafka import TopicPartition, errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType

from topics.errors import BrokerError
from topics.fetching.connection import connection_arguments
from topics.fetching.frames import MOST_BYTES, bound_frames
from topics.producing.transaction_requests import Place

logger = logging.getLogger(__name__)

REQUEST_MS: Final = 10_000
"""How long a request may be unanswered before its connection counts as dead."""

PART_OF_TIMEOUT: Final = 0.8
"""The part of this time that replicas have: the broker answers before its connection counts as dead."""

OLDEST: Final = "2.5"
"""The oldest Kafka whose brokers have all requests."""

_LOST: Final = (errors.KafkaError, OSError, TimeoutError)

Role = Literal["transaction", "group"]
_KINDS: Final[Mapping[Role, Any]] = {
    "transaction": CoordinationType.TRANSACTION,
    "group": CoordinationType.GROUP,
}


class LostAnswerError(Exception):
    """A request that was perhaps not sent, or whose answer did not come."""


class RefusedLookUpError(Exception):
    """A look-up of a coordinator that a broker answered with an error code."""

    def __init__(self, code: int) -> None:
        """Keep the code."""
        super().__init__(str(code))
        self.code = code


class BrokerConnections:
    """Connections to the brokers of a cluster; to be used in one event loop."""

    def __init__(
        self, kafka: Mapping[str, Any], topics: Collection[str] = (), request_ms: int = REQUEST_MS
    ) -> None:
        """`kafka` holds client properties under librdkafka's names; `topics`: those whose metadata come
        first, in place of the metadata of all topics; a connection that leaves a request unanswered for
        `request_ms`, or `socket.timeout.ms` if that is less, is closed.
        """
        self._topics = topics
        self._kafka = kafka
        self._request_ms = min(request_ms, int(kafka.get("socket.timeout.ms", request_ms)))
        self._client: AIOKafkaClient | None = None
        self._quiet_until: dict[int, float] = {}
        """Times of the event loop before which a broker gets no request, by its number."""

    @property
    def replica_ms(self) -> int:
        """How long a broker may wait for the replicas of records, in ms."""
        return int(self._request_ms * PART_OF_TIMEOUT)

    async def open(self) -> None:
        """Connect to the first broker that answers, if not connected; raise LostAnswerError."""
        if self._client is None:
            self._client = await self._connected()

    async def reopen(self) -> None:
        """Connect anew by the configured addresses, which may lead to other brokers; raise LostAnswerError.

        After an error the former connections stay.
        """
        client = await self._connected()
        former, self._client = self._client, client
        if former is not None:
            await former.close()

    async def _connected(self) -> AIOKafkaClient:
        client = AIOKafkaClient(
            **connection_arguments(self._kafka),
            request_timeout_ms=self._request_ms,
        )
        bound_frames(client, int(self._kafka.get("receive.message.max.bytes", MOST_BYTES)))
        try:
            await client.bootstrap()
        except _LOST as error:
            await client.close()
            raise LostAnswerError(str(error)) from error
        except BaseException:
            await client.close()
            raise
        client._topics = set(self._topics)
        return client

    async def close(self) -> None:
        """Close all connections; `open` opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def send(self, node: int, request: Any, *, to_coordinator: bool = False) -> Any:
        """Return the answer of a broker; raise LostAnswerError.

        Waits first if the broker has asked for a pause. Raises BrokerError if the broker is too old.
        """
        loop = asyncio.get_running_loop()
        if (pause := self.quiet_until(node) - loop.time()) > 0:
            await asyncio.sleep(pause)
        group = ConnectionGroup.COORDINATION if to_coordinator else ConnectionGroup.DEFAULT
        try:
            answer = await self._opened.send(node, request, group=group)
        except (errors.IncompatibleBrokerVersion, NotImplementedError) as error:
            name = type(request).__name__
            message = (
                f"broker {node} must be Kafka {OLDEST} or later, which has {name} as it is sent: {error}"
            )
            raise BrokerError(message) from error
        except (*_LOST, KeyError) as error:  # KeyError: two requests found the same connection broken
            message = f"broker {node}: {error!r}"
            raise LostAnswerError(message) from error
        if (throttle := getattr(answer, "throttle_time_ms", 0)) > 0:
            self.be_quiet(node, throttle / 1000)
        return answer

    def be_quiet(self, node: int, seconds: float) -> None:
        """Send nothing to a broker for this time."""
        until = asyncio.get_running_loop().time() + seconds
        self._quiet_until[node] = max(until, self.quiet_until(node))

    def quiet_until(self, node: int) -> float:
        """Return the time of the event loop from which a broker may get a request."""
        return self._quiet_until.get(node, 0.0)

    def leader(self, place: Place) -> int | None:
        """Return the number of the broker that leads a partition, as far as it is known."""
        leader = self._opened.cluster.leader_for_partition(TopicPartition(*place))
        return None if leader is None or leader < 0 else int(leader)

    def is_denied(self, topic: str) -> bool:
        """Whether the brokers do not show the topic to this client."""
        return topic in self._opened.cluster.unauthorized_topics

    def knows(self, place: Place) -> bool:
        """Whether the partition was in the last metadata."""
        topic, partition = place
        return partition in (self._opened.cluster.partitions_for_topic(topic) or ())

    def any_node(self) -> int | None:
        """Return the number of a broker, if one is known."""
        node = self._opened.get_random_node()
        return None if node is None else int(node)

    async def look_up_leaders(self, topics: Iterable[str]) -> bool:
        """Request the metadata of these topics, too; a failure leaves the former metadata.

        Return whether a broker has answered.
        """
        client = self._opened
        client._topics = client._topics | set(topics)
        return await self.look_up_brokers()

    async def look_up_brokers(self) -> bool:
        """Request the metadata again; a failure leaves the former metadata. Return whether a broker has
        answered.

        Not by `force_metadata_update`: topics that are added while aiokafka refreshes the metadata on its own
        would wait until `metadata.max.age.ms` is over again.
        """
        client = self._opened
        try:
            return bool(await client._metadata_update(client.cluster, client._topics))
        except _LOST as error:
            logger.debug("no new metadata: %s", error)
            return False

    async def coordinator(self, role: Role, key: str) -> int:
        """Return the number of the broker that coordinates a transactional id or a group.

        Raises LostAnswerError and RefusedLookUpError.
        """
        client = self._opened
        if self.any_node() is None:
            await self.look_up_brokers()
            message = "no broker is known"
            raise LostAnswerError(message)
        try:
            return int(await client.coordinator_lookup(_KINDS[role], key))
        except errors.BrokerResponseError as error:
            raise RefusedLookUpError(error.errno) from error
        except (*_LOST, KeyError) as error:
            raise LostAnswerError(repr(error)) from error

    @property
    def _opened(self) -> AIOKafkaClient:
        if self._client is None:
            message = "the connections are closed"
            raise LostAnswerError(message)
        return self._client
