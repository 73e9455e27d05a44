"""What the demo says of its lag, on a log that goes on between two requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from streamapp.demo import topic_progress
from topics.definitions import TopicNames

NAMES = TopicNames("demo.")


@dataclass
class Position:
    offset: int


class Ends:
    """The answer for one partition."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def result(self, timeout: float | None = None) -> Position:
        return Position(self.offset)


class MovingLog:
    """Client of a broker: at each request ten records more, of which a worker has committed all."""

    def __init__(self) -> None:
        self.end = 0
        self.has_committed = False

    def __call__(self, _configuration: dict[str, Any]) -> MovingLog:
        return self

    def committed(self, partitions: Iterable[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        self.end += 10
        offset = self.end if self.has_committed else -1001
        return [TopicPartition(each.topic, each.partition, offset) for each in partitions]

    def list_offsets(
        self, asked: dict[TopicPartition, object], request_timeout: float
    ) -> dict[TopicPartition, Ends]:
        assert request_timeout > 0
        self.end += 10
        return {partition: Ends(self.end) for partition in asked}


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Callable[[MovingLog], topic_progress.DemoProgress]:
    """Return what the demo shows of a log at its next look."""

    def shown(log: MovingLog) -> topic_progress.DemoProgress:
        monkeypatch.setattr(topic_progress, "AdminClient", log)
        monkeypatch.setattr(topic_progress, "Consumer", log)
        cluster = topic_progress.DemoCluster({}, NAMES, "demo", partitions=2, features=False)
        cluster.look()
        return cluster.progress

    return shown


def test_records_that_come_and_are_committed_between_two_requests_make_no_negative_lag(
    look: Callable[[MovingLog], topic_progress.DemoProgress],
) -> None:
    log = MovingLog()
    log.has_committed = True
    # Twenty records in each of eight partitions of the inputs, ten in each of two of the requests.
    assert [look(log).lag for _ in range(3)] == [180, 180, 180]


def test_where_nothing_is_committed_all_records_are_behind(
    look: Callable[[MovingLog], topic_progress.DemoProgress],
) -> None:
    assert look(MovingLog()) == topic_progress.DemoProgress(sent=60, labels=60, controls=60, lag=300)
