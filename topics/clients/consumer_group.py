"""Consumer group: its members and its offsets, as its coordinator reports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from topics.clients.access import denied_kind
from topics.clients.cluster import NOT_YET, TIMEOUT_S, UNANSWERED, Cluster
from topics.fetching.group_description import DescribedMember, describe_group
from topics.patience import LEAST_S, Patience

Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group, alive or within its session timeout."""

    name: str  # `group.instance.id`, else the member's id
    host: str
    topics: frozenset[str]  # topics of which it has partitions


def members_of(kafka: Mapping[str, Any], group: str) -> list[str]:
    """Return the names of the members of a group, alive or within the session timeout."""
    return sorted(str(member.group_instance_id or member.member_id) for member in _members(kafka, group))


def static_members_of(kafka: Mapping[str, Any], group: str) -> set[str]:
    """Return the names of the static members, which have a `group.instance.id`.

    While the coordinator moves, this waits no longer than a request may take.
    """
    members = _members(kafka, group, TIMEOUT_S)
    return {str(member.group_instance_id) for member in members if member.group_instance_id}


def described_members_of(
    kafka: Mapping[str, Any], group: str, tell: Tell = lambda _: None
) -> list[GroupMember]:
    """Return the members with their topics; `tell` gets a line of progress during the wait."""
    return [
        GroupMember(str(member.group_instance_id or member.member_id), member.host, member.topics)
        for member in _members(kafka, group, tell=tell)
    ]


def _members(
    kafka: Mapping[str, Any], group: str, seconds: float = LEAST_S, tell: Tell = lambda _: None
) -> Sequence[DescribedMember]:
    """Request the members from the group's coordinator, repeatedly while it moves; may raise BrokerError."""
    cluster = Cluster(kafka)
    patience = Patience(seconds, tell)
    while True:
        try:
            return describe_group(kafka, group, cluster.timeout).members
        except KafkaException as failure:
            if failure.args[0].code() in UNANSWERED:
                cluster.topics()  # its error names the reason if there is no broker at all
            if not _passes(cluster, failure) or patience.is_over:
                raise cluster.error(failure, group, "Describe", "group") from None
        cluster.client.poll(patience.pause(f"the coordinator of group {group} does not answer yet"))


def committed_of(
    kafka: Mapping[str, Any],
    group: str,
    partitions: Sequence[TopicPartition],
    seconds: float = LEAST_S,
    tell: Tell = lambda _: None,
) -> list[TopicPartition]:
    """Return a group's committed offsets, with their metadata, without joining it; may raise BrokerError.

    This does not wait for the offsets of an open transaction, whose worker may be dead.
    """
    if not partitions:
        return []
    cluster = Cluster(kafka)
    reading = {"group.id": group, "isolation.level": "read_uncommitted"}
    patience = Patience(seconds, tell)
    with closing(Consumer(cluster.properties(kafka) | reading)) as consumer:
        while True:
            try:
                answer: list[TopicPartition] = consumer.committed(list(partitions), timeout=cluster.timeout)
            except KafkaException as failure:
                raise_if_denied(cluster, group)
                if not _passes(cluster, failure) or patience.is_over:
                    raise cluster.error(failure) from None
            else:
                failed = next((position for position in answer if position.error is not None), None)
                if failed is None:
                    return [position for position in answer if position.offset >= 0]
                partition_failure = KafkaException(failed.error)
                if not _passes(cluster, partition_failure) or patience.is_over:
                    raise cluster.error(partition_failure, failed.topic, "Describe") from None
            cluster.client.poll(patience.pause(f"the coordinator of group {group} does not answer yet"))


def _passes(cluster: Cluster, failure: KafkaException) -> bool:
    """Whether another attempt may succeed: the coordinator moves or is slow, but a broker is there."""
    code = failure.args[0].code()
    return code in NOT_YET or (code in UNANSWERED and not cluster.complaint)


def raise_if_denied(cluster: Cluster, group: str) -> None:
    """Raise if this client may not see the group: a request for its offsets then only times out."""
    try:
        describe_group(cluster.kafka, group, cluster.timeout)
    except KafkaException as failure:
        if denied_kind(failure.args[0].code()) == "group":
            raise cluster.error(failure, group, "Describe") from None


def is_occupied(group: str, members: list[str]) -> str:
    """Return the sentence for a group that has members although it must have none."""
    return (
        f"group {group} must have no members, it has {', '.join(members)}; stop the workers ('grove worker "
        "drain' makes them leave at once), try again, and start them"
    )
