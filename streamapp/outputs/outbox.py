"""The way out: effects to records to the broker, through one idempotent producer of the worker.

Order is that of the input, partition that of the input. What was sent is delivered once `flush` has returned;
it raises DeliveryError, with topic, partition and reason, when something could not be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamapp.outputs.outgoing import Encoder
from streamapp.settings.clients import librdkafka_properties
from streamapp.task.effects import Effects
from topics.definitions import BLOCK_BYTES, ROOM_BYTES, TopicNames
from topics.records import RawRecords
from topics.sender import Sender

if TYPE_CHECKING:
    from streamapp.settings import Settings


class Outbox:
    """Sends effects."""

    def __init__(self, settings: Settings, names: TopicNames) -> None:
        self._encoder = Encoder.from_settings(settings, names)
        self._sender = Sender(
            {"message.max.bytes": BLOCK_BYTES + ROOM_BYTES, **librdkafka_properties(settings)}
        )

    def send(self, partition: int, raw: RawRecords, effects: Effects) -> None:
        """Hand the outputs of a run to the producer; wait while its queue is full."""
        for each in self._encoder.encode(raw, effects):
            self._sender.send_run(
                each.topic, partition, each.values, each.keys, each.timestamps, each.headers
            )

    def flush(self) -> None:
        """Return when everything that was sent is delivered; raise DeliveryError if something cannot be."""
        self._sender.flush()
