"""Create, check and describe the topics of the catalogue on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from topics.cluster import TIMEOUT_S, Cluster
from topics.definitions import CATALOGUE, DEFAULT_PARTITIONS, INSTANCES, TopicNames

BROKER_DEFAULT = -1  # replication factor: what the broker's default.replication.factor says


@dataclass(frozen=True, slots=True)
class Creation:
    """What `create` did."""

    created: tuple[str, ...]
    existed: tuple[str, ...]  # left as they were: `check` says whether they are right


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the cluster is not as the catalogue says."""

    topic: str
    what: str  # "missing", "partitions", "replication.factor", "leader", or the name of a topic setting
    found: str
    expected: str
    message: str  # the sentence for a person, with the remedy


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition of an existing topic."""

    partition: int
    leader: int | None  # broker id; None: no leader, the partition cannot be used
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None  # first offset kept; None without leader
    end: int | None  # next offset to be written
    lag: int | None = None  # records the group has not committed; None: no group given, or no commit


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic of the catalogue as it is on the cluster."""

    name: str
    direction: str
    value: str
    exists: bool
    partitions: tuple[PartitionDescription, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)  # the settings the catalogue has an opinion on

    @property
    def records(self) -> int:
        """Return the number of offsets kept: an upper bound of the records kept."""
        return sum(p.end - p.start for p in self.partitions if p.end is not None and p.start is not None)


def create(
    kafka: Mapping[str, Any],
    names: TopicNames,
    partitions: int = DEFAULT_PARTITIONS,
    replication: int = BROKER_DEFAULT,
    timeout: float = TIMEOUT_S,
) -> Creation:
    """Create the topics of the catalogue that do not exist yet; an existing one is never changed."""
    if partitions < 1:
        message = f"topics.partitions={partitions} must be at least 1"
        raise ValueError(message)
    cluster = Cluster(kafka, timeout)
    present = cluster.partition_counts()
    missing = {name: topic for name, topic in names.all().items() if name not in present}
    created = []
    if missing:
        wanted = [
            NewTopic(name, num_partitions=partitions, replication_factor=replication, config=topic.config)
            for name, topic in missing.items()
        ]
        futures = cluster.client.create_topics(wanted, request_timeout=timeout, operation_timeout=timeout)
        created = [name for name, future in futures.items() if _created(cluster, future)]
        cluster.wait_for(missing)
    return Creation(tuple(created), tuple(name for name in names.all() if name not in created))


def _created(cluster: Cluster, future: Any) -> bool:
    """Return whether this request made the topic, not somebody else at the same moment."""
    try:
        future.result(timeout=cluster.timeout + 1)
    except KafkaException as failure:
        if failure.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise cluster.error(failure) from None
    return True


def check(
    kafka: Mapping[str, Any],
    names: TopicNames,
    partitions: int | None = None,
    replication: int | None = None,
    timeout: float = TIMEOUT_S,
) -> list[Difference]:
    """Return every difference between cluster and catalogue; an empty list means that all is right.

    Without `partitions` the counts are only compared within the co-partition group; without `replication` the
    replication factor is not judged.
    """
    cluster = Cluster(kafka, timeout)
    metadata = cluster.topics()
    found = {name: metadata[name] for name in names.all() if name in metadata}
    configs = cluster.configs(found)
    differences = []
    for name, topic in names.all().items():
        if name not in found:
            message = f"topic {name!r} is missing; create it with 'grove topics create'"
            differences.append(Difference(name, "missing", "no such topic", "a topic", message))
            continue
        differences += _partition_differences(name, found[name])
        if replication is not None:
            differences += _replication_differences(name, found[name], replication)
        differences += _config_differences(name, topic.config, configs[name])
    counts = {name: len(topic.partitions) for name, topic in found.items()}
    return differences + _count_differences(names, counts, partitions)


def _partition_differences(name: str, topic: Any) -> list[Difference]:
    """Name the partitions that cannot be used."""
    return [
        Difference(
            name,
            "leader",
            "none",
            "a broker",
            f"topic {name!r} partition {number} has no leader; see that its brokers {p.replicas} run",
        )
        for number, p in sorted(topic.partitions.items())
        if p.leader < 0
    ]


def _replication_differences(name: str, topic: Any, expected: int) -> list[Difference]:
    """Compare the replication factor; a topic whose partitions differ shows the smallest."""
    factor = min(len(p.replicas) for p in topic.partitions.values())
    if factor == expected:
        return []
    message = (
        f"topic {name!r} has replication factor {factor}, topics.replication.factor={expected}; "
        f"reassign its replicas or change the setting"
    )
    return [Difference(name, "replication.factor", str(factor), str(expected), message)]


def _config_differences(name: str, expected: Mapping[str, str], found: Mapping[str, str]) -> list[Difference]:
    """Compare the settings the catalogue has an opinion on."""
    differences = []
    for key, value in expected.items():
        # Brokers list the policies in any order: "delete,compact" is "compact,delete".
        if set(found.get(key, "").split(",")) != set(value.split(",")):
            message = (
                f"topic {name!r} has {key}={found.get(key, 'nothing')}, it must be {value}; "
                f"set it with kafka-configs --alter --topic {name} --add-config {key}={value}"
            )
            differences.append(Difference(name, key, found.get(key, ""), value, message))
    return differences


def _count_differences(
    names: TopicNames, counts: Mapping[str, int], partitions: int | None
) -> list[Difference]:
    """Compare partition counts within each co-partition group, then with the setting."""
    differences = []
    for group in dict.fromkeys(topic.group for topic in CATALOGUE):
        members = {n: counts[n] for n, topic in names.all().items() if topic.group == group and n in counts}
        if not members:
            continue
        reference = names.of(INSTANCES)
        if reference not in members:
            usual = Counter(members.values()).most_common(1)[0][0]
            reference = next(name for name, count in members.items() if count == usual)
        expected = members[reference]
        for name, count in members.items():
            if count != expected:
                message = (
                    f"topic {name!r} has {count} partitions, {reference!r} has {expected}; "
                    f"they must be equal (co-partition group {group!r}): make the topic anew"
                )
                differences.append(Difference(name, "partitions", str(count), str(expected), message))
        if partitions is not None and expected != partitions:
            message = (
                f"topic {reference!r} has {expected} partitions, topics.partitions={partitions}; "
                f"keyed topics keep their count: set topics.partitions={expected} or another prefix"
            )
            differences.append(Difference(reference, "partitions", str(expected), str(partitions), message))
    return differences


def describe(
    kafka: Mapping[str, Any], names: TopicNames, group: str | None = None, timeout: float = TIMEOUT_S
) -> list[TopicDescription]:
    """Return every topic of the catalogue with partitions, offsets, settings and the lag of `group`."""
    cluster = Cluster(kafka, timeout)
    metadata = cluster.topics()
    existing = {name: metadata[name] for name in names.all() if name in metadata}
    configs = cluster.configs(existing)
    led = [
        TopicPartition(name, number)
        for name, topic in existing.items()
        for number, p in topic.partitions.items()
        if p.leader >= 0
    ]
    starts = _offsets(cluster, led, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    ends = _offsets(cluster, led, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    committed = _committed(kafka, cluster, group, led) if group is not None else {}
    described = []
    for name, topic in names.all().items():
        if name not in existing:
            described.append(TopicDescription(name, topic.direction, topic.value, exists=False))
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
        config = {key: configs[name].get(key, "") for key in topic.config}
        described.append(
            TopicDescription(name, topic.direction, topic.value, True, tuple(partitions), config)
        )
    return described


def _offsets(
    cluster: Cluster, partitions: list[TopicPartition], spec: OffsetSpec
) -> dict[tuple[str, int], int]:
    """Return the first or the next offset of each partition."""
    if not partitions:
        return {}
    futures = cluster.client.list_offsets(dict.fromkeys(partitions, spec), request_timeout=cluster.timeout)
    return {(tp.topic, tp.partition): cluster.result(future).offset for tp, future in futures.items()}


def _committed(
    kafka: Mapping[str, Any], cluster: Cluster, group: str, partitions: list[TopicPartition]
) -> dict[tuple[str, int], int]:
    """Return the offsets a consumer group has committed, without joining it."""
    if not partitions:
        return {}
    consumer = Consumer(cluster.properties(kafka) | {"group.id": group})
    try:
        answer = consumer.committed(partitions, timeout=cluster.timeout)
    except KafkaException as failure:
        raise cluster.error(failure) from None
    finally:
        consumer.close()
    return {(tp.topic, tp.partition): tp.offset for tp in answer if tp.offset >= 0}
