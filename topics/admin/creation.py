"""Topic creation: the topics of the catalogue that a cluster does not have yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from topics.cluster import TIMEOUT_S, Cluster
from topics.definitions import DEFAULT_PARTITIONS, TopicNames

BROKER_DEFAULT = -1  # replication factor: what the broker's default.replication.factor says


@dataclass(frozen=True, slots=True)
class Creation:
    """What `create` did."""

    created: tuple[str, ...]
    existed: tuple[str, ...]  # left as they were: `check` says whether they are right


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
    missing = [
        NewTopic(name, num_partitions=partitions, replication_factor=replication, config=topic.config)
        for name, topic in names.all().items()
        if name not in present
    ]
    created = make(cluster, missing)
    return Creation(tuple(created), tuple(name for name in names.all() if name not in created))


def make(cluster: Cluster, wanted: list[NewTopic]) -> list[str]:
    """Create topics and return the names of those that did not exist; all can be used then."""
    if not wanted:
        return []
    timeout = cluster.timeout
    futures = cluster.client.create_topics(wanted, request_timeout=timeout, operation_timeout=timeout)
    created = [name for name, future in futures.items() if _created(cluster, name, future)]
    cluster.wait_for(futures)
    return created


def _created(cluster: Cluster, name: str, future: Any) -> bool:
    """Return whether this request made the topic, not somebody else at the same moment."""
    try:
        future.result(timeout=cluster.timeout + 1)
    except KafkaException as failure:
        if failure.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise cluster.error(failure, name, "Create") from None
    return True
