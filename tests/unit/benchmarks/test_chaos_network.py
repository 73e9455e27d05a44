"""The proxies in front of the brokers of the chaos program: what they let through, hold back and cut."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.chaos.network import HOST, Network
from benchmarks.chaos.pauses import pauses, report

SECONDS = 60
OURS = 3  # the node to which this process belongs


class Node:
    """A server that sends everything back, and counts the connections that ended."""

    def __init__(self, network: Network, number: int) -> None:
        self._listener = socket.create_server((HOST, 0))
        port = self._listener.getsockname()[1]
        self.port, _ = network.through(number, (port, port))
        self.ended = threading.Semaphore(0)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed at the end of the test
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            while data := connection.recv(100):
                connection.sendall(data)
        self.ended.release()

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), SECONDS)

    def close(self) -> None:
        with suppress(OSError):  # it is closed already
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts
        self._listener.close()


@pytest.fixture
def groups() -> dict[int, int]:
    return {}


@pytest.fixture
def network(groups: dict[int, int]) -> Iterator[Network]:
    with Network(groups.get) as network:
        yield network


@pytest.fixture
def nodes(network: Network) -> Iterator[list[Node]]:
    both = [Node(network, number) for number in (1, 2)]
    yield both
    for node in both:
        node.close()


def echo(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(100)


def is_mute(connection: socket.socket, other: Node) -> bool:
    """Whether nothing has come although another connection got its answer meanwhile."""
    with other.connect() as fence:
        assert echo(fence, b"fence") == b"fence"
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    finally:
        connection.settimeout(SECONDS)
    return False


def works(connection: socket.socket) -> bool:
    try:
        return echo(connection, b"works") == b"works"
    except ConnectionError:
        return False


def test_bytes_of_a_silent_node_wait(network: Network, nodes: list[Node]) -> None:
    with nodes[0].connect() as connection:
        assert echo(connection, b"before") == b"before"
        network.cut_off(1, "silent")
        connection.sendall(b"held")
        assert is_mute(connection, nodes[1])
        with nodes[0].connect() as late:
            late.sendall(b"late")
            network.heal()
            assert (connection.recv(100), late.recv(100)) == (b"held", b"late")


def test_connections_of_a_node_are_reset_until_it_is_healed(network: Network, nodes: list[Node]) -> None:
    with nodes[0].connect() as connection, nodes[1].connect() as other:
        assert works(connection)
        network.cut_off(1, "reset")
        assert not works(connection)
        assert works(other)
    with nodes[0].connect() as refused:
        assert not works(refused)
    network.heal()
    with nodes[0].connect() as again:
        assert works(again)


def test_a_half_open_connection_is_closed_at_one_end(network: Network, nodes: list[Node]) -> None:
    with nodes[0].connect() as connection:
        assert works(connection)
        network.leave_half_open(1)
        assert nodes[0].ended.acquire(timeout=SECONDS)
        assert is_mute(connection, nodes[1])
        with nodes[0].connect() as new:
            assert works(new)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="owners of sockets are read from /proc")
def test_a_node_that_is_cut_off_reaches_no_other_node(
    network: Network, nodes: list[Node], groups: dict[int, int]
) -> None:
    network.through(OURS, (1, 1))
    groups[OURS] = os.getpid()
    with nodes[0].connect() as connection:
        assert works(connection)
        network.cut_off(OURS, "reset")
        assert not works(connection)
    with nodes[1].connect() as refused:
        assert not works(refused)


def test_a_node_that_does_not_run_closes_connections(network: Network, nodes: list[Node]) -> None:
    nodes[0].close()
    with nodes[0].connect() as connection:
        assert not works(connection)


def test_pauses_are_the_longest_silences_that_touch_a_fault() -> None:
    seen = {0: [0.0, 1.0, 5.0, 6.0, 20.0], 1: [0.0, 2.0, 2.5, 30.0], 2: [1.0]}
    assert pauses(seen, 1.5, 5.5) == [4.0, 27.5]
    assert pauses(seen, 5.5, 5.6) == [1.0, 27.5]
    assert report(seen, [("a", 1.5, 5.5), ("a", 5.5, 5.6)]) == {"a": {"p50": 15.75, "p99": 27.5}}
