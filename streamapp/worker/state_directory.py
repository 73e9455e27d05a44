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
DISK_HANGS = "the disk of state.dir does not answer: it is too slow, or gone; see to the disk"
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
        self._lock = self._take()
        return self

    def _take(self) -> IO[str]:
        """Make the directory if it is missing, and lock it."""
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
        return lock

    def failure(self) -> str:
        """Return why files cannot be written here; empty: they can. May wait for the disk.

        A directory that was deleted is made again for the next call, and locked, unless another file system
        is in its place: then a mount is missing, and the files would fill the disk below it.
        """
        try:
            if self._is_gone():
                return self._make_again()
            with tempfile.TemporaryFile(dir=self.path, buffering=0) as file:
                file.write(bytes(PROBE_BYTES))
        except OSError as error:
            return (
                f"state.dir={self.path.parent} cannot be written: {error.strerror}; make room there or let "
                "it be written"
            )
        return ""

    def _is_gone(self) -> bool:
        """Whether another file than the locked one is in the place of the lock, or none."""
        assert self._lock is not None
        try:
            return not os.path.samestat((self.path / LOCK).stat(), os.fstat(self._lock.fileno()))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
                return True
            raise

    def _make_again(self) -> str:
        assert self._lock is not None
        existing = next(place for place in (self.path, *self.path.parents) if place.exists())
        if existing != self.path and existing.stat().st_dev != os.fstat(self._lock.fileno()).st_dev:
            return (
                f"{self.path} is gone, and {existing} is on another disk than before: mount the disk of "
                "state.dir again"
            )
        try:
            lock = self._take()
        except StreamappError as error:
            return f"{self.path} is gone: {error}"
        self._lock.close()
        self._lock = lock
        return f"{self.path} is gone; it is made again, and the topic of snapshots has what it had"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._lock is not None
        self._lock.close()
        self._lock = None
