"""Requests for offsets overtake a fetch that a real broker holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest

from streamapp.worker.driver.offset_requests import OffsetRequests
from tests.broker.workers import Installation
from tests.conftest import Broker

pytestmark = pytest.mark.broker

LATEST = -1
HELD_MS = 10_000  # by the broker, which has no record; less than the client's limit for a request


def test_offsets_are_answered_while_the_broker_holds_a_fetch(broker: Broker, tmp_path: Path) -> None:
    topic = Installation(broker.bootstrap_servers, "offsets.", 1, tmp_path).names.instances

    async def story() -> None:
        client = AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers)
        await client.bootstrap()
        try:
            await client.set_topics([topic])
            OffsetRequests(client)
            node = client.cluster.leader_for_partition(TopicPartition(topic, 0))

            def fetch(wait_ms: int) -> FetchRequest:
                return FetchRequest(wait_ms, 1, 1 << 20, 1, [(topic, [(0, 0, 1 << 20)])])

            await client.send(node, fetch(0))  # opens the connection
            held = asyncio.ensure_future(client.send(node, fetch(HELD_MS)))
            await asyncio.sleep(0)  # the fetch is sent
            answer = await client.send(node, OffsetRequest(-1, 1, [(topic, [(0, LATEST)])]))
            assert answer.topics[0][1][0][-1] == 0
            assert not held.done()
            held.cancel()
        finally:
            await client.close()

    asyncio.run(story())
