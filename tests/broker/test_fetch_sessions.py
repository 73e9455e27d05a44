"""Fetch sessions of a real broker: the partitions in its answers, a long wait, and a session that ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.protocol.fetch import FetchRequest

from streamapp.worker.transport.fetch_sessions import FetchSessions, SessionRequest
from tests.broker.workers import PATIENCE, Installation
from tests.conftest import Broker

pytestmark = pytest.mark.broker

PARTITIONS = 12
CLOSED = -1  # the epoch that ends a session


def test_a_real_broker_names_what_has_changed_and_takes_up_a_session_that_it_gave_up(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "sessions.", PARTITIONS, tmp_path)
    producer = place.producer()
    topic = place.names.instances

    def add(partition: int) -> None:
        producer.produce(topic, b"value", b"key", partition)
        assert producer.flush(PATIENCE) == 0

    async def story() -> None:
        client = AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers)
        await client.bootstrap()
        try:
            await client.set_topics([topic])
            places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            subscriptions = SubscriptionState()
            subscriptions.assign_from_user(places)
            for tp in places:
                subscriptions.seek(tp, 0)
            state = subscriptions.subscription.assignment.state_value
            plain = client.send
            FetchSessions(client, subscriptions)

            async def fetched(wait_ms: int = 10) -> dict[int, tuple[int, bool]]:
                """Return the log end of each answered partition, and whether there were records."""
                rows = [(tp.partition, state(tp).position, 1 << 20) for tp in places]
                node = client.cluster.leader_for_partition(places[0])
                response = await client.send(node, FetchRequest(wait_ms, 1, 1 << 20, 1, [(topic, rows)]))
                answered = {}
                for _, answers in response.topics:
                    for number, code, end, *_, records in answers:
                        assert code == 0
                        state(places[number]).seek(end)
                        answered[number] = (end, bool(records))
                return answered

            add(3)
            empty = dict.fromkeys(range(PARTITIONS), (0, False))
            assert await fetched() == empty | {3: (1, True)}
            assert await fetched() == {}
            add(3)
            add(5)
            assert await fetched() == {3: (2, True), 5: (1, True)}
            waiting = asyncio.create_task(fetched(60_000))
            await asyncio.to_thread(add, 7)
            assert await waiting == {7: (1, True)}, "a record ends the wait of an idle session"
            await _end_session(client, plain, topic)
            assert (await fetched()).keys() == empty.keys(), "the session was given up: all are answered"
            assert await fetched() == {}
        finally:
            await client.close()

    asyncio.run(story())


async def _end_session(client: Any, plain: Any, topic: str) -> None:
    """End the client's session as the broker does when it needs the room."""
    node = client.cluster.leader_for_partition(TopicPartition(topic, 0))
    session = client.send.__self__._sessions[node]
    whole = FetchRequest(1, 1, 1 << 20, 1, [])
    response = await plain(node, SessionRequest(whole, session.number, CLOSED, [], []))
    assert response.error_code == 0
