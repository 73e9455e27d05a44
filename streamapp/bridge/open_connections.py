"""Open connections of the webhook server: their number, their time and the bytes that they hold are bounded.

A request must be complete within TIMEOUT_S of its connection, TLS handshake included, however slowly its
bytes come. At most CONNECTIONS_MAX requests are open at a time, and at most BODIES_MAX bytes of them are
held. A further request makes room by ending the request that has been incomplete for longest, so that slow
clients delay only themselves.
"""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Final

BODY_MAX: Final = 9 << 20  # a task repeats its features, which may come from a record of the largest size
BODIES_MAX: Final = 4 * BODY_MAX  # of all requests together
TIMEOUT_S: Final = 10.0
CONNECTIONS_MAX: Final = 64


class Connection:
    """A request that is being read: its start, the bytes of its body so far, and whether it is complete."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.began, self.bytes, self.is_whole = sock, time.monotonic(), 0, False

    def end(self) -> None:
        """End the connection; the code that reads it gets an end of file."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class OpenConnections:
    """The connections of one server, the oldest first; only the thread of the server changes them."""

    def __init__(self) -> None:
        self._open: dict[Connection, None] = {}

    @property
    def held_bytes(self) -> int:
        """Return the bytes of all bodies that are held now; any thread may call."""
        return sum(connection.bytes for connection in list(self._open))

    def begin(self, sock: socket.socket) -> Connection | None:
        """Note a connection that was accepted; None: there is no room, as all requests are complete."""
        if len(self._open) >= CONNECTIONS_MAX and not self._make_room():
            return None
        connection = Connection(sock)
        self._open[connection] = None
        return connection

    def came(self, connection: Connection, count: int, *, is_whole: bool) -> bool:
        """Note how many bytes of a body have come; if all bodies together are too large, make room.

        False: this connection itself was ended to make room.
        """
        if connection not in self._open:
            return False
        connection.bytes, connection.is_whole = count, is_whole
        while self.held_bytes > BODIES_MAX and self._make_room():
            pass
        return connection in self._open

    def ended(self, connection: Connection) -> None:
        """Forget a connection that is over."""
        self._open.pop(connection, None)

    def end_late(self) -> None:
        """End requests that are not complete in time."""
        for connection in list(self._open):
            if not connection.is_whole and connection.began < time.monotonic() - TIMEOUT_S:
                connection.end()

    def end_incomplete(self) -> None:
        """End all requests that are not complete."""
        while self._make_room():
            pass

    def _make_room(self) -> bool:
        """End the request that has been incomplete for longest; return whether there was one."""
        for connection in self._open:
            if not connection.is_whole:
                del self._open[connection]
                connection.end()
                return True
        return False
