"""A producer with a steady rate that is little load itself: all records are encoded beforehand.

Records become due one by one. The records of `linger-ms` are sent together, in one request to each broker
with a batch for each partition, as Kafka's Java producer does (idempotent, acks=all, no compression, at most
five requests without an answer). Records stay in the batch of their schedule, whereas a real client with a
slow broker would fill the waiting batches further. Delays by a slow broker count as late by the schedule. The
id of a record is the time at which it was due: ns since the start, which is written to the standard output
(monotonic, ns) as soon as everything is encoded.
"""

from __future__ import annotations

import gc
import socket
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct

import orjson
from confluent_kafka.admin import AdminClient

from benchmarks.chaos.wire import Producer, Record, encode_records, frame_batch
from benchmarks.rig.producer_arguments import producer_parser
from benchmarks.rig.stream import NAMES, generate, model_keys
from topics.clients.partitioner import partition_of

ANSWER_SECONDS = 60.0  # for requests without an answer at the end
LEAD_SECONDS = 0.5  # between the last preparation and the first record
MOST_PENDING = 5  # requests to a broker without an answer, as in Kafka's clients

_PRODUCE, _INIT_PRODUCER_ID = (0, 7), (22, 0)  # keys of requests, and their versions
_REQUEST = Struct(">ihhih")  # size, key, version, number, client id: none
_INT, _SHORT = Struct(">i"), Struct(">h")
_ANSWER = Struct(">ihqqq")  # partition, error, offset, time, first offset of the log
_NEW_PRODUCER = Struct(">ihqh")  # throttle time, error, id, epoch


class RefusedError(Exception):
    """The broker refused a request."""


@dataclass(slots=True)
class Part:
    """The records of one partition in one request."""

    partition: int
    body: bytes
    records: int
    times: tuple[int, int]  # of the first and the last record, in ms since the start


@dataclass(slots=True)
class Link:
    """The connection to one broker, and its requests."""

    socket: socket.socket
    topic: bytes
    producer: Producer  # id and epoch
    sequences: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # by partition
    pending: int = 0  # requests without an answer
    _received: bytearray = field(default_factory=bytearray)

    def send(self, parts: Sequence[Part], epoch_ms: int) -> None:
        """Send one request once there is room for it; may raise RefusedError.

        `epoch_ms` is the start in ms since 1970.
        """
        self._leave(MOST_PENDING - 1)
        body = [_SHORT.pack(-1), _SHORT.pack(-1), _INT.pack(30_000), _INT.pack(1), self.topic]
        body.append(_INT.pack(len(parts)))
        for part in parts:
            here = Producer(self.producer.number, self.producer.epoch, self.sequences[part.partition])
            first, last = part.times
            batch = frame_batch(part.body, part.records, (epoch_ms + first, epoch_ms + last), here)
            body += [_INT.pack(part.partition), _INT.pack(len(batch)), batch]
            self.sequences[part.partition] += part.records
        self.socket.sendall(_request(_PRODUCE, b"".join(body)))
        self.pending += 1

    def answers(self, wait_s: float) -> None:
        """Process the answers that have arrived; may raise RefusedError."""
        self.socket.settimeout(wait_s)
        try:
            chunk = self.socket.recv(1 << 16)
        except (TimeoutError, BlockingIOError):
            return
        finally:
            self.socket.settimeout(ANSWER_SECONDS)
        if not chunk:
            message = "the broker closed the connection"
            raise RefusedError(message)
        self._received += chunk
        while len(self._received) >= _INT.size:
            end = _INT.size + _INT.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            self._check(bytes(self._received[:end]))
            del self._received[:end]
            self.pending -= 1

    def _leave(self, most: int) -> None:
        """Return when at most `most` requests are without an answer; may raise RefusedError."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while self.pending > most:
            if time.monotonic() > deadline:
                message = f"{self.pending} requests were not answered"
                raise RefusedError(message)
            self.answers(1.0)

    def finish(self) -> None:
        """Return when all requests are answered; may raise RefusedError."""
        self._leave(0)

    def _check(self, answer: bytes) -> None:
        at = 2 * _INT.size + _INT.size + len(self.topic)  # size, number, one topic, its name
        (n,) = _INT.unpack_from(answer, at)
        for number in range(n):
            partition, error, *_ = _ANSWER.unpack_from(answer, at + _INT.size + number * _ANSWER.size)
            if error:
                message = f"partition {partition}: error {error}"
                raise RefusedError(message)


def links(bootstrap: str, topic: str) -> list[tuple[Link, set[int]]]:
    """Return a connection to each broker that leads partitions of the topic, with these partitions."""
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=ANSWER_SECONDS)
    led: dict[int, set[int]] = defaultdict(set)
    for partition, place in metadata.topics[topic].partitions.items():
        led[place.leader].add(partition)
    found_links: list[tuple[Link, set[int]]] = []
    producer: Producer | None = None
    for leader, partitions in led.items():
        broker = metadata.brokers[leader]
        connection = socket.create_connection((broker.host, broker.port), ANSWER_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        producer = producer or _new_producer(connection)
        found_links.append((Link(connection, _SHORT.pack(len(topic)) + topic.encode(), producer), partitions))
    return found_links


def _new_producer(connection: socket.socket) -> Producer:
    connection.sendall(_request(_INIT_PRODUCER_ID, _SHORT.pack(-1) + _INT.pack(60_000)))
    answer = _receive(connection, _INT.unpack(_receive(connection, _INT.size))[0])
    _, error, number, epoch = _NEW_PRODUCER.unpack_from(answer, _INT.size)
    if error:
        message = f"no producer id: error {error}"
        raise RefusedError(message)
    return Producer(number, epoch)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            message = "the broker closed the connection"
            raise RefusedError(message)
        data += chunk
    return data


def _request(kind: tuple[int, int], body: bytes) -> bytes:
    head = _REQUEST.pack(_REQUEST.size - _INT.size + len(body), *kind, 0, -1)
    return head + body


def encoded(rate: int, seconds: float, keys: int, partitions: int, step_s: float) -> Iterator[list[Part]]:
    """Yield, for each step, the records that become due in it."""
    n = int(rate * seconds)
    rows = generate(n, model_keys(keys, partitions))
    names = [key.encode() for key in rows.keys]
    places = [partition_of(key, partitions) for key in names]
    step, due = 0, defaultdict[int, list[Record]](list)
    for number, x in enumerate(rows.x.tolist()):
        at = number / rate
        while at >= (step + 1) * step_s:
            yield _parts(due)
            step, due = step + 1, defaultdict(list)
        key, features = rows.key[number], orjson.dumps(dict(zip(NAMES, x, strict=True)))
        value = b'{"id":"%d","features":%b,"label":"%d"}' % (int(at * 1e9), features, rows.y[number])
        due[places[key]].append(Record(names[key], value, time_ms=int(at * 1e3)))
    yield _parts(due)


def _parts(due: dict[int, list[Record]]) -> list[Part]:
    return [
        Part(partition, encode_records(records), len(records), (records[0].time_ms, records[-1].time_ms))
        for partition, records in due.items()
    ]


def main() -> None:
    options = producer_parser().parse_args()
    step_s = max(options.linger_ms / 1e3, 1 / options.rate)
    steps = list(encoded(options.rate, options.seconds, options.keys, options.partitions, step_s))
    brokers = links(options.bootstrap, options.topic)
    gc.freeze()  # encoded records are not searched for garbage during the run
    start = time.monotonic() + LEAD_SECONDS
    epoch_ms = int((time.time() + LEAD_SECONDS) * 1e3)
    print(int(start * 1e9), flush=True)
    for number, parts in enumerate(steps):
        time.sleep(max(0.0, start + (number + 1) * step_s - time.monotonic()))
        for link, led in brokers:
            if here := [part for part in parts if part.partition in led]:
                link.send(here, epoch_ms)
            link.answers(0.0)
    for link, _ in brokers:
        link.finish()


if __name__ == "__main__":
    main()
