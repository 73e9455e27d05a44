"""Frame: a head of JSON and a body in one sequence of bytes with a checksum over both.

    8  magic                    the kind of frame
    4  format version           uint32 little-endian (as all that follows)
    4  bytes of the head
    8  bytes of the body
       head                     JSON in ASCII, keys sorted
       body
    8  BLAKE2b-64 of everything before

The checksum is not a CRC-32: a model's snapshot ends with its CRC-32, and the CRC-32 of data that ends with
its own CRC-32 does not depend on the data.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.errors import GroveError

_FIXED = struct.Struct("<8sIIQ")
DIGEST: Final = 8

Body = bytes | memoryview


class FrameError(GroveError):
    """Bytes that ``Frame.seal`` did not write, or that were altered since."""


class FrameVersionError(FrameError):
    """A frame that another release wrote."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One kind of frame: its magic, version and name."""

    magic: bytes
    version: int

    def seal(self, head: bytes, body: Sequence[Body]) -> bytes:
        """Return the bytes of a frame; head: JSON, body: parts that are concatenated."""
        fixed = _FIXED.pack(self.magic, self.version, len(head), sum(map(len, body)))
        data = b"".join((fixed, head, *body))
        return data + _hash(data)

    def split(self, data: bytes, n: int) -> list[bytes] | None:
        """Return n frames that lie directly after each other; None: the bytes are not n frames.

        Only the sizes are read: `unseal` checks a frame.
        """
        frames: list[bytes] = []
        start = 0
        for _ in range(n):
            if len(data) - start < _FIXED.size:
                return None
            magic, _, head_size, body_size = _FIXED.unpack_from(data, start)
            end = start + _FIXED.size + head_size + body_size + DIGEST
            if magic != self.magic or end > len(data):
                return None
            frames.append(data[start:end])
            start = end
        return frames if start == len(data) else None

    def unseal(
        self, data: Body, kind: str, name: object = "", *, is_whole: bool = False
    ) -> tuple[bytes, memoryview]:
        """Return head and body; FrameError if the bytes are altered; kind and name begin its text.

        `is_whole`: another checksum has shown that the bytes are unaltered, so this one is not computed.
        """
        if len(data) < _FIXED.size + DIGEST or data[: len(self.magic)] != self.magic:
            start = f"{self.magic!r} and a header of {_FIXED.size} bytes"
            title = _title(kind, name)
            msg = f"{title} must begin with {start}: it is no {title}"
            raise FrameError(msg)
        _, version, head_size, body_size = _FIXED.unpack_from(data)
        if version != self.version:
            reads = f"this build reads format {self.version}"
            title = _title(kind, name)
            msg = f"{title} has format {version}; {reads}; run the release that wrote it, or a later one"
            raise FrameVersionError(msg)
        body = _FIXED.size + head_size
        end = body + body_size
        if len(data) != end + DIGEST:
            msg = f"{_title(kind, name)}={len(data)} bytes must be {end + DIGEST}: it is cut off, or too long"
            raise FrameError(msg)
        view = memoryview(data)
        if not is_whole and view[end:] != _hash(view[:end]):
            msg = f"{_title(kind, name)} must match its checksum: it was altered on its way"
            raise FrameError(msg)
        return bytes(view[_FIXED.size : body]), view[body:end]


def canonical(body: Any) -> bytes:
    """Return canonical JSON in ASCII, which can represent every string."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _title(kind: str, name: object) -> str:
    return f"{kind} {name}".strip()


def _hash(data: Body) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST).digest()
