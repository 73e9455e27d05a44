"""A real broker takes the transactions of our own producer as it takes those of librdkafka's."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streamapp.embedded import EmbeddedBroker
from tests.broker import topics_made
from tests.broker.kafka_log import read_committed_topic
from topics.clients.group_member import GroupMember
from topics.columns.records import Headers
from topics.errors import AbortedError, FencedError
from topics.producing import transactional_producer
from topics.producing.transactional_producer import TransactionalProducer

pytestmark = pytest.mark.broker

PARTITIONS = 3
LIMIT = 20_000
Record = tuple[int, bytes | None, bytes | None, int, Headers]
"""Partition, value, key, timestamp, headers."""
LOADING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
"""Codes of a group's first coordinator, which is not ready yet."""
HEADERS: list[Headers] = [[("name", b"content"), ("other", b"")], [], [("name", None)]]


def made_topic(kafka: dict[str, Any]) -> str:
    return topics_made.made_topic(kafka, "own", PARTITIONS, {"max.message.bytes": str(LIMIT)})


@pytest.fixture
def topic(kafka: dict[str, Any]) -> str:
    return made_topic(kafka)


def opened(producers: list[Any], kafka: dict[str, Any], name: str, **named: Any) -> TransactionalProducer:
    producer = TransactionalProducer(kafka, name, **named)
    producers.append(producer)
    producer.open()
    return producer


def rows_of(kafka: dict[str, Any], topic: str) -> list[Any]:
    return [
        (message.partition(), message.key(), message.value(), message.timestamp()[1], message.headers())
        for message in read_committed_topic(kafka, topic)
    ]


def values_of(kafka: dict[str, Any], topic: str) -> list[bytes | None]:
    return [message.value() for message in read_committed_topic(kafka, topic)]


def positions_of(kafka: dict[str, Any], group: str, topic: str) -> list[tuple[int, str]]:
    consumer = Consumer({**kafka, "group.id": group})
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    committed = None
    while committed is None:
        try:
            committed = consumer.committed(places, timeout=20)
        except KafkaException as error:
            if error.args[0].code() not in LOADING:
                raise
    consumer.close()
    return [(position.offset, position.metadata or "") for position in committed]


def librdkafkas(kafka: dict[str, Any], topic: str, commits: list[list[Record]]) -> None:
    """Commit records by librdkafka, with offsets and a note."""
    producer = Producer({**kafka, "transactional.id": topic, "log_level": 0})
    member = Consumer({**kafka, "group.id": topic, "log_level": 0})
    producer.init_transactions(60)
    for commit, records in enumerate(commits):
        producer.begin_transaction()
        for partition, value, key, timestamp, headers in records:
            producer.produce(topic, value, key, partition, timestamp=timestamp, headers=[*headers])
        offsets = [
            TopicPartition(topic, 0, commit, metadata="topic-id=x"),
            TopicPartition(topic, 2, 10 + commit),
        ]
        producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), 60)
        producer.commit_transaction(60)
    member.close()


def ours(kafka: dict[str, Any], topic: str, commits: list[list[Record]]) -> None:
    """Do the same by our own producer, a run for each half of the records."""
    producer = TransactionalProducer(kafka, topic)
    producer.open()
    for commit, records in enumerate(commits):
        for part in (records[:200], records[200:]):
            partitions, values, keys, timestamps, headers = zip(*part, strict=True)
            producer.send_run(topic, np.array(partitions), values, keys, timestamps, headers)
        offsets = {(topic, 0): commit, (topic, 2): 10 + commit}
        producer.commit(offsets, GroupMember(topic), {(topic, 0): "topic-id=x"})
    producer.close()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_leaves_the_same_records_and_offsets(kafka: dict[str, Any], compression: str) -> None:
    def records(commit: int) -> list[Record]:
        plain: list[Record] = [
            (number * 7 % PARTITIONS, b"value-%d-%d" % (commit, number), b"k%d" % (number % 5), number, [])
            for number in range(1, 301)
        ]
        keys_and_values = [(b"a", b"k"), (None, None), (b"", b"")]
        return plain + [
            (1, value, key, at, headers)
            for at, ((value, key), headers) in enumerate(zip(keys_and_values, HEADERS, strict=True), 1)
        ]

    results = []
    for commit_all in (librdkafkas, ours):
        topic = made_topic(kafka)
        positions_of(kafka, topic, topic)  # librdkafka may wait for ever for a coordinator that still loads
        settings = {"compression.type": compression, "batch.size": 1000}
        commit_all(kafka | settings, topic, [records(commit) for commit in range(3)])
        results.append((rows_of(kafka, topic), positions_of(kafka, topic, topic)))
    assert results[0] == results[1]
    assert len(results[1][0]) == 3 * 303


def test_records_of_an_aborted_transaction_are_not_seen(
    kafka: dict[str, Any], topic: str, producers: list[Any]
) -> None:
    producer = opened(producers, kafka, topic)
    producer.send_run(topic, 0, [b"first"], [b"k"], [0])
    producer.commit()
    producer.send_run(topic, 0, [b"discarded"], [b"k"], [0])
    producer.flush()
    producer.abort()
    producer.open()
    producer.send_run(topic, 0, [b"not even sent"], [b"k"], [0])
    producer.abort()
    producer.open()
    producer.send_run(topic, 0, [b"second"], [b"k"], [0])
    producer.commit()
    producer.commit()
    assert values_of(kafka, topic) == [b"first", b"second"]


def test_a_producer_whose_id_another_one_has_is_fenced_and_may_open_again(
    kafka: dict[str, Any], topic: str, producers: list[Any]
) -> None:
    old = opened(producers, kafka, topic)
    old.send_run(topic, 0, [b"old"], [b"k"], [1])
    old.flush()
    new = opened(producers, kafka, topic)
    new.send_run(topic, 0, [b"new"], [b"k"], [1])
    new.commit()
    with pytest.raises(FencedError, match=f"transactional.id={topic}: the broker has ended the transaction"):
        old.commit()
    with pytest.raises(AbortedError, match="another producer has this id"):
        old.send_run(topic, 0, [b"old"], [b"k"], [1])
    old.abort()
    old.open()
    old.send_run(topic, 0, [b"again"], [b"k"], [1])
    old.commit()
    assert values_of(kafka, topic) == [b"new", b"again"]


def test_offsets_of_an_old_generation_are_refused_with_the_records(
    kafka: dict[str, Any], topic: str, producers: list[Any]
) -> None:
    consumer = Consumer({**kafka, "group.id": topic, "enable.auto.commit": False})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    member = str(consumer.memberid())
    producer = opened(producers, kafka, topic)
    for generation, name in ((0, member), (99, member), (1, "nobody")):
        producer.send_run(topic, 0, [b"zombie"], [b"k"], [1])
        with pytest.raises(AbortedError, match=r"TxnOffsetCommit: .*(generation|member)"):
            producer.commit({(topic, 0): 7}, GroupMember(topic, generation, name))
        producer.abort()
        producer.open()
    producer.send_run(topic, 0, [b"member"], [b"k"], [1])
    producer.commit({(topic, 0): 8}, GroupMember(topic, 1, member))
    consumer.close()
    assert values_of(kafka, topic) == [b"member"]
    assert positions_of(kafka, topic, topic)[0] == (8, "")


def test_a_record_that_the_topic_refuses_aborts_its_transaction(
    kafka: dict[str, Any], topic: str, producers: list[Any]
) -> None:
    producer = opened(producers, kafka | {"compression.type": "none"}, topic)
    producer.offer_run(topic, 0, [bytes(2 * LIMIT)], [b"k"], [0])
    with pytest.raises(AbortedError, match=r"1 records of .*\[0\] were not delivered: .*too large"):
        producer.commit()
    producer.abort()
    producer.open()
    producer.offer_run(topic, 0, [b"small"], [b"k"], [0])
    producer.commit()
    assert values_of(kafka, topic) == [b"small"]


def test_many_records_are_sent_before_the_commit(
    kafka: dict[str, Any], topic: str, producers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactional_producer, "EARLY_BYTES", 10_000)
    producer = opened(producers, kafka | {"compression.type": "none", "batch.size": LIMIT // 2}, topic)
    values = [b"%05d" % number + bytes(95) for number in range(1000)]
    with producer.gathering():
        producer.offer_run(topic, 1, values[:500], [None] * 500, [0] * 500)
        producer.offer_run(topic, 1, values[500:], [None] * 500, [0] * 500)
        assert producer.n_queued == 1000
    producer.hand_over()
    deadline = time.monotonic() + 60
    while producer.n_queued and time.monotonic() < deadline:
        time.sleep(0.01)
    assert producer.n_queued == 0
    producer.commit()
    assert values_of(kafka, topic) == values


def test_a_closed_producer_keeps_no_thread_waiting(
    private_broker: EmbeddedBroker,
) -> None:
    kafka = {"bootstrap.servers": private_broker.bootstrap_servers}
    topic = made_topic(kafka)
    producer = TransactionalProducer(kafka, topic)
    producer.open()
    private_broker.stop(kill=True)
    producer.offer_run(topic, 0, [b"lost"], [b"k"], [0])
    errors: list[AbortedError] = []

    def commit() -> None:
        try:
            producer.commit()
        except AbortedError as error:
            errors.append(error)

    waiting = threading.Thread(target=commit)
    waiting.start()
    while producer.call is None:
        time.sleep(0.001)
    producer.close()
    waiting.join(30)
    assert [str(error) for error in errors] == [f"transactional.id={topic}: the transaction was given up"]
    with pytest.raises(AbortedError, match="the producer is closed"):
        producer.send_run(topic, 0, [b"late"], [b"k"], [0])
    with pytest.raises(AbortedError, match="the producer is closed"):
        producer.abort()


@pytest.mark.parametrize("kill", [False, True])
def test_a_restart_of_the_broker_within_transactions_loses_and_doubles_nothing(
    private_broker: EmbeddedBroker, producers: list[Any], kill: bool
) -> None:
    """A transaction is committed, or aborted and sent again; its records and offset come together."""
    kafka = {"bootstrap.servers": private_broker.bootstrap_servers}
    topic = made_topic(kafka)
    producer = opened(producers, kafka, topic)
    is_down, is_over = threading.Event(), threading.Event()

    def restart() -> None:
        private_broker.stop(kill=kill)
        is_down.set()
        private_broker.start()
        is_over.set()

    restarting = threading.Thread(target=restart)
    number, committed = 0, 0
    deadline = time.monotonic() + 120
    while (not is_over.is_set() or number < 20) and time.monotonic() < deadline:
        if number == 5 and not restarting.ident:
            restarting.start()
        values = [b"%d-%d" % (number, partition) for partition in range(PARTITIONS)]
        try:
            producer.send_run(topic, np.arange(PARTITIONS), values, [b"k"] * PARTITIONS, [0] * PARTITIONS)
            producer.commit({(topic, 0): number + 1}, GroupMember(topic))
            committed += 1
        except AbortedError:
            producer.abort()
            producer.open()
            # As a worker does: the committed offset shows whether the transaction counts.
            if positions_of(kafka, topic, topic)[0][0] != number + 1:
                continue
        number += 1
    restarting.join()
    assert is_down.is_set()
    assert committed > 5
    expected = [b"%d-%d" % (at, partition) for partition in range(PARTITIONS) for at in range(number)]
    assert values_of(kafka, topic) == expected
    assert positions_of(kafka, topic, topic)[0][0] == number
