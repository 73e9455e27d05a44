"""Delivery terms: the properties of a client that bound how long and in which form it delivers records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from topics.clients.sender import BATCH_BYTES
from topics.definitions import BLOCK_BYTES
from topics.errors import BrokerError
from topics.producing.broker_connections import REQUEST_MS
from topics.producing.compression import codec_of

DELIVERY_MS: Final = 300_000
"""`delivery.timeout.ms`, as for all of librdkafka's producers."""

PROPAGATION_MS: Final = 30_000
"""`topic.metadata.propagation.max.ms`: how long a topic may be unknown, since brokers learn of a new one one
after another.
"""

PAUSE_MS: Final = 100
"""`retry.backoff.ms`"""

LONGEST_PAUSE_MS: Final = 1000
"""`retry.backoff.max.ms`"""

_ALL_REPLICAS: Final = ("all", "-1")


@dataclass(frozen=True, slots=True)
class DeliveryTerms:
    """What a producer without transactions promises; the names of properties are librdkafka's."""

    delivery_s: float  # after this time a record counts as not delivered
    request_ms: int  # how long a request may be unanswered
    pause_s: float  # before a refused request is repeated; each further pause is twice as long
    longest_pause_s: float
    propagation_s: float  # how long a topic may be unknown
    linger_s: float  # how long records wait for more
    batch_bytes: int  # of a batch with more than one record, before compression
    record_bytes: int  # of a record
    codec: int
    level: int

    @classmethod
    def of(cls, kafka: Mapping[str, Any]) -> DeliveryTerms:
        """Return the terms of these properties; raise BrokerError if one of them cannot be kept."""
        acks = str(kafka.get("acks", "all"))
        if acks not in _ALL_REPLICAS:
            message = (
                f"the producer's properties are wrong: acks={acks} must be all for an idempotent producer; "
                "correct the setting"
            )
            raise BrokerError(message)
        pause_ms = int(kafka.get("retry.backoff.ms", PAUSE_MS))
        return cls(
            delivery_s=_forever_if_0(
                int(kafka.get("delivery.timeout.ms", kafka.get("message.timeout.ms", DELIVERY_MS)))
            ),
            request_ms=int(kafka.get("request.timeout.ms", REQUEST_MS)),
            pause_s=pause_ms / 1000,
            longest_pause_s=max(pause_ms, int(kafka.get("retry.backoff.max.ms", LONGEST_PAUSE_MS))) / 1000,
            propagation_s=int(kafka.get("topic.metadata.propagation.max.ms", PROPAGATION_MS)) / 1000,
            linger_s=float(kafka.get("linger.ms", 0)) / 1000,
            batch_bytes=int(kafka.get("batch.size", BATCH_BYTES)),
            record_bytes=int(kafka.get("message.max.bytes", BLOCK_BYTES)),
            codec=codec_of(str(kafka.get("compression.type", "lz4"))),
            level=int(kafka.get("compression.level", -1)),
        )


def _forever_if_0(milliseconds: int) -> float:
    return milliseconds / 1000 if milliseconds > 0 else float("inf")
