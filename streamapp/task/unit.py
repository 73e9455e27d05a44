"""Unit: one piece of a task's state as bytes; a snapshot of a task is a set of them.

    8  magic                    "groveunt"
    4  format version           uint32 little-endian (as all that follows)
    4  bytes of the head
    8  bytes of the body
       head                     JSON: kind, key, incarnation, facts
       body                     what the kind says (docs/snapshots.md)
    8  BLAKE2b-64 of everything before

No CRC: a model's snapshot ends with its own CRC-32, and the CRC-32 of something that ends with its own does
not depend on it. A unit says itself what it is, so that one that was stored under another one's name is
noticed. The same state gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from streamapp.errors import StreamappError

MAGIC: Final = b"groveunt"
FORMAT_VERSION: Final = 1

_FIXED = struct.Struct("<8sIIQ")
_CHECKSUM = struct.Struct("<Q")

Body = bytes | memoryview


class DamagedStateError(StreamappError):
    """Units from which no task can be made."""


class UnitName(NamedTuple):
    """What a unit is about; a later unit of the same name takes the place of an earlier one."""

    kind: str
    key: str = ""  # model key, or which one of its kind
    incarnation: int = 0  # of a model: number of its life in this partition, from 1 on; else 0

    def __str__(self) -> str:
        """Return the name as a person reads it."""
        life = f"#{self.incarnation}" if self.incarnation else ""
        return f"{self.kind} {self.key!r}{life}" if self.key else self.kind

    def encode(self) -> bytes:
        """Return the name as bytes, for a store; no two names have the same."""
        return _json([self.kind, self.key, self.incarnation])

    @staticmethod
    def decode(data: bytes) -> UnitName:
        """Return the name that `encode` wrote."""
        kind, key, incarnation = json.loads(data)
        return UnitName(kind, key, incarnation)


@dataclass(frozen=True, slots=True)
class Unit:
    """One independent piece of a task's state."""

    name: UnitName
    data: bytes

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.data)

    @property
    def checksum(self) -> int:
        """Number that the bytes end with."""
        return int(_CHECKSUM.unpack_from(self.data, len(self.data) - _CHECKSUM.size)[0])


def seal(name: UnitName, facts: Mapping[str, Any], body: Sequence[Body] = ()) -> Unit:
    """Return a unit; facts: what JSON can say of it, body: parts that are laid one behind the other."""
    head = _json({"kind": name.kind, "key": name.key, "incarnation": name.incarnation, "facts": facts})
    fixed = _FIXED.pack(MAGIC, FORMAT_VERSION, len(head), sum(map(len, body)))
    data = b"".join((fixed, head, *body))
    return Unit(name, data + _hash(data))


def unseal(unit: Unit) -> tuple[dict[str, Any], memoryview]:
    """Return facts and body of a unit; DamagedStateError if it is not what was sealed."""
    name, data = unit.name, unit.data
    if len(data) < _FIXED.size + _CHECKSUM.size or data[: len(MAGIC)] != MAGIC:
        raise damaged(name, f"must begin with {MAGIC!r} and a header of {_FIXED.size} bytes")
    _, version, head_size, body_size = _FIXED.unpack_from(data)
    if version != FORMAT_VERSION:
        raise damaged(
            name,
            f"format={version} must be {FORMAT_VERSION}, the one this release reads",
            "run the release that wrote it, or a later one",
        )
    end = len(data) - _CHECKSUM.size
    start = _FIXED.size + head_size
    if end != start + body_size:
        raise damaged(name, f"{len(data)} bytes must be {start + body_size + _CHECKSUM.size}")
    view = memoryview(data)
    if view[end:] != _hash(view[:end]):
        raise damaged(name, "must match its checksum: it was altered on its way")
    head = json.loads(bytes(view[_FIXED.size : start]))
    said = UnitName(head["kind"], head["key"], head["incarnation"])
    if said != name:
        raise damaged(name, f"must be stored under its own name, which is {said}")
    return head["facts"], view[start:end]


def damaged(
    name: UnitName, rule: str, remedy: str = "restore from an older snapshot or by replay"
) -> DamagedStateError:
    """Return the error that says what is wrong with a unit and what to do."""
    return DamagedStateError(f"unit {name}: {rule}; {remedy}")


def _hash(data: Body) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM.size).digest()


def _json(body: Any) -> bytes:
    """Return canonical JSON in ASCII, so that every string survives it."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
