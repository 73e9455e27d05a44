"""Outbox: sends output records through the worker's producer.

Order is that of the input, partition that of the input. What was sent is delivered once `flush` has returned;
it raises DeliveryError, with topic, partition and reason, when something could not be.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamapp.outputs.outgoing import OutputRecords
from topics.sender import Sender


class Outbox:
    """Sends records."""

    def __init__(self, sender: Sender) -> None:
        """`sender`: takes outputs; with exactly once as parts of its transaction."""
        self._sender = sender

    def send(self, partition: int, records: Iterable[OutputRecords]) -> None:
        """Hand the outputs of a run to the producer; what it has no room for is kept, in order."""
        for each in records:
            self._sender.offer_run(
                each.topic, partition, each.values, each.keys, each.timestamps, each.headers
            )

    @property
    def is_full(self) -> bool:
        """Whether outputs wait for room in the producer's queue."""
        return self._sender.is_full

    def drain(self) -> None:
        """Return when the producer has taken everything; for a thread that may wait."""
        self._sender.drain()

    def flush(self) -> None:
        """Return when everything that was sent is delivered; raise DeliveryError if something cannot be."""
        self._sender.flush()

    def close(self) -> None:
        """Give up what is not delivered: no thread of the producer waits for a broker that is away."""
        self._sender.close()
