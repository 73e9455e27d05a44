# ruff: noqa: SLF001 - what is replaced of aiokafka is held by tests/contract/test_transport_aiokafka.py
"""Frames: a bound on the length of an answer that aiokafka's connections read.

An answer begins with its length in four bytes, which aiokafka does not check. A port with another protocol,
or a faulty broker, would make it allocate two gigabytes, so the length is compared with a bound first.
"""

from __future__ import annotations

import weakref
from struct import Struct
from typing import Any, Final

from aiokafka import conn
from aiokafka.errors import KafkaConnectionError

MOST_BYTES: Final = 100_000_000
"""The default of librdkafka's `receive.message.max.bytes`."""

SLACK_BYTES: Final = 512
"""Bytes that an answer to a fetch may have beside its records; librdkafka's own rule."""

_LENGTH: Final = Struct(">i")


class FrameError(KafkaConnectionError):  # type: ignore[misc]  # aiokafka's has no types
    """An answer with a length that no valid answer has."""


def bound_frames(most: int) -> None:
    """Bound the answers of all connections that this process opens from now on to `most` bytes."""

    async def read(connection_ref: weakref.ref[Any]) -> None:
        connection = connection_ref()
        if connection is None:
            return
        reader, address = connection._reader, f"{connection._host}:{connection._port}"
        del connection
        while True:
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            if not 0 <= size <= most:
                message = (
                    f"an answer of {size} bytes from {address} must have 0 to {most} "
                    "(receive.message.max.bytes): is that a Kafka broker, and is TLS meant?"
                )
                raise FrameError(message)
            frame = await reader.readexactly(size)
            connection = connection_ref()
            if connection is None:
                return
            connection._handle_frame(frame)
            del connection

    conn.AIOKafkaConnection._read = staticmethod(read)


def frame_bound(receive_max: int, fetch_max: int) -> int:
    """Return the bound: `receive.message.max.bytes`, or the largest answer to a fetch if that is larger."""
    return max(receive_max, fetch_max + SLACK_BYTES)
