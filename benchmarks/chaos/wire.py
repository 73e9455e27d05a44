"""Record batches of Kafka (format v2) as bytes, written and read by its specification.

It shares no code with the clients of the application, so it does not hide what they hide: the names of
headers are bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

import cramjam
from aiokafka.record.util import calc_crc32c

GZIP: Final = 1
COMPRESSION: Final[dict[int, Callable[[bytes], object]]] = {
    0: bytes,
    GZIP: gzip.decompress,
    3: cramjam.lz4.decompress,
    4: cramjam.zstd.decompress,
}
"""Decompression by the three lowest bits of a batch's attributes."""

COMPRESSION_BITS, APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
_FRAME = Struct(">qiibI")  # base offset, bytes that follow the two, leader epoch, magic, CRC of the rest
_HEAD = Struct(">hiqqqhii")  # attributes, offsets after the first, first and last time, producer (3), records
_BEFORE_LENGTH = 12


class Record(NamedTuple):
    """A record; times are in ms, the offset is set only by reading."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    time_ms: int = -1
    offset: int = -1


class Producer(NamedTuple):
    """The producer of a batch, and the number of its first record, by which the broker detects duplicates."""

    number: int = -1
    epoch: int = -1
    sequence: int = -1


def encode_batch(records: Sequence[Record], producer: Producer, *, compressed: bool = False) -> bytes:
    first, last = records[0].time_ms, max(record.time_ms for record in records)
    body = encode_records(records)
    kind, body = (GZIP, gzip.compress(body)) if compressed else (0, body)
    return frame_batch(body, len(records), (first, last), producer, kind)


def encode_records(records: Sequence[Record]) -> bytes:
    """Return the body of a batch with these records: times and offsets are relative to the first record."""
    first = records[0].time_ms
    return b"".join(_record(record, record.time_ms - first, at) for at, record in enumerate(records))


def frame_batch(
    body: bytes, n: int, times_ms: tuple[int, int], producer: Producer, attributes: int = 0
) -> bytes:
    """Return a batch of n encoded records; `times_ms` are the times of the first and the last."""
    rest = _HEAD.pack(attributes, n - 1, *times_ms, *producer, n) + body
    return _FRAME.pack(0, _FRAME.size - _BEFORE_LENGTH + len(rest), -1, 2, calc_crc32c(rest)) + rest


def decode_batches(log: bytes) -> Iterator[tuple[int, list[Record]]]:
    """Yield the records of each whole batch, with the offset after the last of them.

    Raises ValueError for a batch that is transactional, or compressed with Snappy.
    """
    at = 0
    while at + _FRAME.size <= len(log):
        base, size, _, magic, _ = _FRAME.unpack_from(log, at)
        end = at + _BEFORE_LENGTH + size
        if end > len(log):
            return  # the broker has cut it off
        attributes, last, first_time, last_time, _, _, _, n = _HEAD.unpack_from(log, at + _FRAME.size)
        expand = COMPRESSION.get(attributes & COMPRESSION_BITS)
        if magic != 2 or attributes & (TRANSACTIONAL | CONTROL) or expand is None:
            message = f"batch at offset {base}: magic {magic}, attributes {attributes} are not read here"
            raise ValueError(message)
        body = log[at + _FRAME.size + _HEAD.size : end]
        reader = _Reader(bytes(expand(body)))  # type: ignore[call-overload]
        append_time = last_time if attributes & APPEND_TIME else None
        yield base + last + 1, [reader.record(base, first_time, append_time) for _ in range(n)]
        at = end


def _record(record: Record, time: int, at: int) -> bytes:
    body = b"\0" + _varint(time) + _varint(at) + _sized(record.key) + _sized(record.value)
    body += _varint(len(record.headers))
    body += b"".join(_sized(name) + _sized(value) for name, value in record.headers)
    return _varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    rest, encoded = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


class _Reader:
    """Reads records in order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def record(self, base: int, first_time: int, append_time: int | None) -> Record:
        self._varint()  # the record's length
        self._at += 1  # attributes, all unused
        time, offset = first_time + self._varint(), base + self._varint()
        key, value = self._bytes(), self._bytes()
        headers = [(self._bytes() or b"", self._bytes()) for _ in range(self._varint())]
        return Record(key, value, headers, time if append_time is None else append_time, offset)

    def _bytes(self) -> bytes | None:
        size = self._varint()
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
