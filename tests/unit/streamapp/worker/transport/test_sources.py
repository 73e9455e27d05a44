"""What the watch makes of aiokafka's metadata, with aiokafka's own cluster and a broker's answers."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.metadata import MetadataResponse_v5

from streamapp.worker.transport import source_watch
from streamapp.worker.transport.source_watch import SourceTopicError, SourceWatch

UNKNOWN, FORBIDDEN = 3, 29  # Kafka's error codes
TOPICS = ("controls", "instances", "labels")


def answer(cluster: ClusterMetadata, topics: Mapping[str, int], errors: Mapping[str, int] = {}) -> None:
    """Give the cluster a broker's answer: partitions of each topic, error of each other."""
    there: list[tuple[Any, ...]] = [
        (0, t, False, [(0, p, 1, [1], [1], []) for p in range(n)]) for t, n in topics.items()
    ]
    cluster.update_metadata(
        MetadataResponse_v5(
            0, [(1, "host", 9092, None)], "id", 1, [*there, *((e, t, False, []) for t, e in errors.items())]
        )
    )


class Watched:
    """A watch, and what it reported."""

    def __init__(self, answers: list[tuple[dict[str, int], dict[str, int]]]) -> None:
        self.cluster = ClusterMetadata()
        self.answers = answers
        self.reported: list[SourceTopicError] = []
        self.watch = SourceWatch(TOPICS, self.refresh, self.reported.append)
        self.cluster.add_listener(self.watch.compare)

    async def refresh(self) -> None:
        """Answer as the list says; its last answer for ever."""
        answer(self.cluster, *(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]))


ALL = dict.fromkeys(TOPICS, 2)
WITHOUT = {"controls": 2, "labels": 2}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_watch, "TIMEOUT_S", 0.05)
    monkeypatch.setattr(source_watch, "LOOK_AGAIN", 0.001)


async def until(watched: Watched) -> None:
    while watched.watch._waiting is not None:
        await asyncio.wait([watched.watch._waiting])


def test_topics_that_are_not_known_yet_are_not_missing() -> None:
    watched = Watched([({}, {})])
    answer(watched.cluster, {})
    assert not watched.watch.suspects


def test_a_topic_that_comes_back_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_watch, "TIMEOUT_S", 60.0)  # four looks, however slow the machine is

    async def story() -> Watched:
        watched = Watched([(WITHOUT, {"instances": UNKNOWN})] * 3 + [(ALL, {})])
        answer(watched.cluster, ALL)
        answer(watched.cluster, WITHOUT, {"instances": UNKNOWN})
        assert watched.watch.suspects
        watched.watch.check()
        await until(watched)
        return watched

    watched = asyncio.run(story())
    assert watched.reported == []
    assert not watched.watch.suspects


@pytest.mark.parametrize(
    ("error", "said"), [(UNKNOWN, "topic 'instances' was deleted"), (FORBIDDEN, "has lost its rights")]
)
def test_a_topic_that_stays_away_is_reported_once(error: int, said: str) -> None:
    async def story() -> Watched:
        watched = Watched([(WITHOUT, {"instances": error})])
        answer(watched.cluster, ALL)
        answer(watched.cluster, WITHOUT, {"instances": error})
        await until(watched)
        answer(watched.cluster, WITHOUT, {"instances": error})
        await until(watched)
        return watched

    watched = asyncio.run(story())
    assert len(watched.reported) == 1
    with pytest.raises(SourceTopicError, match=said):
        watched.watch.check()


def test_a_topic_that_grew_before_it_was_first_seen_is_reported() -> None:
    cluster, reported = ClusterMetadata(), list[SourceTopicError]()
    watch = SourceWatch(TOPICS, Watched([(ALL, {})]).refresh, reported.append, 2)
    cluster.add_listener(watch.compare)
    answer(cluster, ALL)
    assert not reported
    watch = SourceWatch(TOPICS, Watched([(ALL, {})]).refresh, reported.append, 1)
    cluster.add_listener(watch.compare)
    answer(cluster, ALL)
    assert "has 2 partitions, it had 1" in str(reported[0])
    assert "grove migrate" in str(reported[0])


def test_a_topic_that_grows_is_reported_at_once() -> None:
    watched = Watched([(ALL, {})])
    answer(watched.cluster, ALL)
    answer(watched.cluster, {**ALL, "labels": 3})
    assert [str(error).partition(".")[0] for error in watched.reported] == [
        "topic 'labels' has 3 partitions, it had 2"
    ]
