"""Like topics: topics with the settings of another installation, and another number of partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from confluent_kafka.admin import NewTopic

from topics.clients.admin.creation import BROKER_DEFAULT, make
from topics.clients.cluster import Cluster
from topics.definitions import UNLIMITED, TopicNames
from topics.errors import CatalogueError

NAMES_BROKERS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
"""Settings that name partitions and brokers by number, and so apply to one topic only."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """A topic that is to be created."""

    name: str
    partitions: int
    replication: int  # BROKER_DEFAULT: the broker's default
    config: Mapping[str, str]  # settings that differ from the broker's defaults, under Kafka's names
    exists: bool


def installed(cluster: Cluster, names: TopicNames) -> int:
    """Return the number of partitions of an installation; raise CatalogueError if no topic has its prefix."""
    counts = cluster.partition_counts()
    instances = names.instances
    if instances not in counts:
        prefixes = sorted(
            name.removesuffix(TopicNames.instances.name) for name in counts if _is_instances(name)
        )
        installations = ", ".join(map(repr, prefixes)) or "none"
        if cluster.hidden([instances]):
            raise CatalogueError(cluster.access.denied("topic", instances, "Describe"))
        message = (
            f"topic {instances!r} does not exist at {cluster.address}; prefixes with topics: {installations}"
        )
        raise CatalogueError(message)
    return counts[instances]


def existing(cluster: Cluster, names: TopicNames) -> TopicNames:
    """Return the names of an installation, without the optional topics if it has none of them.

    Raises CatalogueError if this client may not see one of its source topics: the records in it would be left
    out.
    """
    metadata = cluster.topics()
    optional = {name: topic for name, topic in names.all().items() if topic.optional}
    unseen = [name for name, topic in optional.items() if topic.direction == "in" and name not in metadata]
    if hidden := cluster.hidden(unseen):
        raise CatalogueError(cluster.access.denied("topic", hidden[0], "Read"))
    return replace(names, features=any(name in metadata for name in optional))


def alike(old: Cluster, was: TopicNames, new: Cluster, names: TopicNames, partitions: int) -> list[Likeness]:
    """Return the topics of a new installation that is like an existing one, each with whether it exists
    already.

    Raises CatalogueError if an existing topic does not fit: another number of partitions, or controls that
    expire.
    """
    metadata, present = old.topics(), new.partition_counts(names.all())
    source = [was.of(topic) for topic in names.all().values()]
    overrides = old.overrides(name for name in source if name in metadata)
    likenesses = []
    for name, topic in names.all().items():
        like = was.of(topic)
        replication = _replication(metadata[like]) if like in metadata else BROKER_DEFAULT
        config = dict(topic.config) if like not in overrides else dict(overrides[like])
        for setting in NAMES_BROKERS:
            config.pop(setting, None)
        if topic is TopicNames.controls:  # copied models are sent through it, with timestamps of the past
            config |= {"cleanup.policy": "delete", "retention.ms": str(UNLIMITED)}
            config.pop("retention.bytes", None)
        likenesses.append(Likeness(name, partitions, replication, config, name in present))
    _check(new, names, present, partitions)
    return likenesses


def create_alike(
    cluster: Cluster, likenesses: Sequence[Likeness], tell: Callable[[str], object] = lambda _: None
) -> list[str]:
    """Create the topics that do not exist; return their names. `tell` is as for `create`."""
    missing = [
        NewTopic(
            likeness.name,
            num_partitions=likeness.partitions,
            replication_factor=likeness.replication,
            config=dict(likeness.config),
        )
        for likeness in likenesses
        if not likeness.exists
    ]
    return make(cluster, missing, tell)


def _check(cluster: Cluster, names: TopicNames, present: Mapping[str, int], partitions: int) -> None:
    for name, count in present.items():
        if count != partitions:
            message = (
                f"topic {name!r} exists with {count} partitions, not partitions={partitions}; choose "
                f"another prefix, --partitions {count}, or delete the topics of {names.prefix!r}"
            )
            raise CatalogueError(message)
    config = cluster.configs([names.controls] if names.controls in present else []).get(names.controls, {})
    if config.get("retention.ms", str(UNLIMITED)) != str(UNLIMITED):
        message = (
            f"topic {names.controls!r} has retention.ms={config['retention.ms']}, it must be {UNLIMITED}, or "
            f"models sent to it may be deleted; set it with kafka-configs --alter --topic {names.controls} "
            f"--add-config retention.ms={UNLIMITED}"
        )
        raise CatalogueError(message)


def _replication(topic: Any) -> int:
    return min(len(partition.replicas) for partition in topic.partitions.values())


def _is_instances(name: str) -> bool:
    return name.endswith(TopicNames.instances.name)
