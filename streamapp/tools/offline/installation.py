"""Installation: the topics of one application on one cluster, from outside the group."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.stored_partition import StoredPartition
from streamapp.worker.task.task_config import TaskConfig
from topics.clients.cluster import Cluster
from topics.clients.consumer_group import members_of
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames
from topics.registry.known_schemas import KnownSchemas


class Installation:
    """Finds partitions, by number or by the keys in them."""

    def __init__(
        self,
        kafka: Mapping[str, Any],
        group: str,
        names: TopicNames,
        config: TaskConfig,
        schemas: KnownSchemas | None = None,
    ) -> None:
        """`kafka`: client properties under Kafka's names; `group`: whose offsets count; `schemas`: of the
        schema registry, if it is in use.
        """
        self._schemas = schemas
        self.kafka = kafka
        self.group = group
        self.names = names
        self.config = config

    @cached_property
    def partitions(self) -> int:
        members_of(self.kafka, self.group)  # raises if access is denied; offsets would only be empty
        return Cluster(self.kafka).partition_count(self.names.instances)

    def partition(self, number: int) -> StoredPartition:
        """Return a partition; OfflineError if the number is too large."""
        self.check(number)
        return StoredPartition(self.kafka, self.group, self.names, self.config, number, self._schemas)

    def check(self, number: int) -> None:
        """Raise OfflineError if the number of a partition is too large."""
        if number >= self.partitions:
            message = (
                f"partition={number} must be below {self.partitions}: {self.names.instances} has no more"
            )
            raise OfflineError(message)

    def partition_of(self, key: str) -> int:
        return partition_of(key.encode(), self.partitions)
