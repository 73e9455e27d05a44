"""Produce: a kernel that gives the records of columns to librdkafka one by one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from core.kernels import jit
from core.kernels.jit import address_of, kernel, start_of
from core.kernels.native import pointers
from topics.clients.librdkafka import Argument, Header, Memory
from topics.clients.native_producer import FIXED, OUT_OF_BOUNDS
from topics.columns.spans import NULL

_WORD: Final = 8
_WORDS: Final = ctypes.sizeof(Argument) // _WORD
"""Words of an argument of `rd_kafka_produceva`; `topics/clients/native_producer.py:_fill` writes the rest."""
_FIRST: Final = Argument.u.offset // _WORD
_PARTITION: Final = _WORDS + _FIRST
_TIMESTAMP: Final = 3 * _WORDS + _FIRST
_KEY: Final = 4 * _WORDS + _FIRST
_VALUE: Final = 5 * _WORDS + _FIRST
_HEADERS: Final = FIXED * _WORDS + _FIRST
_SIZE: Final = Memory.size.offset // _WORD
_CONTENT: Final = Header.val.offset // _WORD
_CONTENT_SIZE: Final = Header.size.offset // _WORD


def _plain_call(function: int, client: int, arguments: int, n: int) -> int:
    word = ctypes.c_int64
    return int(ctypes.CFUNCTYPE(word, word, word, word)(int(function))(int(client), int(arguments), int(n)))


def _call(_typing: Any, _function: Any, _client: Any, _arguments: Any, _n: Any) -> Any:
    word = pointers.types.int64
    return word(word, word, word, word), _call_pointer


def _call_pointer(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    word = pointers.ir.IntType(64)
    function = pointers.ir.FunctionType(word, [word, word, word]).as_pointer()
    return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])


call: Callable[[Any, Any, Any, Any], Any] = _plain_call if jit.DISABLED else jit.intrinsic(_call)
"""Call the C function at an address with three words; return its word."""


@kernel(
    "int64(int64, int64, int64[::1], int64[::1], int64, int64, int64[::1], int64[::1], int64, int64, "
    "int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[::1], int64, int64, int64[::1], "
    "int64[::1], int64[::1])"
)
def produce_records(
    produceva,
    client,
    block,
    partitions,
    value_text,
    value_bytes,
    value_starts,
    value_lengths,
    key_text,
    key_bytes,
    key_starts,
    key_lengths,
    timestamps,
    name_text,
    first_header,
    header_names,
    header_text,
    header_bytes,
    header_starts,
    header_lengths,
    failure,
) -> int:
    """Produce records until one is not taken; return how many were taken.

    `produceva` and `client` are addresses. `block` is int64[arguments * 9], the arguments; those that differ
    between records are overwritten. `partitions` is int64[n], or empty if all records go to the partition in
    `block`. Values, keys and headers' values are each given by the address and the bytes of the buffer, and
    by starts and lengths, int64[n], with the length NULL for a null. `timestamps` is int64[n]. `name_text` is
    the address of the names of headers; `header_names` is int64[m], the start of each header's name;
    `first_header` is int64[n + 1], the first header of each record, or empty without headers. `failure` is
    int64[1]: it gets the error of the record that is not taken, which the caller has to free, or
    OUT_OF_BOUNDS.
    """
    # Bare pointers: an array costs a count of references at every call.
    arguments = start_of(block)
    has_headers, has_partitions = len(first_header) > 0, len(partitions) > 0
    n_arguments = FIXED
    for record in range(len(timestamps)):
        arguments[_TIMESTAMP] = timestamps[record]
        if has_partitions:
            arguments[_PARTITION] = partitions[record]
        good = _put(arguments, _KEY, _SIZE, key_text, key_bytes, key_starts, key_lengths, record)
        good &= _put(arguments, _VALUE, _SIZE, value_text, value_bytes, value_starts, value_lengths, record)
        if has_headers:
            first = first_header[record]
            n_arguments = FIXED + first_header[record + 1] - first
            for at in range(n_arguments - FIXED):
                place = _HEADERS + at * _WORDS
                arguments[place] = name_text + header_names[first + at]
                good &= _put(
                    arguments,
                    place + _CONTENT,
                    _CONTENT_SIZE - _CONTENT,
                    header_text,
                    header_bytes,
                    header_starts,
                    header_lengths,
                    first + at,
                )
        if not good:
            failure[0] = OUT_OF_BOUNDS
            return record
        error = call(produceva, client, address_of(arguments), n_arguments)
        if error != 0:
            failure[0] = error
            return record
    return len(timestamps)


@kernel
def _put(arguments, place: int, size: int, text: int, n_bytes: int, starts, lengths, at: int) -> bool:
    """Write the place and length of a string; return whether it lies within its buffer."""
    start, length = starts[at], lengths[at]
    if length == NULL:
        arguments[place] = 0
        arguments[place + size] = 0
        return True
    arguments[place] = text + start
    arguments[place + size] = length
    return start >= 0 and 0 <= length <= n_bytes - start
