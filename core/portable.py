"""A model in a file of its own, with where it comes from: what leaves a cluster and enters another one.

    8  magic                    "grovetrv"
    4  format version           uint32 little-endian (as all that follows)
    4  bytes of the head
    8  bytes of the body
       head                     JSON in ASCII, keys sorted (docs/portable-models.md)
       body                     the model's snapshot (core/snapshot.py), which ends with a CRC-32
    8  BLAKE2b-64 of everything before

The checksum of the whole is no CRC: the CRC-32 of something that ends with its own CRC-32 does not depend on
what that is.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.errors import SnapshotError

MAGIC: Final = b"grovetrv"
FORMAT_VERSION: Final = 1

_FIXED = struct.Struct("<8sIIQ")
_DIGEST: Final = 8


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
    text = json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    data = _FIXED.pack(MAGIC, FORMAT_VERSION, len(text), len(snapshot)) + text + snapshot
    return data + _hash(data)


def unwrap(data: bytes) -> Portable:
    """Return what an exported file holds; SnapshotError if it is none, or not whole."""
    if len(data) < _FIXED.size or not is_portable(data):
        msg = f"file must begin with {MAGIC!r} and a header of {_FIXED.size} bytes: it is no exported model"
        raise SnapshotError(msg)
    _, version, head_size, body_size = _FIXED.unpack_from(data)
    if version != FORMAT_VERSION:
        msg = f"exported model has format {version}; this build reads format {FORMAT_VERSION}"
        raise SnapshotError(msg)
    body = _FIXED.size + head_size
    end = body + body_size
    if len(data) != end + _DIGEST:
        msg = f"exported model={len(data)} bytes must be {end + _DIGEST}: it is cut off or goes on"
        raise SnapshotError(msg)
    if data[end:] != _hash(data[:end]):
        msg = "exported model must match its checksum: it was altered on its way"
        raise SnapshotError(msg)
    return Portable(json.loads(data[_FIXED.size : body]), data[body:end])


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
