"""Demo progress: records in the demo's topics, offsets that are committed, and groups with members."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from topics.clients.cluster import listed_offset
from topics.definitions import TopicNames
from topics.fetching.group_description import describe_group

REQUEST_SECONDS = 60.0
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class DemoProgress:
    """Records in the topics, and records that are not committed."""

    sent: int = 0
    labels: int = 0
    controls: int = 0
    lag: int = 0
    """Lag of the inputs, and of the requests that an oracle answers."""


class DemoCluster:
    """The administration side of the demo's broker."""

    def __init__(
        self, kafka: Mapping[str, Any], names: TopicNames, group: str, partitions: int, *, features: bool
    ) -> None:
        """`group`: of the workers; the oracles' groups begin with it. `features`: two oracles run."""
        self._kafka = kafka
        self._client = AdminClient({**kafka, "log_level": 0})
        self._names = names
        inputs = (names.instances, names.feature_values, names.labels, names.controls)
        reads = {group: inputs, f"{group}-oracle": (names.label_requests,)}
        if features:
            reads[f"{group}-feature-oracle"] = (names.feature_requests,)
        # These consumers read committed offsets: AdminClient.list_consumer_group_offsets of confluent-kafka
        # 2.16.1 corrupts memory (a crash, or a client that cannot be destroyed, within a few hundred calls).
        # They do not wait for offsets of an open transaction; the next look has these.
        self._readers = {
            group: (
                Consumer({**kafka, "group.id": group, "isolation.level": "read_uncommitted", "log_level": 0}),
                [TopicPartition(topic, p) for topic in topics for p in range(partitions)],
            )
            for group, topics in reads.items()
        }
        self._looked = 0.0
        self.progress = DemoProgress()

    def look(self) -> None:
        """Update `progress`, at most once a second; if the broker has no answer yet, it stays as it is."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        everywhere = [place for _, places in self._readers.values() for place in places]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = dict.fromkeys(everywhere, latest)
        try:
            # Read before the ends: commits go on between the two reads, and no lag may be below 0.
            committed = [
                position
                for consumer, places in self._readers.values()
                for position in consumer.committed(places, timeout=REQUEST_SECONDS)
            ]
            ends = self._client.list_offsets(asked, request_timeout=REQUEST_SECONDS)
            offsets = {
                (p.topic, p.partition): listed_offset(future, REQUEST_SECONDS + 1)
                for p, future in ends.items()
            }
        except KafkaException:  # a leader or coordinator is moving; the next look succeeds
            return
        committed_total = sum(max(0, p.offset) for p in committed)  # -1001: nothing committed there
        counts: Counter[str] = Counter()
        for (topic, _), end in offsets.items():
            counts[topic] += end
        names = self._names
        self.progress = DemoProgress(
            counts[names.instances],
            counts[names.labels],
            counts[names.controls],
            counts.total() - committed_total,
        )

    def has_members(self, group: str) -> bool:
        """Whether a consumer group has assigned its partitions."""
        try:
            return describe_group(self._kafka, group, REQUEST_SECONDS).state == "Stable"
        except KafkaException:  # a new broker has no group coordinator at first
            return False

    def delete_topics(self) -> None:
        names = list(self._names.all())
        for deleted in self._client.delete_topics(names, request_timeout=REQUEST_SECONDS).values():
            deleted.result()

    def close(self) -> None:
        """Close the clients while the broker is up: without it, a client may wait long."""
        for consumer, _ in self._readers.values():
            consumer.close()
        self._readers.clear()
        del self._client
