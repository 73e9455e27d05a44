"""Record headers: the same result from every client that reads them.

Kafka requires UTF-8 in header names, but neither the broker nor every producer checks it. librdkafka, which
users and some of our tools read with, ends a name at its first NUL, and its Python client returns no headers
at all if one name of a record is not UTF-8. The functions here give readers that use aiokafka the same
headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import methodcaller
from typing import Any, Final

Headers = Sequence[tuple[str, bytes | None]]
"""Names and values, in the order of the record."""

UNDECODABLE: Final = "\N{REPLACEMENT CHARACTER}"
UNREADABLE: Final[Headers] = ((UNDECODABLE, None),)
"""The headers of a record with a name that is not UTF-8."""

_headers = methodcaller("headers")
"""If a name is not UTF-8, `message.headers()` returns something although it has set an error. A call from C,
such as this one, then raises a SystemError; after a call from Python the error may appear at any later point.
"""


def read_headers(headers: Iterable[tuple[bytes, bytes | None]]) -> Headers:
    """Return the headers of a record, given as they are on the wire."""
    try:
        return [(name.partition(b"\0")[0].decode(), value) for name, value in headers]
    except UnicodeDecodeError:
        return UNREADABLE


def ended_at_nul(headers: Headers) -> Headers:
    """Return headers that aiokafka has read, each name cut at its first NUL."""
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
