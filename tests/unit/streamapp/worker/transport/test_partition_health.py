"""What the broker does not serve, by aiokafka's metadata and by its answers to fetches."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaStorageError,
    NodeNotReadyError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from faust.types import TP

from streamapp.worker.transport.partition_health import PartitionHealth
from topics.fetching.frames import FrameError

A, B = TP("instances", 0), TP("labels", 0)


class Client:
    """aiokafka's client with one broker that answers what it is told to."""

    def __init__(self) -> None:
        self.leaders: dict[TP, int | None] = {A: 1, B: 1}
        self.cluster = SimpleNamespace(
            leader_for_partition=lambda tp: self.leaders.get(TP(*tp)), add_listener=lambda listener: None
        )
        self.codes: dict[TP, int] = {}
        self.error: Exception | None = None

    async def send(self, node_id: int, request: Any, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
        if not isinstance(request, FetchRequest):
            return "metadata"
        rows = [
            (topic, [(n, self.codes.get(TP(topic, n), 0), 9, b"") for n, *_ in of])
            for topic, of in request.topics
        ]
        return SimpleNamespace(topics=rows)

    def fetch(self) -> None:
        asyncio.run(
            self.send(1, FetchRequest(5, 1, 1, 1, [(tp.topic, [(tp.partition, 0, 1)]) for tp in (A, B)]))
        )


def test_all_is_served_that_has_a_leader_and_was_not_refused() -> None:
    client = Client()
    partition_health = PartitionHealth(client)
    assert partition_health.unserved([A, B]) == {}, "nothing was fetched yet"
    client.fetch()
    assert partition_health.unserved([A, B]) == {}


@pytest.mark.parametrize("leader", [None, -1])
def test_a_partition_without_a_leader_is_not_served(leader: int | None) -> None:
    client = Client()
    client.leaders[B] = leader
    assert PartitionHealth(client).unserved([A, B]) == {B: "no leader is known"}


@pytest.mark.parametrize(
    "error", [NotLeaderForPartitionError, KafkaStorageError, TopicAuthorizationFailedError]
)
def test_a_refused_fetch_counts_until_one_is_answered(error: type[Any]) -> None:
    client = Client()
    partition_health = PartitionHealth(client)
    client.codes[B] = error.errno
    client.fetch()
    assert partition_health.unserved([A, B]) == {B: f"broker 1: {error.__name__}"}
    assert partition_health.unserved([A]) == {}
    client.codes.clear()
    client.fetch()
    assert partition_health.unserved([A, B]) == {}


def test_a_broker_that_cannot_be_reached_serves_nothing_it_was_asked_for() -> None:
    client = Client()
    partition_health = PartitionHealth(client)
    client.error = NodeNotReadyError("no")
    with pytest.raises(NodeNotReadyError):
        client.fetch()
    assert partition_health.unserved([A, B]) == dict.fromkeys((A, B), "broker 1: NodeNotReadyError")
    client.error = None
    client.fetch()
    assert partition_health.unserved([A, B]) == {}


def test_a_position_out_of_range_is_an_answer() -> None:
    client = Client()
    partition_health = PartitionHealth(client)
    client.codes[B] = OffsetOutOfRangeError.errno
    client.fetch()
    assert partition_health.unserved([B]) == {}


def test_other_requests_pass() -> None:
    client = Client()
    partition_health = PartitionHealth(client)
    assert asyncio.run(client.send(1, MetadataRequest([]), group=0)) == "metadata"
    client.error = NodeNotReadyError("no")
    with pytest.raises(NodeNotReadyError):
        asyncio.run(client.send(1, MetadataRequest([]), group=0))
    assert partition_health.unserved([A, B]) == {}


def test_a_batch_that_makes_answers_too_long_stops_its_partition_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker whose answer begins with the batch whenever the partition is requested."""
    client = Client()
    health = PartitionHealth(client)
    rows = [("instances", [(0, 7, 100), (1, 8, 100)]), ("labels", [(0, 9, 100)])]
    fetcher = SimpleNamespace(
        _get_actions_per_node=lambda _: ([(1, FetchRequest(500, 1, 9, 1, list(rows)))], {}, 0.2, False, [])
    )
    health.limit_fetches(fetcher)
    asked = []
    for _ in range(12):
        fetches, _, timeout, _, _ = fetcher._get_actions_per_node(None)
        assert timeout <= 0.2
        for node, request in fetches:
            places = [(topic, number) for topic, of in request.topics for number, *_ in of]
            asked.append(places)
            too_long = ("instances", 1) in places
            client.error = KafkaConnectionError("closed") if too_long else None
            if client.error is not None:
                client.error.__cause__ = FrameError(2000, 1000, "broker:9092")
            with contextlib.suppress(KafkaConnectionError):
                asyncio.run(client.send(node, request))
    others = [("instances", 0), ("labels", 0)]
    assert asked[0] == [("instances", 0), ("instances", 1), ("labels", 0)]
    assert asked[-1] == others
    assert [("instances", 1)] in asked
    assert health.unserved([A, B, TP("instances", 1)]).keys() == {TP("instances", 1)}
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        "topic instances partition 1 is not read: a batch makes an answer of 2,000 bytes, which must have at "
        "most 1,000; raise receive.message.max.bytes (the broker sends a batch whole, however few bytes are "
        "requested)"
    )
