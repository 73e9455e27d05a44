"""Fetch frames: requests and answers of records, written and read without a call for each of their fields.

aiokafka encodes and decodes each number with several calls, some seven hundred for a small fetch of eight
partitions. A trickle has some forty fetches a second, for which these calls cost more than the records. This
module has the version that brokers speak since 2.4; aiokafka's own structures remain for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from struct import Struct
from typing import Any, Final, NamedTuple

from aiokafka.protocol.fetch import FetchRequest_v11, FetchResponse_v11

_SHORT, _INT = Struct(">h"), Struct(">i")
_LIMITS: Final = Struct(">iiiibiii")
"""Replica, longest wait, least and most bytes, isolation level, session, its epoch, number of topics."""
_ROW: Final = Struct(">iiqqi")
"""Partition, epoch of its leader, position, first offset of the log, most bytes."""
_ANSWER: Final = Struct(">ihii")
"""Milliseconds by which the broker throttles, error, session, number of topics."""
_PARTITION: Final = Struct(">ihqqqiii")
"""Partition, error, high watermark, last stable offset, first offset of the log, number of aborted
transactions; if there are none, preferred replica and bytes of the records."""
_ABORTED: Final = Struct(">qq")
_HEADER: Final = Struct(">hhih")
"""Key and version of the request, its number, bytes of the name of the client."""
_RECORDS: Final = Struct(">ii")
"""Preferred replica, bytes of the records."""


class Header(NamedTuple):
    """The header of a request, or what an answer repeats of it."""

    correlation_id: int
    client_id: str = ""

    def encode(self) -> bytes:
        """Return the header of a request as bytes."""
        name = self.client_id.encode()
        key, version = FetchRequest_v11.API_KEY, FetchRequest_v11.API_VERSION
        return _HEADER.pack(key, version, self.correlation_id, len(name)) + name


class FetchAnswer(FetchResponse_v11):  # type: ignore[misc]  # aiokafka's has no types
    """An answer with the attributes of aiokafka's."""

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> FetchAnswer:
        """Read an answer; raise ValueError if it ends early."""
        frame = data if isinstance(data, bytes) else data.read()
        try:
            return cls(*_read(frame))
        except Exception as error:
            message = f"an answer of {len(frame)} bytes to a fetch must have the length that its fields give"
            raise ValueError(message) from error


class FetchFrame(FetchRequest_v11):  # type: ignore[misc]
    """A request whose answer is read as a `FetchAnswer`."""

    RESPONSE_TYPE = FetchAnswer

    def build_request_header(self, correlation_id: int, client_id: str) -> Header:
        """Return the header that precedes the request."""
        return Header(correlation_id, client_id)

    def parse_response_header(self, read_buffer: BytesIO) -> Header:
        """Return the header of an answer, and leave the buffer after it."""
        return Header(*_INT.unpack(read_buffer.read(_INT.size)))

    def encode(self) -> bytes:
        """Return the request as bytes, without its header."""
        limits = self.replica_id, self.max_wait_time, self.min_bytes, self.max_bytes, self.isolation_level
        parts = [_LIMITS.pack(*limits, self.session_id, self.session_epoch, len(self.topics))]
        for topic, rows in self.topics:
            parts += [_text(topic), _INT.pack(len(rows)), *[_ROW.pack(*row) for row in rows]]
        parts.append(_INT.pack(len(self.forgotten_topics_data)))
        for topic, numbers in self.forgotten_topics_data:
            parts += [_text(topic), _numbers(numbers)]
        parts.append(_text(self.rack_id))
        return b"".join(parts)


def _text(text: str) -> bytes:
    content = text.encode()
    return _SHORT.pack(len(content)) + content


def _numbers(numbers: Sequence[int]) -> bytes:
    return Struct(f">i{len(numbers)}i").pack(len(numbers), *numbers)


def _read(frame: bytes) -> tuple[int, int, int, list[tuple[str, list[tuple[Any, ...]]]]]:
    throttled_ms, error, session, n_topics = _ANSWER.unpack_from(frame)
    at = _ANSWER.size
    topics = []
    for _ in range(n_topics):
        (length,) = _SHORT.unpack_from(frame, at)
        if length < 0:
            message = "a topic has no name"
            raise ValueError(message)
        at += _SHORT.size + length
        topic = frame[at - length : at].decode()
        (n_partitions,) = _INT.unpack_from(frame, at)
        at += _INT.size
        rows = []
        for _ in range(n_partitions):
            *head, n_aborted, replica, size = _PARTITION.unpack_from(frame, at)
            at += _PARTITION.size
            aborted: list[tuple[Any, ...]] | None = [] if n_aborted >= 0 else None
            if n_aborted > 0:
                at -= _RECORDS.size
                end = at + n_aborted * _ABORTED.size
                aborted = [*_ABORTED.iter_unpack(frame[at:end])]
                replica, size = _RECORDS.unpack_from(frame, end)
                at = end + _RECORDS.size
            records = None
            if size >= 0:
                records = frame[at : at + size]
                at += size
            rows.append((*head, aborted, replica, records))
        topics.append((topic, rows))
    if at > len(frame):
        message = f"its fields end at byte {at}"
        raise ValueError(message)
    return throttled_ms, error, session, topics
