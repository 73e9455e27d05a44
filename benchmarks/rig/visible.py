"""Visible records: the number that a reader can see of a topic, from the ends of its partitions."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from topics.clients.cluster import listed_offset, refresh_metadata
from topics.fetching.group_description import describe_group

REQUEST_SECONDS = 60.0  # a broker on a busy machine is slow
LEADER_SECONDS = 150.0  # longer for a new topic
LOOK_SECONDS = 0.05
NOT_YET = {  # errors for a topic that the broker is still setting up
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._NOENT,  # no leader
    KafkaError.UNKNOWN_LEADER_EPOCH,  # a broker that has its leadership later than the controllers
    KafkaError.FENCED_LEADER_EPOCH,
}
NO_COORDINATOR_YET = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}


class Cluster:
    """The broker of a measurement: creates topics, deletes them, reads their ends."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._groups: dict[str, Consumer] = {}  # clients that read the offsets of a group

    def create(self, *topics: str, partitions: int, config: dict[str, str] | None = None) -> None:
        new = [NewTopic(topic, partitions, 1, config=config or {}) for topic in topics]
        for future in self._admin.create_topics(new, request_timeout=REQUEST_SECONDS).values():
            future.result()
        for topic in topics:
            self.ends(topic, partitions)  # leaders are known a moment after the creation

    def delete(self, *topics: str) -> None:
        """Return when the broker no longer lists the topics; until then, a creation finds them existing."""
        for future in self._admin.delete_topics(list(topics), request_timeout=REQUEST_SECONDS).values():
            future.result()
        deadline = time.monotonic() + LEADER_SECONDS
        while remaining := set(topics) & self._admin.list_topics(timeout=REQUEST_SECONDS).topics.keys():
            if time.monotonic() > deadline:
                message = (
                    f"topic {min(remaining)!r} was deleted, but is still named after {LEADER_SECONDS:.0f} s"
                )
                raise TimeoutError(message)
            time.sleep(LOOK_SECONDS)

    def delete_prefix(self, prefix: str) -> None:
        """Delete every topic whose name starts with `prefix`."""
        existing = self._admin.list_topics(timeout=REQUEST_SECONDS).topics
        names = [name for name in existing if name.startswith(prefix)]
        if names:
            self.delete(*names)

    def ends(self, topic: str, partitions: int) -> list[int]:
        """Return the end of each partition for a read_committed reader, once each has a leader that answers.

        Records of a transaction are beyond this end until the transaction ends; without transactions it is
        the high watermark. Markers of transactions count like records.
        """
        deadline = time.monotonic() + LEADER_SECONDS
        while True:
            try:
                return self._ends(topic, partitions)
            except KafkaException as error:
                if time.monotonic() > deadline or error.args[0].code() not in NOT_YET:
                    raise
                refresh_metadata(self._admin, error, topic, REQUEST_SECONDS)
                time.sleep(LOOK_SECONDS)

    def _ends(self, topic: str, partitions: int) -> list[int]:
        """Return the ends, with one request for all of them."""
        latest = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
        futures = self._admin.list_offsets(
            latest, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=REQUEST_SECONDS
        )
        ends = {
            place.partition: listed_offset(future, REQUEST_SECONDS + 1) for place, future in futures.items()
        }
        return [ends[partition] for partition in range(partitions)]

    def committed(self, group: str, topic: str, partitions: int) -> int:
        """Return the sum of the committed offsets of `group`, counting 0 for a missing or unknown offset."""
        return sum(self.committed_offsets(group, topic, partitions))

    def committed_offsets(self, group: str, topic: str, partitions: int) -> list[int]:
        """Return the committed offset of each partition, 0 for a missing or unknown offset."""
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        try:
            positions = self._asking_for(group).committed(places, timeout=REQUEST_SECONDS)
        except KafkaException as error:
            if error.args[0].code() not in NO_COORDINATOR_YET:
                raise
            return [0] * partitions
        return [max(place.offset, 0) for place in positions]

    def _asking_for(self, group: str) -> Consumer:
        """Return a client that reads the offsets of `group` without waiting for open transactions.

        AdminClient.list_consumer_group_offsets of confluent-kafka 2.16.1 corrupts memory.
        """
        if group not in self._groups:
            self._groups[group] = Consumer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "group.id": group,
                    "isolation.level": "read_uncommitted",
                    "log_level": 0,
                }
            )
        return self._groups[group]

    def has_assignment(self, group: str) -> bool:
        """Return whether a member of `group` has partitions."""
        try:
            described = describe_group({"bootstrap.servers": self.bootstrap}, group, REQUEST_SECONDS)
        except KafkaException as error:
            if error.args[0].code() not in NO_COORDINATOR_YET:
                raise
            return False
        return any(member.topics for member in described.members)
