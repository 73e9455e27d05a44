"""Topic readiness: whether every partition of a topic has a leader that answers for it.

Creation takes effect a moment later, on a busy broker a minute later. A broker is named as leader before it
has made the log. Of a producer that is not idempotent, what it refuses in that moment is sent again and comes
behind what was sent later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from topics.clients.cluster import NOT_YET, UNANSWERED, Cluster
from topics.errors import BrokerError, CatalogueError
from topics.patience import LEAST_S, Patience

NAMED: Final = 3  # topics in a line


def topics_of(cluster: Cluster, patience: Patience) -> dict[str, Any]:
    """Return the metadata of all topics, also of a broker that takes its time to answer.

    BrokerError at once where no broker is: the client says why it cannot connect.
    """
    while True:
        try:
            return cluster.topics()
        except BrokerError:
            if cluster.complaint or patience.is_over:
                raise
        cluster.client.poll(patience.pause(f"{cluster.address} does not answer yet"))


def wait_until_ready(cluster: Cluster, names: Iterable[str], patience: Patience | None = None) -> None:
    """Return when all of `names` are visible and their leaders act; BrokerError when patience is over.

    `patience`: by default that with some partitions.
    """
    wanted = list(names)
    patience = Patience(LEAST_S) if patience is None else patience
    total, left = len(wanted), set(wanted)
    while True:
        unseen, unled = _look(cluster, left)
        if not left:
            return
        _raise_if_hidden(cluster, unseen)
        missing = f"{total - len(left)} of {total} topics can be used; {_in_words(unseen, unled)}"
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
    except BrokerError:  # the next look shows whether the broker is there
        return
    if hidden:
        raise CatalogueError(cluster.access.denied("topic", hidden[0], "Describe"))


def _look(cluster: Cluster, left: set[str]) -> tuple[set[str], dict[str, int]]:
    """Take those that can be used out of `left`; return which are not visible, and how many partitions of the
    others no leader answers for."""
    try:
        found = cluster.topics()
    except BrokerError:
        if cluster.complaint:
            raise
        return set(), dict.fromkeys(left, 0)
    unseen = {name for name in left if name not in found or not found[name].partitions}
    unled: dict[str, int] = {}
    asked: dict[TopicPartition, Any] = {}
    for name in left - unseen:
        partitions = found[name].partitions
        if leaderless := sum(each.leader < 0 for each in partitions.values()):
            unled[name] = leaderless
        else:
            latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
            asked |= {TopicPartition(name, number): latest for number in partitions}
    futures = cluster.client.list_offsets(asked, request_timeout=cluster.timeout) if asked else {}
    for tp, future in futures.items():
        if not _is_led(cluster, future):
            unled[tp.topic] = unled.get(tp.topic, 0) + 1
    left -= left - unseen - unled.keys()
    return unseen, unled


def _is_led(cluster: Cluster, future: Any) -> bool:
    """Tell whether a leader answered for its partition; what is wrong beyond that raises."""
    try:
        future.result(timeout=cluster.timeout + 1)
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
    known = sorted(names)
    shown = ", ".join(known[:NAMED])
    return shown if len(known) <= NAMED else f"{shown} and {len(known) - NAMED} more"
