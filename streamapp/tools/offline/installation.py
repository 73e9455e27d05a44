"""Installation: the topics of one application on one cluster, seen from outside the group."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.partition import StoredPartition
from streamapp.worker.task.config import TaskConfig
from topics.clients.cluster import Cluster
from topics.clients.consumer_group import members_of
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames


class Installation:
    """Finds partitions and the ones that keys belong to."""

    def __init__(self, kafka: Mapping[str, Any], group: str, names: TopicNames, config: TaskConfig) -> None:
        """`kafka`: client properties under Kafka's names; `group`: whose offsets count."""
        self.kafka = kafka
        self.group = group
        self.names = names
        self._config = config

    @cached_property
    def partitions(self) -> int:
        members_of(self.kafka, self.group)  # says what is denied; the group's offsets would only not come
        return Cluster(self.kafka).partition_count(self.names.instances)

    def partition(self, number: int) -> StoredPartition:
        """Return a partition; OfflineError if there is none of that number."""
        self.check(number)
        return StoredPartition(self.kafka, self.group, self.names, self._config, number)

    def check(self, number: int) -> None:
        """Raise OfflineError if there is no partition of that number."""
        if number >= self.partitions:
            message = (
                f"partition={number} must be below {self.partitions}: {self.names.instances} has so many"
            )
            raise OfflineError(message)

    def partition_of(self, key: str) -> int:
        return partition_of(key.encode(), self.partitions)
