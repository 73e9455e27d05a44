"""The way out: records to the broker, through one idempotent producer of the worker.

Order is that of the input, partition that of the input. What was sent is delivered once `flush` has returned;
it raises DeliveryError, with topic, partition and reason, when something could not be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from streamapp.outputs.limits import OutputLimits
from streamapp.outputs.outgoing import Outgoing
from streamapp.settings.clients import librdkafka_properties
from topics.sender import Sender

if TYPE_CHECKING:
    from streamapp.settings import Settings


class Outbox:
    """Sends records."""

    def __init__(self, settings: Settings, limits: OutputLimits) -> None:
        self._sender = Sender({**librdkafka_properties(settings), "message.max.bytes": limits.producer})

    def send(self, partition: int, records: Iterable[Outgoing]) -> None:
        """Hand the outputs of a run to the producer; wait while its queue is full."""
        for each in records:
            self._sender.send_run(
                each.topic, partition, each.values, each.keys, each.timestamps, each.headers
            )

    def flush(self) -> None:
        """Return when everything that was sent is delivered; raise DeliveryError if something cannot be."""
        self._sender.flush()
