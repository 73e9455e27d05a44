"""What a run led to, sent to librdkafka's built-in cluster: order, partition, times, headers, losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streamapp.settings import Settings
from streamapp.worker.journal.entry import Step
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.outputs.senders import plain_producer
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.results import Results
from streamapp.worker.reserved_ports import free_ports
from streamapp.worker.task.effects.effects import Alert, DeadLetter, Effects, Origin, PredictionGroup
from streamapp.worker.transport.runs import Run
from topics.codecs import decode_drift_alerts, decode_predictions
from topics.columns.records import DriftAlert, Predictions, RawRecords
from topics.definitions import TopicNames
from topics.errors import DeliveryError, Reason
from topics.producing.idempotent.idempotent_producer import IdempotentProducer

NAMES = TopicNames("t.")
LIMITS = OutputLimits.of_catalogue(NAMES)
NOW = 1_700_000_000_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Yield the address of librdkafka's mock cluster (4 partitions a topic), alive as long as its owner."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 3})
    metadata = owner.list_topics("t.predictions", timeout=60)
    for topic in ("t.dead-letters", "t.drift-alerts"):
        owner.list_topics(topic, timeout=60)
    broker = next(iter(metadata.brokers.values()))
    yield f"{broker.host}:{broker.port}"
    owner.flush(1)


def sender_to(cluster: str, **kafka: Any) -> IdempotentProducer:
    return plain_producer(Settings(bootstrap_servers=cluster, kafka=kafka), LIMITS)


def send(sender: IdempotentProducer, run: RawRecords, effects: Effects) -> None:
    pipeline = Pipeline(Settings(topics_prefix="t."), sender, Metrics(), partitions=4, limits=LIMITS)
    records = Encoder(NAMES).encode(run, effects)
    position = run.offsets[-1] + 1
    step = Step("instances", position)
    pipeline.send([Results(Run(run.topic, run, position), effects, records, step, 0)])


def raw(n: int, *, headers: bool = False) -> RawRecords:
    return RawRecords(
        "t.instances",
        2,
        list(range(100, 100 + n)),
        [NOW + 10 * i for i in range(n)],
        [f"m{i % 3}".encode() for i in range(n)],
        [b'{"features":[1]}'] * n,
        [
            [("traceparent", b"00-%d" % i), ("content-type", b"application/json")] if headers else ()
            for i in range(n)
        ],
    )


def answers(n: int, prefix: str = "i") -> Effects:
    predictions = Predictions(
        ("a", "b"),
        [f"{prefix}{i}" for i in range(n)],
        np.arange(n, dtype=np.int32) % 2,
        np.full((n, 2), 0.5),
        np.arange(n, dtype=np.int64),
    )
    return Effects(answers=[PredictionGroup(np.arange(n, dtype=np.int32), predictions)])


def read(cluster: str, topic: str, start: int, n: int) -> list[Any]:
    """Return n messages of partition 2 from an offset on."""
    consumer = Consumer({"bootstrap.servers": cluster, "group.id": "reader", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 2, start)])
        messages: list[Any] = []
        while len(messages) < n:
            got = consumer.consume(n - len(messages), timeout=60)
            assert got, f"only {len(messages)} of {n} messages came"
            messages += got
        return messages
    finally:
        consumer.close()


def end_of(cluster: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster, "group.id": "reader"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 2), timeout=60)[1])
    finally:
        consumer.close()


def test_answers_arrive_in_order_with_key_timestamp_and_partition_of_their_instances(cluster: str) -> None:
    start = end_of(cluster, NAMES.predictions)
    sender = sender_to(cluster)
    send(sender, raw(50), answers(50))
    sender.flush()
    messages = read(cluster, NAMES.predictions, start, 50)
    decoded = decode_predictions([message.value() for message in messages])
    assert decoded.ids == [f"i{i}" for i in range(50)]
    assert [message.key() for message in messages] == [f"m{i % 3}".encode() for i in range(50)]
    assert [message.timestamp()[1] for message in messages] == [NOW + 10 * i for i in range(50)]
    assert {message.partition() for message in messages} == {2}
    assert {message.headers() for message in messages} == {None}


def test_trace_headers_of_the_question_come_with_the_answer(cluster: str) -> None:
    start = end_of(cluster, NAMES.predictions)
    sender = sender_to(cluster)
    send(sender, raw(3, headers=True), answers(3))
    sender.flush()
    messages = read(cluster, NAMES.predictions, start, 3)
    assert [message.headers() for message in messages] == [[("traceparent", b"00-%d" % i)] for i in range(3)]


def test_a_full_queue_is_waited_for_and_keeps_the_order(cluster: str) -> None:
    start = end_of(cluster, NAMES.predictions)
    sender = sender_to(cluster, **{"queue.buffering.max.messages": "100"})
    send(sender, raw(1000), answers(1000, "q"))
    sender.flush()
    decoded = decode_predictions(
        [message.value() for message in read(cluster, NAMES.predictions, start, 1000)]
    )
    assert decoded.ids == [f"q{i}" for i in range(1000)]


def test_a_dead_letter_is_the_untouched_record_with_the_reason_in_its_headers(cluster: str) -> None:
    start = end_of(cluster, NAMES.dead_letters)
    origin = Origin("t.labels", 2, 77, NOW, None, None, [("mine", b"\x00\xff"), ("grove-dlq-attempts", b"2")])
    broken = Origin("t.instances", 2, 78, NOW + 1, b"k", b"{not json", ())
    letters = [
        DeadLetter(origin, Reason.NULL_VALUE, "the value must not be null"),
        DeadLetter(broken, Reason.NOT_JSON, "unexpected end", rows=((3, Reason.WRONG_TYPE),)),
    ]
    sender = sender_to(cluster)
    send(sender, raw(1), Effects(dead_letters=letters))
    sender.flush()
    first, second = read(cluster, NAMES.dead_letters, start, 2)
    assert (first.key(), first.value(), first.timestamp()[1]) == (None, None, NOW)
    assert first.headers() == [
        ("mine", b"\x00\xff"),
        ("grove-dlq-attempts", b"2"),
        ("__streams.errors.topic", b"t.labels"),
        ("__streams.errors.partition", b"2"),
        ("__streams.errors.offset", b"77"),
        ("__streams.errors.exception", b"MalformedRecord"),
        ("__streams.errors.message", b"the value must not be null"),
        ("grove-dlq-reason", b"null-value"),
        ("grove-dlq-first-seen", str(NOW).encode()),
        ("grove-dlq-attempts", b"3"),
    ]
    assert (second.key(), second.value()) == (b"k", b"{not json")
    assert dict(second.headers())["grove-dlq-rows"] == b'{"wrong-type": "3"}'


def test_a_drift_alert_has_key_and_timestamp_of_the_record_that_raised_it(cluster: str) -> None:
    start = end_of(cluster, NAMES.drift_alerts)
    alert = DriftAlert("drift", "ddm", 0.4, "new tree", version=12, instance_id="x")
    sender = sender_to(cluster)
    send(sender, raw(5), Effects(alerts=[Alert(4, alert)]))
    sender.flush()
    (message,) = read(cluster, NAMES.drift_alerts, start, 1)
    assert decode_drift_alerts([message.value()]) == [alert]
    assert (message.key(), message.timestamp()[1]) == (b"m1", NOW + 40)


def test_a_record_that_is_too_large_is_an_error_with_topic_and_partition(cluster: str) -> None:
    sender = plain_producer(Settings(bootstrap_servers=cluster), OutputLimits({}, producer=2000))
    huge = DeadLetter(Origin("t.instances", 2, 1, NOW, b"k", bytes(5000), ()), Reason.NOT_JSON, "x")
    with pytest.raises(DeliveryError, match=r"t\.dead-letters\[2\]: .*too large"):
        send(sender, raw(1), Effects(dead_letters=[huge]))


def test_close_gives_up_what_is_not_delivered() -> None:
    sender = sender_to(f"127.0.0.1:{free_ports()}", log_level="0")
    send(sender, raw(3), answers(3))
    sender.close()
    with pytest.raises(DeliveryError, match="3 records were not delivered"):
        sender.flush()


def test_flush_raises_when_a_record_was_not_delivered() -> None:
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    broker = next(iter(owner.list_topics("t.predictions", timeout=60).brokers.values()))
    sender = sender_to(f"{broker.host}:{broker.port}", **{"delivery.timeout.ms": "4000", "log_level": "0"})
    send(sender, raw(1), answers(1))
    sender.flush()
    del owner  # the broker is gone
    send(sender, raw(3), answers(3))
    with pytest.raises(DeliveryError, match=r"[1-3] records? w(as|ere) not delivered; t\.predictions\[2\]: "):
        sender.flush()
