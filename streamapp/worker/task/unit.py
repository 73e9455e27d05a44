"""Unit: one piece of a task's state as bytes; a snapshot of a task is a set of them.

A frame (core/model/frame.py) whose head has kind, key, incarnation and facts; the kind determines the layout
of the body (docs/snapshots.md). The name is inside the unit too, so that a unit that was stored under a wrong
name is noticed. The same state gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from core.json_text import read_json
from core.model.frame import DIGEST, Body, Frame, FrameError, FrameVersionError, canonical
from streamapp.errors import OtherReleaseError, StreamappError

MAGIC: Final = b"groveunt"
FORMAT_VERSION: Final = 1
REMEDY: Final = "restore from an older snapshot or by replay"
FRAME: Final = Frame(MAGIC, FORMAT_VERSION)


class DamagedStateError(StreamappError):
    """Units from which no task can be made."""


class UnitName(NamedTuple):
    """The identity of a unit; a later unit of the same name replaces an earlier unit."""

    kind: str
    key: str = ""  # model key, or number within its kind
    incarnation: int = 0  # of a model: how often its key has begun, from 1 on; else 0

    def __str__(self) -> str:
        """Return the name for people."""
        life = f"#{self.incarnation}" if self.incarnation else ""
        return f"{self.kind} {self.key!r}{life}" if self.key else self.kind

    def encode(self) -> bytes:
        """Return the name as bytes, for a store; different names have different bytes."""
        return canonical([self.kind, self.key, self.incarnation])

    @staticmethod
    def decode(data: bytes) -> UnitName:
        """Return the name that `encode` wrote; DamagedStateError if it did not."""
        try:
            kind, key, incarnation = _read(data)
        except (ValueError, TypeError) as error:
            message = f"unit name={data[:80]!r} must be JSON of a kind, a key and a number: {error}"
            raise DamagedStateError(message) from error
        return UnitName(kind, key, incarnation)


@dataclass(frozen=True, slots=True)
class Unit:
    """One independent piece of a task's state, as bytes."""

    name: UnitName
    data: bytes
    is_whole: bool = field(default=False, compare=False)
    """Whether another checksum has shown that the bytes are unaltered."""

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.data)

    @property
    def checksum(self) -> int:
        """The checksum at the end of the bytes."""
        return int.from_bytes(self.data[-DIGEST:], "little")


def seal(name: UnitName, facts: Mapping[str, Any], body: Sequence[Body] = ()) -> Unit:
    """Return a unit; facts: its JSON part, body: byte strings that are concatenated."""
    head = {"kind": name.kind, "key": name.key, "incarnation": name.incarnation, "facts": facts}
    return Unit(name, FRAME.seal(canonical(head), body))


def unseal(unit: Unit, *, exact: bool = False) -> tuple[dict[str, Any], memoryview]:
    """Return facts and body of a unit; DamagedStateError if altered, OtherReleaseError for another format.

    `exact`: its facts have integers beyond 64 bits.
    """
    name = unit.name
    try:
        text, body = FRAME.unseal(unit.data, "unit", name, is_whole=unit.is_whole)
    except FrameVersionError as error:
        kind = OtherReleaseError if _matches_checksum(unit.data) else DamagedStateError
        raise kind(str(error)) from None
    except FrameError as error:
        message = f"{error}; {REMEDY}"
        raise DamagedStateError(message) from None
    try:
        head = read_json(text) if exact else _read(text)
        named, facts = UnitName(head["kind"], head["key"], head["incarnation"]), dict(head["facts"])
    except (
        ValueError,
        TypeError,
        KeyError,
    ) as error:  # a valid checksum shows that it is whole, not its origin
        raise damaged(name, f"its head must hold kind, key, incarnation and facts: {error!r}") from error
    if named != name:
        raise damaged(name, f"must be stored under its own name, which is {named}")
    return facts, body


def _read(text: bytes) -> Any:
    """Return the value of a JSON text; integers beyond 64 bits become floats. ValueError as `read_json`."""
    try:
        return orjson.loads(text)  # takes a tenth of the time
    except orjson.JSONDecodeError:  # perhaps a lone surrogate, which a key may have
        return read_json(text)


def _matches_checksum(data: bytes) -> bool:
    """Return whether the bytes are whole, in any format: an altered one may look like another format."""
    return hashlib.blake2b(data[:-DIGEST], digest_size=DIGEST).digest() == data[-DIGEST:]


def damaged(name: UnitName, rule: str) -> DamagedStateError:
    """Return the error for a damaged unit, with the rule that it breaks and the remedy."""
    return DamagedStateError(f"unit {name}: {rule}; {REMEDY}")
