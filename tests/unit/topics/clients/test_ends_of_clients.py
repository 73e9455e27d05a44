"""A call of librdkafka that ends a client may hang; the process goes on without it, and says so."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from topics import client_calls
from topics.client_calls import end_or_abandon
from topics.clients.sender import Sender
from topics.fetching.bounded_consumer import BoundedConsumer

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
LEFT = "has not returned from the Kafka client for"


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a call that does not return before the test is over."""
    over = threading.Event()
    monkeypatch.setattr(client_calls, "CHECK_S", 0.01)
    yield lambda *_: over.wait()
    over.set()


class Waiting:
    """A client of which each call returns at once."""

    def __len__(self) -> int:
        return 1

    def purge(self) -> None: ...

    def flush(self, seconds: float) -> int:
        return 0

    def poll(self, seconds: float) -> int:
        return 0


@pytest.mark.parametrize("call", ["purge", "flush"])
def test_a_sender_closes(call: str, hang: Any, caplog: pytest.LogCaptureFixture) -> None:
    sender: Any = Sender(NOWHERE)
    sender._producer = client = Waiting()
    setattr(client, call, hang)
    sender.close()
    assert f"the producer: close {LEFT}" in caplog.text


def test_a_consumer_closes(hang: Any, caplog: pytest.LogCaptureFixture) -> None:
    consumer: Any = BoundedConsumer({**NOWHERE, "group.id": "g"})
    real, consumer._consumer = consumer._consumer, SimpleNamespace(close=hang)
    consumer.close()
    assert f"the consumer: close {LEFT}" in caplog.text
    real.close()


def test_an_error_of_the_call_reaches_the_caller() -> None:
    def refuse() -> None:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        end_or_abandon("the consumer: close", refuse)


def test_the_thread_of_a_call_ends_with_it() -> None:
    threads: list[threading.Thread] = []
    end_or_abandon("the consumer: close", lambda: threads.append(threading.current_thread()))
    assert not threads[0].is_alive()
