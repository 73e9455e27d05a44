"""Group check: a worker compares its topics with its consumer group's before it joins.

The broker gives a returning static member its previous assignment, without a check whether the worker still
reads these topics. So a worker checks two things first: whether the group has members that read other topics,
and whether the topics still have the number of partitions with which the group has processed them. The
committed offsets hold that number, and so does the journal, because offsets expire.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import TopicPartition

from streamapp.errors import SettingsError, StreamappError
from streamapp.worker.journal.offset_metadata import partitions_in
from streamapp.worker.task.sources import source_topics
from topics.clients.consumer_group import GroupMember, committed_of, described_members_of
from topics.definitions import TopicNames
from topics.errors import TopicsError

logger = logging.getLogger(__name__)


class ForeignGroupError(StreamappError):
    """Workers of other topics are in the group. It may pass: an ended worker remains for a while."""


def check_group(
    kafka: Mapping[str, Any],
    group: str,
    instance: str,
    names: TopicNames,
    partitions: int,
    journalled: Callable[[], Iterable[TopicPartition]],
) -> None:
    """Raise if worker `instance` must not join its group: ForeignGroupError, SettingsError.

    `journalled`: returns the partitions of the journal, with metadata like that of offsets; called if the
    offsets hold no number of partitions, because they have expired or there never were any.
    """
    check_others(kafka, group, instance, names)
    sources = source_topics(names).values()
    places = [TopicPartition(topic, number) for topic in sources for number in range(partitions)]
    committed = committed_of(kafka, group, places, tell=logger.info)
    check_partitions(committed, group, names, partitions)
    if all(partitions_in(position.metadata) is None for position in committed):
        check_partitions(journalled(), group, names, partitions)


def check_others(kafka: Mapping[str, Any], group: str, instance: str, names: TopicNames) -> None:
    """Raise ForeignGroupError if workers of other topics are in the group."""
    check_members(described_members_of(kafka, group, logger.info), group, instance, names)


def check_again(kafka: Mapping[str, Any], group: str, instance: str, names: TopicNames) -> None:
    """Repeat the check for a worker that got no partition; usually there are more workers than partitions."""
    try:
        check_others(kafka, group, instance, names)
    except TopicsError as error:  # the next rebalance repeats the check
        logger.warning("the members of the group are not known: %s", error)


def check_members(members: Iterable[GroupMember], group: str, instance: str, names: TopicNames) -> None:
    """Raise ForeignGroupError if another member reads other topics.

    A member with this worker's name is skipped: this worker takes its place.
    """
    ours = {*source_topics(names).values(), names.snapshots}
    for member in members:
        if member.name != instance and member.topics and not member.topics & ours:
            message = (
                f"application.id={group} must be one installation's own: its group has the member "
                f"{member.name} at {member.host}, which reads {min(member.topics)}, not {names.instances}; "
                "give this worker another application.id (--set application.id=NAME), or correct "
                "topics.prefix; if that worker was stopped, it is out of the group after session.timeout.ms "
                "('grove worker drain' makes it leave at once)"
            )
            raise ForeignGroupError(message)


def check_partitions(
    committed: Iterable[TopicPartition], group: str, names: TopicNames, partitions: int
) -> None:
    """Raise SettingsError if offsets were committed, or a journal was written, when the topics had another
    number of partitions.

    Offsets committed before that number was recorded are accepted; the next commit records it.
    """
    for position in committed:
        before = partitions_in(position.metadata)
        if before is not None and before != partitions:
            message = (
                f"topics {names.prefix}* have {partitions} partitions, but group {group} has processed "
                f"{position.topic} with {before} partitions: some were added while no worker ran, and a "
                "key's records may now be in another partition than its model. 'grove migrate' moves the "
                "models to topics of another prefix (docs/operations.md#changing-the-partition-count); "
                f"'grove models reset --partition N' for each N from 0 to {before - 1} begins with new "
                "models instead"
            )
            raise SettingsError(message)
