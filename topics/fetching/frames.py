# ruff: noqa: SLF001 - what is replaced of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Frames: a bound on the length of an answer that aiokafka's connections read.

An answer begins with its length in four bytes, which aiokafka does not check. A port with another protocol,
or a faulty broker, would make it allocate two gigabytes, so the length is compared with a bound first.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from struct import Struct
from typing import Any, Final

from aiokafka import conn
from aiokafka.errors import KafkaConnectionError

MOST_BYTES: Final = 100_000_000
"""The default of librdkafka's `receive.message.max.bytes`."""

SLACK_BYTES: Final = 512
"""Bytes that an answer to a fetch may have beside its records; librdkafka's own rule."""

_LENGTH: Final = Struct(">i")


_MOST: ContextVar[int] = ContextVar("bytes of an answer", default=MOST_BYTES)
"""The bound of the client whose connection is being opened."""


class FrameError(KafkaConnectionError):  # type: ignore[misc]  # aiokafka's has no types
    """An answer with a length that no valid answer has, or that is longer than the bound."""

    def __init__(self, size: int, most: int, address: str) -> None:
        """`size`: bytes of the answer; `most`: the bound."""
        super().__init__(
            f"an answer of {size} bytes from {address} must have 0 to {most} "
            "(receive.message.max.bytes): is that a Kafka broker, and is TLS meant?"
        )
        self.size, self.most = size, most

    @property
    def remedy(self) -> str:
        """What an operator can do, if it is the answer to a fetch of one partition."""
        return (
            f"a batch makes an answer of {self.size:,} bytes, which must have at most {self.most:,}; raise "
            "receive.message.max.bytes (the broker sends a batch whole, however few bytes are requested)"
        )


def frame_error(error: BaseException) -> FrameError | None:
    """Return the FrameError that led to an error of a request, if one did."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, FrameError):
        cause = cause.__cause__
    return cause


def bound_frames(client: Any, most: int) -> None:
    """Bound the answers of all connections that an `AIOKafkaClient` opens from now on to `most` bytes."""
    conn.AIOKafkaConnection._read = staticmethod(_read)
    for name in ("bootstrap", "_get_conn"):  # both open connections, whose reading tasks inherit the bound
        setattr(client, name, _bounded(getattr(client, name), most))


def _bounded(call: Callable[..., Awaitable[Any]], most: int) -> Callable[..., Awaitable[Any]]:
    async def bounded(*arguments: Any, **named: Any) -> Any:
        token = _MOST.set(most)
        try:
            return await call(*arguments, **named)
        finally:
            _MOST.reset(token)

    return bounded


async def _read(connection_ref: weakref.ref[Any]) -> None:
    connection, most = connection_ref(), _MOST.get()
    if connection is None:
        return
    reader, address = connection._reader, f"{connection._host}:{connection._port}"
    del connection
    while True:
        (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if not 0 <= size <= most:
            raise FrameError(size, most, address)
        frame = await reader.readexactly(size)
        connection = connection_ref()
        if connection is None:
            return
        connection._handle_frame(frame)
        del connection


def frame_bound(receive_max: int, fetch_max: int) -> int:
    """Return the bound: `receive.message.max.bytes`, or the largest answer to a fetch if that is larger."""
    return max(receive_max, fetch_max + SLACK_BYTES)
