"""Plain answers: aiokafka's fetcher has the same after an answer, whichever of both has noted its parts."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher as aiokafka
from aiokafka.consumer.fetcher import Fetcher, OffsetResetStrategy
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import (
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownError,
)
from aiokafka.protocol.fetch import FetchRequest, FetchResponse_v4
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from streamapp.worker.driver.plain_answers import PlainAnswers
from streamapp.worker.transport.fetch_frames import FetchAnswer
from topics.fetching.fetched_records import FetchedRecords

PLACES = [TopicPartition(topic, number) for topic in ("a", "b") for number in range(4)]
ERRORS = (NotLeaderForPartitionError, OffsetOutOfRangeError, TopicAuthorizationFailedError, UnknownError)


@pytest.fixture(autouse=True)
def kept_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiokafka, "MemoryRecords", FetchedRecords)  # as `keep_bytes` does in a worker


class Side:
    """aiokafka's fetcher with a client whose broker answers what a test says."""

    def __init__(self, *, plain: bool, rack: str | None = None) -> None:
        """`plain`: with `PlainAnswers`; made in an event loop."""
        self.response: Any = None
        self.during = lambda: None  # while the request is at the broker
        self.metadata_updates = 0
        client = SimpleNamespace(
            send=self._send,
            _loop=asyncio.get_running_loop(),
            _metadata_max_age_ms=1000,
            force_metadata_update=self._update,
        )
        self.subscriptions = SubscriptionState()
        self.subscriptions.subscribe({"a", "b"})
        self.subscriptions.assign_from_subscribed(set(PLACES))
        self.fetcher = Fetcher(client, self.subscriptions, client_rack=rack, isolation_level="read_committed")
        self.fetcher._fetch_task.cancel()
        self.fetcher._default_reset_strategy = OffsetResetStrategy.NONE
        self.client = client
        for tp in PLACES:
            self.subscriptions.seek(tp, 5)
        if plain:
            PlainAnswers(client, self.fetcher)

    async def _send(self, _node: int, request: Any, **_options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return "metadata"
        self.during()
        return self.response

    def _update(self) -> None:
        self.metadata_updates += 1

    async def fetch(self, response: Any, places: list[TopicPartition] = PLACES) -> bool:
        """Request the partitions at their positions; return whether readers are woken."""
        self.response = response
        topics = [(tp.topic, [(tp.partition, 5, 100)]) for tp in places]
        waiter = self.fetcher._create_fetch_waiter()
        assignment = self.subscriptions.subscription.assignment
        request = FetchRequest(500, 1, 1000, 1, topics)
        brings = await self.fetcher._proc_fetch_request(assignment, 1, request)
        is_woken = waiter.done()
        waiter.cancel()
        return bool(brings) or is_woken

    def state(self) -> Any:
        """Return what readers of the fetcher find."""
        assignment = self.subscriptions.subscription.assignment
        ends: dict[Any, Any] = {}
        for tp in PLACES:
            state = assignment.state_value(tp)
            ends[tp] = state.highwater, state.lso, state.timestamp is not None, state._position
        records: dict[Any, Any] = {}
        for tp, result in self.fetcher._records.items():
            if isinstance(result, aiokafka.FetchError):
                records[tp] = type(result._error)
                continue
            unread = result._partition_records
            assert result._assignment is assignment
            fields = unread._tp, unread.next_fetch_offset, unread._aborted_transactions
            records[tp] = (*fields, unread._records.log, unread._check_crcs, unread._isolation_level)
        return ends, records, self.metadata_updates


def batch(base: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    assert builder.append(0, 1000, b"k", b"v", []) is not None
    return base.to_bytes(8, "big") + bytes(builder.build())[8:]


def answered(rng: random.Random) -> Any:
    """Return an answer with records, errors, empty and cut-off logs, for some of the partitions."""
    topics: dict[str, list[Any]] = {}
    for tp in rng.sample(PLACES, rng.randint(0, len(PLACES))):
        error = rng.choice(ERRORS).errno if rng.random() < 0.15 else 0
        log = rng.choice([batch(5), batch(5) + batch(6), b"", batch(5)[:-1], batch(5) + batch(6)[:20]])
        aborted = rng.choice([None, [], [(7, 5), (8, 3)]])
        row = (
            tp.partition,
            error,
            rng.randint(5, 9),
            rng.randint(5, 9),
            0,
            aborted,
            rng.choice([-1, 3]),
            log,
        )
        topics.setdefault(tp.topic, []).append(row)
    return FetchAnswer(0, 0, 0, list(topics.items()))


def seek_some(side: Side, seed: int) -> None:
    rng = random.Random(seed)
    for tp in rng.sample(PLACES, rng.choice([0, 0, 1, 3])):
        side.subscriptions.seek(tp, rng.choice([5, 6]))


@pytest.mark.parametrize("seed", range(60))
def test_readers_find_what_aiokafka_alone_would_leave(seed: int) -> None:
    async def story() -> None:
        found = []
        for plain in (False, True):
            side = Side(plain=plain, rack="here" if seed % 10 == 0 else None)
            side.during = lambda side=side: seek_some(side, seed)  # type: ignore[misc]
            is_woken = await side.fetch(answered(random.Random(seed)))
            found.append((is_woken, side.state()))
        assert found[0] == found[1]

    asyncio.run(story())


def test_an_answer_for_a_former_assignment_is_dropped() -> None:
    async def story() -> None:
        side = Side(plain=True)
        side.during = lambda: side.subscriptions.assign_from_subscribed(set(PLACES))
        response = FetchAnswer(0, 0, 0, [("a", [(0, 0, 9, 9, 0, None, -1, batch(5))])])
        assert not await side.fetch(response)
        assert not side.fetcher._records

    asyncio.run(story())


def test_an_older_answer_is_aiokafkas() -> None:
    async def story() -> None:
        side = Side(plain=True)
        assert await side.fetch(FetchResponse_v4(0, [("a", [(1, 0, 9, 9, None, batch(5))])]))
        assert list(side.fetcher._records) == [TopicPartition("a", 1)]

    asyncio.run(story())


def test_other_requests_pass() -> None:
    async def story() -> None:
        side = Side(plain=True)
        assert await side.client.send(1, MetadataRequest([])) == "metadata"

    asyncio.run(story())
