"""Metadata come when they are requested, whatever aiokafka does at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka.client import AIOKafkaClient

from topics.producing.broker_connections import BrokerConnections

OLDEST_MS = 10


def test_a_topic_that_is_added_during_a_refresh_is_looked_up_at_once() -> None:
    async def work() -> list[set[str]]:
        client = AIOKafkaClient(bootstrap_servers="127.0.0.1:9", metadata_max_age_ms=10)
        requested: list[set[str]] = []
        is_refreshing, may_answer = asyncio.Event(), asyncio.Event()

        async def update(_: Any, topics: set[str]) -> bool:
            requested.append(set(topics))
            if len(requested) == 1:
                is_refreshing.set()
                await may_answer.wait()
            return True

        client._metadata_update = update
        client._topics = {"a"}
        client._sync_task = asyncio.create_task(client._md_synchronizer())
        await is_refreshing.wait()
        client._metadata_max_age_ms = 300_000  # of the next refresh
        connections = BrokerConnections({})
        connections._client = client
        async with asyncio.timeout(20):
            looking = asyncio.create_task(connections.look_up_leaders({"b"}))
            await asyncio.sleep(0)
            may_answer.set()
            await looking
        await connections.close()
        return requested

    assert {"a", "b"} in asyncio.run(work())
