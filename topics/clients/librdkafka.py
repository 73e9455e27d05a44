"""librdkafka: the functions used of the C library that confluent-kafka brings, bound by ctypes.

confluent-kafka's Producer makes a Python object for each record, and for each delivery report. The library
itself takes records from compiled code and can report failures only.

tests/contract/test_librdkafka.py checks every function and struct here against the pinned version; no other
version is bound.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import sys
from collections.abc import Mapping
from ctypes import CFUNCTYPE, POINTER, Structure, Union, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, Final

from confluent_kafka import cimpl

logger = logging.getLogger(__name__)

VERSION: Final = (2, 16)
"""Version of the library in confluent-kafka 2.16.1; its functions stay the same within a minor version."""

PRODUCER: Final = 0  # rd_kafka_type_t
CONF_OK: Final = 0  # rd_kafka_conf_res_t
COPY: Final = 2  # RD_KAFKA_MSG_F_COPY
PURGE_QUEUE: Final = 1
PURGE_IN_FLIGHT: Final = 2
RKT, PARTITION, VALUE, KEY, MSGFLAGS, TIMESTAMP, HEADER = 2, 3, 4, 5, 7, 8, 9
"""Kinds of arguments of `rd_kafka_produceva`: rd_kafka_vtype_t."""


class Memory(Structure):
    """Bytes of a key or a value."""

    _fields_ = (("ptr", c_void_p), ("size", c_size_t))


class Header(Structure):
    """A header: its name, which ends at a NUL, and its value."""

    _fields_ = (("name", c_void_p), ("val", c_void_p), ("size", c_size_t))


class ArgumentValue(Union):
    """The union in rd_kafka_vu_t."""

    _fields_ = (
        ("rkt", c_void_p),
        ("i", c_int),
        ("i32", c_int32),
        ("i64", c_int64),
        ("mem", Memory),
        ("header", Header),
        ("_pad", ctypes.c_char * 64),
    )


class Argument(Structure):
    """rd_kafka_vu_t: an argument of `rd_kafka_produceva`."""

    _fields_ = (("vtype", c_int), ("u", ArgumentValue))


class Message(Structure):
    """rd_kafka_message_t: here a record that was not delivered."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("_private", c_void_p),
    )


DELIVERY_CALLBACK: Any = CFUNCTYPE(None, c_void_p, POINTER(Message), c_void_p)
ERROR_CALLBACK: Any = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)
TOKEN_CALLBACK: Any = CFUNCTYPE(None, c_void_p, c_char_p, c_void_p)
LOG_CALLBACK: Any = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)

_CLIENT = _CONF = _TOPIC = _ERROR = c_void_p

FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "version": (c_int, ()),
    "conf_new": (_CONF, ()),
    "conf_destroy": (None, (_CONF,)),
    "conf_set": (c_int, (_CONF, c_char_p, c_char_p, c_char_p, c_size_t)),
    "conf_set_opaque": (None, (_CONF, c_void_p)),
    "conf_set_dr_msg_cb": (None, (_CONF, DELIVERY_CALLBACK)),
    "conf_set_error_cb": (None, (_CONF, ERROR_CALLBACK)),
    "conf_set_log_cb": (None, (_CONF, LOG_CALLBACK)),
    "conf_set_oauthbearer_token_refresh_cb": (None, (_CONF, TOKEN_CALLBACK)),
    "conf_enable_sasl_queue": (None, (_CONF, c_int)),
    "new": (_CLIENT, (c_int, _CONF, c_char_p, c_size_t)),
    "destroy": (None, (_CLIENT,)),
    "name": (c_char_p, (_CLIENT,)),
    "opaque": (c_void_p, (_CLIENT,)),
    "set_log_queue": (c_int, (_CLIENT, c_void_p)),
    "sasl_background_callbacks_enable": (_ERROR, (_CLIENT,)),
    "oauthbearer_set_token": (
        c_int,
        (_CLIENT, c_char_p, c_int64, c_char_p, POINTER(c_char_p), c_size_t, c_char_p, c_size_t),
    ),
    "oauthbearer_set_token_failure": (c_int, (_CLIENT, c_char_p)),
    "last_error": (c_int, ()),
    "fatal_error": (c_int, (_CLIENT, c_char_p, c_size_t)),
    "topic_new": (_TOPIC, (_CLIENT, c_char_p, c_void_p)),
    "topic_destroy": (None, (_TOPIC,)),
    "topic_name": (c_char_p, (_TOPIC,)),
    "produceva": (_ERROR, (_CLIENT, POINTER(Argument), c_size_t)),
    "poll": (c_int, (_CLIENT, c_int)),
    "flush": (c_int, (_CLIENT, c_int)),
    "purge": (c_int, (_CLIENT, c_int)),
    "outq_len": (c_int, (_CLIENT,)),
    "error_code": (c_int, (_ERROR,)),
    "error_string": (c_char_p, (_ERROR,)),
    "error_is_fatal": (c_int, (_ERROR,)),
    "error_is_retriable": (c_int, (_ERROR,)),
    "error_txn_requires_abort": (c_int, (_ERROR,)),
    "error_destroy": (None, (_ERROR,)),
}
"""Result and parameters of each function, by its name without `rd_kafka_`."""


class Library:
    """The functions, under their names without `rd_kafka_`; calls release the interpreter's lock."""

    def __init__(self, file: str) -> None:
        """Bind a shared library, or a file that is linked to it; may raise OSError or AttributeError."""
        library = ctypes.CDLL(file)
        for name, (result, parameters) in FUNCTIONS.items():
            function = getattr(library, f"rd_kafka_{name}")
            function.restype, function.argtypes = result, parameters
            setattr(self, name, function)
        self.produceva_at = ctypes.cast(self.produceva, c_void_p).value
        """The address of `rd_kafka_produceva`, for compiled code."""

    def __getattr__(self, name: str) -> Any:
        """Bind a function at its first use; later uses find it as an attribute."""
        message = f"function={name!r} must be one of FUNCTIONS"
        raise AttributeError(message)


@functools.cache
def bound() -> Library | None:
    """Return the library that this process's confluent-kafka uses; None if it cannot be bound."""
    try:
        return bind(cimpl.__file__)
    except (OSError, AttributeError, LibraryError) as error:
        logger.info("confluent-kafka's Producer is used: librdkafka cannot be called directly: %s", error)
        return None


class LibraryError(Exception):
    """A librdkafka, or a machine, for which the structs here were not written."""


def bind(file: str) -> Library:
    """Bind librdkafka through a file that is linked to it; may raise LibraryError, OSError or AttributeError.

    The dynamic linker finds a function in a library and in the libraries that it needs, so the extension
    module of confluent-kafka leads to its librdkafka in any place.
    """
    if sys.byteorder != "little" or ctypes.sizeof(c_void_p) != ctypes.sizeof(c_int64):
        message = "the machine must be a little-endian one of 64 bits"
        raise LibraryError(message)
    library = Library(file)
    number = library.version()  # 0xMMmmrrpp
    if (version := (number >> 24, number >> 16 & 0xFF)) != VERSION:
        message = f"version={version[0]}.{version[1]} must be {VERSION[0]}.{VERSION[1]}"
        raise LibraryError(message)
    return library
