"""Disks for tests: with little room, read-only, full."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """Make a folder a file system with little room, in this block; `size`: as mount takes it (`32m`)."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


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
