"""A client whose broker is away when it starts waits for it, and stops waiting when the worker stops."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from streamapp.transport.patience import be_patient


class Client:
    """aiokafka's client; nobody answers the first times."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.calls = refusals, 0

    async def bootstrap(self) -> None:
        self.calls += 1
        if self.calls <= self.refusals:
            raise KafkaConnectionError("Unable to bootstrap from …")


def test_it_asks_again_until_somebody_answers() -> None:
    client = Client(refusals=3)
    be_patient(client, stopping=lambda: False, again_s=0)
    asyncio.run(client.bootstrap())
    assert client.calls == 4


def test_it_does_not_wait_when_the_worker_stops() -> None:
    client = Client(refusals=9)
    be_patient(client, stopping=lambda: client.calls == 2, again_s=0)
    with pytest.raises(KafkaConnectionError):
        asyncio.run(client.bootstrap())
    assert client.calls == 2


def test_what_aiokafka_starts_begins_with_the_bootstrap() -> None:
    """Called again, it must find nothing half done."""
    assert "await self._client.bootstrap()" in inspect.getsource(AIOKafkaConsumer.start)
    assert "await self.client.bootstrap()" in inspect.getsource(AIOKafkaProducer.start)
