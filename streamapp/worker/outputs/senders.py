"""Producers of a worker, made from its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamapp.settings.clients import librdkafka_properties
from streamapp.worker.outputs.record_sizes import OutputLimits
from topics.clients.sender import BATCH_BYTES
from topics.definitions import TopicNames
from topics.producing.idempotent.idempotent_producer import IdempotentProducer
from topics.producing.transactional_producer import TransactionalProducer

if TYPE_CHECKING:
    from streamapp.settings import Settings


def plain_producer(
    settings: Settings, limits: OutputLimits, stopped: Callable[[], bool] = lambda: False
) -> IdempotentProducer:
    """Return an idempotent producer, whose records are visible at once; `stopped`: whether the worker is
    ending.
    """
    return IdempotentProducer(
        _properties(settings, limits), stopped, topics=[TopicNames(settings.topics_prefix).predictions]
    )


def transactional_producer(
    settings: Settings, limits: OutputLimits, instance: str, stopped: Callable[[], bool]
) -> TransactionalProducer:
    """Return the transactional producer of the worker `instance`; `stopped`: whether the worker is ending."""
    return TransactionalProducer(
        _properties(settings, limits),
        f"{settings.application_id}-{instance}",
        stopped,
        settings.transaction_timeout_ms,
        topics=[TopicNames(settings.topics_prefix).journal],
    )


def _properties(settings: Settings, limits: OutputLimits) -> dict[str, Any]:
    given = librdkafka_properties(settings)
    batch = str(given.get("batch.size", BATCH_BYTES))
    # A topic refuses a batch above its max.message.bytes, however small the records in it are.
    limited = {"batch.size": min(int(batch), limits.batch)} if batch.isdecimal() else {}
    return {**given, **limited, "message.max.bytes": limits.producer}
