"""Prepared worker: a process that has loaded modules and kernels, and waits for the settings of a worker.

Loading takes most of the start of a worker. The parent of several workers keeps one prepared process
(`streamapp.worker.supervisor`), which becomes the next worker that is started, with its name and directory.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import logging
import os
import socket
import sys
from collections.abc import Mapping
from typing import Final

from streamapp.settings import load_settings
from streamapp.worker.child_process import GuardedProcess
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.freed_memory import limit_arenas
from streamapp.worker.task.task_config import TaskConfig

PREPARED: Final = b"p"  # the only byte that a prepared process sends; it closes the connection afterwards

PREPARING_S: Final = 600.0
"""Time to get prepared. Kernels of a new release are compiled meanwhile: one or two minutes of a core."""

READ_S: Final = 20.0
"""Time in which a prepared process reads its settings, for which it needs a few milliseconds of a core."""

logger = logging.getLogger(__name__)


class PreparedWorker:
    """The parent's side: a process, and the connection over which it gets the settings."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment`: variables from which the process reads settings to prepare for."""
        self._is_prepared = False
        self._connection, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-m", "streamapp", "worker", "--prepared", str(number)]
            self.process = GuardedProcess(command, None, environment=environment, descriptor=number)

    def wait_until_prepared(self) -> bool:
        """Return True when the process is prepared, False when it has ended; one that hangs is killed."""
        return self._next_byte() == PREPARED

    def become(self, environment: Mapping[str, str]) -> bool:
        """Let the process be the worker with these variables; return whether it lives."""
        try:
            self._connection.settimeout(READ_S)
            self._connection.sendall(json.dumps(dict(environment)).encode())
            self._connection.shutdown(socket.SHUT_WR)
        except TimeoutError:
            self._kill(READ_S)
            return False
        except OSError:  # it has ended
            return False
        return self.process.status is None

    def wait_until_read(self) -> None:
        """Return when the process has read the variables of its worker, or has ended; one that hangs is
        killed.
        """
        while self._next_byte():
            pass

    def _next_byte(self) -> bytes:
        """Wait for a byte from the process; empty when it has closed its end. Several threads may wait."""
        seconds = READ_S if self._is_prepared else PREPARING_S
        try:
            self._connection.settimeout(seconds)
            byte = self._connection.recv(1)
        except TimeoutError:
            self._kill(seconds)
            return b""
        except OSError:  # it has ended with settings that it has not read, or is closed by now
            return b""
        self._is_prepared = self._is_prepared or byte == PREPARED
        return byte

    def _kill(self, seconds: float) -> None:
        what = "has not read its settings" if self._is_prepared else "is not prepared"
        logger.error("a prepared process hangs: it %s after %g s, and is killed", what, seconds)
        self.process.ask_to_stop(kill=True)

    def close(self) -> None:
        """Close the connection; a process that still waits for settings ends."""
        self._connection.close()

    def stop(self) -> None:
        """End the process."""
        self.close()
        self.process.stop(kill=True)


def wait_to_become_worker(descriptor: int) -> bool:
    """Load everything, then read the variables of a worker from a connection into the environment.

    Return False if the connection ends without them: no worker is needed.
    """
    limit_arenas()
    spec = TaskConfig.from_settings(load_settings()).default_spec()
    importlib.import_module("streamapp.worker.worker")
    warm_kernels(spec)
    gc.collect()
    with socket.socket(fileno=descriptor) as connection:
        with contextlib.suppress(BrokenPipeError):  # the parent has ended; the next line finds it
            connection.sendall(PREPARED)
        variables = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    if not variables:
        return False
    os.environ.update(json.loads(variables))
    return True
