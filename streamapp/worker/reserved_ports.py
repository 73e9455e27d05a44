"""Ports that stay free for servers which start later."""

from __future__ import annotations

import secrets
import socket
import sys
import weakref
from typing import Final

HOST: Final = "127.0.0.1"
QUIET_PORTS: Final = range(20_000, 32_000)
"""Ports below those that systems give to connections."""

ATTEMPTS: Final = 10_000

_kept_until_exit: Final[list[ReservedPorts]] = []


class ReservedPorts:
    """Consecutive ports, kept for servers that start later until `release()`, or the end of the object.

    A socket that does not listen is bound to each port. No other process gets the port, neither for a
    connection nor by a probe; a server takes it, because it binds with SO_REUSEADDR as servers do on POSIX
    (Java, asyncio, Python's own). Linux alone lets two sockets have one address like this: elsewhere the
    ports are only free at first.
    """

    def __init__(self, ports: range, host: str = HOST) -> None:
        """Raise OSError if a port has any other socket; port 0 is any free one."""
        sockets: list[socket.socket] = []
        self.release: Final = weakref.finalize(self, _close, sockets)
        try:
            for port in ports:
                reservation = socket.socket(_family(host))
                sockets.append(reservation)
                reservation.bind((host, port))
                reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # for the server that comes
        except OSError:
            self.release()
            raise
        self.first: Final[int] = sockets[0].getsockname()[1]
        if sys.platform != "linux":
            self.release()


def reserved_ports(n: int) -> ReservedPorts:
    """Reserve `n` consecutive loopback ports at random."""
    refused = OSError()
    for _ in range(ATTEMPTS):
        first = secrets.choice(QUIET_PORTS)
        try:
            return ReservedPorts(range(first, first + n))
        except OSError as error:
            refused = error
    message = f"no {n} free ports in a row among {QUIET_PORTS.start} to {QUIET_PORTS.stop}"
    raise OSError(message) from refused


def free_ports(n: int = 1) -> int:
    """Return the first of `n` consecutive loopback ports that stay reserved while this process lives."""
    return _kept(reserved_ports(n))


def free_port_at(host: str) -> int:
    """Return a free port of an IP address that stays reserved while this process lives."""
    return _kept(ReservedPorts(range(1), host))


def check_free(port: int, host: str = HOST) -> None:
    """Raise OSError if a server cannot listen on a port; a reservation does not hinder it."""
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen()


def _close(sockets: list[socket.socket]) -> None:
    for reservation in sockets:
        reservation.close()


def _kept(ports: ReservedPorts) -> int:
    _kept_until_exit.append(ports)  # an object that nothing refers to gives its ports back
    return ports.first


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
