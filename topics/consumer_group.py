"""Consumer group: its members, as its coordinator knows them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from topics.cluster import NOT_YET, Cluster


def members_of(kafka: Mapping[str, Any], group: str) -> list[str]:
    """Return the names of the members of a group, living or waited for; `kafka`: under Kafka's names."""
    return sorted(str(member.group_instance_id or member.member_id) for member in _members(kafka, group))


def static_members_of(kafka: Mapping[str, Any], group: str) -> set[str]:
    """Return the names of those of them that have one of their own (`group.instance.id`)."""
    members = _members(kafka, group)
    return {str(member.group_instance_id) for member in members if member.group_instance_id}


def _members(kafka: Mapping[str, Any], group: str) -> Sequence[Any]:
    """Ask the group's coordinator, again while it moves; BrokerError."""
    cluster = Cluster(kafka)
    deadline = time.monotonic() + cluster.timeout
    while True:
        (future,) = cluster.client.describe_consumer_groups([group], request_timeout=cluster.timeout).values()
        failure = future.exception(timeout=cluster.timeout + 1)
        is_early = isinstance(failure, KafkaException) and failure.args[0].code() in NOT_YET
        if not is_early or time.monotonic() > deadline:
            break
        cluster.client.poll(0.05)
    members: Sequence[Any] = cluster.result(future, group, "Describe", "group").members
    return members


def is_occupied(group: str, members: list[str]) -> str:
    """Return the sentence for a group that has members where it must not."""
    return (
        f"group {group} must have no members, it has {', '.join(members)}; stop the workers ('grove worker "
        "drain' makes them leave at once), try again, and start them"
    )
