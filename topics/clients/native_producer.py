"""Native producer: librdkafka's producer, called by ctypes, with the methods of confluent-kafka's Producer.

It takes a run of records in one compiled call and receives reports of failures only. It raises the errors
that confluent-kafka raises. The client ends with its last reference, when no call can be in progress.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from logging import Logger
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from topics.clients import librdkafka
from topics.clients.librdkafka import Argument, Library
from topics.clients.native_client import Reports, end_client, open_client, text_of
from topics.columns.header_columns import HeaderColumns
from topics.columns.records import Headers, Ints64
from topics.columns.spans import Spans
from topics.tokens.sign_in import source_in

ProduceRecords = Callable[..., int]
"""A kernel that calls `rd_kafka_produceva` for each record (topics/clients/produce.py)."""

FIXED: Final = 6
"""Arguments of `rd_kafka_produceva` that every record has; the headers follow."""

OUT_OF_BOUNDS: Final = -1
"""A kernel's result, instead of an error, if a column points outside its buffer."""

_FIRST_LOOK_S: Final = 0.001
_QUIET_S: Final = 0.04
"""Seconds of a flush in which no thread of the client is woken again."""
_NO_STARTS: Final = np.zeros(0, dtype=np.int64)


class NativeProducer:
    """A client of librdkafka. One thread produces records; other threads may poll, flush and purge."""

    def __init__(
        self,
        library: Library,
        properties: Mapping[str, Any],
        delivered: Callable[[KafkaError | None, Any], None],
        erred: Callable[[KafkaError], None],
        logger: Logger,
        produce_records: ProduceRecords,
    ) -> None:
        """Open a client; `delivered` gets each record that was not delivered, `erred` each error.

        Raises KafkaException if librdkafka refuses the properties.
        """
        self._library = library
        self._produce_records = produce_records
        self._process = os.getpid()
        self._topics: dict[str, int] = {}
        self._new_topics = threading.Lock()
        self._reports = Reports(library, delivered, erred, logger, source_in(properties))
        number, self._client = open_client(properties, self._reports)
        end = weakref.finalize(self, end_client, library, self._client, self._topics, number, self._process)
        end.atexit = False  # a thread that is never joined may be in a call at that time

    def __len__(self) -> int:
        """Return the number of waiting records and reports."""
        return int(self._library.outq_len(self._own()))

    def poll(self, seconds: float = -1) -> int:
        """Serve callbacks until one was called or the time is over; return how many were called."""
        return int(self._call(self._library.poll, _ms(seconds)))

    def flush(self, seconds: float) -> int:
        """Wait until everything is delivered or the time is over; return how many records still wait.

        A delivered record causes no report, so nothing wakes the library's own flush: it checks every ten
        milliseconds. At first this method checks more often. The library's flush also wakes all threads of
        the client, which then send records that wait for others: at first once is enough.
        """
        began, wait = time.monotonic(), self._library.flush
        while True:
            passed = time.monotonic() - began
            slice_ = min(max(passed / 4, _FIRST_LOOK_S), max(seconds - passed, 0))
            self._call(wait, _ms(slice_))
            if not (undelivered := len(self)) or passed >= seconds:
                return undelivered
            wait = self._library.poll if passed < _QUIET_S else self._library.flush

    def purge(self) -> None:
        """Give up every waiting record; the failures are reported as usual."""
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
        """Produce one record; raise BufferError if there is no room."""
        named = None if headers is None else [headers]
        n_taken, error = self.produce_columns(topic, partition, [value], [key], [timestamp], named)
        if error is not None:
            raise KafkaException(error)
        if not n_taken:
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
        """Produce n records; return how many were taken, and why the next one was not.

        The reason is None if there was no room, or if all were taken. `partition` is one for all records, or
        int64[n]. `timestamps` is int64[n] or a sequence, in ms since the epoch, 0: now. Everything is copied
        before this returns. Raises ValueError for columns that do not fit together.
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
        n_taken = self._produce_records(
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
        return n_taken, self._refusal(int(failure[0]))

    def _own(self) -> int:
        """Return the client; raise RuntimeError in a process that was forked from its owner."""
        if os.getpid() != self._process:
            message = f"pid={os.getpid()} must be {self._process}: threads of a client stay where it was made"
            raise RuntimeError(message)
        return self._client

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that serves callbacks; raise an exception that one of them has stored."""
        result = function(self._own(), *arguments)
        if self._reports.raised:
            raise self._reports.raised.popleft()
        return result

    def _taken(self, pointer: int | None) -> KafkaError | None:
        """Return an rd_kafka_error_t as confluent-kafka's error, and free it; None for no error."""
        if not pointer:
            return None
        library = self._library
        error = KafkaError(
            library.error_code(pointer),
            text_of(library.error_string(pointer)),
            bool(library.error_is_fatal(pointer)),
            bool(library.error_is_retriable(pointer)),
            bool(library.error_txn_requires_abort(pointer)),
        )
        library.error_destroy(pointer)
        return error

    def _refusal(self, failure: int) -> KafkaError | None:
        """Return why a record was not taken; None if there was no room, or nothing failed."""
        if failure == OUT_OF_BOUNDS:
            message = "every value of a column must lie in its buffer"
            raise ValueError(message)
        error = self._taken(failure)
        if error is None or error.code() == KafkaError._QUEUE_FULL:  # noqa: SLF001
            return None
        # confluent-kafka calls another function, which reports a fatal error by this code alone.
        code = KafkaError._FATAL if error.fatal() else error.code()  # noqa: SLF001
        return KafkaError(code, f"Unable to produce message: {KafkaError(code).str()}")

    def _topic(self, client: int, name: str) -> int:
        """Return librdkafka's handle of a topic, which the client keeps."""
        if (cached := self._topics.get(name)) is not None:
            return cached
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


def _check(
    partition: int | Ints64,
    values: Spans,
    keys: Spans,
    timestamps: Any,
    headers: HeaderColumns | None,
) -> None:
    """Raise ValueError if columns do not fit together."""
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
            message = f"values={len(headers.values)} must be one for each of the {m} headers"
            raise ValueError(message)
        first = headers.first
        if len(first) and (first[0] < 0 or first[-1] > m or (np.diff(first) < 0).any()):
            message = f"first must rise, from 0 at least to the number of headers ({m}) at most"
            raise ValueError(message)
    for name, length in lengths.items():
        if length != n:
            message = f"{name}={length} must be one for each of the {n} records"
            raise ValueError(message)
    for column in (values, keys) if headers is None else (values, keys, headers.values):
        if not isinstance(column.buffer, bytes):
            message = f"a column's buffer of type {type(column.buffer).__name__} must be bytes"
            raise ValueError(message)
        if column.starts.ndim != 1 or column.starts.shape != column.lengths.shape:
            message = "a column's starts and lengths must be int64[n]"
            raise ValueError(message)


def _range(partitions: Ints64) -> tuple[int, int]:
    """Return the lowest and the highest number; 0 and 0 if there are none."""
    return (int(partitions.min()), int(partitions.max())) if len(partitions) else (0, 0)


def _int64(numbers: Any) -> Any:
    """Return numbers, or a sequence of them, in the type that kernels take."""
    return _writable(np.asarray(numbers, dtype=np.int64))


def _fill(block: Any, topic: int, partition: int) -> None:
    """Write the arguments that all records share; `produce_records` writes the rest."""
    kinds = (librdkafka.RKT, librdkafka.PARTITION, librdkafka.MSGFLAGS)
    for at, kind in enumerate((*kinds, librdkafka.TIMESTAMP, librdkafka.KEY, librdkafka.VALUE)):
        block[at].vtype = kind
    block[0].u.rkt, block[1].u.i32, block[2].u.i = topic, partition, librdkafka.COPY
    for at in range(FIXED, len(block)):
        block[at].vtype = librdkafka.HEADER


def _parts(column: Spans | None) -> tuple[int, int, Any, Any]:
    """Return address and length of a column's buffer, and the places of its values in it."""
    if column is None:
        return 0, 0, _NO_STARTS, _NO_STARTS
    starts, lengths = _writable(column.starts), _writable(column.lengths)
    return column.bytes.__array_interface__["data"][0], len(column.buffer), starts, lengths


def _writable(numbers: Any) -> Any:
    """Return integers in the type that kernels take, without a copy if they have it already."""
    if isinstance(numbers, np.ndarray) and numbers.dtype == np.int64 and numbers.flags.carray:
        return numbers  # `require` takes as long as a kernel does for some records
    return np.require(numbers, np.int64, ("C", "W"))


def _names(names: Sequence[str]) -> tuple[bytes, Any]:
    """Return the names of headers, each followed by a NUL, and the start of each."""
    texts = [name.encode() for name in names]
    if any(b"\0" in text for text in texts):
        message = f"names of headers must have no NUL: {[name for name in names if chr(0) in name]}"
        raise ValueError(message)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)], dtype=np.int64)
    return b"".join(text + b"\0" for text in texts), starts[:-1]


def _ms(seconds: float) -> int:
    return -1 if seconds < 0 else int(seconds * 1000)
