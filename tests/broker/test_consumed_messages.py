"""librdkafka's batch queue, read by a kernel, has the records that were produced."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer

from benchmarks.rig.consumed_messages import MessageQueue
from benchmarks.rig.visible import Cluster
from core.kernels import jit
from tests.conftest import Broker

pytestmark = [pytest.mark.broker, pytest.mark.skipif(jit.DISABLED, reason="a matter of speed")]


def test_keys_values_times_and_partitions_are_those_that_were_produced(broker: Broker) -> None:
    address, topic = broker.bootstrap_servers, f"messages-{uuid.uuid4().hex[:8]}"
    Cluster(address).create(topic, partitions=2)
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    sent = [(b"k", b"one"), (None, b"two"), (b"", None), (b"key", b"\x00" * 300)]
    for number, (key, value) in enumerate(sent):
        producer.produce(topic, value, key, number % 2, timestamp=1_700_000_000_000 + number)
    assert producer.flush(60) == 0
    properties = {"bootstrap.servers": address, "group.id": topic, "enable.auto.commit": False}
    queue = MessageQueue(properties, topic, 2, from_end=False, most=3)
    received: dict[tuple[int, int], tuple[bytes | None, bytes | None, int]] = {}
    try:
        while len(received) < len(sent):
            spans, partitions = queue.consume(1000)
            columns = spans.offsets, spans.keys, spans.values, spans.timestamps
            for partition, offset, key, value, at in zip(partitions.tolist(), *columns, strict=True):
                received[partition, offset] = key and bytes(key), value and bytes(value), at
    finally:
        queue.close()
    assert received == {
        (number % 2, number // 2): (key, value, 1_700_000_000_000 + number)
        for number, (key, value) in enumerate(sent)
    }
