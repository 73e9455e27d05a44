"""A batch that makes an answer longer than `receive.message.max.bytes`: one line reports it, and all other
partitions are read.
"""

from __future__ import annotations

import random
import time
import uuid
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record
from tests.broker.workers import PATIENCE, UNHURRIED, Installation, wait_until
from tests.conftest import Broker
from topics.clients.without_group import without_group
from topics.fetching.bounded_consumer import BoundedConsumer

pytestmark = pytest.mark.broker

MOST = 1_000_000
ROOM = {"max.message.bytes": str(4 * MOST)}
BOUNDS = {"fetch.max.bytes": MOST, "max.partition.fetch.bytes": MOST, "receive.message.max.bytes": MOST + 512}
LARGE = random.Random(1).randbytes(MOST).hex()
NOW_MS = time.time_ns() // 1_000_000


def test_a_reader_gets_an_error_for_the_partition_and_the_records_of_the_others(broker: Broker) -> None:
    topic = f"oversized-{uuid.uuid4().hex[:8]}"
    kafka: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
    client = AdminClient(kafka)
    (made,) = client.create_topics([NewTopic(topic, 4, 1, config=ROOM)]).values()
    made.result(PATIENCE)
    for partition in range(4):
        with RawClient(broker.bootstrap_servers, topic, partition) as producer:
            producer.write([Record(b"k", b"%d" % partition, (), NOW_MS)])
            if partition == 1:
                producer.write([Record(b"k", LARGE.encode(), (), NOW_MS)])
    without_ends = {"enable.partition.eof": False}
    consumer = BoundedConsumer({**without_group(kafka, "earliest"), **BOUNDS, **without_ends})
    came, errors = list[tuple[int, int]](), list[Any]()

    def read() -> bool:
        for message in consumer.consume(100, 0.2):
            if message.error() is None:
                came.append((message.partition(), message.offset()))
            else:
                errors.append((message.partition(), message.offset(), message.error()))
        return len(came) >= 5 and len(errors) >= 1

    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(4)])
        wait_until(lambda: read() or (len(came) == 4 and bool(errors)), PATIENCE, lambda: f"{came} {errors}")
        with RawClient(broker.bootstrap_servers, topic, 2) as producer:
            producer.write([Record(b"k", b"more", (), NOW_MS)])
        wait_until(read, PATIENCE, lambda: f"{came} {errors}")
    finally:
        consumer.close()
    assert sorted(came) == [(0, 0), (1, 0), (2, 0), (2, 1), (3, 0)]
    ((partition, offset, error),) = errors
    assert (partition, offset, error.code()) == (1, 1, KafkaError.MSG_SIZE_TOO_LARGE)
    assert f"topic {topic} partition 1 is not read at offset 1" in error.str()
    assert f"must have at most {MOST + 512:,}; raise receive.message.max.bytes" in error.str()


def test_a_worker_reports_the_partition_and_processes_the_others(broker: Broker, tmp_path: Path) -> None:
    settings = UNHURRIED | {
        "GROVE_KAFKA_FETCH_MAX_BYTES": str(MOST),
        "GROVE_KAFKA_MAX_PARTITION_FETCH_BYTES": str(MOST),
        "GROVE_KAFKA_RECEIVE_MESSAGE_MAX_BYTES": str(MOST + 512),
    }
    place = Installation(broker.bootstrap_servers, "long.", 2, tmp_path, settings, module="streamapp worker")
    place.configure(place.names.instances, ROOM)
    with (
        RawClient(place.servers, place.names.instances, 0) as first,
        RawClient(place.servers, place.names.instances, 1) as second,
        place.worker("w") as worker,
    ):
        worker.wait_until_ready()
        large = orjson.dumps({"id": "large", "features": {"x": 1}, "note": LARGE})
        first.write([Record(b"m", large, (), NOW_MS)])
        message = f"topic {place.names.instances} partition 0 is not read: a batch makes an answer of "
        wait_until(lambda: message in worker.log, PATIENCE, lambda: worker.log)
        for number in range(20):
            second.write([Record(b"m", orjson.dumps({"id": str(number), "features": {"x": 1}}), (), NOW_MS)])
            wait_until(
                lambda n=number: len(place.read(place.names.predictions)) == n + 1,  # type: ignore[misc]
                PATIENCE,
                lambda: worker.log,
            )
        assert worker.log.count(message) == 1
        assert "raise receive.message.max.bytes" in worker.page("/livez?verbose")[1]
        assert worker.terminate() == 0, worker.log
