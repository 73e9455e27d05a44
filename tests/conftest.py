"""The brokers of the broker tests: one for the session, private ones that a test may stop and start again."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from streamapp.embedded import EmbeddedBroker

# Who starts the tests in the background of a script has SIGINT ignored, and so would every program that they
# start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Broker:
    """A broker that the session shares: use topics with a prefix of your own."""

    bootstrap_servers: str


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        choices=("embedded", "container"),
        default="embedded",
        help="the real Kafka of the broker tests, unless GROVE_KAFKA_BOOTSTRAP_SERVERS names one",
    )


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """The broker of GROVE_KAFKA_BOOTSTRAP_SERVERS if set, else an embedded one or one in a container."""
    address = os.environ.get("GROVE_KAFKA_BOOTSTRAP_SERVERS")
    if address:
        yield Broker(address)
    elif request.config.getoption("--broker") == "container":
        yield from _container()
    else:
        with EmbeddedBroker(brief=True) as embedded:
            yield Broker(embedded.bootstrap_servers)


@pytest.fixture
def private_broker() -> Iterator[EmbeddedBroker]:
    """A running embedded broker of this test alone: `stop()` and `start()` keep data and port."""
    with EmbeddedBroker(brief=True) as embedded:
        yield embedded


def _container() -> Iterator[Broker]:
    kafka = pytest.importorskip("testcontainers.kafka", reason="--broker=container needs testcontainers")
    docker = pytest.importorskip("docker", reason="--broker=container needs the package docker")
    try:
        docker.from_env().ping()
    except docker.errors.DockerException as error:
        pytest.skip(f"--broker=container needs a Docker engine: {error}")
    with kafka.KafkaContainer().with_kraft() as container:
        yield Broker(container.get_bootstrap_server())
