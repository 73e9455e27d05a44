"""Units of a snapshot as keyed chunks of bounded size (docs/snapshot-table.md).

    key     kind │ name │ 0 │ incarnation, 8 bytes │ sequence, 8 bytes │ chunk, 4 bytes      (big-endian)
    value   a part of the unit's bytes, zstd-compressed as a whole

Incarnation and sequence are of the snapshot that wrote the unit. No two snapshots share both, because the
incarnation of a task is higher than any in its journal and in the keys of its partition. So nothing is ever
overwritten, and no index names the chunks that a fenced worker still writes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, cast

import cramjam

from streamapp.errors import StreamappError
from topics.fetching.inflate import ZSTD, InflateError, OversizedError, inflated

CHUNK_BYTES: Final = 512 * 1024
ZSTD_LEVEL: Final = 1
UNIT: Final = b"u"
INDEX: Final = b"i"

_TAIL = struct.Struct(">QQI")


class DamagedError(StreamappError):
    """A snapshot of which something is missing or altered."""


class Copy(NamedTuple):
    """The place of a unit's bytes in the table."""

    incarnation: int
    sequence: int
    chunks: int
    crc: int  # CRC-32 of the compressed bytes
    size: int  # of the compressed bytes


def chunk_keys(kind: bytes, name: bytes, copy: Copy) -> Iterator[bytes]:
    head = kind + name + b"\0"
    for number in range(copy.chunks):
        yield head + _TAIL.pack(copy.incarnation, copy.sequence, number)


def incarnation_of(key: bytes) -> int:
    """Return the incarnation whose snapshot wrote a chunk; 0 if the key is not a chunk's key."""
    if key[:1] not in (UNIT, INDEX) or len(key) <= _TAIL.size:
        return 0
    incarnation: int = _TAIL.unpack(key[-_TAIL.size :])[0]
    return incarnation


def pack(
    kind: bytes, name: bytes, incarnation: int, sequence: int, data: bytes
) -> tuple[Copy, list[tuple[bytes, bytes]]]:
    """Return the future place of a unit, and its chunks with their keys."""
    packed = bytes(cramjam.zstd.compress(data, ZSTD_LEVEL))
    values = [packed[at : at + CHUNK_BYTES] for at in range(0, len(packed), CHUNK_BYTES)]
    copy = Copy(incarnation, sequence, len(values), zlib.crc32(packed), len(packed))
    return copy, list(zip(chunk_keys(kind, name, copy), values, strict=True))


def unpack(kind: bytes, name: bytes, copy: Copy, get: Callable[[bytes], bytes | None], most: int) -> bytes:
    """Return a unit's bytes; DamagedError if they are incomplete, altered, or more than `most`."""
    return decompressed(stored(kind, name, copy, get), name, copy, most)


def decompressed(packed: bytes, name: bytes, copy: Copy, most: int) -> bytes:
    """Return a unit's bytes, of which `stored` returned the compressed bytes.

    DamagedError if they cannot be decompressed, or to more than `most` bytes: anyone who can write to the
    table can compute the checksum, and some kilobytes may decompress to any number of bytes.
    """
    try:
        return inflated(ZSTD, packed, most)
    except OversizedError:
        message = f"{_title(name, copy)}: {len(packed)} bytes decompress to more than {most} bytes"
        raise DamagedError(message) from None
    except InflateError as error:
        message = f"{_title(name, copy)}: {len(packed)} bytes cannot be decompressed ({error})"
        raise DamagedError(message) from error


def unpack_together(packed: Sequence[bytes], buffer: bytearray) -> bytes | None:
    """Return the concatenated bytes of several units, of which `stored` returned the compressed bytes.

    None: the buffer has no room for them, or one of them cannot be decompressed.
    """
    try:
        size = cramjam.zstd.decompress_into(b"".join(packed), buffer)
    except cramjam.DecompressionError:
        return None
    with memoryview(buffer) as view:
        return bytes(view[:size])


def stored(kind: bytes, name: bytes, copy: Copy, get: Callable[[bytes], bytes | None]) -> bytes:
    """Return a unit's compressed bytes; DamagedError if they are incomplete or altered."""
    parts = [get(key) for key in chunk_keys(kind, name, copy)]
    if None in parts:
        message = f"{_title(name, copy)}: {parts.count(None)} of {copy.chunks} chunks are missing"
        raise DamagedError(message)
    packed = b"".join(cast("list[bytes]", parts)) if len(parts) != 1 else cast(bytes, parts[0])
    if len(packed) != copy.size or zlib.crc32(packed) != copy.crc:
        message = f"{_title(name, copy)}: {len(packed)} bytes do not match their checksum"
        raise DamagedError(message)
    return packed


def _title(name: bytes, copy: Copy) -> str:
    return f"unit {name.decode()} of snapshot {copy.incarnation}.{copy.sequence}"
