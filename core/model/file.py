"""Model file: a snapshot with its origin, as exported from one cluster and imported into another.

A frame (core/model/frame.py): the head has the fields in docs/portable-models.md, the body is the snapshot.
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
    """The content of an exported file."""

    head: dict[str, Any]
    snapshot: bytes


def is_portable(data: bytes) -> bool:
    """Return whether bytes begin like an exported file."""
    return data[: len(MAGIC)] == MAGIC


def wrap(head: Mapping[str, Any], snapshot: bytes) -> bytes:
    """Return the bytes of an exported file; head: facts about the model and its origin, as JSON."""
    return FRAME.seal(canonical(head), (snapshot,))


def unwrap(data: bytes) -> Portable:
    """Return the content of an exported file; SnapshotError if it is not one, or incomplete."""
    try:
        text, snapshot = FRAME.unseal(data, "exported model")
    except FrameError as error:
        raise SnapshotError(str(error)) from None
    try:
        head = read_json(text)
    except ValueError as error:  # anyone can compute the checksum: the content may still be invalid
        msg = f"exported model's head must be JSON: {error}; export it again"
        raise SnapshotError(msg) from error
    if not isinstance(head, dict):
        msg = f"exported model's head={str(head)[:40]!r} must be a JSON object; export it again"
        raise SnapshotError(msg)
    return Portable(head, bytes(snapshot))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: it is complete or does not exist."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)
