"""One broker for all processes of a test session: the first test that asks starts it, its maker ends it.

The processes of xdist end one after the other, so the broker belongs to the one that outlives them: their
controller. It answers the broker's address on a Unix socket.
"""

import contextlib
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Listener
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

KEY = b"address of the broker"  # of a socket in a directory that only its owner can read
BACKLOG = 64


class Starts(Protocol):
    """What a broker is here: entered once, for its address, and left once."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    @property
    def bootstrap_servers(self) -> str: ...


class SessionBroker:
    """Serves the address of a broker that it starts when it is first asked."""

    def __init__(self, make: Callable[[], Starts]) -> None:
        self._make = make
        self._directory = tempfile.TemporaryDirectory(prefix="grove-session-")
        self.socket = str(Path(self._directory.name) / "broker")
        self._listener = Listener(self.socket, "AF_UNIX", BACKLOG, KEY)
        self._broker = contextlib.ExitStack()
        self._answer: tuple[str, str] | None = None
        self._thread = threading.Thread(target=self._serve, name="session broker", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            with self._listener.accept() as connection:
                if connection.recv() != "address":
                    return
                if self._answer is None:
                    self._answer = self._start()
                connection.send(self._answer)

    def _start(self) -> tuple[str, str]:
        try:
            return "", self._broker.enter_context(self._make()).bootstrap_servers
        except Exception as error:  # noqa: BLE001 - told to every test that asks
            return f"{type(error).__name__}: {error}", ""

    def close(self) -> None:
        """End the broker, if anybody asked for it."""
        with Client(self.socket, "AF_UNIX", KEY) as connection:
            connection.send("end")
        self._thread.join()
        self._listener.close()
        self._broker.close()
        self._directory.cleanup()


def address_of(socket: str) -> str:
    """Ask for the address, and wait until the broker is there."""
    with Client(socket, "AF_UNIX", KEY) as connection:
        connection.send("address")
        problem, address = connection.recv()
    if problem:
        message = f"the broker of the session did not start: {problem}"
        raise RuntimeError(message)
    return str(address)
