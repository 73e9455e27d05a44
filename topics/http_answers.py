"""Answers of HTTP servers: bodies bounded in bytes and in time, and the cause of an error in words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from requests import Response

CHUNK_BYTES: Final = 1 << 16


class BodyError(Exception):
    """The body of an answer is not read to its end; the text continues a sentence about the server."""


class LargeBodyError(BodyError):
    """The body has too many bytes."""


class SlowBodyError(BodyError):
    """The body comes too slowly."""


def bounded_body(response: Response, most_bytes: int, seconds: float) -> bytes:
    """Return the body of an answer that was requested with `stream`. Raise BodyError, or urllib3's errors."""
    deadline = time.monotonic() + seconds
    body = bytearray()
    # `read1` returns each piece when it arrives; other methods wait for all the bytes that were requested.
    while piece := response.raw.read1(CHUNK_BYTES, decode_content=True):
        body += piece
        if len(body) > most_bytes:
            message = f"answers with more than {most_bytes} bytes"
            raise LargeBodyError(message)
        if time.monotonic() > deadline:
            message = f"has not sent its answer within {seconds:g} s"
            raise SlowBodyError(message)
    return bytes(body)


def innermost(error: BaseException) -> str:
    """Return the innermost cause of an error in a few words; the outer errors repeat the address."""
    cause = error
    while True:
        inner = getattr(cause, "reason", None) or next(
            (part for part in cause.args if isinstance(part, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            break
        cause = inner
    return str(cause).rpartition("object at ")[2].partition(": ")[2] or str(cause) or type(cause).__name__
