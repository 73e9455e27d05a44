"""Compression: the records of a batch in the form of each codec that Kafka has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final

import cramjam

from topics.errors import BrokerError
from topics.fetching.inflate import CODEC_NAMES, GZIP, LZ4, SNAPPY, XERIAL_HEAD, ZSTD

NONE: Final = 0
CODECS: Final[Mapping[str, int]] = {"none": NONE} | {name: number for number, name in CODEC_NAMES.items()}
"""Codecs by the value of `compression.type`: their number in the attributes of a batch."""

_LEVELS: Final = {GZIP: (6, 9), LZ4: (1, 12), ZSTD: (3, 22)}
"""The usual level and the highest one. Levels of LZ4 below 3 are its fast mode; the others take several times
as long.
"""

_BLOCK_BYTES: Final = 1 << 15
_LENGTH: Final = Struct(">i")


def codec_of(name: str) -> int:
    """Return the codec of a `compression.type`; raise BrokerError."""
    if name not in CODECS:
        message = f"compression.type={name!r} must be one of {', '.join(CODECS)}; correct the setting"
        raise BrokerError(message)
    return CODECS[name]


def compress(data: bytes, codec: int, level: int = -1) -> bytes:
    """Return compressed records; `level` is `compression.level`, -1: the usual one of the codec."""
    usual, highest = _LEVELS.get(codec, (0, 0))
    return _COMPRESS[codec](data, usual if level < 0 else min(level, highest))


def _lz4(data: bytes, level: int) -> bytes:
    """Brokers take only frames whose blocks are independent (KIP-57)."""
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _snappy(data: bytes, _level: int) -> bytes:
    """Return blocks in the frame of snappy-java, which all clients read."""
    parts = [XERIAL_HEAD]
    for at in range(0, len(data), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _BLOCK_BYTES]))
        parts += [_LENGTH.pack(len(block)), block]
    return b"".join(parts)


_COMPRESS: Final[Mapping[int, Callable[[bytes, int], bytes]]] = {
    GZIP: lambda data, level: bytes(cramjam.gzip.compress(data, level)),
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: lambda data, level: bytes(cramjam.zstd.compress(data, level)),
}
