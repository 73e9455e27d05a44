"""Messages of librdkafka's consumer as columns: a queue opened by ctypes, and a kernel that reads a batch.

It is what a consumer by librdkafka would do for each record: find its parts, copy them into one buffer, and
give the message back. No object is made for a record.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, Final

import numpy as np
from confluent_kafka import cimpl

from core.kernels import jit
from core.kernels.jit import kernel, words_at
from core.kernels.native import pointers
from topics.columns.spans import NULL, ROWS, RecordSpans

_CONSUMER: Final = 1  # rd_kafka_type_t
_BEGINNING, _END = -2, -1  # logical offsets
_STATISTICS: Any = CFUNCTYPE(c_int, c_void_p, POINTER(ctypes.c_char), c_size_t, c_void_p)
_PARTITION, _VALUE, _VALUE_SIZE, _KEY, _KEY_SIZE, _OFFSET = 2, 3, 4, 5, 6, 7
"""Words of rd_kafka_message_t; the partition is the lower half of its word, the error that of word 0."""
_HALF: Final = 0xFFFFFFFF


class _Position(Structure):
    """rd_kafka_topic_partition_t: an offset and its metadata."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_void_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("err", c_int),
        ("_private", c_void_p),
    )


_FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "conf_new": (c_void_p, ()),
    "conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "destroy": (None, (c_void_p,)),
    "last_error": (c_int, ()),
    "poll": (c_int, (c_void_p, c_int)),
    "assign": (c_int, (c_void_p, c_void_p)),
    "queue_get_consumer": (c_void_p, (c_void_p,)),
    "queue_destroy": (None, (c_void_p,)),
    "consume_batch_queue": (c_int64, (c_void_p, c_int, c_void_p, c_size_t)),
    "conf_set_stats_cb": (None, (c_void_p, _STATISTICS)),
    "consumer_close": (c_int, (c_void_p,)),
    "topic_partition_list_new": (c_void_p, (c_int,)),
    "topic_partition_list_add": (POINTER(_Position), (c_void_p, c_char_p, c_int32)),
    "topic_partition_list_destroy": (None, (c_void_p,)),
    "message_timestamp": (c_int64, (c_void_p, c_void_p)),
    "message_headers": (c_int, (c_void_p, c_void_p)),
    "message_destroy": (None, (c_void_p,)),
}
"""Result and parameters of each function, by its name without `rd_kafka_`."""


class MessageQueue:
    """A consumer without a group, and the queue that all of its partitions fill."""

    def __init__(
        self, properties: Mapping[str, Any], topic: str, partitions: int, from_end: bool, most: int
    ) -> None:
        """`most`: messages that are read at once; `from_end`: begin after the records that exist."""
        self._functions = _bind()
        self._pointers, self._most = np.zeros(most, dtype=np.int64), most
        self.fetches = 0
        self._callback = _STATISTICS(self._on_statistics)
        self._client = self._open(properties)
        places = self._functions["topic_partition_list_new"](partitions)
        for number in range(partitions):
            place = self._functions["topic_partition_list_add"](places, topic.encode(), number)
            place.contents.offset = _END if from_end else _BEGINNING
        if error := self._functions["assign"](self._client, places):
            message = f"librdkafka refuses the assignment: error {error}"
            raise RuntimeError(message)
        self._functions["topic_partition_list_destroy"](places)
        self._queue = self._functions["queue_get_consumer"](self._client)
        calls = ("message_timestamp", "message_headers", "message_destroy")
        addresses = [ctypes.cast(self._functions[name], c_void_p).value for name in calls]
        memcpy = ctypes.cast(ctypes.CDLL(None).memcpy, c_void_p).value
        self._calls = np.array([*addresses, memcpy], dtype=np.int64)
        self._headers = np.zeros(1, dtype=np.int64)  # where librdkafka writes the place of a record's headers

    def _open(self, properties: Mapping[str, Any]) -> int:
        text = ctypes.create_string_buffer(512)
        conf = self._functions["conf_new"]()
        for name, value in properties.items():
            plain = str(value).lower() if isinstance(value, bool) else str(value)
            if self._functions["conf_set"](conf, name.encode(), plain.encode(), text, 512):
                message = f"{name}={plain}: {text.value.decode()}"
                raise RuntimeError(message)
        self._functions["conf_set_stats_cb"](conf, self._callback)
        client = self._functions["new"](_CONSUMER, conf, text, 512)
        if not client:
            message = f"no consumer: {text.value.decode()}"
            raise RuntimeError(message)
        return int(client)

    def _on_statistics(self, _client: int, text: Any, size: int, _opaque: int) -> int:
        brokers = json.loads(ctypes.string_at(text, size))["brokers"].values()
        self.fetches = sum(broker.get("req", {}).get("Fetch", 0) for broker in brokers)
        return 0

    def consume(self, timeout_ms: int) -> tuple[RecordSpans, Any]:
        """Return the records that came within `timeout_ms`, and the partition of each (int64[n])."""
        n = self._functions["consume_batch_queue"](
            self._queue, timeout_ms, self._pointers.ctypes.data, self._most
        )
        if n < 0:
            message = f"librdkafka's queue cannot be read: error {self._functions['last_error']()}"
            raise RuntimeError(message)
        taken = self._pointers[:n]
        text = np.empty(total_bytes(taken), dtype=np.uint8)
        table = np.empty((ROWS + 1, n), dtype=np.int64)
        places = np.array([text.ctypes.data, self._headers.ctypes.data], dtype=np.int64)
        if n_errors := read_messages(self._calls, taken, places, table):
            message = f"{n_errors} of {n} messages are errors"
            raise RuntimeError(message)
        return RecordSpans(text.data, table[:ROWS]), table[ROWS]  # type: ignore[arg-type]

    def report(self) -> None:
        """Serve the reports that wait, and so bring `fetches` up to date."""
        self._functions["poll"](self._client, 0)

    def close(self) -> None:
        self._functions["queue_destroy"](self._queue)
        self._functions["consumer_close"](self._client)
        self._functions["destroy"](self._client)


def _bind() -> dict[str, Any]:
    library, functions = ctypes.CDLL(cimpl.__file__), {}
    for name, (result, parameters) in _FUNCTIONS.items():
        functions[name] = getattr(library, f"rd_kafka_{name}")
        functions[name].restype, functions[name].argtypes = result, parameters
    return functions


def _plain_call(function: int, first: int, second: int, third: int) -> int:
    word = ctypes.c_int64
    return int(CFUNCTYPE(word, word, word, word)(int(function))(int(first), int(second), int(third)))


def _call(_typing: Any, _function: Any, _first: Any, _second: Any, _third: Any) -> Any:
    word = pointers.types.int64
    return word(word, word, word, word), _call_pointer


def _call_pointer(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    word = pointers.ir.IntType(64)
    function = pointers.ir.FunctionType(word, [word, word, word]).as_pointer()
    return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])


call: Callable[[Any, Any, Any, Any], Any] = _plain_call if jit.DISABLED else jit.intrinsic(_call)
"""Call the C function at an address with three words; return its word."""


@kernel("int64(int64[::1])")
def total_bytes(messages) -> int:
    """Return the bytes of the keys and values of messages; messages: int64[n] addresses."""
    total = 0
    for row in range(len(messages)):
        words, _ = words_at(messages[row])
        total += words[_KEY_SIZE] + words[_VALUE_SIZE]
    return total


@kernel("int64(int64[::1], int64[::1], int64[::1], int64[:, ::1])")
def read_messages(calls, messages, places, table) -> int:
    """Copy the parts of messages, give the messages back, and return the number of errors among them.

    calls: int64[4] addresses of functions; messages: int64[n] addresses; places: int64[2] addresses of the
    buffer, as large as all keys and values, and of a word for headers; table: int64[9, n], the rows of
    RecordSpans and the partition.
    """
    base, headers = places[0], places[1]
    place, errors = 0, 0
    for row in range(len(messages)):
        words, _ = words_at(messages[row])
        errors += (words[0] & _HALF) != 0
        table[0, row] = words[_OFFSET]
        table[1, row] = call(calls[0], messages[row], 0, 0)
        for at, pointer, size in ((2, _KEY, _KEY_SIZE), (4, _VALUE, _VALUE_SIZE)):
            table[at, row], table[at + 1, row] = place, words[size]
            if words[pointer] == 0:
                table[at + 1, row] = NULL
            else:
                call(calls[3], base + place, words[pointer], words[size])
                place += words[size]
        table[6, row], table[7, row] = 0, 0
        table[8, row] = words[_PARTITION] & _HALF
        call(calls[1], messages[row], headers, 0)
        call(calls[2], messages[row], 0, 0)
    return errors
