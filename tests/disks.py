"""Disks for tests: with little room, read-only, full, slow, hanging."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """Make a folder a file system with little room, in this block; `size`: as mount takes it (`32m`)."""
    place.mkdir()
    with _mounted(place, ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]):
        yield place


@contextlib.contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Let nothing be written to a folder in this block except files that are open.

    Modes of files do not stop root, and a file system with open files cannot become read-only: so the folder
    is mounted a second time in its own place.
    """
    subprocess.run(["mount", "--bind", place, place], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(place: Path) -> Path:
    """Write a file until there is no room."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 12))
    return ballast


@contextlib.contextmanager
def freezable_disk(place: Path) -> Iterator[Path]:
    """Make a folder a file system that `frozen` can hold, in this block."""
    place.mkdir()
    image = place.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(64 << 20)
    make = ["mkfs.ext4", "-q", "-F", str(image)]
    with _mounted(place, make, ["mount", "-o", "loop", str(image), str(place)]):
        yield place


@contextlib.contextmanager
def _mounted(place: Path, *steps: list[str]) -> Iterator[None]:
    """Run the commands that mount a file system in a folder, in this block; skip the test if they fail."""
    try:
        mounted = all(subprocess.run(step, capture_output=True).returncode == 0 for step in steps)
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextlib.contextmanager
def frozen(place: Path) -> Iterator[None]:
    """Let no write to a file system return in this block, as on a disk that hangs.

    The kernel does not interrupt such a write, not even for SIGKILL. So the file system is released after two
    minutes in any case: a test that fails in this block would else leave a process for ever.
    """
    held = threading.Lock()

    def release() -> None:
        with held:
            subprocess.run(["fsfreeze", "--unfreeze", place], capture_output=True)

    subprocess.run(["fsfreeze", "--freeze", place], check=True)
    limit = threading.Timer(120, release)
    limit.start()
    try:
        yield
    finally:
        limit.cancel()
        release()


@contextlib.contextmanager
def slow(place: Path) -> Iterator[None]:
    """Let a write to a file system take up to a second: it is frozen three quarters of the time."""
    ended = threading.Event()

    def hold() -> None:
        while not ended.is_set():
            with frozen(place):
                ended.wait(0.9)
            ended.wait(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
