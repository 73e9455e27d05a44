"""Topic differences: all differences between a cluster and the catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topics.clients.cluster import TIMEOUT_S, Cluster
from topics.definitions import CATALOGUE, TopicNames


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """One difference between the cluster and the catalogue."""

    topic: str
    what: str  # "missing", "denied", "partitions", "replication.factor", "leader", "settings" or a setting
    found: str
    expected: str
    message: str  # the sentence for a person, with the remedy


def check(
    kafka: Mapping[str, Any],
    names: TopicNames,
    partitions: int | None = None,
    replication: int | None = None,
    timeout: float = TIMEOUT_S,
) -> list[TopicDifference]:
    """Return every difference between cluster and catalogue; an empty list means that there is none.

    Without `partitions` the counts are only compared within the co-partition group; without `replication` the
    replication factor is not checked.
    """
    cluster = Cluster(kafka, timeout)
    metadata = cluster.topics()
    present = {name: metadata[name] for name in names.all() if name in metadata}
    configs = cluster.configs(present)
    differences = []
    hidden = cluster.hidden(name for name in names.all() if name not in present)
    for name, topic in names.all().items():
        if name in hidden:
            message = cluster.access.denied("topic", name, "Describe")
            differences.append(TopicDifference(name, "denied", "not to be seen", "a topic", message))
            continue
        if name not in present:
            message = f"topic {name!r} is missing; create it with 'grove topics create'"
            if topic.optional:
                message += " (only models that acquire features need it)"
            if topic.of_web:
                message += " (only 'grove web' needs it)"
            differences.append(TopicDifference(name, "missing", "no such topic", "a topic", message))
            continue
        differences += _partition_differences(name, present[name])
        if replication is not None:
            differences += _replication_differences(name, present[name], replication)
        if name in configs:
            differences += _config_differences(name, topic.config, configs[name])
        else:
            message = cluster.access.denied("topic", name, "DescribeConfigs")
            differences.append(TopicDifference(name, "settings", "not to be seen", "to be compared", message))
    counts = {name: len(topic.partitions) for name, topic in present.items()}
    return differences + _count_differences(names, counts, partitions)


def _partition_differences(name: str, topic: Any) -> list[TopicDifference]:
    """Return a difference for each partition that cannot be used."""
    return [
        TopicDifference(
            name,
            "leader",
            "none",
            "a broker",
            f"topic {name!r} partition {number} has no leader; see that its brokers {p.replicas} run",
        )
        for number, p in sorted(topic.partitions.items())
        if p.leader < 0
    ]


def _replication_differences(name: str, topic: Any, expected: int) -> list[TopicDifference]:
    """Compare the replication factor; for a topic whose partitions differ, the smallest counts."""
    factor = min(len(p.replicas) for p in topic.partitions.values())
    if factor == expected:
        return []
    message = (
        f"topic {name!r} has replication factor {factor}, topics.replication.factor={expected}; "
        f"reassign its replicas or change the setting"
    )
    return [TopicDifference(name, "replication.factor", str(factor), str(expected), message)]


def _config_differences(
    name: str, expected: Mapping[str, str], actual: Mapping[str, str]
) -> list[TopicDifference]:
    """Compare the settings that the catalogue states."""
    differences = []
    for key, value in expected.items():
        # Brokers list the policies in any order: "delete,compact" is "compact,delete".
        if set(actual.get(key, "").split(",")) != set(value.split(",")):
            message = (
                f"topic {name!r} has {key}={actual.get(key, 'nothing')}, it must be {value}; "
                f"set it with kafka-configs --alter --topic {name} --add-config {key}={value}"
            )
            differences.append(TopicDifference(name, key, actual.get(key, ""), value, message))
    return differences


def _count_differences(
    names: TopicNames, counts: Mapping[str, int], partitions: int | None
) -> list[TopicDifference]:
    """Compare partition counts within each co-partition group, then with the setting."""
    differences = []
    for group in dict.fromkeys(topic.group for topic in CATALOGUE):
        members = {n: counts[n] for n, topic in names.all().items() if topic.group == group and n in counts}
        if not members:
            continue
        reference = names.of(TopicNames.instances)
        if reference not in members:
            usual = Counter(members.values()).most_common(1)[0][0]
            reference = next(name for name, count in members.items() if count == usual)
        expected = members[reference]
        for name, count in members.items():
            if count != expected:
                message = (
                    f"topic {name!r} has {count} partitions, {reference!r} has {expected}; "
                    f"they must be equal (co-partition group {group!r}): create the topic again"
                )
                differences.append(TopicDifference(name, "partitions", str(count), str(expected), message))
        if partitions is not None and expected != partitions:
            message = (
                f"topic {reference!r} has {expected} partitions, topics.partitions={partitions}; "
                f"keyed topics keep their count: set topics.partitions={expected} or another prefix"
            )
            differences.append(
                TopicDifference(reference, "partitions", str(expected), str(partitions), message)
            )
    return differences
