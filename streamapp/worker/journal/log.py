"""Journal log: the journal's topic as a log; where it ends, and truncating its beginning."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from topics.clients.access import Access, denied_kind
from topics.clients.cluster import Cluster, listed_offset, refresh_metadata, serve_events

logger = logging.getLogger(__name__)

REQUEST_S: Final = 10.0


class JournalLog:
    """Requests about one topic. All wait for the broker: call them in threads, several at once if needed."""

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        """`kafka`: client properties under Kafka's names."""
        self._topic = topic
        self._admin = AdminClient(Cluster.properties(kafka))
        self._access = Access.of(kafka)
        self._denied = False  # and the denial was logged

    def end(self, partition: int) -> int:
        """Return the offset of the next record, or a lower bound of it while other clients write."""
        here = TopicPartition(self._topic, partition)
        futures = self._admin.list_offsets(
            {here: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=REQUEST_S,
        )
        try:
            return listed_offset(futures[here], 2 * REQUEST_S)
        except KafkaException as failure:
            refresh_metadata(self._admin, failure, self._topic, REQUEST_S)
            raise
        finally:
            serve_events(self._admin)

    def trim(self, partition: int, before: int) -> None:
        """Delete the records before an offset. If the broker denies it, log that once and keep them."""
        place = TopicPartition(self._topic, partition, before)
        for future in self._admin.delete_records([place], request_timeout=REQUEST_S).values():
            try:
                future.result(2 * REQUEST_S)
            except KafkaException as failure:
                if denied_kind(failure.args[0].code()) is None:
                    refresh_metadata(self._admin, failure, self._topic, REQUEST_S)
                    raise
                self._tell_denied()
            finally:
                serve_events(self._admin)

    def _tell_denied(self) -> None:
        if not self._denied:
            self._denied = True
            logger.warning(
                "%s; until then the journal only grows", self._access.denied("topic", self._topic, "Delete")
            )
