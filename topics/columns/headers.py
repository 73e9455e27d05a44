"""Record headers: the same, whichever client has read them.

Kafka wants UTF-8 in the names, but neither the broker nor every producer looks. librdkafka, with which users
and some of our tools read, ends a name at its first NUL, and its Python client gives none of a record's
headers if one of their names is not UTF-8. So that is what headers are for aiokafka's readers, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import methodcaller
from typing import Any, Final

Headers = Sequence[tuple[str, bytes | None]]
"""Names and values, in the order of the record."""

UNDECODABLE: Final = "\N{REPLACEMENT CHARACTER}"
UNREADABLE: Final[Headers] = ((UNDECODABLE, None),)
"""The headers of a record of which a name is not UTF-8."""

_headers = methodcaller("headers")
"""Where a name is not UTF-8, `message.headers()` returns something although it has set an error. In a call
from C, such as this one, that is a SystemError; in one from Python the error may come up anywhere later."""


def read_headers(headers: Iterable[tuple[bytes, bytes | None]]) -> Headers:
    """Return the headers of a record as they are on the wire."""
    try:
        return [(name.partition(b"\0")[0].decode(), value) for name, value in headers]
    except UnicodeDecodeError:
        return UNREADABLE


def ended_at_nul(headers: Headers) -> Headers:
    """Return headers that aiokafka has read."""
    if any("\0" in name for name, _ in headers):
        return [(name.partition("\0")[0], value) for name, value in headers]
    return headers


def headers_of(message: Any) -> Headers:
    """Return the headers of a message of confluent_kafka."""
    try:
        return _headers(message) or ()
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:  # each further name adds a SystemError
            if isinstance(cause, UnicodeDecodeError):
                return UNREADABLE
            cause = cause.__cause__
        raise
