"""State directory of one worker, `<state.dir>/<group.instance.id>`, and its lock."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from streamapp.errors import SettingsError, StateDirectoryError, StreamappError

LOCK = "lock"
PROBE_BYTES = 1 << 16
PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE)
"""Errors of a disk, which may pass. After any other error `state.dir` has to be another folder."""


def host_name() -> str:
    """Return this machine's name in characters that a name of a worker may have."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in socket.gethostname())


def default_instance(number: int) -> str:
    """Return the name of worker `number` of this machine: `<hostname>-<n>`."""
    return f"{host_name()}-{number}"


def holder(root: Path, instance: str) -> int | None:
    """Return the id of the process that holds a worker's directory, None if the directory is free."""
    try:
        with (root / instance / LOCK).open(encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = lock.read().strip()
                return int(text) if text.isdigit() else None
    except OSError:
        pass
    return None


def wait_until_free(root: Path, instance: str, seconds: float) -> bool:
    """Wait until no process holds a worker's directory; return whether it became free within `seconds`."""

    def wait() -> None:
        with (root / instance / LOCK).open(encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)

    waiting = threading.Thread(target=wait, daemon=True)  # flock has no timeout
    waiting.start()
    waiting.join(seconds)
    return not waiting.is_alive()


def refused(root: Path, error: OSError) -> StreamappError:
    """Return the error for an operator when `state.dir` (`root`) cannot be written."""
    if error.errno in PASSING:
        return StateDirectoryError(
            f"state.dir={root} cannot be written: {error.strerror}; make room there or let it be written, "
            "and try again"
        )
    return SettingsError(
        f"state.dir={root} must be a directory that can be written: {error.strerror}; choose another"
    )


class StateDirectory:
    """A worker's directory, locked while it is open.

    The lock is the operating system's (`flock`): it ends with the process, however that ends. The file's text
    is the process id of the holder, for the error message of a second worker.
    """

    def __init__(self, root: Path, instance: str) -> None:
        self.path = root / instance
        self._instance = instance
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("a+", encoding="ascii")
        except OSError as error:
            raise refused(self.path.parent, error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            message = (
                f"group.instance.id={self._instance} must be used by one process at a time; process {holder} "
                f"holds {self.path}: stop it or choose another name"
            )
            raise SettingsError(message) from None
        try:
            lock.truncate(0)
            os.write(lock.fileno(), str(os.getpid()).encode())  # without a buffer, which `close` would write
        except OSError as error:
            lock.close()
            raise refused(self.path.parent, error) from error
        self._lock = lock
        return self

    def failure(self) -> str:
        """Why files cannot be written here; empty: they can. May wait for the disk."""
        try:
            with tempfile.TemporaryFile(dir=self.path, buffering=0) as file:
                file.write(bytes(PROBE_BYTES))
        except FileNotFoundError:
            return f"{self.path} is gone; start this worker again: it reads its snapshots from their topic"
        except OSError as error:
            return f"state.dir={self.path.parent} cannot be written: {error.strerror}"
        return ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._lock is not None
        self._lock.close()
        self._lock = None
