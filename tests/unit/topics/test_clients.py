"""Clients go when their owner goes: no cycle keeps them, and their threads, until the garbage collector."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamapp.worker.reserved_ports import free_ports
from topics.clients.cluster import Cluster
from topics.clients.sender import Sender
from topics.errors import BrokerError


@pytest.fixture
def kafka() -> dict[str, str]:
    """Properties of a broker that is not there."""
    return {"bootstrap.servers": f"127.0.0.1:{free_ports()}"}


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def ask(kafka: dict[str, str]) -> Any:
    cluster = Cluster(kafka, timeout=0.2)
    with pytest.raises(BrokerError, match="did not answer within"):
        cluster.topics()
    return cluster._complaint


def send(kafka: dict[str, str]) -> Any:
    sender = Sender(kafka)
    sender.send_run("topic", 0, [b"value"] * 10, [b"key"] * 10, [0] * 10)
    sender.close()
    assert sender.failed == 10, "what is given up is known"
    return sender._failures


@pytest.mark.parametrize("use", [ask, send])
def test_a_client_whose_broker_is_away_is_gone_with_its_owner(
    use: Callable[[dict[str, str]], Any], kafka: dict[str, str]
) -> None:
    gone = threading.Event()
    weakref.finalize(use(kafka), gone.set)  # held by the client alone
    assert gone.wait(20), "the client lives on"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("commit.interval.ms", "1000", "commit.interval.ms"), ("acks", "some", "request.required.acks")],
)
def test_a_property_that_the_client_does_not_take_is_one_sentence(
    kafka: dict[str, str], name: str, value: str, says: str
) -> None:
    with pytest.raises(BrokerError, match="the producer's properties are wrong") as caught:
        Sender(kafka | {name: value})
    assert says in str(caught.value)
