"""Worker control: drain, restart and scale the workers that run on this machine.

The worker (or the parent of several) is found by the directory it holds below `state.dir`. A signal makes it
look for a request; for a parent a file in its directory holds the requested number of workers, another one
requests a restart of all:

    <state.dir>/<name>/lock            process id of a worker
    <state.dir>/<name>-parent/lock     process id of a parent
    <state.dir>/<name>-parent/workers  how many workers it shall have; it removes the file when that is so
    <state.dir>/<name>-parent/restart  exists until it has restarted its workers, or has a reason not to
    <state.dir>/<name>-parent/request  locked by a command until the parent has its request

Without the lock, two commands at once could send two signals for one file: a parent that gets a signal and
finds no file lets all its workers leave.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamapp.errors import StreamappError
from streamapp.worker.state_directory import (
    default_instance,
    holder,
    host_name,
    refused,
    wait_until_free,
)

if TYPE_CHECKING:
    from streamapp.settings import Settings

logger = logging.getLogger(__name__)

DRAIN: Final = signal.SIGUSR2  # a worker that gets it leaves the group; SIGTERM stays a member
WORKERS: Final = "workers"
RESTART: Final = "restart"
REQUEST: Final = "request"
REQUESTED: Final = "requested"
BEGUN: Final = "begun"
REFUSED: Final = "refused: "
LOOK_AGAIN: Final = 0.1  # seconds


class NotRunningError(StreamappError):
    """No such worker runs on this machine."""


class RefusedError(StreamappError):
    """A parent cannot have the requested number of workers, or cannot restart them."""


class TooSlowError(StreamappError):
    """A request was not fulfilled in time."""


def parent_name(settings: Settings) -> str:
    """Return the name of the directory that the parent of several workers holds."""
    return f"{settings.group_instance_id or host_name()}-parent"


def drain(settings: Settings, seconds: float) -> str:
    """Let a worker, or all workers of a parent, leave the group and end; return the name of either."""
    name = settings.group_instance_id or default_instance(0)
    process = holder(settings.state_dir, name)
    if process is None:
        return scale(settings, 0, seconds)
    os.kill(process, DRAIN)
    _wait(settings.state_dir, name, process, seconds)
    return f"worker {name}"


def scale(settings: Settings, n: int, seconds: float) -> str:
    """Give a parent `n` workers; surplus workers leave the group. Return the name of the parent or worker."""
    name = parent_name(settings)
    process = holder(settings.state_dir, name)
    if process is None:
        raise NotRunningError(_not_running(settings, name))
    count_file = settings.state_dir / name / WORKERS
    with _alone(count_file.parent, name, seconds):
        _write(count_file, str(n))
        os.kill(process, DRAIN)
        if n == 0:
            _wait(settings.state_dir, name, process, seconds)
        else:
            _wait_for_parent(settings.state_dir, name, process, count_file, seconds)
    return f"parent {name}"


def restart(settings: Settings, seconds: float) -> str:
    """Let a parent restart its workers one by one; return its name when it has done so."""
    name = parent_name(settings)
    process = holder(settings.state_dir, name)
    if process is None:
        raise NotRunningError(_not_running(settings, name))
    request = settings.state_dir / name / RESTART
    with _alone(request.parent, name, seconds):
        if (text := _text(request)) is not None and not text.startswith(REFUSED):
            message = f"process {process} ({name}) is restarting its workers already: wait until it is done"
            raise RefusedError(message)
        _write(request, REQUESTED)
        os.kill(process, DRAIN)
        _wait_for_parent(settings.state_dir, name, process, request, seconds, until_begun=True)
    _wait_for_parent(settings.state_dir, name, process, request, seconds)
    return f"parent {name}"


def begin_restart(directory: Path) -> bool:
    """Return whether a restart is requested of a parent, which has begun from now on.

    If the disk does not take that, the command waits until the restart is over.
    """
    if _text(directory / RESTART) != REQUESTED:
        return False
    _note(directory / RESTART, BEGUN)
    return True


def end_restart(directory: Path, *, tell: bool = True) -> bool:
    """Note that a parent has restarted its workers, or will not; return whether the disk takes that.

    `tell`: log why it does not.
    """
    return _remove(directory / RESTART, tell=tell)


def refuse_restart(directory: Path, error: StreamappError) -> bool:
    """Note why a parent ends a restart before all workers are restarted; return whether the disk takes
    that.
    """
    return _note(directory / RESTART, REFUSED + str(error))


def wanted_workers(directory: Path) -> int:
    """Return the requested number of workers of a parent: 0 (drain) if it only got the signal."""
    try:
        return int((directory / WORKERS).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def fulfil(directory: Path) -> None:
    """Note that a parent has the requested number of workers."""
    _remove(directory / WORKERS)


def refuse(directory: Path, error: StreamappError) -> None:
    """Note why a parent cannot have the requested number of workers."""
    _note(directory / WORKERS, REFUSED + str(error))


def _wait(root: Path, name: str, process: int, seconds: float) -> None:
    if not wait_until_free(root, name, seconds):
        message = f"process {process} ({name}) has not ended within {seconds:g} s; see its log"
        raise TooSlowError(message)


def _write(path: Path, text: str) -> None:
    """Write a file as a whole or not at all; StreamappError if the disk does not take it.

    A file that is empty, because there is no room, would be another request, or one that never ends.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # the error before it has the reason
            new.unlink()
        raise refused(path.parent.parent, error) from error


def _note(path: Path, text: str) -> bool:
    """Write a file for a command that waits; return False, after a log line, if the disk does not take that.

    A parent runs on without it, or its workers would end.
    """
    try:
        _write(path, text)
    except StreamappError as error:
        logger.warning("%s: %s", path.name, error)
        return False
    return True


def _remove(path: Path, *, tell: bool = True) -> bool:
    """Remove a file if it exists; return False, after a log line (`tell`), if the disk does not take that."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        if tell:
            logger.warning("%s: %s", path.name, refused(path.parent.parent, error))
        return False
    return True


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


@contextmanager
def _alone(directory: Path, name: str, seconds: float) -> Iterator[None]:
    """Make requests of a parent while no other command does; wait for that command first."""
    deadline = time.monotonic() + seconds
    try:
        file = (directory / REQUEST).open("w", encoding="ascii")
    except OSError as error:
        raise refused(directory.parent, error) from error
    with file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    message = f"another command has not ended its request of {name} within {seconds:g} s"
                    raise TooSlowError(message) from None
            time.sleep(LOOK_AGAIN)
        yield


def _wait_for_parent(
    root: Path, name: str, process: int, count_file: Path, seconds: float, *, until_begun: bool = False
) -> None:
    """Return when a parent has removed the file of a request, or (`until_begun`) has begun."""
    deadline = time.monotonic() + seconds
    while (text := _text(count_file)) is not None and not (until_begun and text == BEGUN):
        if text.startswith(REFUSED):
            count_file.unlink()
            raise RefusedError(text.removeprefix(REFUSED))
        if holder(root, name) != process:
            message = f"process {process} ({name}) has ended; see its log"
            raise NotRunningError(message)
        if time.monotonic() > deadline:
            message = f"process {process} ({name}) is not done after {seconds:g} s; see its log"
            raise TooSlowError(message)
        time.sleep(LOOK_AGAIN)


def _not_running(settings: Settings, name: str) -> str:
    root = settings.state_dir
    running = sorted(path.parent.name for path in root.glob("*/lock") if holder(root, path.parent.name))
    others = f"running there: {', '.join(running)}" if running else "no worker runs there"
    asked = name.removesuffix("-parent")
    return (
        f"no worker {settings.group_instance_id or default_instance(0)!r} and no parent of workers {asked!r} "
        f"holds a directory below state.dir={root}; {others}. Give the --name and state.dir of its start"
    )
