"""Records that are too large for a topic, on a real broker: what fits does, what does not is put aside."""

import os
import uuid
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from streamapp.worker.outputs.record_sizes import record_bytes
from tests.broker.kafka_log import read_topic
from tests.broker.workers import PATIENCE, UNHURRIED, Installation, ms_ago
from tests.conftest import Broker
from topics.clients.sender import Sender

pytestmark = pytest.mark.broker

LIMIT = 5_000


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("headers", [0, 1, 60])
def test_a_record_as_large_as_the_limit_is_taken(broker: Broker, compression: str, headers: int) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    topic = f"sizes-{uuid.uuid4().hex[:8]}"
    made = NewTopic(topic, 1, 1, config={"max.message.bytes": str(LIMIT), "compression.type": "producer"})
    client = AdminClient({**kafka})
    client.create_topics([made])[topic].result(PATIENCE)
    given = [(f"näme-{i}", os.urandom(20)) for i in range(headers)]
    room = LIMIT - record_bytes(b"key", b"", given)
    sender = Sender(kafka | {"compression.type": compression, "message.max.bytes": LIMIT})
    values = [b"before", os.urandom(room), os.urandom(room), b"behind"]
    sender.send_run(topic, 0, values, [b"key"] * 4, [ms_ago(60), 0, ms_ago(60), 0], [given] * 4)
    sender.flush()
    sender.close()
    assert [message.value() for message in read_topic(kafka, topic)] == values


def test_outputs_and_records_that_are_too_large_end_no_worker(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "large.", 2, tmp_path, module="streamapp worker")
    place.configure(place.names.predictions, {"max.message.bytes": "2000"})
    producer = place.producer(**{"message.max.bytes": 40_000_000, "compression.type": "gzip"})

    def produce(identity: str) -> None:
        value = orjson.dumps({"id": identity, "features": {"x": 1}})
        producer.produce(place.names.instances, value, b"key", 0)

    produce("before")
    produce("large" * 1000)
    producer.produce(place.names.instances, bytes(30_000_000), b"key", 0)  # next to nothing when compressed
    produce("behind")
    assert producer.flush(PATIENCE) == 0
    with place.worker("w", fresh=False, GROVE_TEXT_MAX_BYTES="5000", **UNHURRIED) as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.metric_of("grove_dlq_records_total", reason="output-too-large") == 1
        assert worker.metric("grove_outputs_too_large_total") == 1
        assert worker.terminate() == 0
    assert [answer["id"] for answer in place.read(place.names.predictions)] == ["before", "behind"]
    output, record = place.raw(place.names.dead_letters)
    headers = dict(output.headers())
    assert headers["grove-dlq-reason"] == b"output-too-large"
    assert orjson.loads(output.value())["id"] == "large" * 1000
    assert b"more than max.message.bytes=2000 of topic" in headers["__streams.errors.message"]
    headers = dict(record.headers())
    assert headers["grove-dlq-reason"] == b"too-large"
    assert (headers["grove-dlq-left-out"], record.value()) == (b"value", None)
    assert (record.key(), headers["__streams.errors.offset"]) == (b"key", b"2")


def test_batches_are_no_larger_than_the_smallest_topic_takes(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "batches.", 2, tmp_path, module="streamapp worker")
    place.configure(place.names.predictions, {"max.message.bytes": "2000"})
    producer, n = place.producer(), 3000
    for i in range(n):
        value = orjson.dumps({"id": os.urandom(60).hex(), "features": {"x": i}})  # hardly to be compressed
        producer.produce(place.names.instances, value, b"key", 0)
    assert producer.flush(PATIENCE) == 0
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    assert len(place.read(place.names.predictions)) == n


def test_a_topic_of_dead_letters_without_room_for_their_headers_is_said_at_once(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "narrow.", 2, tmp_path, module="streamapp worker")
    place.configure(place.names.dead_letters, {"max.message.bytes": "1000"})
    with place.worker("w") as worker:
        assert worker.wait() == 78
        assert f"max.message.bytes=1000 of topic '{place.names.dead_letters}' must be at least" in worker.log
