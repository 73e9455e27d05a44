"""Which tests run, and their brokers: one for the session, private ones that a test may stop and start."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest

from streamapp.embedded import EmbeddedBroker
from tests import progress, tiers
from tests.broker.fork_server import fork_server
from tests.container_broker import ContainerBroker, check_docker
from tests.minutes import Minutes
from tests.registry_command import RegistryCommand
from tests.session_broker import SessionBroker, address_of
from tests.skips import SkipBudget

# Who starts the tests in the background of a script has SIGINT ignored, and so would every program that they
# start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A run starts hundreds of processes that import the same modules. Where bytecode may not be written, as in
# many containers, each of them compiles five hundred sources, and every process of xdist rewrites all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # while tests are collected: what they import stays, and would be gone over again and again


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
    parser.addoption(
        "--tier",
        choices=tiers.EXAMPLES,
        default="gate",
        help="quick: no broker, few examples; gate: what decides; all: what is marked nightly too (hours)",
    )
    parser.addoption(
        "--share",
        type=float,
        default=1.0,
        metavar="F",
        help="the share of all tests that runs, drawn by the seed of samples (tests/tiers.py); default 1",
    )


def pytest_report_header(config: pytest.Config) -> str:
    tier = config.getoption("--tier")
    return f"tier {tier}, grids sampled with the seed {tiers.seed()} ({tiers.SEED_VARIABLE})"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.leave_out(config, items)
    tiers.sample_grids(config, items)
    tiers.keep_share(config, items)
    tiers.give_time(config, items)
    if hasattr(config, "workerinput"):
        tiers.mix(items)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def named_broker() -> str | None:
    """The broker that is there already, and that the tests shall use."""
    return os.environ.get("GROVE_KAFKA_BOOTSTRAP_SERVERS")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        progress.begin(session)


SESSION_BROKER = pytest.StashKey[SessionBroker]()
SESSION_REGISTRY = pytest.StashKey[SessionBroker]()


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile(config.getoption("--tier"))
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(SkipBudget())
    config.pluginmanager.register(Minutes())
    in_container = config.getoption("--broker") == "container" and not named_broker()
    if in_container:
        check_docker()
    config.stash[SESSION_BROKER] = SessionBroker(
        ContainerBroker if in_container else lambda: EmbeddedBroker(brief=True, heap_mb=1024)
    )
    config.stash[SESSION_REGISTRY] = SessionBroker(RegistryCommand)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of xdist whom to ask."""
    node.workerinput["broker"] = node.config.stash[SESSION_BROKER].socket
    node.workerinput["registry"] = node.config.stash[SESSION_REGISTRY].socket


def pytest_unconfigure(config: pytest.Config) -> None:
    for shared in (SESSION_BROKER, SESSION_REGISTRY):
        if shared in config.stash:
            config.stash[shared].close()
    if fork_server.cache_info().currsize:
        fork_server().close()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Broker:
    """The broker of GROVE_KAFKA_BOOTSTRAP_SERVERS if set, else the one of the session."""
    config = request.config
    if address := named_broker():
        return Broker(address)
    workerinput = getattr(config, "workerinput", None)
    return Broker(address_of(workerinput["broker"] if workerinput else config.stash[SESSION_BROKER].socket))


@pytest.fixture(scope="session")
def registry_url(request: pytest.FixtureRequest) -> str:
    """The address of a schema registry that the session shares: use subjects of your own."""
    config = request.config
    workerinput = getattr(config, "workerinput", None)
    return address_of(workerinput["registry"] if workerinput else config.stash[SESSION_REGISTRY].socket)


@pytest.fixture(autouse=True)
def topics_of_this_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Delete the topics that a test made on the shared broker; where a broker is its own they go with it."""
    if "broker" not in request.fixturenames:
        yield
        return
    shared: Broker = request.getfixturevalue("broker")
    from tests.broker.workers import OF_THIS_TEST

    yield
    while OF_THIS_TEST:
        installation = OF_THIS_TEST.pop()
        if installation.servers == shared.bootstrap_servers:
            installation.close()


@pytest.fixture
def private_broker() -> Iterator[EmbeddedBroker]:
    """A running embedded broker of this test alone: `stop()` and `start()` keep data and port."""
    with EmbeddedBroker(brief=True) as embedded:
        yield embedded
