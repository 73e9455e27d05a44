"""Topic identity: a topic that is deleted and created again has another id, and other records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import OffsetSpec

from streamapp.errors import NotYetError
from streamapp.worker.journal.offset_metadata import UNKNOWN
from topics.clients.access import denied_kind
from topics.clients.cluster import Cluster, listed_offset, refresh_metadata, serve_events
from topics.errors import BrokerError

FIRST_S: Final = 2.0
"""Time for a request. The client may wait for a broker that is away while others answer, so a request that
got no answer is repeated with new metadata, with more time for brokers that are merely slow. Later requests
have that time, too, until an answer comes within this time: a restore makes several requests, and begins with
the first one again if any of them fails.
"""
REQUEST_S: Final = 10.0  # at most

_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


class Identity:
    """Requests about topics. Every method waits for the broker: call them in threads."""

    def __init__(self, kafka: Mapping[str, Any], first_s: float = REQUEST_S) -> None:
        """`kafka`: client properties under Kafka's names; `first_s`: FIRST_S if requests are repeated."""
        self._cluster = Cluster(kafka, REQUEST_S)
        self._first_s = self._request_s = first_s

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the current id of each topic; NotYetError if the broker does not return it."""
        asked = TopicCollection(list(topics))
        began = time.monotonic()
        futures = self._cluster.client.describe_topics(asked, request_timeout=self._request_s)
        ids = {}
        for topic, future in futures.items():
            described = str(self._answer(future, topic, began).topic_id)
            ids[topic] = UNKNOWN if described == _NO_ID else described
        return ids

    def check_led(self, topic: str, partition: int) -> None:
        """Raise NotYetError if a partition has no leader: reading it would wait for one."""
        asked = TopicCollection([topic])
        began = time.monotonic()
        futures = self._cluster.client.describe_topics(asked, request_timeout=self._request_s)
        leaders = {
            described.id: described.leader
            for described in self._answer(futures[topic], topic, began).partitions
        }
        if leaders.get(partition) is None:
            message = f"{topic}-{partition}: no leader is known"
            raise NotYetError(message)

    def has_open_transaction(self, topic: str, partition: int) -> bool:
        """Whether a log has records of a transaction that has not ended yet."""
        here, ends = TopicPartition(topic, partition), list[int]()
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            began = time.monotonic()
            futures = self._cluster.client.list_offsets(
                {here: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                isolation_level=level,
                request_timeout=self._request_s,
            )
            ends.append(self._answer(futures[here], topic, began, listed_offset))
        return ends[0] < ends[1]

    def _answer(
        self,
        future: Any,
        topic: str,
        began: float,
        read: Callable[[Any, float], Any] = lambda future, seconds: future.result(seconds),
    ) -> Any:
        """Return what `read` finds in a future within some seconds; NotYetError if no broker answers."""
        try:
            answer = read(future, 2 * REQUEST_S)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if denied_kind(error.code()) is None:
                self._request_s = min(2 * self._request_s, REQUEST_S)
                refresh_metadata(self._cluster.client, failure, topic, REQUEST_S)
                message = f"topic {topic}: {error.str()}"
                raise NotYetError(message) from None
            raise BrokerError(self._cluster.access.denied("topic", topic, "Describe")) from None
        except TimeoutError:
            message = f"topic {topic}: the broker does not answer"
            raise NotYetError(message) from None
        finally:
            serve_events(self._cluster.client)
        if time.monotonic() - began <= self._first_s:
            self._request_s = self._first_s
        return answer
