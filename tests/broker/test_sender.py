"""A real broker has the records that a sender was given, or the sender has an error."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from tests.broker.kafka_log import KEPT, read_topic
from tests.conftest import Broker
from topics.clients import admin
from topics.clients.cluster import Cluster
from topics.clients.sender import Sender
from topics.columns.records import Headers
from topics.errors import DeliveryError

pytestmark = pytest.mark.broker

HEADERS: list[Headers] = [[("name", b"content")], [], [("name", None)]]
LIMIT = 2000


@pytest.fixture
def kafka(broker: Broker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def topic(kafka: dict[str, Any]) -> str:
    name = f"sender-{uuid.uuid4().hex[:8]}"
    cluster = Cluster(kafka)
    made = NewTopic(name, 2, 1, config={"max.message.bytes": str(LIMIT), **KEPT})
    cluster.client.create_topics([made])[name].result()
    admin.wait_until_ready(cluster, [name])
    return name


def test_records_are_seen_as_they_were_given(kafka: dict[str, Any], topic: str) -> None:
    sender = Sender(kafka)
    sender.send_run(topic, 1, [b"a", None, b""], [b"k", None, b""], [1, 2, 3], HEADERS)
    sender.flush()
    sender.close()
    messages = [
        (message.value(), message.key(), message.timestamp()[1], message.headers())
        for message in read_topic(kafka, topic)
    ]
    assert messages == [(b"a", b"k", 1, HEADERS[0]), (None, None, 2, None), (b"", b"", 3, HEADERS[2])]


def test_a_record_that_the_topic_refuses_is_counted(kafka: dict[str, Any], topic: str) -> None:
    large = bytes(range(256)) * 12
    sender = Sender(kafka | {"compression.type": "none"})
    sender.send_run(topic, 0, [large], [b"k"], [0])
    with pytest.raises(DeliveryError, match=rf"1 record was not delivered; {topic}\[0\]: .*too large"):
        sender.flush()
    sender.close()
