"""Inflating: the records of a compressed batch, never more bytes than a bound.

A frame may claim any size, so each codec writes into a buffer that ends at the bound. Within the bound the
result equals the output of aiokafka's own functions (tests/property/test_inflate.py).
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

import cramjam
import numpy as np

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
"""Codecs, by their number in the attributes of a batch."""

CODEC_NAMES: Final = {GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

_USUAL_RATIO: Final = 8
_LEAST_ROOM: Final = 1 << 16
"""Smallest buffer of a first attempt, which otherwise is `_USUAL_RATIO` times the compressed bytes."""

_MORE: Final = 16
"""Factor by which the buffer of the next attempt is larger."""

_PIECE: Final = 1 << 20
"""Bytes that are inflated in one step."""

_FULL: Final = "failed to write whole buffer"
"""cramjam's message for a buffer that is too small; held by tests/contract/test_cramjam.py."""

XERIAL_HEAD: Final = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
"""Bytes with which snappy-java begins the blocks of a batch."""

_XERIAL_BLOCK: Final = Struct(">i")


class InflateError(Exception):
    """Records that cannot be inflated."""


class OversizedError(InflateError):
    """More inflated bytes than the bound."""


class DamagedError(InflateError):
    """Bytes that the codec cannot read or that end too early, or a codec that Kafka does not have."""


def inflated(codec: int, data: bytes, most: int) -> bytes:
    """Return the inflated `data`, at most `most` bytes; raise OversizedError or DamagedError."""
    inflate = _INFLATE.get(codec)
    if inflate is None:
        message = f"codec={codec} must be one of {', '.join(f'{n} ({c})' for n, c in CODEC_NAMES.items())}"
        raise DamagedError(message)
    try:
        return inflate(data, most)
    except (cramjam.DecompressionError, zlib.error, OSError, EOFError, ValueError) as error:
        raise DamagedError(str(error)) from error


def _gzip(data: bytes, most: int) -> bytes:
    parts: list[bytes] = []
    room = most
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        while part := stream.read(min(room + 1, _PIECE)):
            room -= len(part)
            if room < 0:
                raise OversizedError
            parts.append(part)
    return b"".join(parts)


def _snappy(data: bytes, most: int) -> bytes:
    if not data.startswith(XERIAL_HEAD):
        return _snappy_block(data, most)
    parts: list[bytes] = []
    view, at, room = memoryview(data), len(XERIAL_HEAD), most
    while at < len(data):
        if at + _XERIAL_BLOCK.size > len(data):
            message = f"a block's length at byte {at} of {len(data)} is cut off"
            raise DamagedError(message)
        (size,) = _XERIAL_BLOCK.unpack_from(data, at)
        at += _XERIAL_BLOCK.size
        if size < 0:  # a longer result is cut off; missing bytes are damage
            message = f"a block of {size} bytes at byte {at} of {len(data)}"
            raise DamagedError(message)
        parts.append(_snappy_block(view[at : at + size], room))
        room -= len(parts[-1])
        at += size
    return b"".join(parts)


def _snappy_block(data: Any, most: int) -> bytes:
    """Return an inflated block; its length comes first, and the codec enforces it."""
    if cramjam.snappy.decompress_raw_len(data) > most:
        raise OversizedError
    return bytes(cramjam.snappy.decompress_raw(data))


def _lz4(data: bytes, most: int) -> bytes:
    return _into_room(cramjam.lz4.decompress_into, data, most)


def _zstd(data: bytes, most: int) -> bytes:
    return _into_room(cramjam.zstd.decompress_into, data, most)


def _into_room(decompress: Callable[[bytes, Any], int], data: bytes, most: int) -> bytes:
    """Inflate into a buffer of the usual size, then into larger buffers up to the bound."""
    size = min(most, max(_USUAL_RATIO * len(data), _LEAST_ROOM))
    while True:
        room = np.empty(size, dtype=np.uint8)
        try:
            return room[: decompress(data, room)].tobytes()
        except cramjam.DecompressionError as error:
            if str(error) != _FULL:
                raise
        if size == most:
            raise OversizedError
        size = min(most, _MORE * size)


_INFLATE: Final[dict[int, Callable[[bytes, int], bytes]]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
