"""Who is in a consumer group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topics.cluster import Cluster


def members_of(kafka: Mapping[str, Any], group: str) -> list[str]:
    """Return the names of the members of a group, living or waited for; `kafka`: under Kafka's names."""
    cluster = Cluster(kafka)
    (described,) = cluster.client.describe_consumer_groups([group], request_timeout=cluster.timeout).values()
    members = cluster.result(described, group, "Describe", "group").members
    return sorted(str(member.group_instance_id or member.member_id) for member in members)


def is_occupied(group: str, members: list[str]) -> str:
    """Return the sentence for a group that has members where it must not."""
    return (
        f"group {group} must have no members, it has {', '.join(members)}; stop the workers ('grove worker "
        "drain' makes them leave at once), try again, and start them"
    )
