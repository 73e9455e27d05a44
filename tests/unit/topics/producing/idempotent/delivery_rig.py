"""Producers without transactions whose brokers are scripted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.topics.producing.idempotent.batches_read import numbers_of, records_of
from tests.unit.topics.producing.scripted_brokers import Script, ScriptedBrokers
from topics.producing.idempotent import delivery_flow
from topics.producing.idempotent.idempotent_producer import IdempotentProducer


class Rig:
    """Producers whose brokers are scripted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script: Script = {}
        self.brokers = ScriptedBrokers(self.script)
        self.producers: list[IdempotentProducer] = []
        monkeypatch.setattr(delivery_flow, "BrokerConnections", lambda *_: self.brokers)

    def producer(self, **kafka: Any) -> IdempotentProducer:
        usual = {"compression.type": "none", "retry.backoff.ms": 1, "retry.backoff.max.ms": 2}
        given = {name.replace("_", "."): value for name, value in kafka.items()}
        self.producers.append(IdempotentProducer(usual | given))
        return self.producers[-1]

    def values(self, partition: int = 0) -> list[bytes | None]:
        """Return the values in the log of a partition."""
        return [
            record[2] for wire in self.brokers.log.get(("a", partition), []) for record in records_of(wire)
        ]

    def numbers(self) -> list[tuple[int, int, int]]:
        """Return the numbers of each batch that was sent."""
        return [numbers_of(wire) for _, wires in self.brokers.sent for wire in wires]


def send(producer: IdempotentProducer, *values: bytes, partition: int = 0) -> None:
    producer.offer_run("a", partition, values, [b"k"] * len(values), [1] * len(values))


def send_and_flush(producer: IdempotentProducer, *values: bytes, partition: int = 0) -> None:
    send(producer, *values, partition=partition)
    producer.flush()


def drained(producer: IdempotentProducer) -> None:
    """Return when no record waits, though some have failed."""
    while producer.n_queued:
        producer._loop.run(producer._flow._sender.move(0.01))
