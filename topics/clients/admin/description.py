"""Topic description: the present state of the catalogue's topics on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from topics.clients.cluster import TIMEOUT_S, Cluster
from topics.clients.consumer_group import committed_of
from topics.definitions import TopicNames, retention
from topics.errors import CatalogueError


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition of an existing topic."""

    partition: int
    leader: int | None  # broker id; None: no leader, the partition cannot be used
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None  # first offset kept; None without leader
    end: int | None  # next offset to be written; None without leader
    lag: int | None = None  # offsets that the group has not committed; None: no group given, or no commit


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """The state of one topic of the catalogue on the cluster."""

    name: str
    direction: str
    value: str
    exists: bool
    partitions: tuple[PartitionDescription, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)  # the settings that the catalogue states
    key: str = ""
    group: str = ""  # topics of one group must have the same number of partitions

    @property
    def cleanup(self) -> str | None:
        """Return the cleanup policy; None if the topic does not exist or its settings may not be read."""
        return self.config.get("cleanup.policy")

    @property
    def retention(self) -> str | None:
        """Return the retention in words; None if the topic does not exist or its settings may not be read."""
        milliseconds = self.config.get("retention.ms")
        return retention(int(milliseconds)) if milliseconds else None

    @property
    def offsets(self) -> int:
        """Return the number of offsets kept. A topic that is written in transactions has more offsets than
        records: each commit and each abort takes one offset in every partition, and aborted records keep
        theirs.
        """
        return sum(p.end - p.start for p in self.partitions if p.end is not None and p.start is not None)


def describe(
    kafka: Mapping[str, Any], names: TopicNames, group: str | None = None, timeout: float = TIMEOUT_S
) -> list[TopicDescription]:
    """Return every topic of the catalogue with partitions, offsets, settings and the lag of `group`.

    Raises CatalogueError if this client may not see a topic, which then may exist or not.
    """
    cluster = Cluster(kafka, timeout)
    metadata = cluster.topics()
    existing = {name: metadata[name] for name in names.all() if name in metadata}
    hidden = cluster.hidden(name for name in names.all() if name not in existing)
    if hidden:
        raise CatalogueError(cluster.access.denied("topic", hidden[0], "Describe"))
    configs = cluster.configs(existing)
    led = [
        TopicPartition(name, number)
        for name, topic in existing.items()
        for number, p in topic.partitions.items()
        if p.leader >= 0
    ]
    starts = cluster.offsets(led, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    # The group goes on committing: with its offsets read before the ends, no lag is below 0.
    committed = {} if group is None else _positions(committed_of(kafka, group, led))
    ends = cluster.offsets(led, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    described = []
    for name, topic in names.all().items():
        if name not in existing:
            described.append(
                TopicDescription(
                    name, topic.direction, topic.value, exists=False, key=topic.key, group=topic.group
                )
            )
            continue
        partitions = []
        for number, p in sorted(existing[name].partitions.items()):
            at = (name, number)
            lag = ends[at] - committed[at] if at in committed and at in ends else None
            leader = p.leader if p.leader >= 0 else None
            partitions.append(
                PartitionDescription(
                    number, leader, tuple(p.replicas), tuple(p.isrs), starts.get(at), ends.get(at), lag
                )
            )
        config = {key: configs[name].get(key, "") for key in topic.config if name in configs}
        described.append(
            TopicDescription(
                name,
                topic.direction,
                topic.value,
                True,
                tuple(partitions),
                config,
                topic.key,
                topic.group,
            )
        )
    return described


def _positions(committed: list[TopicPartition]) -> dict[tuple[str, int], int]:
    return {(position.topic, position.partition): position.offset for position in committed}
