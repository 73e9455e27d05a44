"""Topic creation: the topics of the catalogue that a cluster does not have yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from topics.clients.admin.readiness import topics_of, wait_until_ready
from topics.clients.cluster import TIMEOUT_S, UNANSWERED, Cluster
from topics.definitions import DEFAULT_PARTITIONS, TopicNames
from topics.patience import Patience, seconds_for

BROKER_DEFAULT = -1  # replication factor: the broker's default.replication.factor


@dataclass(frozen=True, slots=True)
class Creation:
    """The result of `create`."""

    created: tuple[str, ...]
    existed: tuple[str, ...]  # topics left as they were; `check` compares them with the catalogue


def create(
    kafka: Mapping[str, Any],
    names: TopicNames,
    partitions: int = DEFAULT_PARTITIONS,
    replication: int = BROKER_DEFAULT,
    timeout: float | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> Creation:
    """Create the topics of the catalogue that do not exist yet; existing topics are never changed.

    On return all of them can be used, also topics of an earlier call that was interrupted. `timeout` is in
    seconds; the default is a minute, and more for many partitions. `tell` gets a line of progress every few
    seconds.
    """
    if partitions < 1:
        message = f"topics.partitions={partitions} must be at least 1"
        raise ValueError(message)
    catalogue = names.all()
    patience = Patience(seconds_for(partitions * len(catalogue)) if timeout is None else timeout, tell)
    # The retries are made here, so the client makes none itself.
    cluster = Cluster(kafka, min(TIMEOUT_S, patience.seconds), patience_s=0.0)
    present = topics_of(cluster, patience)
    missing = [
        NewTopic(name, num_partitions=partitions, replication_factor=replication, config=topic.config)
        for name, topic in catalogue.items()
        if name not in present
    ]
    created = _request(cluster, missing, patience)
    wait_until_ready(cluster, catalogue, patience)
    return Creation(tuple(created), tuple(name for name in catalogue if name not in created))


def make(
    cluster: Cluster, topics: list[NewTopic], tell: Callable[[str], object] = lambda _: None
) -> list[str]:
    """Create topics and return the names of the new topics; all can be used then."""
    patience = Patience(seconds_for(sum(topic.num_partitions for topic in topics)), tell)
    created = _request(cluster, topics, patience)
    wait_until_ready(cluster, [topic.topic for topic in topics], patience)
    return created


def _request(cluster: Cluster, topics: list[NewTopic], patience: Patience) -> list[str]:
    """Request topics until the broker has created each of them; return the names of those that this call
    created.

    A broker that did not answer in time may still have created a topic: a topic that exists at the second
    request counts as created here.
    """
    unconfirmed = {topic.topic: topic for topic in topics}
    created: list[str] = []
    unanswered: set[str] = set()
    while unconfirmed:
        seconds = cluster.timeout
        futures = cluster.client.create_topics(
            list(unconfirmed.values()), request_timeout=seconds, operation_timeout=seconds
        )
        for name, future in futures.items():
            failure = _failure(cluster, future)
            code = None if failure is None else failure.args[0].code()
            if code in UNANSWERED and not (cluster.complaint or patience.is_over):
                unanswered.add(name)
                continue
            if failure is None or (code == KafkaError.TOPIC_ALREADY_EXISTS and name in unanswered):
                created.append(name)
            elif code != KafkaError.TOPIC_ALREADY_EXISTS:  # else another client created it at the same moment
                raise cluster.error(failure, name, "Create") from None
            del unconfirmed[name]
        if unconfirmed:
            missing = f"the broker has not answered for {len(unconfirmed)} of {len(topics)} topics to create"
            cluster.client.poll(patience.pause(missing))
    return created


def _failure(cluster: Cluster, future: Any) -> KafkaException | None:
    try:
        future.result(timeout=cluster.timeout + 1)
    except KafkaException as failure:
        return failure
    return None
