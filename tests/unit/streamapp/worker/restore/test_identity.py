"""What the broker says of topics, as far as no broker is needed for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicCollection

from streamapp.errors import NotYetError
from streamapp.worker.restore.identity import Identity


@pytest.fixture
def led() -> Callable[[dict[int, str | None]], Identity]:
    """Give a topic whose partitions have the leaders it is told."""

    def make(leaders: dict[int, str | None]) -> Identity:
        def describe_topics(wanted: TopicCollection, request_timeout: float) -> dict[str, Future[Any]]:
            found: Future[Any] = Future()
            partitions = [SimpleNamespace(id=number, leader=leader) for number, leader in leaders.items()]
            found.set_result(SimpleNamespace(partitions=partitions))
            return {"journal": found}

        here: Any = Identity({"bootstrap.servers": "none:1"})
        here._cluster._client = SimpleNamespace(describe_topics=describe_topics)
        made: Identity = here
        return made

    return make


def test_a_partition_without_a_leader_is_told(led: Callable[[dict[int, str | None]], Identity]) -> None:
    here = led({0: "broker 1", 1: None})
    here.check_led("journal", 0)
    for number in (1, 2):
        with pytest.raises(NotYetError, match=f"journal-{number}: no leader is known"):
            here.check_led("journal", number)
