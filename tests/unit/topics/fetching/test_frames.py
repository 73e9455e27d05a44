"""An answer that claims to be longer than any broker's is not read."""

import asyncio
import logging
import struct

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError

from topics.fetching.frames import SLACK_BYTES, bound_frames, frame_bound

ANSWERS = {
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "two gigabytes": struct.pack(">i", (1 << 31) - 1),
    "less than nothing": struct.pack(">i", -5),
    "one byte too many": struct.pack(">i", 1001),
}


async def bootstrapped_with(answer: bytes) -> None:
    """Let a client connect to a port that gives this answer, stays open and sends no more."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()
        await reader.read()  # until the client hangs up
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=600_000)
    bound_frames(client, 1000)
    bound_frames(AIOKafkaClient(bootstrap_servers="none:1"), 1 << 31)  # another client has its own bound
    with pytest.raises(KafkaConnectionError):
        await client.bootstrap()
    await ended.wait()
    await client.close()
    server.close()


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_the_connection_ends_as_soon_as_the_length_is_here(
    answer: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing else would end the wait."""
    monkeypatch.setattr(AIOKafkaConnection, "_read", AIOKafkaConnection._read)
    monkeypatch.setattr(logging.getLogger("aiokafka.conn"), "filters", [])  # other tests throttle it
    asyncio.run(bootstrapped_with(answer))
    assert "must have 0 to 1000 (receive.message.max.bytes)" in caplog.text


def test_an_answer_as_long_as_the_bound_is_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no answer to the request, which ends the connection."""
    monkeypatch.setattr(AIOKafkaConnection, "_read", AIOKafkaConnection._read)
    monkeypatch.setattr(logging.getLogger("aiokafka.conn"), "filters", [])
    asyncio.run(bootstrapped_with(struct.pack(">i", 1000) + bytes(1000)))
    assert "receive.message.max.bytes" not in caplog.text


def test_an_answer_to_a_fetch_has_room_for_what_it_may_bring() -> None:
    assert frame_bound(100, 1000) == 1000 + SLACK_BYTES
    assert frame_bound(100_000, 1000) == 100_000
