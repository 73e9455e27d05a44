"""The broker of a benchmark, and topics on it that are deleted at its end."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.rig.visible import REQUEST_SECONDS, Cluster
from streamapp.embedded import EmbeddedBroker
from topics.clients.admin import create
from topics.definitions import TopicNames

PARTITIONS = 8
HEAP_MB = 1024


@contextmanager
def broker() -> Iterator[str]:
    """Yield the address of the broker that the environment names, or of an embedded one."""
    address = os.environ.get("GROVE_KAFKA_BOOTSTRAP_SERVERS")
    if address:
        yield address
    else:
        with EmbeddedBroker(heap_mb=HEAP_MB) as embedded:
            yield embedded.bootstrap_servers


@contextmanager
def topics(bootstrap: str, cluster: Cluster, partitions: int = PARTITIONS) -> Iterator[TopicNames]:
    """Yield the names of a new set of topics, which are deleted afterwards."""
    names = TopicNames(f"bench-{uuid.uuid4().hex[:6]}.")
    create({"bootstrap.servers": bootstrap}, names, partitions, 1, REQUEST_SECONDS)
    try:
        yield names
    finally:
        cluster.delete_prefix(names.prefix)
