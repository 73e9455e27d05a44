"""Reserved ports: a server of ours gets them, no other process does."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys

import pytest

from streamapp.worker.reserved_ports import (
    HOST,
    ReservedPorts,
    check_free,
    free_port_at,
    free_ports,
    reserved_ports,
)


def taken_by_another_process(port: int) -> bool:
    """Whether the probe of another process, which chooses a port, is refused."""
    probe = f"import socket; socket.socket().bind(('{HOST}', {port}))"
    return subprocess.run([sys.executable, "-c", probe], stderr=subprocess.DEVNULL).returncode != 0


def test_a_reserved_port_is_refused_to_every_chooser_and_free_after_its_release() -> None:
    ports = reserved_ports(2)
    assert taken_by_another_process(ports.first)
    for port in (ports.first, ports.first + 1):
        with pytest.raises(OSError, match="in use"):
            ReservedPorts(range(port, port + 1))
    ports.release()
    again = ReservedPorts(range(ports.first, ports.first + 2))
    again.release()


def test_ports_are_free_when_their_reservation_is_forgotten() -> None:
    first = reserved_ports(1).first
    ReservedPorts(range(first, first + 1)).release()


def test_a_free_port_is_refused_to_other_choosers_while_the_process_lives() -> None:
    for port in (free_ports(), free_port_at(HOST)):
        with pytest.raises(OSError, match="in use"):
            ReservedPorts(range(port, port + 1))


def test_no_two_choosers_get_one_port() -> None:
    chosen = [free_ports(3) + i for _ in range(20) for i in range(3)] + [
        free_port_at(HOST) for _ in range(20)
    ]
    assert len(set(chosen)) == len(chosen)


def test_a_server_starts_on_a_reserved_port_and_starts_again() -> None:
    port = free_ports()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))
    for _ in range(2):
        check_free(port)
        with http.server.HTTPServer((HOST, port), http.server.BaseHTTPRequestHandler):
            socket.create_connection((HOST, port)).close()
            with pytest.raises(OSError, match="in use"):
                check_free(port)
