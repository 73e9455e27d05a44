"""Native client: a client of librdkafka that is opened by ctypes, and its callbacks.

The library calls one function for all clients; a number leads to the receivers of a client's reports.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from logging import Logger
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from topics.client_calls import end_or_abandon
from topics.clients import librdkafka
from topics.clients.librdkafka import Library, Message
from topics.errors import TokenError
from topics.tokens.token_source import TokenSource

_TEXT_BYTES: Final = 512
_LEVELS: Final = (50, 50, 50, 40, 30, 20, 20, 10)
"""Levels of `logging` by level of syslog."""


class Undelivered(NamedTuple):
    """The place of a record that was not delivered, with the methods of confluent-kafka's Message."""

    of_topic: str
    of_partition: int

    def topic(self) -> str:
        return self.of_topic

    def partition(self) -> int:
        return self.of_partition


@dataclass(frozen=True, slots=True)
class Reports:
    """The receivers of a client's reports."""

    library: Library
    delivered: Callable[[KafkaError | None, Any], None]
    erred: Callable[[KafkaError], None]
    logger: Logger
    tokens: TokenSource | None = None  # for SASL/OAUTHBEARER
    raised: deque[BaseException] = field(default_factory=deque)  # raised by the call that serves callbacks


_clients: Final[dict[int, Reports]] = {}
"""By the number that librdkafka passes back: a report of a client that has ended finds no entry."""
_numbers: Final = itertools.count(1)


def _on_delivery(_client: int, message: Any, number: int) -> None:
    if (reports := _clients.get(number)) is None:
        return
    try:
        of: Message = message.contents
        error = KafkaError(of.err)
        topic = text_of(reports.library.topic_name(of.rkt))
        reports.delivered(error, Undelivered(topic, of.partition))
    except BaseException as failure:  # noqa: BLE001 - nothing may leave a callback; the caller raises it
        reports.raised.append(failure)


def _on_error(client: int, code: int, reason: bytes, number: int) -> None:
    if (reports := _clients.get(number)) is None:
        return
    try:
        if code != KafkaError._FATAL:  # noqa: SLF001 - librdkafka's own codes look so
            reports.erred(KafkaError(code, text_of(reason)))
            return
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        code = reports.library.fatal_error(client, text, _TEXT_BYTES)
        reports.raised.append(KafkaException(KafkaError(code, text_of(text.value), True)))
    except BaseException as failure:  # noqa: BLE001 - as above
        reports.raised.append(failure)


def _on_log(client: int, level: int, facility: bytes, line: bytes) -> None:
    library = librdkafka.bound()
    if library is None or (reports := _clients.get(library.opaque(client))) is None:
        return
    try:
        name = text_of(library.name(client))
        reports.logger.log(_LEVELS[level], "%s [%s] %s", text_of(facility), name, text_of(line))
    except BaseException as failure:  # noqa: BLE001 - as above
        reports.raised.append(failure)


def _on_token(client: int, _config: bytes | None, number: int) -> None:
    """Give a client a fresh token, in a thread of librdkafka that may wait for it."""
    if (reports := _clients.get(number)) is None or reports.tokens is None:
        return
    try:
        _set_token(reports.library, client, reports.tokens)
    except TokenError as failure:  # librdkafka requests again
        reports.library.oauthbearer_set_token_failure(client, str(failure).encode() or b"no token")
    except BaseException as failure:  # noqa: BLE001 - as above
        reports.raised.append(failure)


# Never freed: librdkafka may call them as long as a client exists.
_DELIVERED: Final = librdkafka.DELIVERY_CALLBACK(_on_delivery)
_ERRED: Final = librdkafka.ERROR_CALLBACK(_on_error)
_TOKEN_DUE: Final = librdkafka.TOKEN_CALLBACK(_on_token)
_LOGGED: Final = librdkafka.LOG_CALLBACK(_on_log)


def can_carry(properties: Mapping[str, Any]) -> bool:
    """Whether a native client supports these properties: no nested properties, and no callbacks except a
    source of tokens.
    """
    plain = [value for value in properties.values() if not isinstance(value, TokenSource)]
    return all(isinstance(value, str | bool | int | float) for value in plain)


def open_client(properties: Mapping[str, Any], reports: Reports) -> tuple[int, int]:
    """Return the number under which a new client reports, and the client."""
    number = next(_numbers)
    _clients[number] = reports
    try:
        return number, _open(properties, reports, number)
    except BaseException:
        del _clients[number]
        raise


def _open(properties: Mapping[str, Any], reports: Reports, number: int) -> int:
    library = reports.library
    conf, text = library.conf_new(), ctypes.create_string_buffer(_TEXT_BYTES)
    plain = {name: value for name, value in properties.items() if not isinstance(value, TokenSource)}
    settings = {**plain, "delivery.report.only.error": True, "log.queue": True}
    try:
        # Plug-ins may add properties.
        for name in sorted(settings, key=lambda name: name != "plugin.library.paths"):
            value = str(settings[name]).lower() if isinstance(settings[name], bool) else str(settings[name])
            if "\0" in name + value:
                message = f"{name}: no property may have a NUL"
                raise ValueError(message)
            code = library.conf_set(conf, name.encode(), value.encode(), text, _TEXT_BYTES)
            if code != librdkafka.CONF_OK:
                raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text_of(text.value)))  # noqa: SLF001
        library.conf_set_opaque(conf, number)
        library.conf_set_dr_msg_cb(conf, _DELIVERED)
        library.conf_set_error_cb(conf, _ERRED)
        library.conf_set_log_cb(conf, _LOGGED)
        if reports.tokens is not None:
            library.conf_set_oauthbearer_token_refresh_cb(conf, _TOKEN_DUE)
            library.conf_enable_sasl_queue(conf, 1)
        client = library.new(librdkafka.PRODUCER, conf, text, _TEXT_BYTES)
        if not client:
            message = f"Failed to create producer: {text_of(text.value)}"
            raise KafkaException(KafkaError(library.last_error(), message))
    except BaseException:
        library.conf_destroy(conf)
        raise
    library.set_log_queue(client, None)  # log lines go to the polling thread, not to a thread of the library
    if reports.tokens is not None:
        _sign_in(library, client, reports.tokens)
    return int(client)


def _sign_in(library: Library, client: int, tokens: TokenSource) -> None:
    """Give a new client its first token at once, and have later ones requested in a thread of the library."""
    with contextlib.suppress(TokenError):  # that thread requests it
        _set_token(library, client, tokens)
    if error := library.sasl_background_callbacks_enable(client):
        library.error_destroy(error)
        message = "librdkafka must have a thread for the requests of tokens"
        raise RuntimeError(message)


def _set_token(library: Library, client: int, tokens: TokenSource) -> None:
    """Give a client the current token; raise TokenError if there is none, or it is refused."""
    value, ends, principal, extensions = tokens()
    pairs = [part.encode() for pair in extensions.items() for part in pair]
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    code = library.oauthbearer_set_token(
        client,
        value.encode(),
        int(ends * 1000),
        principal.encode(),
        (ctypes.c_char_p * len(pairs))(*pairs),
        len(pairs),
        text,
        _TEXT_BYTES,
    )
    if code:
        message = f"librdkafka refuses the token: {text_of(text.value)}"
        raise TokenError(message)


def end_client(library: Library, client: int, topics: Mapping[str, int], number: int, process: int) -> None:
    """End a client without references, and free what it holds."""

    def end() -> None:
        library.purge(client, librdkafka.PURGE_QUEUE | librdkafka.PURGE_IN_FLIGHT)
        for topic in topics.values():
            library.topic_destroy(topic)
        library.destroy(client)

    if os.getpid() == process:  # a fork has the memory, but not the threads
        end_or_abandon("the producer: the end of its client", end)
    del _clients[number]


def text_of(text: bytes | None) -> str:
    """Return a text of the library; empty for none."""
    return "" if text is None else text.decode(errors="replace")
