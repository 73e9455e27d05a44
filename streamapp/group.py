"""Who is in a consumer group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from topics.errors import BrokerError

REQUEST_S: Final = 10.0


def members_of(kafka: Mapping[str, Any], group: str) -> list[str]:
    """Return the names of the members of a group, living or waited for; `kafka`: under Kafka's names."""
    client = AdminClient(dict(kafka))
    try:
        (described,) = client.describe_consumer_groups([group], request_timeout=REQUEST_S).values()
        members = described.result(2 * REQUEST_S).members
    except KafkaException as failure:
        message = f"group {group} cannot be described: {failure.args[0].str()}"
        raise BrokerError(message) from None
    return sorted(str(member.group_instance_id or member.member_id) for member in members)


def is_occupied(group: str, members: list[str]) -> str:
    """Return the sentence for a group that has members where it must not."""
    return (
        f"group {group} must have no members, it has {', '.join(members)}; stop the workers ('grove worker "
        "drain' makes them leave at once), try again, and start them"
    )
