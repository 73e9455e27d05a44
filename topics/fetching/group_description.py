"""Members of a consumer group, requested from its coordinator through aiokafka's connections.

librdkafka 2.16 ends the process (`Assertion eonce->refcnt > 0`) when the coordinator goes away while its
administration client waits for the description of a group, so our code does not request it there
(tests/broker/test_cluster.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Bytes, Int16, Int32, Schema, String
from confluent_kafka import KafkaError, KafkaException

from topics.fetching.connection import connection_arguments
from topics.fetching.frames import MOST_BYTES, bound_frames

_TEXT: Final = String("utf-8")


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member of a group, alive or within its session timeout."""

    member_id: str
    group_instance_id: str | None
    host: str
    partitions: Mapping[str, frozenset[int]]  # by topic; without topics of which it has none

    @property
    def topics(self) -> frozenset[str]:
        """Topics of which it has partitions."""
        return frozenset(self.partitions)


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group as its coordinator reports it; a group that does not exist has no members."""

    coordinator: int  # number of the broker
    state: str  # Kafka's word: Stable, Empty, PreparingRebalance, …
    members: Sequence[DescribedMember]


class _DescribeGroupsResponse(Response):  # type: ignore[misc] # aiokafka has no types
    API_KEY = 15
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            Array(
                ("error_code", Int16),
                ("group", _TEXT),
                ("state", _TEXT),
                ("protocol_type", _TEXT),
                ("protocol", _TEXT),
                (
                    "members",
                    Array(
                        ("member_id", _TEXT),
                        ("group_instance_id", _TEXT),
                        ("client_id", _TEXT),
                        ("client_host", _TEXT),
                        ("member_metadata", Bytes),
                        ("member_assignment", Bytes),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
    )


class _DescribeGroupsStruct(RequestStruct):  # type: ignore[misc]
    API_KEY = 15
    API_VERSION = 4  # the first one with the names of static members; brokers since 2.4 have it
    RESPONSE_TYPE = _DescribeGroupsResponse
    SCHEMA = Schema(("groups", Array(_TEXT)), ("include_authorized_operations", Boolean))


class _DescribeGroups(Request[_DescribeGroupsStruct]):  # type: ignore[misc]
    API_KEY = 15

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_DescribeGroupsStruct]) -> _DescribeGroupsStruct:
        return request_struct_class([self._group], False)


def describe_group(kafka: Mapping[str, Any], group: str, seconds: float) -> DescribedGroup:
    """Return a group; KafkaException with the broker's code, or librdkafka's codes for no answer.

    May be called in any thread, also in one that runs an event loop.
    """
    with ThreadPoolExecutor(1, "describe-group") as pool:
        return pool.submit(asyncio.run, _within(seconds, kafka, group)).result()


async def _within(seconds: float, kafka: Mapping[str, Any], group: str) -> DescribedGroup:
    try:
        async with asyncio.timeout(seconds):
            return await _describe(kafka, group)
    except (TimeoutError, errors.RequestTimedOutError):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None  # noqa: SLF001 - librdkafka's names
    except errors.KafkaError as failure:
        if isinstance(failure, errors.BrokerResponseError) and failure.errno > 0:
            raise KafkaException(KafkaError(failure.errno)) from failure
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, str(failure))) from failure  # noqa: SLF001
    except OSError as failure:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, str(failure))) from failure  # noqa: SLF001


async def _describe(kafka: Mapping[str, Any], group: str) -> DescribedGroup:
    client = AIOKafkaClient(**connection_arguments(kafka))
    bound_frames(client, MOST_BYTES)
    try:
        await client.bootstrap()
        coordinator = await client.coordinator_lookup(CoordinationType.GROUP, group)
        answer = await client.send(coordinator, _DescribeGroups(group), group=ConnectionGroup.COORDINATION)
    finally:
        await client.close()
    ((code, _, state, _, _, members, _),) = answer.groups
    if code:
        raise KafkaException(KafkaError(code))
    return DescribedGroup(coordinator, state, [_member(*member) for member in members])


def _member(
    member_id: str, instance: str | None, _client: str, host: str, _metadata: bytes, assignment: bytes
) -> DescribedMember:
    partitions: dict[str, frozenset[int]] = {}
    if assignment:
        decoded = ConsumerProtocolMemberAssignment.decode(assignment)
        partitions = {topic: frozenset(numbers) for topic, numbers in decoded.assignment if numbers}
    return DescribedMember(member_id, instance, host.lstrip("/"), partitions)
