"""Model file: a snapshot with its origin, as exported from one cluster and imported into another.

A frame (core/model/frame.py): the head says what docs/portable-models.md lists, the body is the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import SnapshotError
from core.json_text import read_json
from core.model.frame import Frame, FrameError, canonical

MAGIC: Final = b"grovetrv"
FORMAT_VERSION: Final = 1
FRAME: Final = Frame(MAGIC, FORMAT_VERSION)


@dataclass(frozen=True, slots=True)
class Portable:
    """What an exported file holds."""

    head: dict[str, Any]
    snapshot: bytes


def is_portable(data: bytes) -> bool:
    """Return whether bytes begin as an exported file does."""
    return data[: len(MAGIC)] == MAGIC


def wrap(head: Mapping[str, Any], snapshot: bytes) -> bytes:
    """Return the bytes of an exported file; head: what JSON can say of the model and where it was."""
    return FRAME.seal(canonical(head), (snapshot,))


def unwrap(data: bytes) -> Portable:
    """Return what an exported file holds; SnapshotError if it is none, or not whole."""
    try:
        text, snapshot = FRAME.unseal(data, "exported model")
    except FrameError as error:
        raise SnapshotError(str(error)) from None
    try:
        head = read_json(text)
    except ValueError as error:  # its checksum is no secret: anybody may have written it
        msg = f"exported model's head must be JSON: {error}; export it again"
        raise SnapshotError(msg) from error
    if not isinstance(head, dict):
        msg = f"exported model's head={str(head)[:40]!r} must be a JSON object; export it again"
        raise SnapshotError(msg)
    return Portable(head, bytes(snapshot))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is whole or not there."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)
