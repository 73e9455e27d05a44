"""Fetch sessions beside a broker that keeps to KIP-227: nothing is missed that a whole request brings."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.subscription_state import Assignment
from aiokafka.errors import InvalidFetchSessionEpoch, KafkaConnectionError, KafkaError
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v4, FetchRequest_v11
from aiokafka.protocol.metadata import MetadataRequest

from streamapp.worker.transport.fetch_sessions import FetchSessions

Place = tuple[str, int]

PLACES: list[Place] = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
UNKNOWN_SESSION, WRONG_EPOCH, NOT_LEADER = 70, 71, 6


@dataclass
class Remembered:
    """What the broker remembers of a session."""

    epoch: int = 0
    offsets: dict[Place, int] = field(default_factory=dict)
    watermarks: dict[Place, int] = field(default_factory=dict)  # as last answered; -1 after an error


class Broker:
    """A broker whose log ends tests move."""

    def __init__(self, version: int = 11, room: int = 1) -> None:
        self.ends = dict.fromkeys(PLACES, 5)
        self.refused: set[Place] = set()
        self.sessions: dict[int, Remembered] = {}
        self.room = room
        self.failure: BaseException | None = None
        self.after_answer: Callable[[], None] = lambda: None  # before the client has it
        self.named: list[int] = []  # the number of partitions in each request
        self.answered: list[int] = []
        self.numbers = 0
        self.turns: Callable[[], int] = lambda: 0  # of the event loop, before and after a request is read
        self._struct = FetchRequest_v11 if version == 11 else FetchRequest_v4

    async def send(self, node_id: int, request: Any, **_options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return "metadata"
        for _ in range(self.turns()):
            await asyncio.sleep(0)
        built = request.build(self._struct)
        built.encode()  # as aiokafka sends it
        rows = {(topic, row[0]): row for topic, rows in built.topics for row in rows}
        self.named.append(len(rows))
        if self._struct is FetchRequest_v4:
            return self._answer({place: self.ends[place] for place in rows}, 0, 0, 4)
        answer = self._in_session(built, {place: row[2] for place, row in rows.items()})
        for _ in range(self.turns()):
            await asyncio.sleep(0)
        self.after_answer()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return answer

    def _in_session(self, built: Any, offsets: dict[Place, int]) -> Any:
        number, epoch = built.session_id, built.session_epoch
        if epoch == 0:
            self.sessions.pop(number, None)
            number = 0
            if len(self.sessions) < self.room:
                self.numbers += 1
                number = self.numbers
                self.sessions[number] = Remembered()
        elif number not in self.sessions:
            return self._answer({}, 0, UNKNOWN_SESSION, 11)
        elif self.sessions[number].epoch != epoch:
            return self._answer({}, 0, WRONG_EPOCH, 11)
        session = self.sessions.get(number, Remembered())
        session.epoch = epoch + 1
        for place, offset in offsets.items():
            session.watermarks.setdefault(place, -1)
            session.offsets[place] = offset
        for topic, partitions in built.forgotten_topics_data:
            for partition in partitions:
                del session.offsets[topic, partition], session.watermarks[topic, partition]
        answered = {}
        for place, offset in session.offsets.items():
            has_records = offset < self.ends[place]
            if place in self.refused:
                session.watermarks[place] = -1
            elif has_records or session.watermarks[place] != self.ends[place]:
                session.watermarks[place] = self.ends[place]
            else:
                continue
            answered[place] = self.ends[place]
        return self._answer(answered, number, 0, 11)

    def _answer(self, ends: dict[Place, int], number: int, code: int, version: int) -> Any:
        self.answered.append(len(ends))
        topics = [
            (topic, [(partition, NOT_LEADER if (topic, partition) in self.refused else 0, end)])
            for (topic, partition), end in ends.items()
        ]
        named = {} if version == 4 else {"error_code": code, "session_id": number}
        return SimpleNamespace(topics=topics, API_VERSION=version, **named)


class Client:
    """As much of aiokafka's fetcher as concerns answers; made in an event loop."""

    def __init__(self, broker: Broker) -> None:
        self._client = SimpleNamespace(send=broker.send)
        self.subscriptions = SimpleNamespace(subscription=None)
        FetchSessions(self._client, self.subscriptions)
        self.assign()

    def assign(self) -> None:
        assignment = Assignment([TopicPartition(*place) for place in PLACES])
        self.subscriptions.subscription = SimpleNamespace(assignment=assignment)
        for place in PLACES:
            self.seek(place, 0)

    def state(self, place: Place) -> Any:
        return self.subscriptions.subscription.assignment.state_value(TopicPartition(*place))

    def seek(self, place: Place, position: int) -> None:
        self.state(place).seek(position)

    async def send(self, request: Any) -> Any:
        return await self._client.send(1, request)

    async def fetch(self, places: list[Place] = PLACES) -> set[Place]:
        """Take all records; return the partitions that the broker refuses."""
        asked = {place: self.state(place).position for place in places}
        topics = [(topic, [(number, at, 100)]) for (topic, number), at in asked.items()]
        assignment = self.subscriptions.subscription.assignment
        response = await self.send(FetchRequest(500, 1, 1000, 1, topics))
        refused = set()
        if assignment is self.subscriptions.subscription.assignment:
            for topic, rows in response.topics:
                for number, code, end in rows:
                    if self.state((topic, number)).position != asked[topic, number]:
                        continue
                    if code:
                        refused.add((topic, number))
                    else:
                        self.state((topic, number)).highwater = end
                        self.seek((topic, number), end)
        return refused

    def ends(self) -> dict[Place, int]:
        return {place: self.state(place).highwater for place in PLACES}

    def positions(self) -> dict[Place, int]:
        return {place: self.state(place).position for place in PLACES}


def test_only_what_has_changed_is_named_and_answered() -> None:
    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        await client.fetch()
        await client.fetch()  # names the new positions
        await client.fetch()
        assert (broker.named, broker.answered) == ([4, 4, 0], [4, 0, 0])
        broker.ends["b", 1] = 9
        await client.fetch()
        assert (broker.named[-1], broker.answered[-1]) == (0, 1)
        await client.fetch()
        assert (broker.named[-1], broker.answered[-1]) == (1, 0)
        assert client.ends() == client.positions() == broker.ends

    asyncio.run(story())


def test_a_partition_that_is_left_out_is_forgotten_and_answered_when_it_is_back() -> None:
    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        await client.fetch()
        await client.fetch(PLACES[:3])
        assert set(broker.sessions[1].offsets) == set(PLACES[:3])
        broker.ends[PLACES[3]] = 7
        await client.fetch(PLACES[:3])
        assert client.ends()[PLACES[3]] == 5, "it was not asked for"
        await client.fetch()
        assert client.ends() == broker.ends

    asyncio.run(story())


@pytest.mark.parametrize("room", [0, 1])
def test_a_broker_that_has_given_a_session_up_is_asked_for_everything_at_once(room: int) -> None:
    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        await client.fetch()
        broker.sessions.clear()
        broker.room = room
        broker.ends["a", 1] = 8
        await client.fetch()
        assert client.ends() == client.positions() == broker.ends
        assert broker.named[-1] == 4
        await client.fetch()
        assert broker.named[-1] == (1 if room else 4)

    asyncio.run(story())


def test_a_session_whose_request_failed_is_ended_by_the_next_request() -> None:
    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        await client.fetch()
        broker.failure = KafkaConnectionError("away")
        with pytest.raises(KafkaConnectionError):
            await client.fetch()
        await client.fetch()
        assert list(broker.sessions) == [2], "no session is left that nobody uses"
        assert client.ends() == broker.ends

    asyncio.run(story())


def test_an_answer_that_aiokafka_does_not_take_is_asked_for_again() -> None:
    """The high watermark would be missing for ever, and with it the end of the log."""

    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        broker.after_answer = lambda: client.seek(("a", 0), 5)  # the log's end: no record brings an answer
        await client.fetch()
        assert client.state(("a", 0)).highwater is None
        broker.after_answer = lambda: None
        await client.fetch()
        assert client.ends() == broker.ends

    asyncio.run(story())


def test_partitions_of_a_new_assignment_are_answered_anew() -> None:
    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        await client.fetch()
        client.assign()
        for place in PLACES:
            client.seek(place, 5)
        await client.fetch()
        assert client.ends() == broker.ends
        broker.after_answer = client.assign  # while a request is in flight
        await client.fetch()
        broker.after_answer = lambda: None
        for place in PLACES:
            client.seek(place, 5)
        await client.fetch()
        assert client.ends() == broker.ends

    asyncio.run(story())


def test_the_epoch_of_a_long_session_begins_again_at_one() -> None:
    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        await client.fetch()
        sessions = client._client.send.__self__
        sessions._sessions[1].epoch = broker.sessions[1].epoch = (1 << 31) - 1
        await client.fetch()
        broker.sessions[1].epoch = 1
        broker.ends["a", 0] = 6
        await client.fetch()
        assert client.ends() == broker.ends
        assert list(broker.sessions) == [1]

    asyncio.run(story())


def test_an_error_of_the_session_that_stays_is_raised() -> None:
    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        await client.fetch()
        broker._in_session = lambda *_: broker._answer({}, 0, WRONG_EPOCH, 11)  # type: ignore[method-assign]
        with pytest.raises(InvalidFetchSessionEpoch):
            await client.fetch()

    asyncio.run(story())


def test_a_broker_without_sessions_gets_whole_requests() -> None:
    async def story() -> None:
        broker = Broker(version=4)
        client = Client(broker)
        for _ in range(3):
            await client.fetch()
        assert broker.named == [4] * 3
        assert client.ends() == broker.ends
        assert await client.send(MetadataRequest([])) == "metadata"

    asyncio.run(story())


def disturb(broker: Broker, client: Client, randomness: random.Random) -> None:
    """Change logs, and perhaps have something happen to the next request or its answer."""

    def seek() -> None:
        for place in randomness.sample(PLACES, 2):
            client.seek(place, randomness.choice([0, broker.ends[place], broker.ends[place]]))

    for place in randomness.sample(PLACES, randomness.randrange(3)):
        broker.ends[place] += randomness.randrange(3)
    broker.refused ^= set(randomness.sample(PLACES, randomness.randrange(2)))
    broker.after_answer = randomness.choice([*[lambda: None] * 7, seek, seek, client.assign])
    failures = KafkaConnectionError("away"), asyncio.CancelledError()
    broker.failure = randomness.choice([*[None] * 8, *failures])
    if randomness.random() < 0.1:
        broker.sessions.clear()
    if randomness.random() < 0.05:
        client.assign()


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_a_fetch_brings_what_a_whole_request_would(seed: int) -> None:
    randomness = random.Random(seed)

    async def story() -> None:
        broker = Broker()
        client = Client(broker)
        for _ in range(60):
            disturb(broker, client, randomness)
            with contextlib.suppress(KafkaError, asyncio.CancelledError):
                await client.fetch(randomness.sample(PLACES, randomness.randrange(1, 5)))
            broker.after_answer, broker.failure = lambda: None, None
            if randomness.random() < 0.5:
                before = client.ends()
                assert await client.fetch() == broker.refused
                refused = {place: before[place] for place in broker.refused}
                assert client.ends() == broker.ends | refused
                assert client.positions().items() >= {
                    (place, end) for place, end in broker.ends.items() if place not in refused
                }

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(25))
def test_requests_that_overlap_bring_what_whole_requests_would(seed: int) -> None:
    """aiokafka sends a request before the last one is answered if it overlooked the end of an earlier one."""
    randomness = random.Random(seed)

    async def story() -> None:
        broker = Broker(room=randomness.choice([1, 2, 100]))
        client = Client(broker)
        broker.turns = lambda: randomness.randrange(4)
        for _ in range(60):
            disturb(broker, client, randomness)
            broker.failure = None
            await asyncio.gather(*[client.fetch() for _ in range(randomness.randrange(1, 4))])
            broker.after_answer = lambda: None
        broker.refused.clear()
        await client.fetch()
        await client.fetch()
        assert client.ends() == client.positions() == broker.ends

    asyncio.run(story())


def test_sessions_of_requests_that_overlap_are_ended() -> None:
    async def story() -> None:
        broker = Broker(room=100)
        client = Client(broker)
        broker.turns = lambda: 2
        await client.fetch()
        for _ in range(20):
            await asyncio.gather(client.fetch(), client.fetch())
        await client.fetch()
        assert len(broker.sessions) <= 3

    asyncio.run(story())
