"""A real broker sees no difference between librdkafka's own client and confluent-kafka's."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.broker.kafka_log import read_topic
from tests.conftest import Broker
from topics.clients import admin
from topics.clients.cluster import Cluster
from topics.clients.group_member import GroupMember
from topics.clients.native_producer import NativeProducer
from topics.clients.sender import Sender
from topics.clients.transactional_sender import TransactionalSender
from topics.columns.records import Headers
from topics.errors import AbortedError, DeliveryError

pytestmark = pytest.mark.broker

CLIENTS: dict[str, bool] = {"confluent-kafka": False, "librdkafka": True}
N = 3
HEADERS: list[Headers] = [[("name", b"content")], [], [("name", None)]]
LIMIT = 2000


@pytest.fixture(params=CLIENTS)
def native(request: pytest.FixtureRequest) -> bool:
    """Give what makes a sender use one client or the other."""
    return CLIENTS[request.param]


@pytest.fixture
def kafka(broker: Broker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def topic(kafka: dict[str, Any]) -> str:
    name = f"native-{uuid.uuid4().hex[:8]}"
    cluster = Cluster(kafka)
    made = NewTopic(name, 2, 1, config={"max.message.bytes": str(LIMIT)})
    cluster.client.create_topics([made])[name].result()
    admin.wait_until_ready(cluster, [name])
    return name


def opened(kafka: dict[str, Any], name: str, native: bool) -> TransactionalSender:
    sender = TransactionalSender(kafka, name, native=native)
    assert isinstance(sender._producer, NativeProducer if native else Producer)
    sender.open()
    return sender


def values_of(kafka: dict[str, Any], topic: str) -> list[bytes | None]:
    return [message.value() for message in read_topic(kafka, topic)]


def test_a_transaction_is_seen_with_its_offsets_and_what_is_noted_with_them(
    kafka: dict[str, Any], topic: str, native: bool
) -> None:
    sender = opened(kafka, topic, native)
    sender.send_run(topic, 1, [b"a", None, b""], [b"k", None, b""], [1, 2, 3], HEADERS)
    offsets = {(topic, 0): 7, (topic, 1): 8}
    sender.commit(offsets, GroupMember(topic), {(topic, 0): "topic-id=x"})
    sender.send_run(topic, 1, [b"thrown away"], [b"k"], [4])
    sender.abort()
    sender.open()
    sender.send_run(topic, 1, [b"behind"], [b"k"], [5])
    sender.commit()
    sender.close()
    messages = [
        (message.value(), message.key(), message.timestamp()[1], message.headers())
        for message in read_topic(kafka, topic)
    ]
    assert messages == [
        (b"a", b"k", 1, HEADERS[0]),
        (None, None, 2, None),
        (b"", b"", 3, HEADERS[2]),
        (b"behind", b"k", 5, None),
    ]
    consumer = Consumer({**kafka, "group.id": topic})
    committed = consumer.committed([TopicPartition(topic, number) for number in range(2)], timeout=20)
    consumer.close()
    noted = [(position.partition, position.offset, position.metadata or "") for position in committed]
    assert noted == [(0, 7, "topic-id=x"), (1, 8, "")]


def test_whose_id_another_one_has_is_fenced_and_may_open_anew(
    kafka: dict[str, Any], topic: str, native: bool
) -> None:
    old = opened(kafka, topic, native)
    old.send_run(topic, 0, [b"old"], [b"k"], [1])
    new = opened(kafka, topic, native)
    new.send_run(topic, 0, [b"new"], [b"k"], [1])
    new.commit()
    with pytest.raises(AbortedError, match=f"transactional.id={topic}: the broker has ended the transaction"):
        old.commit()
    with pytest.raises(AbortedError, match="another producer has this id"):
        old.send_run(topic, 0, [b"old"], [b"k"], [1])
    old.abort()
    old.open()
    old.send_run(topic, 0, [b"again"], [b"k"], [1])
    old.commit()
    assert values_of(kafka, topic) == [b"new", b"again"]


def test_a_member_that_its_group_does_not_know_commits_nothing(
    kafka: dict[str, Any], topic: str, native: bool
) -> None:
    sender = opened(kafka, topic, native)
    sender.send_run(topic, 0, [b"zombie"], [b"k"], [1])
    with pytest.raises(AbortedError, match="unknown member|Unknown member|generation"):
        sender.commit({(topic, 0): 7}, GroupMember(topic, 3, "nobody"))
    sender.abort()
    assert values_of(kafka, topic) == []


def test_a_record_that_the_topic_refuses_is_counted_and_aborts_its_transaction(
    kafka: dict[str, Any], topic: str, native: bool
) -> None:
    large = bytes(range(256)) * 12
    sender = Sender(kafka | {"compression.type": "none"}, native=native)
    sender.offer_run(topic, 0, [large], [b"k"], [0])
    with pytest.raises(DeliveryError, match=rf"1 record was not delivered; {topic}\[0\]: .*too large"):
        sender.flush()
    sender.close()
    transactional = opened(kafka | {"compression.type": "none"}, topic, native)
    transactional.offer_run(topic, 0, [large], [b"k"], [0])
    with pytest.raises(AbortedError):
        transactional.commit()
    transactional.abort()
    assert values_of(kafka, topic) == []
