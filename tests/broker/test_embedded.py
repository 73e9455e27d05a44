"""The embedded broker: serves, keeps its data over a stop and a crash, ends with its parent."""

import os
import select
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streamapp.embedded import EmbeddedBroker, EmbeddedCluster
from streamapp.errors import EmbeddedBrokerError
from streamapp.worker.reserved_ports import free_ports, reserved_ports
from tests.broker.workers import PATIENCE

pytestmark = pytest.mark.broker


def produce(servers: str, topic: str, value: bytes) -> None:
    failed = []
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(PATIENCE) == 0
    assert failed == [None]


def consume(servers: str, topic: str, n: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": f"read-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(n, timeout=PATIENCE)
    finally:
        consumer.close()
    assert all(message.error() is None for message in messages)
    return [message.value() for message in messages]


def create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE)


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(False, marks=pytest.mark.nightly),  # in the gate below, in a directory of its own
        True,
    ],
    ids=["stop", "crash"],
)
def test_data_and_address_survive(private_broker: EmbeddedBroker, kill: bool) -> None:
    address = private_broker.bootstrap_servers
    create(address, "kept")
    produce(address, "kept", b"before")

    private_broker.stop(kill=kill)
    assert not private_broker.running
    private_broker.start()

    assert private_broker.bootstrap_servers == address
    produce(address, "kept", b"after")
    assert consume(address, "kept", 2) == [b"before", b"after"]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program uses, for a connection of its own."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        yield other.getsockname()[1]


def test_a_temporary_one_listens_on_loopback_alone_and_its_directory_goes_with_it(
    monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """Another program took the first ports that were chosen, while Java started: others serve."""
    chosen = iter([SimpleNamespace(first=taken, release=lambda: None), reserved_ports(2)])
    monkeypatch.setattr("streamapp.embedded.java_server.reserved_ports", lambda _: next(chosen))
    with EmbeddedBroker(brief=True) as temporary:
        assert temporary.running
        assert temporary.bootstrap_servers != f"127.0.0.1:{taken}"
        properties = (temporary.directory / "server.properties").read_text()
    listeners = [line for line in properties.splitlines() if "listeners=" in line]
    assert len(listeners) == 2
    assert all("://127.0.0.1:" in line for line in listeners)
    assert not temporary.directory.exists()


def test_a_port_that_a_user_names_must_be_free(tmp_path: Path, taken: int) -> None:
    refused = pytest.raises(EmbeddedBrokerError, match=f"port {taken} .*already in use.*; name another one")
    with refused, EmbeddedBroker(tmp_path / "kafka", taken):
        pass
    assert not (tmp_path / "kafka" / "data").exists(), "nothing was started"


def test_a_cluster_ends_when_nodes_that_it_needs_cannot_start(tmp_path: Path) -> None:
    """The one node that starts would wait for the others for ever."""
    with socket.socket() as second, socket.socket() as third:
        for other in (second, third):
            other.bind(("127.0.0.1", 0))
            other.listen()
        ports = [free_ports(1), second.getsockname()[1], third.getsockname()[1]]
        refused = pytest.raises(EmbeddedBrokerError, match=f"port ({ports[1]}|{ports[2]}) .*name another one")
        cluster = EmbeddedCluster(3, tmp_path / "kafka", ports, brief=True)
        with refused, cluster:
            pass
        assert not any(node.running for node in cluster.nodes.values())
    with EmbeddedCluster(3, tmp_path / "kafka", brief=True) as again:  # with what the first start left
        assert len(again.metadata().brokers) == 3


def test_a_given_directory_is_one_broker_s_alone_stays_and_serves_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The id of one cluster in 64 begins with a dash; the tool that formats must not take it for an option.
    monkeypatch.setattr("streamapp.embedded.broker.uuid.uuid4", lambda: uuid.UUID(bytes=b"\xf8" + bytes(15)))
    with EmbeddedBroker(tmp_path / "kafka", brief=True) as first:
        with pytest.raises(EmbeddedBrokerError, match="lock"):
            EmbeddedBroker(tmp_path / "kafka").start()
        assert first.running
        create(first.bootstrap_servers, "kept")
        produce(first.bootstrap_servers, "kept", b"one")
    with EmbeddedBroker(tmp_path / "kafka", brief=True) as second:
        assert consume(second.bootstrap_servers, "kept", 1) == [b"one"]


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from streamapp.embedded import EmbeddedBroker\n"
        "with EmbeddedBroker(brief=True) as broker:\n"
        "    print(broker.directory, broker._process._guard.pid, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    directory, guard = parent.stdout.readline().split()
    watch = os.pidfd_open(int(guard)) if hasattr(os, "pidfd_open") else None
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    if watch is None:
        pytest.skip("needs pidfd_open to wait for a process that is not a child")
    ended, _, _ = select.select([watch], [], [], 120)
    os.close(watch)
    assert ended, "the broker outlived its parent"
    assert not Path(directory).exists()


def test_a_killed_node_of_a_cluster_is_started_again_by_a_signal() -> None:
    command = [str(Path(sys.executable).with_name("grove")), "broker", "--nodes", "3", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as broker:
        assert broker.stdout is not None

        def line_with(words: str) -> str:
            assert broker.stdout is not None
            seen: list[str] = []
            for line in broker.stdout:
                seen.append(line)
                if words in line:
                    return line
            raise AssertionError("".join(seen))

        try:
            servers = line_with("GROVE_KAFKA_BOOTSTRAP_SERVERS=").partition("=")[2].strip()
            group = int(line_with("node 2 at").partition("kill -9 -")[2].partition("`")[0])
            line_with("kill -USR1")
            os.killpg(group, signal.SIGKILL)
            line_with("node 2 ended")
            broker.send_signal(signal.SIGUSR1)
            line_with("all nodes run")
            client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
            assert set(client.list_topics(timeout=60).brokers) == {1, 2, 3}
        finally:
            broker.terminate()
        broker.stdout.read()
    assert broker.returncode == 0
