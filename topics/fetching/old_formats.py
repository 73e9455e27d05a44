"""Old formats: the record batches v0 and v1, which Kafka wrote before version 0.11.

aiokafka's compiled reader reads beyond the end of a malformed batch of these formats and may end the process,
so they are read here, in Python. A batch is one message. The value of a compressed message is a series of
further messages, and its offset is the last of theirs.
"""

from __future__ import annotations

import zlib
from struct import Struct
from struct import error as StructError
from typing import Final

from aiokafka.record.util import calc_crc32c

from topics.fetching.inflate import GZIP, LZ4, SNAPPY, DamagedError, OversizedError, inflated
from topics.fetching.record import Record

OVERHEAD: Final = 12
"""Bytes of a message's offset and length."""
SMALLEST: Final = OVERHEAD + 14
"""Bytes of the smallest message, of format v0 without key and value."""

_OFFSET_AND_LENGTH: Final = Struct(">qi")
_HEAD: Final = Struct(">IBb")
"""CRC, magic, attributes."""
_TIME: Final = Struct(">q")
_SIZE: Final = Struct(">i")
_NEWER_CRC: Final = Struct(">I")
_NEWER_CRC_AT, _NEWER_CRC_FROM = 17, 21
_CRC_FROM: Final = 16
_CODEC, _APPEND_TIME = 0x07, 0x08
"""Bits of the attributes."""
_NO_TIME: Final = -1
"""The timestamp of a record of format v0, as Java's consumer has it."""
_NEWEST: Final = 1


class OldBatch:
    """A batch of an old format, or one that is refused: of an unknown format, or shorter than its head."""

    is_control_batch = is_transactional = False
    producer_id = None

    def __init__(self, log: bytes, start: int, end: int) -> None:
        """The batch lies from `start` to `end`, at least `SMALLEST` bytes."""
        self._log, self._start, self._end = log, start, end
        self.base_offset, _ = _OFFSET_AND_LENGTH.unpack_from(log, start)
        self._crc, self.magic, self._attributes = _HEAD.unpack_from(log, start + OVERHEAD)

    @property
    def next_offset(self) -> int:
        return int(self.base_offset) + 1

    @property
    def codec(self) -> int:
        """The codec's number; 0 if the batch is not compressed."""
        return self._attributes & _CODEC if self.magic <= _NEWEST else 0

    def validate_crc(self) -> bool:
        """Return whether the bytes match their checksum."""
        start, end = self._start, self._end
        if self.magic > _NEWEST:
            (crc,) = _NEWER_CRC.unpack_from(self._log, start + _NEWER_CRC_AT)
            return bool(crc == calc_crc32c(self._log[start + _NEWER_CRC_FROM : end]))
        return bool(self._crc == zlib.crc32(self._log[start + _CRC_FROM : end]))

    def records(self, most_bytes: int, most_records: int) -> tuple[list[Record], int]:
        """Return the records, and how many bytes were inflated for them.

        Raises OversizedError above one of the limits, and DamagedError if the batch is malformed.
        """
        if self.magic > _NEWEST:
            message = f"magic={self.magic} must be 0, 1 or 2, with a whole head"
            raise DamagedError(message)
        try:
            return self._records(most_bytes, most_records)
        except StructError as error:
            message = f"it ends within a message: {error}"
            raise DamagedError(message) from error

    def _records(self, most_bytes: int, most_records: int) -> tuple[list[Record], int]:
        record, attributes = _message(self._log, self._start, self._end, self.magic)
        if not self.codec:
            return [record], 0
        if self.codec not in (GZIP, SNAPPY, LZ4) or (self.codec == LZ4 and not self.magic):
            message = f"codec={self.codec} does not exist in format v{self.magic}"  # KAFKA-3160 for lz4
            raise DamagedError(message)
        if record.value is None:
            message = "a compressed message must have a value"
            raise DamagedError(message)
        log = inflated(self.codec, record.value, most_bytes)
        time = record.timestamp if attributes & _APPEND_TIME and self.magic else None
        return self._absolute(_messages(log, self.magic, time, most_records)), len(log)

    def _absolute(self, records: list[Record]) -> list[Record]:
        """Return records with their offsets in the partition: in format v1, those of a batch begin at 0."""
        if not records:
            message = "a compressed message must hold messages"
            raise DamagedError(message)
        before = self.base_offset - records[-1].offset if self.magic else 0
        if before > 0:
            records = [record._replace(offset=record.offset + before) for record in records]
        last = -1
        for record in records:
            if not last < record.offset <= self.base_offset:
                message = f"offset={record.offset} must be above {last} and at most {self.base_offset}"
                raise DamagedError(message)
            last = record.offset
        return records


def _messages(log: bytes, magic: int, time: int | None, most: int) -> list[Record]:
    """Return the records of inflated messages; `time`: their timestamp, if the broker set it."""
    records: list[Record] = []
    at = 0
    while at < len(log):
        if len(records) == most:
            raise OversizedError
        _, length = _OFFSET_AND_LENGTH.unpack_from(log, at)
        end = at + OVERHEAD + length
        if length < SMALLEST - OVERHEAD or end > len(log):
            message = f"a message of {length} bytes at byte {at} of {len(log)}"
            raise DamagedError(message)
        record, attributes = _message(log, at, end, magic)
        if attributes & _CODEC:
            message = f"the message at byte {at} is compressed twice"
            raise DamagedError(message)
        records.append(record if time is None else record._replace(timestamp=time))
        at = end
    return records


def _message(log: bytes, start: int, end: int, magic: int) -> tuple[Record, int]:
    """Return the record that a message holds, and its attributes."""
    offset, _ = _OFFSET_AND_LENGTH.unpack_from(log, start)
    _, own_magic, attributes = _HEAD.unpack_from(log, start + OVERHEAD)
    if own_magic != magic:
        message = f"a message of format v{own_magic} in a batch of format v{magic}"
        raise DamagedError(message)
    at, time = start + OVERHEAD + _HEAD.size, _NO_TIME
    if magic:
        (time,) = _TIME.unpack_from(log, at)
        at += _TIME.size
    key, at = _bytes(log, at, end)
    value, at = _bytes(log, at, end)
    return Record(offset, time, key, value, ()), attributes


def _bytes(log: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Return a key or value, and its end."""
    (size,) = _SIZE.unpack_from(log, at)
    at += _SIZE.size
    if size < -1 or max(size, 0) > end - at:
        message = f"a key or value of {size} bytes, of which {end - at} are there"
        raise DamagedError(message)
    return (None, at) if size < 0 else (log[at : at + size], at + size)
