"""Fetch plan: the requests are those of aiokafka's own plan, whatever is decided by it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.subscription_state import Assignment

from streamapp.worker.driver.fetch_plan import FetchPlan

PARTITIONS = [TopicPartition(topic, number) for topic in ("a", "b") for number in range(4)]


class Cluster:
    """aiokafka's metadata, whose leaders tests change."""

    def __init__(self) -> None:
        self.leaders: dict[Any, int | None] = {tp: tp.partition % 2 for tp in PARTITIONS}
        self.listeners: list[Any] = []

    def leader_for_partition(self, tp: Any) -> int | None:
        return self.leaders.get(tp)

    def broker_metadata(self, node: int) -> object:
        return object()

    def add_listener(self, listener: Any) -> None:
        self.listeners.append(listener)

    def update(self) -> None:
        for listener in self.listeners:
            listener(self)


class Waiting:
    """Records that were fetched and not taken yet."""

    def calculate_backoff(self) -> float:
        return 0.0


@contextmanager
def fetching() -> Iterator[tuple[Any, Cluster, Any]]:
    """Yield aiokafka's fetcher without its task, the metadata, and aiokafka's plan."""
    fetcher, cluster = Fetcher.__new__(Fetcher), Cluster()
    fetcher._client = SimpleNamespace(cluster=cluster)
    fetcher._records, fetcher._in_flight, fetcher._preferred_read_replica = {}, set(), {}
    fetcher._fetch_max_wait_ms, fetcher._fetch_min_bytes, fetcher._fetch_max_bytes = 500, 1, 1 << 20
    fetcher._max_partition_fetch_bytes, fetcher._isolation_level = 1 << 16, 1
    fetcher._fetcher_timeout, fetcher._client_rack = 0.2, "rack"
    plan = fetcher._get_actions_per_node
    FetchPlan(fetcher, cluster)
    yield fetcher, cluster, plan


def assigned(positions: dict[Any, int | None]) -> Any:
    assignment = Assignment(list(positions))
    for tp, position in positions.items():
        if position is not None:
            assignment.state_value(tp).seek(position)
    return assignment


def comparable(planned: Any) -> Any:
    """Return a plan without the order of partitions, which is random."""
    requests, resets, timeout, invalid, resumed = planned
    by_node = {
        node: (
            {(topic, row) for topic, rows in request.topics for row in rows},
            (request._max_wait_ms, request._min_bytes, request._max_bytes),
            (request._isolation_level, request._rack_id),
        )
        for node, request in requests
    }
    assert len(by_node) == len(requests)
    return by_node, {node: set(tps) for node, tps in resets.items()}, timeout, invalid, set(resumed)


@pytest.mark.parametrize("seed", range(20))
def test_the_requests_are_aiokafkas(seed: int) -> None:
    rng = random.Random(seed)

    async def story() -> None:
        with fetching() as (fetcher, cluster, plan):
            assignment = assigned(dict.fromkeys(PARTITIONS, 0))
            for _ in range(40):
                chance = rng.random()
                tp = rng.choice(PARTITIONS)
                if chance < 0.1:
                    assignment = assigned(dict.fromkeys(rng.sample(PARTITIONS, 5), 3))
                elif chance < 0.2:
                    cluster.leaders[tp] = rng.choice([0, 1, 2, -1, None])
                    cluster.update()
                elif chance < 0.3:
                    cluster.leaders |= dict.fromkeys(PARTITIONS, 1)
                    cluster.update()
                elif tp in assignment.tps:
                    state = assignment.state_value(tp)
                    rng.choice([state.pause, state.resume, state.resume, partial(state.seek, 7)])()
                    if chance > 0.9:
                        state._position = None
                    elif state._position is None:
                        state.seek(1)
                fetcher._records = dict.fromkeys(rng.sample(PARTITIONS, rng.choice([0, 0, 1, 3])), Waiting())
                fetcher._in_flight = set(rng.choice([[], [], [0], [0, 1]]))
                fetcher._preferred_read_replica = {tp: (2, 1e300)} if rng.random() < 0.1 else {}
                assert comparable(fetcher._get_actions_per_node(assignment)) == comparable(plan(assignment))

    asyncio.run(story())


def test_each_partition_has_its_turn_to_be_the_first_of_an_answer() -> None:
    """Without a session a broker fills an answer in the order of the request, up to its most bytes."""

    async def story() -> None:
        with fetching() as (fetcher, cluster, _):
            cluster.leaders = dict.fromkeys(PARTITIONS, 0)
            assignment, first = assigned(dict.fromkeys(PARTITIONS, 0)), set()
            for _ in range(300):
                ((_, request),) = fetcher._get_actions_per_node(assignment)[0]
                topic, rows = request.topics[0]
                first.add((topic, rows[0][0]))
            assert first == {tuple(tp) for tp in PARTITIONS}

    asyncio.run(story())
