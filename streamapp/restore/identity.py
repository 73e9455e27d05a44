"""Which topic a name stands for. A topic that is deleted and made anew has another id, and other records.

The id of the topic that a position is of is committed with it, as the offset's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import OffsetSpec

from streamapp.restore.errors import NotYetError
from topics.access import denied_kind
from topics.cluster import Cluster
from topics.errors import BrokerError

PREFIX: Final = "topic-id="
REQUEST_S: Final = 10.0

UNKNOWN: Final = ""
"""The id of a topic whose broker gives it none (before Kafka 2.8), or with which nothing was committed."""

_ANEW: Final = " anew"
"""Stands behind the id where somebody has changed what a partition goes on with while nobody had it."""

_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


def metadata_of(topic_id: str, *, anew: bool = False) -> str:
    """Return the metadata of an offset of a topic; `anew`: a task that stands there is not to be kept."""
    return ("" if topic_id == UNKNOWN else PREFIX + topic_id) + (_ANEW if anew else "")


def id_in(metadata: str | None) -> str:
    """Return the id of the topic that an offset is of, as its metadata has it."""
    said = (metadata or "").removesuffix(_ANEW)
    return said.removeprefix(PREFIX) if said.startswith(PREFIX) else UNKNOWN


def is_anew(metadata: str | None) -> bool:
    """Whether a task that stands at an offset is not to be kept, as the offset's metadata has it."""
    return (metadata or "").endswith(_ANEW)


class Identity:
    """Asks the broker about topics. Every method waits for it: call them in a thread."""

    def __init__(self, kafka: Mapping[str, Any]) -> None:
        """`kafka`: client properties under Kafka's names."""
        self._cluster = Cluster(kafka, REQUEST_S)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the id of each topic as it is now; NotYetError if the broker does not say."""
        wanted = TopicCollection(list(topics))
        futures = self._cluster.client.describe_topics(wanted, request_timeout=REQUEST_S)
        found = {}
        for topic, future in futures.items():
            described = str(self._answer(future, topic).topic_id)
            found[topic] = UNKNOWN if described == _NO_ID else described
        return found

    def check_led(self, topic: str, partition: int) -> None:
        """Raise NotYetError if a partition has no leader: who reads it would wait for one."""
        wanted = TopicCollection([topic])
        futures = self._cluster.client.describe_topics(wanted, request_timeout=REQUEST_S)
        found = {each.id: each.leader for each in self._answer(futures[topic], topic).partitions}
        if found.get(partition) is None:
            message = f"{topic}-{partition}: no leader is known"
            raise NotYetError(message)

    def has_open_transaction(self, topic: str, partition: int) -> bool:
        """Whether a log has records of a transaction that has not ended yet."""
        here, ends = TopicPartition(topic, partition), []
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            futures = self._cluster.client.list_offsets(
                {here: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                isolation_level=level,
                request_timeout=REQUEST_S,
            )
            ends.append(int(self._answer(futures[here], topic).offset))
        return ends[0] < ends[1]

    def _answer(self, future: Any, topic: str) -> Any:
        try:
            return future.result(2 * REQUEST_S)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if denied_kind(error.code()) is None:
                message = f"topic {topic}: {error.str()}"
                raise NotYetError(message) from None
            raise BrokerError(self._cluster.access.denied("topic", topic, "Describe")) from None
        except TimeoutError:
            message = f"topic {topic}: the broker does not answer"
            raise NotYetError(message) from None
