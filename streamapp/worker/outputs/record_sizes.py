"""Record sizes: how many bytes a record takes on the wire, and how many its topic allows.

A record alone must fit into a batch. The broker refuses a batch larger than `max.message.bytes` of its topic,
and the producer does not send a batch larger than its `message.max.bytes`. Sizes are taken before
compression, so that whether a record fits does not depend on the compression. They are upper bounds, by a few
bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamapp.errors import SettingsError
from topics.clients.cluster import Cluster
from topics.definitions import BLOCK_BYTES, BROKER_BYTES, ROOM_BYTES, TopicNames

RECORD_BYTES: Final = 61 + 36  # a batch's header, and the lengths and differences of its only record
HEADER_BYTES: Final = 10  # both lengths of a header

OUTPUT_BYTES: Final = 64 << 10
"""Bytes of the value of an output about a record, however small that is (max.output.bytes)."""

TIMES_INPUT: Final = 64
"""Bytes of such a value for each byte of the record it is about, if that is more."""

ROW_BYTES: Final = 256
"""Bytes of the answer to a block for each of its rows, if that is more: a row may be sent in a bit."""

HeaderList = list[tuple[str, bytes | None]]  # Kafka allows headers without a value


def record_bytes(key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Return the bytes that a record alone in its batch takes at most."""
    return RECORD_BYTES + len(key or b"") + len(value or b"") + headers_bytes(headers)


def headers_bytes(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Return the bytes of headers."""
    return sum(HEADER_BYTES + len(name.encode()) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """The largest record of each topic that a worker writes to."""

    topics: Mapping[str, int]  # topic -> its max.message.bytes
    producer: int = BLOCK_BYTES + ROOM_BYTES  # its message.max.bytes

    @staticmethod
    def of_catalogue(names: TopicNames) -> OutputLimits:
        """Return the limits of topics that have the catalogue's settings."""
        return OutputLimits(
            {name: names.all()[name].max_message_bytes or BROKER_BYTES for name in _outputs(names)}
        )

    @staticmethod
    def of_cluster(kafka: Mapping[str, Any], names: TopicNames) -> OutputLimits:
        """Return the limits that the cluster's topics have; `kafka`: properties of librdkafka's clients.

        SettingsError if the dead letters' topic has no room for the headers of a dead letter.
        """
        producer = str(kafka.get("message.max.bytes", BLOCK_BYTES + ROOM_BYTES))
        if not producer.isdecimal():
            message = f"message.max.bytes={producer!r} must be a whole number of bytes; correct the setting"
            raise SettingsError(message)
        visible = Cluster(kafka).message_limits(_outputs(names))  # settings that the client may read
        limits = OutputLimits({**OutputLimits.of_catalogue(names).topics, **visible}, int(producer))
        if limits.of(names.dead_letters) < ROOM_BYTES:
            message = (
                f"{limits.rule(names.dead_letters)} must be at least {ROOM_BYTES}, which the headers of a "
                f"dead letter may take; raise it"
            )
            raise SettingsError(message)
        return limits

    @property
    def batch(self) -> int:
        """Return the size of a batch, in bytes, that every topic takes; a single record may be larger."""
        return min(self.topics.values(), default=self.producer)

    def of(self, topic: str) -> int:
        """Return the bytes that a record of a topic may take."""
        return min(self.topics[topic], self.producer)

    def rule(self, topic: str) -> str:
        """Return the settings that limit the records of a topic, as text for people."""
        if self.producer < self.topics[topic]:
            return f"message.max.bytes={self.producer} of the worker's producer"
        return f"max.message.bytes={self.topics[topic]} of topic {topic!r}"


def _outputs(names: TopicNames) -> list[str]:
    return [
        name
        for name, topic in names.all().items()
        if (topic.direction == "out" or name == names.journal) and (names.features or not topic.optional)
    ]
