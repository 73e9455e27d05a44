"""Topic readiness: whether every partition of a topic has a leader that accepts requests.

Creation takes effect after a moment, on a busy broker after a minute. A broker is named as leader before it
has created the log. It refuses records in that moment; a producer that is not idempotent sends them again,
and they arrive after records that were sent later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from topics.clients.cluster import NOT_YET, UNANSWERED, Cluster, listed_offset
from topics.errors import BrokerError, CatalogueError
from topics.patience import LEAST_S, Patience

NAMED: Final = 3  # topics in a line


def topics_of(cluster: Cluster, patience: Patience) -> dict[str, Any]:
    """Return the metadata of all topics, also from a slow broker.

    Raises BrokerError at once if there is no broker: the client reports why it cannot connect.
    """
    while True:
        try:
            return cluster.topics()
        except BrokerError:
            if cluster.complaint or patience.is_over:
                raise
        cluster.client.poll(patience.pause(f"{cluster.address} does not answer yet"))


def wait_until_ready(cluster: Cluster, names: Iterable[str], patience: Patience | None = None) -> None:
    """Return when all of `names` are visible and their leaders accept requests; BrokerError when patience is
    over.

    The default of `patience` fits a creation with a few partitions.
    """
    topics = list(names)
    patience = Patience(LEAST_S) if patience is None else patience
    total, unready = len(topics), set(topics)
    while True:
        unseen, unled = _look(cluster, unready)
        if not unready:
            return
        _raise_if_hidden(cluster, unseen)
        missing = f"{total - len(unready)} of {total} topics can be used; {_in_words(unseen, unled)}"
        if patience.is_over:
            message = (
                f"the topics at {cluster.address} cannot be used after {patience.seconds:g} s, {missing}; "
                "the broker may still be at work: run the same command again, it goes on from there, with a "
                "longer --timeout, or see 'grove topics describe'"
            )
            raise BrokerError(message)
        cluster.client.poll(patience.pause(missing))


def _raise_if_hidden(cluster: Cluster, unseen: set[str]) -> None:
    """Raise if a topic that is not visible exists: no waiting makes it visible to this client."""
    try:
        hidden = cluster.hidden(sorted(unseen))
    except BrokerError:  # the next check shows whether the broker is there
        return
    if hidden:
        raise CatalogueError(cluster.access.denied("topic", hidden[0], "Describe"))


def _look(cluster: Cluster, unready: set[str]) -> tuple[set[str], dict[str, int]]:
    """Remove the usable topics from `left`; return the invisible topics, and for the rest the number of
    partitions whose leader does not accept requests.
    """
    try:
        metadata = cluster.topics()
    except BrokerError:
        if cluster.complaint:
            raise
        return set(), dict.fromkeys(unready, 0)
    unseen = {name for name in unready if name not in metadata or not metadata[name].partitions}
    unled: dict[str, int] = {}
    asked: dict[TopicPartition, Any] = {}
    for name in unready - unseen:
        partitions = metadata[name].partitions
        if leaderless := sum(partition.leader < 0 for partition in partitions.values()):
            unled[name] = leaderless
        else:
            latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
            asked |= {TopicPartition(name, number): latest for number in partitions}
    futures = cluster.client.list_offsets(asked, request_timeout=cluster.timeout) if asked else {}
    for tp, future in futures.items():
        if not _is_led(cluster, future):
            unled[tp.topic] = unled.get(tp.topic, 0) + 1
    unready -= unready - unseen - unled.keys()
    return unseen, unled


def _is_led(cluster: Cluster, future: Any) -> bool:
    """Whether a leader answered for its partition; other errors are raised."""
    try:
        listed_offset(future, cluster.timeout + 1)
    except KafkaException as failure:
        if failure.args[0].code() in (*NOT_YET, *UNANSWERED):
            return False
        raise cluster.error(failure) from None
    return True


def _in_words(unseen: set[str], unled: dict[str, int]) -> str:
    parts = []
    if unseen:
        parts.append(f"{_named(unseen)} not visible yet")
    if any(unled.values()):
        parts.append(f"partitions without a leader that answers: {sum(unled.values())}, of {_named(unled)}")
    return ", ".join(parts) or "the broker does not answer"


def _named(names: Iterable[str]) -> str:
    ordered = sorted(names)
    shown = ", ".join(ordered[:NAMED])
    return shown if len(ordered) <= NAMED else f"{shown} and {len(ordered) - NAMED} more"
