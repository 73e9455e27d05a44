"""Native producer: librdkafka's, called by ctypes, with the methods of confluent-kafka's Producer.

It takes a run of records in one compiled call, and is told of failures only. Errors are those that
confluent-kafka raises. It lives as long as something refers to it: the client ends with its last reference,
so that no call of it can be under way.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from logging import Logger
from typing import Any, Final, NamedTuple

import numpy as np
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from topics.clients import librdkafka
from topics.clients.librdkafka import Argument, Library, Message
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Headers, Ints64
from topics.columns.spans import Spans

ProduceRecords = Callable[..., int]
"""A kernel that calls `rd_kafka_produceva` for each record (topics/clients/produce.py)."""

FIXED: Final = 6
"""Arguments of `rd_kafka_produceva` that every record has; headers follow."""

OUT_OF_BOUNDS: Final = -1
"""What a kernel gives instead of an error if a column leads out of its buffer."""

_TEXT_BYTES: Final = 512
_FIRST_LOOK_S: Final = 0.001
_EAGER_S: Final = 0.05
_LEVELS: Final = (50, 50, 50, 40, 30, 20, 20, 10)
"""Of `logging`, for those of syslog."""
_NO_STARTS: Final = np.zeros(0, dtype=np.int64)


class Undelivered(NamedTuple):
    """Where a record belongs that was not delivered, told as confluent-kafka's Message does."""

    of_topic: str
    of_partition: int

    def topic(self) -> str:
        return self.of_topic

    def partition(self) -> int:
        return self.of_partition


@dataclass(frozen=True, slots=True)
class _Reports:
    """Who is told what a client reports."""

    library: Library
    delivered: Callable[[KafkaError | None, Any], None]
    erred: Callable[[KafkaError], None]
    logger: Logger
    raised: deque[BaseException] = field(default_factory=deque)  # to be raised by the call that serves them


_clients: Final[dict[int, _Reports]] = {}
"""By the number that librdkafka hands back: a report of a client that has ended leads nowhere."""
_numbers: Final = itertools.count(1)


def _on_delivery(_client: int, message: Any, number: int) -> None:
    if (reports := _clients.get(number)) is None:
        return
    try:
        of: Message = message.contents
        error = KafkaError(of.err)
        topic = _text(reports.library.topic_name(of.rkt))
        reports.delivered(error, Undelivered(topic, of.partition))
    except BaseException as failure:  # noqa: BLE001 - nothing may leave a callback; the caller raises it
        reports.raised.append(failure)


def _on_error(client: int, code: int, reason: bytes, number: int) -> None:
    if (reports := _clients.get(number)) is None:
        return
    try:
        if code != KafkaError._FATAL:  # noqa: SLF001 - librdkafka's own codes look so
            reports.erred(KafkaError(code, _text(reason)))
            return
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        code = reports.library.fatal_error(client, text, _TEXT_BYTES)
        reports.raised.append(KafkaException(KafkaError(code, _text(text.value), True)))
    except BaseException as failure:  # noqa: BLE001 - as above
        reports.raised.append(failure)


def _on_log(client: int, level: int, facility: bytes, line: bytes) -> None:
    library = librdkafka.bound()
    if library is None or (reports := _clients.get(library.opaque(client))) is None:
        return
    try:
        name = _text(library.name(client))
        reports.logger.log(_LEVELS[level], "%s [%s] %s", _text(facility), name, _text(line))
    except BaseException as failure:  # noqa: BLE001 - as above
        reports.raised.append(failure)


# They are never freed: librdkafka may call them as long as there is a client.
_DELIVERED: Final = librdkafka.DELIVERY_CALLBACK(_on_delivery)
_ERRED: Final = librdkafka.ERROR_CALLBACK(_on_error)
_LOGGED: Final = librdkafka.LOG_CALLBACK(_on_log)


class NativeProducer:
    """A client of librdkafka. One thread hands records over, others may poll, flush and purge meanwhile."""

    def __init__(
        self,
        library: Library,
        properties: Mapping[str, Any],
        delivered: Callable[[KafkaError | None, Any], None],
        erred: Callable[[KafkaError], None],
        logger: Logger,
        produce_records: ProduceRecords,
    ) -> None:
        """Open a client; `delivered`, `erred`: told of each record that was not delivered, of each error.

        KafkaException: librdkafka refuses the properties.
        """
        self._library = library
        self._produce_records = produce_records
        self._process = os.getpid()
        self._topics: dict[str, int] = {}
        self._new_topics = threading.Lock()
        number = next(_numbers)
        self._reports = _clients[number] = _Reports(library, delivered, erred, logger)
        try:
            self._client: int = _open(library, properties, number)
        except BaseException:
            del _clients[number]
            raise
        end = weakref.finalize(self, _end, library, self._client, self._topics, number, self._process)
        end.atexit = False  # a thread that is never joined may be in a call then

    def __len__(self) -> int:
        """Return how many records, and reports of records, wait."""
        return int(self._library.outq_len(self._own()))

    def poll(self, seconds: float = -1) -> int:
        """Serve callbacks for so long, or until there was one; return how many."""
        return int(self._call(self._library.poll, _ms(seconds)))

    def flush(self, seconds: float) -> int:
        """Wait for so long that everything is delivered; return how many records still wait.

        Nothing wakes the library's own flush when the last record is delivered, of which there is no report:
        it looks every ten milliseconds. At first this one looks more often.
        """
        began = time.monotonic()
        while True:
            passed = time.monotonic() - began
            slice_ = min(max(passed / 4, _FIRST_LOOK_S), max(seconds - passed, 0))
            self._call(self._library.flush, _ms(slice_))
            if not (left := len(self)) or passed >= seconds:
                return left

    def purge(self) -> None:
        """Give up every record that waits; their failures are reported as usual."""
        code = self._call(self._library.purge, librdkafka.PURGE_QUEUE | librdkafka.PURGE_IN_FLIGHT)
        if code:
            raise KafkaException(KafkaError(code))

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        _callback: None = None,
        _on_delivery: None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Hand over one record; BufferError if there is no room."""
        named = None if headers is None else [headers]
        taken, error = self.produce_columns(topic, partition, [value], [key], [timestamp], named)
        if error is not None:
            raise KafkaException(error)
        if not taken:
            raise BufferError(KafkaError(KafkaError._QUEUE_FULL).str())  # noqa: SLF001

    def produce_columns(
        self,
        topic: str,
        partition: int | Ints64,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        timestamps: Any,
        headers: Sequence[Headers] | None = None,
    ) -> tuple[int, KafkaError | None]:
        """Hand over n records; return how many are taken, and why no more.

        None: there was no room for more, or all are taken. partition: of all of them, or int64[n], of each.
        timestamps: int64[n] or a sequence, in ms since the epoch, 0: now. What is given is copied before this
        returns. ValueError: columns that do not fit.
        """
        client = self._own()
        partitions, shared = (_NO_STARTS, partition) if isinstance(partition, int) else (_int64(partition), 0)
        value, key = Spans.of(values), Spans.of(keys)
        times = _int64(timestamps)
        named = None if headers is None else HeaderColumns.of(headers)
        _check(partition, value, key, times, named)
        most, contents, of_headers = 0, None, (_NO_STARTS, _NO_STARTS)
        names, places = b"", np.zeros(0, dtype=np.int64)
        if named is not None:
            most = int(np.diff(named.first).max(initial=0))
            names, places = _names(named.names)
            contents = named.values
            of_headers = (_writable(named.first), places[named.name])
        block = (Argument * (FIXED + most))()
        _fill(block, self._topic(client, topic), shared)
        name_bytes = np.frombuffer(names + b"\0", dtype=np.uint8)
        failure = np.zeros(1, dtype=np.int64)
        taken = self._produce_records(
            self._library.produceva_at,
            client,
            np.frombuffer(memoryview(block), dtype=np.int64),
            partitions,
            *_parts(value),
            *_parts(key),
            times,
            name_bytes.ctypes.data,
            *of_headers,
            *_parts(contents),
            failure,
        )
        return taken, self._refusal(int(failure[0]))

    def init_transactions(self, seconds: float) -> None:
        """End what a producer of the same id has left open."""
        self._step(self._library.init_transactions, _ms(seconds))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._step(self._library.begin_transaction)

    def send_offsets_to_transaction(
        self, positions: Sequence[TopicPartition], group: bytes, seconds: float
    ) -> None:
        """Make offsets a part of the transaction; `group`: metadata of a member, serialised."""
        client, library = self._own(), self._library
        member = ctypes.c_void_p()
        self._raise(library.consumer_group_metadata_read(ctypes.byref(member), group, len(group)))
        offsets = library.topic_partition_list_new(len(positions))
        try:
            for each in positions:
                _add(library, client, offsets, each)
            self._step(library.send_offsets_to_transaction, offsets, member, _ms(seconds))
        finally:
            library.topic_partition_list_destroy(offsets)
            library.consumer_group_metadata_destroy(member)

    def commit_transaction(self, seconds: float) -> None:
        """Commit the transaction when everything in it is delivered."""
        # A transaction that has failed may hold records that are never delivered: the library knows.
        self.flush(min(seconds, _EAGER_S))
        self._step(self._library.commit_transaction, _ms(seconds))

    def abort_transaction(self, seconds: float) -> None:
        """Throw away the transaction and what waits."""
        self._step(self._library.abort_transaction, _ms(seconds))

    def _own(self) -> int:
        """Return the client; RuntimeError in a process that was forked from its owner."""
        if os.getpid() != self._process:
            message = f"pid={os.getpid()} must be {self._process}: threads of a client stay where it was made"
            raise RuntimeError(message)
        return self._client

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that serves callbacks; raise what one of them has left."""
        result = function(self._own(), *arguments)
        if self._reports.raised:
            raise self._reports.raised.popleft()
        return result

    def _step(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function that serves callbacks and returns an error."""
        error = self._taken(function(self._own(), *arguments))
        if self._reports.raised:
            raise self._reports.raised.popleft()
        if error is not None:
            raise KafkaException(error)

    def _raise(self, pointer: int | None) -> None:
        if (error := self._taken(pointer)) is not None:
            raise KafkaException(error)

    def _taken(self, pointer: int | None) -> KafkaError | None:
        """Return an rd_kafka_error_t as confluent-kafka's error, and free it; None: there is none."""
        if not pointer:
            return None
        library = self._library
        error = KafkaError(
            library.error_code(pointer),
            _text(library.error_string(pointer)),
            bool(library.error_is_fatal(pointer)),
            bool(library.error_is_retriable(pointer)),
            bool(library.error_txn_requires_abort(pointer)),
        )
        library.error_destroy(pointer)
        return error

    def _refusal(self, failure: int) -> KafkaError | None:
        """Return why a record was not taken; None: there was no room, or nothing failed."""
        if failure == OUT_OF_BOUNDS:
            message = "every value of a column must lie in its buffer"
            raise ValueError(message)
        error = self._taken(failure)
        if error is None or error.code() == KafkaError._QUEUE_FULL:  # noqa: SLF001
            return None
        # Confluent-kafka calls another function, which tells of a fatal error by this code alone.
        code = KafkaError._FATAL if error.fatal() else error.code()  # noqa: SLF001
        return KafkaError(code, f"Unable to produce message: {KafkaError(code).str()}")

    def _topic(self, client: int, name: str) -> int:
        """Return librdkafka's handle of a topic, which the client keeps."""
        if (known := self._topics.get(name)) is not None:
            return known
        if "\0" in name:
            message = f"topic={name!r} must have no NUL"
            raise ValueError(message)
        with self._new_topics:
            if name not in self._topics:
                handle = self._library.topic_new(client, name.encode(), None)
                if not handle:
                    code = self._library.last_error()
                    text = f"Unable to produce message: {KafkaError(code).str()}"
                    raise KafkaException(KafkaError(code, text))
                self._topics[name] = handle
            return self._topics[name]


def can_carry(properties: Mapping[str, Any]) -> bool:
    """Tell whether a native producer can be made with these properties: no callbacks, no nested ones."""
    return all(isinstance(value, str | bool | int | float) for value in properties.values())


def _open(library: Library, properties: Mapping[str, Any], number: int) -> int:
    """Return a new client whose callbacks get this number."""
    conf, text = library.conf_new(), ctypes.create_string_buffer(_TEXT_BYTES)
    given = {**properties, "delivery.report.only.error": True, "log.queue": True}
    try:
        # Plug-ins may bring properties.
        for name in sorted(given, key=lambda name: name != "plugin.library.paths"):
            value = str(given[name]).lower() if isinstance(given[name], bool) else str(given[name])
            if "\0" in name + value:
                message = f"{name}: no property may have a NUL"
                raise ValueError(message)
            code = library.conf_set(conf, name.encode(), value.encode(), text, _TEXT_BYTES)
            if code != librdkafka.CONF_OK:
                raise KafkaException(KafkaError(KafkaError._INVALID_ARG, _text(text.value)))  # noqa: SLF001
        library.conf_set_opaque(conf, number)
        library.conf_set_dr_msg_cb(conf, _DELIVERED)
        library.conf_set_error_cb(conf, _ERRED)
        library.conf_set_log_cb(conf, _LOGGED)
        client = library.new(librdkafka.PRODUCER, conf, text, _TEXT_BYTES)
        if not client:
            message = f"Failed to create producer: {_text(text.value)}"
            raise KafkaException(KafkaError(library.last_error(), message))
    except BaseException:
        library.conf_destroy(conf)
        raise
    library.set_log_queue(client, None)  # lines are given to whoever polls: no thread of the library's is
    return int(client)


def _end(library: Library, client: int, topics: Mapping[str, int], number: int, process: int) -> None:
    """End a client to which nothing refers any more, with what it still holds."""
    if os.getpid() == process:  # a fork has the memory, but none of the threads
        library.purge(client, librdkafka.PURGE_QUEUE | librdkafka.PURGE_IN_FLIGHT)
        for topic in topics.values():
            library.topic_destroy(topic)
        library.destroy(client)
    del _clients[number]


def _check(
    partition: int | Ints64,
    values: Spans,
    keys: Spans,
    timestamps: Any,
    headers: HeaderColumns | None,
) -> None:
    """Raise ValueError if columns do not go together."""
    least, most = (partition, partition) if isinstance(partition, int) else _range(partition)
    if not -1 <= least <= most < 1 << 31:
        message = f"partition={least if least < -1 else most} must be from -1 to 2**31 - 1"
        raise ValueError(message)
    if timestamps.ndim != 1:
        message = f"timestamps of {timestamps.ndim} dimensions must be int64[n]"
        raise ValueError(message)
    n, lengths = len(values), {"keys": len(keys), "timestamps": len(timestamps)}
    if not isinstance(partition, int):
        lengths["partitions"] = len(partition)
    if headers is not None:
        lengths["headers"] = len(headers)
        m = len(headers.name)
        if m and not 0 <= headers.name.min() <= headers.name.max() < len(headers.names):
            message = f"name must be a place in names, which are {len(headers.names)}"
            raise ValueError(message)
        if len(headers.values) != m:
            message = f"{len(headers.values)} values of {m} headers: they must be as many"
            raise ValueError(message)
        first = headers.first
        if len(first) and (first[0] < 0 or first[-1] > m or (np.diff(first) < 0).any()):
            message = f"first must rise, from 0 at least to the number of headers ({m}) at most"
            raise ValueError(message)
    for name, length in lengths.items():
        if length != n:
            message = f"{length} {name} of {n} records: they must be as many"
            raise ValueError(message)
    for each in (values, keys) if headers is None else (values, keys, headers.values):
        if not isinstance(each.buffer, bytes):
            message = f"a column's buffer of type {type(each.buffer).__name__} must be bytes"
            raise ValueError(message)
        if each.starts.ndim != 1 or each.starts.shape != each.lengths.shape:
            message = "a column's starts and lengths must be int64[n]"
            raise ValueError(message)


def _range(partitions: Ints64) -> tuple[int, int]:
    """Return the lowest and the highest number (0 and 0: there are none)."""
    return (int(partitions.min()), int(partitions.max())) if len(partitions) else (0, 0)


def _int64(numbers: Any) -> Any:
    """Return numbers, or a sequence of them, as kernels take them."""
    return _writable(np.asarray(numbers, dtype=np.int64))


def _fill(block: Any, topic: int, partition: int) -> None:
    """Write what all records have in common: `produce_records` writes the rest."""
    kinds = (librdkafka.RKT, librdkafka.PARTITION, librdkafka.MSGFLAGS)
    for at, kind in enumerate((*kinds, librdkafka.TIMESTAMP, librdkafka.KEY, librdkafka.VALUE)):
        block[at].vtype = kind
    block[0].u.rkt, block[1].u.i32, block[2].u.i = topic, partition, librdkafka.COPY
    for at in range(FIXED, len(block)):
        block[at].vtype = librdkafka.HEADER


def _parts(column: Spans | None) -> tuple[int, int, Any, Any]:
    """Return address and length of a column's buffer, and where its values lie in it."""
    if column is None:
        return 0, 0, _NO_STARTS, _NO_STARTS
    starts, lengths = _writable(column.starts), _writable(column.lengths)
    return column.bytes.__array_interface__["data"][0], len(column.buffer), starts, lengths


def _writable(numbers: Any) -> Any:
    """Return integers as kernels take them, without a copy if they are that."""
    if isinstance(numbers, np.ndarray) and numbers.dtype == np.int64 and numbers.flags.carray:
        return numbers  # `require` takes as long as a kernel does for some records
    return np.require(numbers, np.int64, ("C", "W"))


def _names(names: Sequence[str]) -> tuple[bytes, Any]:
    """Return names of headers, each with a NUL behind it, and where each begins."""
    texts = [name.encode() for name in names]
    if any(b"\0" in text for text in texts):
        message = f"names of headers must have no NUL: {[name for name in names if chr(0) in name]}"
        raise ValueError(message)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)], dtype=np.int64)
    return b"".join(text + b"\0" for text in texts), starts[:-1]


def _add(library: Library, client: int, offsets: int, each: TopicPartition) -> None:
    """Add an offset to a list of librdkafka's."""
    position = library.topic_partition_list_add(offsets, each.topic.encode(), each.partition).contents
    position.offset = each.offset
    if each.metadata is not None:  # with its NUL, as confluent-kafka gives it
        text = each.metadata.encode() + b"\0"
        position.metadata = library.mem_malloc(client, len(text))
        ctypes.memmove(position.metadata, text, len(text))
        position.metadata_size = len(text)


def _ms(seconds: float) -> int:
    return -1 if seconds < 0 else int(seconds * 1000)


def _text(given: bytes | None) -> str:
    return "" if given is None else given.decode(errors="replace")
