"""What the broker says of topics, as far as no broker is needed for it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException, TopicCollection

from streamapp.errors import NotYetError
from streamapp.worker.restore import identity
from streamapp.worker.restore.identity import FIRST_S, Identity


@pytest.fixture
def led() -> Callable[[dict[int, str | None]], Identity]:
    """Give a topic whose partitions have the leaders it is told."""

    def make(leaders: dict[int, str | None]) -> Identity:
        def describe_topics(wanted: TopicCollection, request_timeout: float) -> dict[str, Future[Any]]:
            found: Future[Any] = Future()
            partitions = [SimpleNamespace(id=number, leader=leader) for number, leader in leaders.items()]
            found.set_result(SimpleNamespace(partitions=partitions))
            return {"journal": found}

        here: Any = Identity({"bootstrap.servers": "none:1"}, FIRST_S)
        here._cluster._client = SimpleNamespace(describe_topics=describe_topics, poll=lambda seconds: 0)
        made: Identity = here
        return made

    return make


def test_requests_leave_no_events_in_the_client_while_no_broker_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client lives as long as its worker, and would keep the events of each outage of the broker."""
    monkeypatch.setattr(identity, "REQUEST_S", 0.1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        here: Any = Identity({"bootstrap.servers": f"127.0.0.1:{closed.getsockname()[1]}"}, 0.1)
        for _ in range(8):
            with pytest.raises(NotYetError):
                here.topic_ids(["journal"])
        assert len(here._cluster.client) <= 4  # of connections that failed since the last request


def test_a_partition_without_a_leader_is_told(led: Callable[[dict[int, str | None]], Identity]) -> None:
    here = led({0: "broker 1", 1: None})
    here.check_led("journal", 0)
    for number in (1, 2):
        with pytest.raises(NotYetError, match=f"journal-{number}: no leader is known"):
            here.check_led("journal", number)


def test_a_request_without_an_answer_is_repeated_soon_and_then_with_more_time() -> None:
    """The client may wait for a broker that is away although another one would answer."""
    seconds: list[float] = []
    answers = [KafkaException(KafkaError(KafkaError._TIMED_OUT, "waiting for controller"))] * 4

    def describe_topics(wanted: TopicCollection, request_timeout: float) -> dict[str, Future[Any]]:
        seconds.append(request_timeout)
        answer: Future[Any] = Future()
        if answers:
            answer.set_exception(answers.pop())
        else:
            answer.set_result(SimpleNamespace(topic_id="an id"))
        return {"journal": answer}

    here: Any = Identity({"bootstrap.servers": "none:1"}, FIRST_S)
    here._cluster._client = SimpleNamespace(
        describe_topics=describe_topics, list_topics=lambda *topic, timeout: None, poll=lambda seconds: 0
    )
    for _ in range(4):
        with pytest.raises(NotYetError, match="waiting for controller"):
            here.topic_ids(["journal"])
    for _ in range(2):
        assert here.topic_ids(["journal"]) == {"journal": "an id"}
    assert seconds == [2, 4, 8, 10, 10, 2]


def test_a_broker_that_is_always_slow_answers_all_requests_of_a_restore(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A restore that fails at its second request begins with the first one again."""
    now, takes = 0.0, 3.0

    def describe_topics(wanted: TopicCollection, request_timeout: float) -> dict[str, Future[Any]]:
        nonlocal now
        now += min(takes, request_timeout)
        answer: Future[Any] = Future()
        if takes > request_timeout:
            answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer")))
        else:
            leads = SimpleNamespace(id=0, leader="broker 1")
            answer.set_result(SimpleNamespace(topic_id="an id", partitions=[leads]))
        return {"journal": answer}

    here: Any = Identity({"bootstrap.servers": "none:1"}, FIRST_S)
    here._cluster._client = SimpleNamespace(
        describe_topics=describe_topics, list_topics=lambda *topic, timeout: None, poll=lambda seconds: 0
    )
    monkeypatch.setattr(identity, "time", SimpleNamespace(monotonic=lambda: now))
    with pytest.raises(NotYetError, match="no answer"):
        here.topic_ids(["journal"])
    here.topic_ids(["journal"])
    here.check_led("journal", 0)


@pytest.mark.parametrize("silent", [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED])
def test_an_end_without_an_offset_shows_nothing_about_transactions(silent: IsolationLevel) -> None:
    """So librdkafka answers when a leader dies during the request."""

    def list_offsets(wanted: dict[Any, Any], isolation_level: IsolationLevel, **_: Any) -> dict[Any, Any]:
        answer: Future[Any] = Future()
        answer.set_result(SimpleNamespace(offset=OFFSET_INVALID if isolation_level == silent else 7))
        return dict.fromkeys(wanted, answer)

    here: Any = Identity({"bootstrap.servers": "none:1"}, FIRST_S)
    here._cluster._client = SimpleNamespace(
        list_offsets=list_offsets, list_topics=lambda *topic, timeout: None, poll=lambda seconds: 0
    )
    with pytest.raises(NotYetError, match="did not answer"):
        here.has_open_transaction("journal", 0)
