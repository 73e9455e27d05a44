"""A real broker has the records that a sender was given, or the sender has an error."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.kafka_log import read_topic
from tests.broker.topics_made import made_topic
from topics.clients.sender import Sender
from topics.columns.records import Headers
from topics.errors import DeliveryError

pytestmark = pytest.mark.broker

HEADERS: list[Headers] = [[("name", b"content")], [], [("name", None)]]
LIMIT = 2000


@pytest.fixture
def topic(kafka: dict[str, Any]) -> str:
    return made_topic(kafka, "sender", 2, {"max.message.bytes": str(LIMIT)})


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
