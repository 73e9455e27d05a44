"""Model import: a model in numbered control records, in effect at the last one.

    {"command": "import", "id": "9f…", "part": 2, "parts": 5, "crc": 1234567, "data": "…", "replace": false}

The parts of one import arrive in their order, because they come from one producer and have one key. A part is
refused, and never put together with earlier parts, if one before it is missing, if it came twice, if it
belongs to another import, or if it does not match its CRC-32. If two imports of a key overlap, the later one
continues.

The parts that have come so far are state: they survive a restart, and are bounded in bytes.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

MAX_BYTES: Final = 256 << 20
"""The most bytes of the parts of a partition's unfinished imports; above it the oldest other import is given
up.
"""

MAX_PARTS: Final = 100_000
"""The most parts of an import, and of all unfinished imports together: small parts take more than their
bytes.
"""
MAX_ID: Final = 64


class RefusedPartError(Exception):
    """Why a part is refused."""


@dataclass(frozen=True, slots=True)
class ModelPart:
    """One control record of an import."""

    id: str
    number: int  # from 1 on
    parts: int
    crc: int  # CRC-32 of the data
    data: bytes
    replace: bool  # whether it replaces an existing model

    @staticmethod
    def of(body: Mapping[str, Any]) -> ModelPart:
        """Return the part in the members of a command; RefusedPartError."""
        name = body.get("id")
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_ID:
            _refuse("id", name, f"a string of 1 to {MAX_ID} characters, the same in all parts of an import")
        parts = _whole("parts", body.get("parts"), 1, MAX_PARTS)
        number = _whole("part", body.get("part"), 1, parts)
        crc = _whole("crc", body.get("crc"), 0, (1 << 32) - 1)
        encoded, over = body.get("data"), body.get("replace", False)
        if not isinstance(over, bool):
            _refuse("replace", over, "true or false")
        try:
            data = base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else None
        except binascii.Error:
            data = None
        if not data:
            _refuse("data", "…" if encoded else encoded, "a part of an exported model in base64")
        assert isinstance(name, str)
        assert data is not None
        return ModelPart(name, number, parts, crc, data, over)


@dataclass(frozen=True, slots=True)
class Incoming:
    """An import with the parts that have come so far."""

    id: str
    parts: int
    pieces: tuple[bytes, ...] = ()  # the first parts
    size: int = 0  # bytes of the pieces

    def with_piece(self, data: bytes) -> Incoming:
        """Return the import with one more part."""
        return Incoming(self.id, self.parts, (*self.pieces, data), self.size + len(data))


class Imports:
    """The unfinished imports of one partition, by model key, oldest first."""

    def __init__(self) -> None:
        self._held: dict[str, Incoming] = {}
        self._before: dict[str, Incoming] | None = None
        self._bytes = self._pieces = 0  # of all unfinished imports
        self._given_up_before = 0
        self.given_up = 0  # imports given up after some of their parts

    def __len__(self) -> int:
        """Return how many imports are unfinished."""
        return len(self._held)

    def take(self, key: str, part: ModelPart) -> bytes | None:
        """Add a part; return the whole file if it was the last part.

        RefusedPartError holds the reason of a refusal. An import that cannot be finished any more is given
        up.
        """
        present = self._held.get(key)
        mine = present if present is not None and present.id == part.id else None
        if zlib.crc32(part.data) != part.crc:
            self._drop(key, mine)
            message = f"part {part.number} does not match its crc; import the file again"
            raise RefusedPartError(message)
        if mine is None and part.number > 1:
            message = f"part {part.number}: no import {part.id!r} is under way; begin with part 1"
            raise RefusedPartError(message)
        if mine is None:
            self._drop(key, present)
            mine = Incoming(part.id, part.parts)
        self._check_order(key, mine, part)
        grown = mine.with_piece(part.data)
        self._change()
        if part.number == part.parts:
            if key in self._held:
                self._take_out(key)
            return b"".join(grown.pieces)
        self._held[key] = grown
        self._bytes, self._pieces = self._bytes + len(part.data), self._pieces + 1
        self._make_room(key)
        return None

    def give_up(self, key: str) -> None:
        """Forget the parts that have come for a key."""
        self._drop(key, self._held.get(key))

    def checkpoint(self) -> None:
        """Begin a run: what happened before is final."""
        self._before, self._given_up_before = None, self.given_up

    def rollback(self) -> None:
        """Undo everything since `checkpoint`."""
        if self._before is not None:
            self.load(self._before)
        self._before, self.given_up = None, self._given_up_before

    def image(self) -> dict[str, Incoming]:
        """Return the unfinished imports as they are now."""
        return dict(self._held)

    def load(self, incoming: Mapping[str, Incoming]) -> None:
        """Take in the imports of an `image`."""
        self._held = dict(incoming)
        self._bytes = sum(file.size for file in incoming.values())
        self._pieces = sum(len(file.pieces) for file in incoming.values())

    # -- inside ---------------------------------------------------------------------------------------------

    def _check_order(self, key: str, incoming: Incoming, part: ModelPart) -> None:
        here = len(incoming.pieces)
        if part.number <= here:
            message = f"part {part.number} came twice; the first one is kept"
            raise RefusedPartError(message)
        if part.number > here + 1 or part.parts != incoming.parts:
            self._drop(key, incoming)
            what = (
                f"part {here + 1} is missing" if part.number > here + 1 else f"parts must be {incoming.parts}"
            )
            message = f"part {part.number} of {part.parts}: {what}; import the file again"
            raise RefusedPartError(message)

    def _make_room(self, key: str) -> None:
        while self._bytes > MAX_BYTES or self._pieces > MAX_PARTS:
            oldest = next(iter(self._held))
            self._drop(oldest, self._held[oldest])
            if oldest == key:
                message = (
                    f"imports of a partition may take {MAX_BYTES} bytes in {MAX_PARTS} parts; this model is "
                    "larger"
                )
                raise RefusedPartError(message)

    def _drop(self, key: str, incoming: Incoming | None) -> None:
        if incoming is not None and key in self._held:
            self._change()
            self._take_out(key)
            self.given_up += 1

    def _take_out(self, key: str) -> None:
        gone = self._held.pop(key)
        self._bytes, self._pieces = self._bytes - gone.size, self._pieces - len(gone.pieces)

    def _change(self) -> None:
        if self._before is None:
            self._before = dict(self._held)


def control_values(data: bytes, name: str, *, size: int, replace: bool = False) -> list[bytes]:
    """Return the values of the control records that import a file; size: bytes of the file in each.

    `name`: an id that no other import of the key has.
    """
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [
        orjson.dumps(
            {
                "command": "import",
                "id": name,
                "part": number,
                "parts": len(pieces),
                "crc": zlib.crc32(piece),
                "data": base64.b64encode(piece).decode(),
                "replace": replace,
            }
        )
        for number, piece in enumerate(pieces, 1)
    ]


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        _refuse(name, value, f"a whole number from {least} to {most}")
    number: int = value
    return number


def _refuse(name: str, value: Any, rule: str) -> None:
    message = f"{name}={str(value)[:40]!r} must be {rule}; 'grove models import' writes these records"
    raise RefusedPartError(message)
