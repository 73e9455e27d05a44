"""One partition of one topic, written and read in Kafka's own protocol over a socket (without TLS or SASL).

This client writes and shows what client libraries refuse or hide: the names of headers are bytes.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.chaos.wire import Producer, Record, decode_batches, encode_batch, frame_batch

PRODUCE, FETCH, INIT_PRODUCER_ID = (0, 7), (1, 4), (22, 0)
"""Keys of requests with the versions used here, which every Kafka since 2.1 supports."""

DUPLICATE_SEQUENCE: Final = 46  # the batch was written before; the answer has its place
PATIENCE_S: Final = 120.0
PAUSE_S: Final = 0.2
ANSWER_S: Final = 10.0
FETCH_BYTES: Final = 8 << 20

_INT, _SHORT, _LONG = Struct(">i"), Struct(">h"), Struct(">q")
_REQUEST = Struct(">hhih")  # key, version, number, client id: none
_ACKS = Struct(">hi")  # required acks (-1: all), timeout in ms
_FETCH = Struct(">iiiib")  # replica, ms to wait, least and most bytes, isolation level
_FROM = Struct(">qi")  # offset, most bytes


class RawClientError(Exception):
    """The broker refused a request, or did not answer for too long."""


class RawClient:
    """Writes and reads one partition. A batch that is sent again after a lost answer is written once."""

    def __init__(self, servers: str, topic: str, partition: int) -> None:
        self._servers, self._topic, self._partition = servers, topic, partition
        self._socket: socket.socket | None = None
        self._producer: Producer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def write(self, records: Sequence[Record], *, compressed: bool = False) -> int:
        """Write records as one batch; return the offset of the first."""
        return self._write(
            len(records), lambda producer: encode_batch(records, producer, compressed=compressed)
        )

    def write_body(self, body: bytes, n: int, attributes: int) -> int:
        """Write a batch of n records that are encoded already, and compressed as the attributes specify."""
        now = int(time.time() * 1000)
        return self._write(n, lambda producer: frame_batch(body, n, (now, now), producer, attributes))

    def _write(self, n: int, encode: Callable[[Producer], bytes]) -> int:
        if self._producer is None:
            number, epoch = self._ask(INIT_PRODUCER_ID, _text(None) + _INT.pack(60_000), _producer_id)
            self._producer = Producer(number, epoch, 0)
        batch = encode(self._producer)
        acks = _text(None) + _ACKS.pack(-1, int(1000 * ANSWER_S))
        producer, self._producer = self._producer, None  # whether a failed batch was written is unknown
        offset = self._ask(PRODUCE, acks + self._here() + _INT.pack(len(batch)) + batch, _produced)
        self._producer = producer._replace(sequence=producer.sequence + n)
        return int(offset)

    def read(self, start: int, end: int) -> Iterator[Record]:
        """Yield the records of offsets from `start` to before `end`; may raise the errors of
        `decode_batches`.
        """
        at = start
        while at < end:
            records, position = self.fetch(at, wait_ms=500)
            yield from (record for record in records if record.offset < end)
            before, at = at, position
            if at == before:
                message = f"{self._topic}-{self._partition}: nothing from offset {at} to before {end}"
                raise RawClientError(message)

    def fetch(self, start: int, wait_ms: int) -> tuple[list[Record], int]:
        """Return records from an offset on, if any come within `wait_ms`, and the position after them."""
        fetch = _FETCH.pack(-1, wait_ms, 1, FETCH_BYTES, 0)
        log: bytes = self._ask(FETCH, fetch + self._here() + _FROM.pack(start, FETCH_BYTES), _fetched)
        records_read, position = list[Record](), start
        for behind, records in decode_batches(log):
            records_read += [record for record in records if record.offset >= start]
            position = behind
        return records_read, position

    def _here(self) -> bytes:
        """Return the encoded topic and partition of a request."""
        return _INT.pack(1) + _text(self._topic) + _INT.pack(1) + _INT.pack(self._partition)

    def _ask(self, kind: tuple[int, int], body: bytes, read: Callable[[_Answer], tuple[int, Any]]) -> Any:
        """Return the result of `read` on the answer; repeat the request while there is no answer, or an error
        in it.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                error, result = read(_Answer(self._exchange(kind, body)))
                failure: object = f"error {error}"
            except (OSError, KafkaException) as problem:
                error, failure = -1, problem
            if error in (0, DUPLICATE_SEQUENCE):
                return result
            self.close()  # another broker may be the leader now
            if time.monotonic() > deadline:
                message = f"{self._topic}-{self._partition}: request {kind[0]}: {failure}"
                raise RawClientError(message)
            time.sleep(PAUSE_S)

    def _exchange(self, kind: tuple[int, int], body: bytes) -> bytes:
        """Send a request and return its answer; may raise OSError or KafkaException."""
        if self._socket is None:
            self._socket = socket.create_connection(self._leader(), ANSWER_S)
        request = _REQUEST.pack(*kind, 0, -1) + body
        self._socket.sendall(_INT.pack(len(request)) + request)
        (size,) = _INT.unpack(self._receive(_INT.size))
        return self._receive(size)[_INT.size :]  # after the request's number

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            assert self._socket is not None
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                message = "the broker closed the connection"
                raise ConnectionError(message)
            data += chunk
        return bytes(data)

    def _leader(self) -> tuple[str, int]:
        client = AdminClient({"bootstrap.servers": self._servers, "log_level": 0})
        metadata = client.list_topics(self._topic, timeout=ANSWER_S)
        place = metadata.topics[self._topic].partitions.get(self._partition)
        if place is None or place.leader not in metadata.brokers:
            message = f"{self._topic}-{self._partition} has no leader"
            raise ConnectionError(message)
        leader = metadata.brokers[place.leader]
        assert leader.host is not None
        return leader.host, leader.port


class _Answer:
    """Reads the fields of an answer in order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, kind: Struct) -> int:
        (number,) = kind.unpack_from(self._data, self._at)
        self._at += kind.size
        return int(number)

    def bytes(self, size: int) -> bytes:
        """Return the next bytes; a negative size means none."""
        self._at += max(0, size)
        return self._data[self._at - max(0, size) : self._at]

    def place(self) -> None:
        """Skip one topic and the number of its one partition."""
        self.number(_INT)
        self.bytes(self.number(_SHORT))
        self.number(_INT)
        self.number(_INT)


def _producer_id(answer: _Answer) -> tuple[int, tuple[int, int]]:
    answer.number(_INT)  # ms of throttling
    error = answer.number(_SHORT)
    return error, (answer.number(_LONG), answer.number(_SHORT))


def _produced(answer: _Answer) -> tuple[int, int]:
    answer.place()
    return answer.number(_SHORT), answer.number(_LONG)


def _fetched(answer: _Answer) -> tuple[int, bytes]:
    answer.number(_INT)  # ms of throttling
    answer.place()
    error = answer.number(_SHORT)
    answer.bytes(2 * _LONG.size)  # the log's end, and its last stable offset
    answer.bytes(answer.number(_INT) * 2 * _LONG.size)  # aborted transactions
    return error, answer.bytes(answer.number(_INT))


def _text(text: str | None) -> bytes:
    return _SHORT.pack(-1) if text is None else _SHORT.pack(len(text.encode())) + text.encode()
