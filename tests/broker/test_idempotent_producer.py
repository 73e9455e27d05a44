"""A real broker takes records of our own producer without transactions as it takes those of librdkafka's."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

from streamapp.embedded import EmbeddedBroker
from tests.broker import topics_made
from tests.broker.kafka_log import read_topic
from topics.clients import stop_deadline
from topics.clients.sender import Sender
from topics.columns.records import Headers
from topics.errors import BrokerError, DeliveryError
from topics.producing.idempotent.idempotent_producer import IdempotentProducer
from topics.producing.transaction_requests import ProducerIdentity

pytestmark = pytest.mark.broker

PARTITIONS = 3
LIMIT = 20_000
HEADERS: list[Headers] = [[("name", b"content"), ("other", b"")], [], [("name", None)]]


def made_topic(kafka: dict[str, Any], **settings: str) -> str:
    limit = {"max.message.bytes": str(LIMIT)}
    return topics_made.made_topic(kafka, "deliveries", PARTITIONS, limit | settings)


def opened(producers: list[Any], kafka: dict[str, Any], **named: Any) -> IdempotentProducer:
    producer = IdempotentProducer(kafka, **named)
    producers.append(producer)
    return producer


def values_of(kafka: dict[str, Any], topic: str, partition: int = 0) -> list[bytes | None]:
    return [message.value() for message in read_topic(kafka, topic) if message.partition() == partition]


def send_values(producer: IdempotentProducer, topic: str, values: list[bytes], partition: int = 0) -> None:
    producer.send_run(topic, partition, values, [b"k"] * len(values), [0] * len(values))


def send_small_runs(producer: Sender | IdempotentProducer, topic: str) -> None:
    producer.send_run(topic, 1, [b"a", None, b""], [b"k", None, b""], [1, 2, 3], HEADERS)
    producer.send_run(topic, 2, [b"b"], [None], [4])


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_leaves_the_same_records(
    kafka: dict[str, Any], producers: list[Any], compression: str
) -> None:
    results = []
    settings = kafka | {"compression.type": compression, "batch.size": 1000}
    for of_kind in (Sender, IdempotentProducer):
        topic, producer = made_topic(kafka), of_kind(settings)
        producers.append(producer)
        for run in range(4):
            values = [b"value-%d-%d" % (run, number) for number in range(300)]
            keys, places = [b"k%d" % (n % 5) for n in range(300)], np.arange(300) * 7 % PARTITIONS
            if isinstance(producer, Sender):
                producer.send([topic] * 300, values, keys, places.tolist(), range(1, 301))
                send_small_runs(producer, topic)
                continue
            producer.send_run(topic, places, values, keys, range(1, 301))
            with producer.gathering():
                send_small_runs(producer, topic)
            producer.hand_over()
        producer.flush()
        assert producer.failed == 0
        assert isinstance(producer, Sender) or producer.n_queued == 0
        results.append(
            [
                (message.partition(), message.offset(), message.key(), message.value(), message.headers())
                for message in read_topic(kafka, topic)
            ]
        )
    assert results[0] == results[1]
    assert len(results[1]) == 4 * 304


@pytest.mark.parametrize("fault", ["a gap", "an old epoch", "an unknown id"])
def test_numbers_that_the_broker_refuses_are_replaced_and_nothing_is_lost(
    kafka: dict[str, Any], producers: list[Any], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, producer = made_topic(kafka), opened(producers, kafka)
    numberings = producer._flow._sender._numberings
    for text in (b"first", b"second", b"third"):
        send_values(producer, topic, [text, text])
        send_values(producer, topic, [text], 1)
        producer.flush()
        numbering = numberings[topic, 0]
        if fault == "a gap":
            numbering.following += 7
        elif fault == "an old epoch":
            newer = numbering.next_epoch
            assert newer is not None
            numberings[topic, 0] = newer
            send_values(producer, topic, [text])
            producer.flush()
            numberings[topic, 0] = numbering
        else:
            numbering.identity = ProducerIdentity(numbering.identity.producer + 1_000_000, 0)
            numbering.following = 77
    extra = 2 if fault == "an old epoch" else 0
    assert [value[:5] for value in values_of(kafka, topic) if value] == [
        text for text in (b"first", b"secon", b"third") for _ in range(2 + (extra > 0))
    ]
    assert values_of(kafka, topic, 1) == [b"first", b"second", b"third"]
    assert ("under new numbers" in caplog.text) == (fault != "an unknown id")


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_a_record_that_the_topic_refuses_fails_alone(
    kafka: dict[str, Any], producers: list[Any], compression: str
) -> None:
    topic, producer = made_topic(kafka), opened(producers, kafka | {"compression.type": compression})
    large = np.random.default_rng(1).bytes(2 * LIMIT)
    values = [b"%d" % number for number in range(7)]
    with producer.gathering():
        send_values(producer, topic, [*values[:4], large, *values[4:]])
        send_values(producer, topic, [b"other"] * 3000, 1)
    with pytest.raises(
        DeliveryError,
        match=rf"^1 record was not delivered; {topic}\[0\]: Broker: Message size too large; raise max",
    ):
        while True:
            producer.flush()
            producer.drain()
    while producer.n_queued:
        producer._loop.run(producer._flow._sender.move(0.5))
    assert values_of(kafka, topic) == values
    assert values_of(kafka, topic, 1) == [b"other"] * 3000


def test_a_record_with_a_timestamp_that_the_topic_refuses_fails_alone(
    kafka: dict[str, Any], producers: list[Any]
) -> None:
    topic = made_topic(kafka, **{"message.timestamp.before.max.ms": "3600000"})
    producer = opened(producers, kafka)
    producer.offer_run(topic, 0, [b"a", b"old", b"b", b"older"], [b"k"] * 4, [0, 1000, 0, 2000])
    with pytest.raises(DeliveryError, match=r"^2 records were not delivered; .*\[0\]: Broker: .*timestamp"):
        producer.flush()
    while producer.n_queued:
        producer._loop.run(producer._flow._sender.move(0.5))
    assert values_of(kafka, topic) == [b"a", b"b"]


def test_a_topic_that_does_not_exist_is_told_as_by_librdkafka(
    kafka: dict[str, Any], producers: list[Any]
) -> None:
    texts = []
    waits = {"topic.metadata.propagation.max.ms": 300}
    for of_kind in (Sender, IdempotentProducer):
        producer = of_kind(kafka | waits)
        producers.append(producer)
        producer.send_run("absent", 0, [b"x", b"y"], [b"k"] * 2, [0, 0])
        with pytest.raises(DeliveryError) as caught:
            producer.flush()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "create the topic with 'grove topics create'" in texts[1]
    producer = opened(producers, kafka | waits)
    topic = made_topic(kafka)
    producer.offer_run(topic, PARTITIONS, [b"x"], [b"k"], [0])
    with pytest.raises(DeliveryError, match=rf"{topic}\[{PARTITIONS}\]: Local: Unknown partition"):
        producer.flush()


def test_a_restart_of_the_broker_loses_nothing_and_keeps_the_order(
    private_broker: EmbeddedBroker, producers: list[Any]
) -> None:
    kafka = {"bootstrap.servers": private_broker.bootstrap_servers}
    topic, producer = made_topic(kafka), opened(producers, kafka)
    is_over = threading.Event()

    def restart() -> None:
        private_broker.stop(kill=True)
        private_broker.start()
        is_over.set()

    restarting = threading.Thread(target=restart)
    sent = 0
    for number in itertools.count():
        if number == 20:
            restarting.start()
        values = [b"%d-%d" % (number, partition) for partition in range(PARTITIONS)]
        producer.send_run(topic, np.arange(PARTITIONS), values, [b"k"] * PARTITIONS, [0] * PARTITIONS)
        sent = number + 1
        if number % 5 == 4:
            producer.flush()
        if is_over.is_set() and number % 20 == 19:
            break
    producer.flush()
    restarting.join()
    for partition in range(PARTITIONS):
        assert values_of(kafka, topic, partition) == [b"%d-%d" % (n, partition) for n in range(sent)]


def test_what_is_not_delivered_in_time_fails_and_a_stop_waits_no_longer(
    private_broker: EmbeddedBroker, producers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = {"bootstrap.servers": private_broker.bootstrap_servers}
    topic = made_topic(kafka)
    brief = opened(producers, kafka | {"delivery.timeout.ms": 500})
    stopped: list[bool] = []
    stopping = opened(producers, kafka, stopped=lambda: bool(stopped))
    for producer in (brief, stopping):
        send_values(producer, topic, [b"before"])
        producer.flush()
    private_broker.stop(kill=True)
    for producer in (brief, stopping):
        send_values(producer, topic, [b"x", b"y"])
    with pytest.raises(DeliveryError, match=r"^2 records were not delivered; .* Message timed out$"):
        brief.flush()
    stopped.append(True)
    monkeypatch.setattr(stop_deadline, "STOP_S", 0.5)
    with pytest.raises(
        BrokerError, match="2 records were not delivered within .* of the stop: the broker is"
    ):
        stopping.flush()
