"""A client whose broker is away when it starts waits for it, and stops waiting when the worker stops."""

from __future__ import annotations

import asyncio
import inspect
import ssl

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError

from streamapp.worker.transport.connect_retry import CREDENTIALS, NotLetInError, retry_connect


class Client:
    """aiokafka's client; nobody answers the first times."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.calls = refusals, 0
        self.hosts: list[tuple[str, int, int]] = []  # nobody to ask why

    async def bootstrap(self) -> None:
        self.calls += 1
        if self.calls <= self.refusals:
            raise KafkaConnectionError("Unable to bootstrap from …")


def test_it_asks_again_until_somebody_answers() -> None:
    client = Client(refusals=3)
    retry_connect(client, stopping=lambda: False, again_s=0)
    asyncio.run(client.bootstrap())
    assert client.calls == 4


def test_it_does_not_wait_when_the_worker_stops() -> None:
    client = Client(refusals=9)
    retry_connect(client, stopping=lambda: client.calls == 2, again_s=0)
    with pytest.raises(KafkaConnectionError):
        asyncio.run(client.bootstrap())
    assert client.calls == 2


def test_what_aiokafka_starts_begins_with_the_bootstrap() -> None:
    """Called again, it must find nothing half done."""
    assert "await self._client.bootstrap()" in inspect.getsource(AIOKafkaConsumer.start)
    assert "await self.client.bootstrap()" in inspect.getsource(AIOKafkaProducer.start)


class Refused:
    """A server that answers TLS with something else, as often as it is asked."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        writer.write(answer)
        await writer.drain()
        writer.close()


NO_TLS = b"HTTP/1.1 400 Bad Request\r\n\r\n"


def bootstrapped(server: Refused) -> None:
    """Let aiokafka's client look for its first broker at a server, by TLS."""

    async def story() -> None:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        client = AIOKafkaClient(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SSL",
            ssl_context=ssl.create_default_context(),
        )
        retry_connect(client, stopping=lambda: server.asked > 20, again_s=0)
        try:
            await client.bootstrap()
        finally:
            await client.close()
            listening.close()

    asyncio.run(story())


def test_a_broker_that_does_not_speak_tls_is_a_wrong_setting_and_not_waited_for() -> None:
    with pytest.raises(NotLetInError, match=r"security.protocol=SSL must .* aiokafka is not: SSLError: .*"):
        bootstrapped(Refused(NO_TLS))
    assert NotLetInError.exit_code == 78


def test_a_broker_that_hangs_up_is_waited_for() -> None:
    with pytest.raises(KafkaConnectionError):
        bootstrapped(Refused(b""))


def test_a_broker_that_refuses_while_it_starts_is_waited_for() -> None:
    server = Refused(*[NO_TLS] * 4, b"")  # each time aiokafka looks, and then we do
    with pytest.raises(KafkaConnectionError):
        bootstrapped(server)
    assert server.asked > 20


def test_what_a_client_connects_with_is_what_we_look_with() -> None:
    source = inspect.getsource(AIOKafkaClient.bootstrap)
    for name in CREDENTIALS:
        assert f"{name}=self._{name}," in source, name
    assert source.count("=self._") == len(CREDENTIALS) + 1, "and max_idle_ms"
