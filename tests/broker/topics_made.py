"""Topics for one test."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from confluent_kafka.admin import NewTopic

from tests.broker.kafka_log import KEPT
from topics.clients import admin
from topics.clients.cluster import Cluster


def made_topic(
    kafka: dict[str, Any],
    prefix: str,
    partitions: int,
    settings: Mapping[str, str] | None = None,
    *,
    replicas: int = 1,
) -> str:
    """Return the name of a new topic, which keeps its records and is ready."""
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    cluster = Cluster(kafka)
    made = NewTopic(name, partitions, replicas, config={**KEPT, **(settings or {})})
    cluster.client.create_topics([made])[name].result()
    admin.wait_until_ready(cluster, [name])
    return name
