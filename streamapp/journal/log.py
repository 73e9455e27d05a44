"""The journal's topic as a log: where it ends, and cutting off its beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from topics.cluster import Cluster

REQUEST_S: Final = 10.0


class JournalLog:
    """Requests about one topic; all wait for the broker, so call them in a thread."""

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        """`kafka`: client properties under Kafka's names."""
        self._kafka = Cluster.properties(kafka)
        self._topic = topic
        self._consumer: Consumer | None = None
        self._admin: AdminClient | None = None

    def end(self, partition: int) -> int:
        """Return the offset that the next record gets, if nobody else writes; no later one is before it."""
        if self._consumer is None:
            self._consumer = Consumer({**self._kafka, "group.id": "unused", "enable.auto.commit": False})
        _, end = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), timeout=REQUEST_S
        )
        return int(end)

    def trim(self, partition: int, before: int) -> None:
        """Delete the records before an offset."""
        if self._admin is None:
            self._admin = AdminClient(self._kafka)
        wanted = TopicPartition(self._topic, partition, before)
        for done in self._admin.delete_records([wanted], request_timeout=REQUEST_S).values():
            done.result(2 * REQUEST_S)
