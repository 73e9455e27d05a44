"""Topics are waited for by what the broker answers: a busy one takes its time."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from typer.testing import CliRunner

from streamapp.cli.main import app
from topics.clients.admin import creation
from topics.clients.admin.creation import create
from topics.clients.cluster import Cluster
from topics.definitions import TopicNames
from topics.errors import BrokerError, CatalogueError
from topics.patience import Patience

KAFKA = {"bootstrap.servers": "none:1"}
NAMES = TopicNames("busy.")


def answered(result: Any) -> Future[Any]:
    """Return a future that holds a result, or the error of a code."""
    future: Future[Any] = Future()
    if isinstance(result, int):
        future.set_exception(KafkaException(KafkaError(result)))
    else:
        future.set_result(result)
    return future


class BusyBroker:
    """Answers as a broker does that makes topics slowly: one step further with each pause of its client."""

    def __init__(self, partitions: int, *, answers: Iterable[int] = (), steps: int = 0):
        """`answers`: error codes of the first requests for creation; `steps`: pauses, a second each, until
        leaders act."""
        self._partitions, self._answers, self.steps = partitions, list(answers), steps
        self.topics: set[str] = set()
        self.hidden: set[str] = set()
        self.now = 0.0

    def poll(self, seconds: float) -> None:
        if seconds:
            self.now += 1.0
            self.steps -= bool(self.topics)

    def create_topics(self, topics: Iterable[Any], **_: float) -> dict[str, Future[Any]]:
        code = self._answers.pop(0) if self._answers else None
        futures = {}
        for topic in topics:
            exists = KafkaError.TOPIC_ALREADY_EXISTS if topic.topic in self.topics else None
            futures[topic.topic] = answered(code or exists)
            self.topics.add(topic.topic)  # also if it did not say so in time
        return futures

    def list_topics(self, **_: float) -> Any:
        leader = 1 if self.steps <= 1 else -1
        partitions = {number: SimpleNamespace(leader=leader) for number in range(self._partitions)}
        return SimpleNamespace(
            topics={n: SimpleNamespace(partitions=partitions) for n in self.topics - self.hidden}
        )

    def list_offsets(self, asked: Mapping[Any, Any], **_: float) -> dict[Any, Future[Any]]:
        code = KafkaError.NOT_LEADER_FOR_PARTITION if self.steps > 0 else None
        return {tp: answered(code or SimpleNamespace(offset=0)) for tp in asked}

    def describe_topics(self, *_: Any, **__: float) -> dict[str, Future[Any]]:
        return {name: answered(KafkaError.TOPIC_AUTHORIZATION_FAILED) for name in self.hidden & self.topics}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Callable[..., BusyBroker]:
    """Make a busy broker, and have it asked and its clock looked at."""

    def made(partitions: int, **arguments: Any) -> BusyBroker:
        broker = BusyBroker(partitions, **arguments)

        class Known(Cluster):
            client = broker
            complaint = ""

            def __init__(self, *arguments: Any, **named: Any) -> None:
                super().__init__(*arguments, **named)
                self._client = cast("Any", broker)

            def topics(self) -> dict[str, Any]:
                return dict(broker.list_topics().topics)

        monkeypatch.setattr(creation, "Cluster", Known)
        monkeypatch.setattr(creation, "Patience", partial(Patience, clock=lambda: broker.now))
        return broker

    return made


def test_topics_whose_leaders_come_late_are_waited_for_with_lines_of_progress(
    busy: Callable[..., BusyBroker],
) -> None:
    broker = busy(4, steps=40)
    lines: list[str] = []
    assert set(create(KAFKA, NAMES, 4, tell=lines.append).created) == set(NAMES.all())
    assert broker.now >= 39, "it waited for the last leader"
    assert 5 <= len(lines) <= 8
    assert f"0 of {len(NAMES.all())} topics can be used" in lines[0]
    assert f"without a leader that answers: {4 * len(NAMES.all())}, of busy." in lines[0]


def test_a_request_without_an_answer_in_time_is_sent_again_and_its_topics_are_ours(
    busy: Callable[..., BusyBroker],
) -> None:
    busy(4, answers=[KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT])
    assert set(create(KAFKA, NAMES, 4).created) == set(NAMES.all())


def test_requests_that_never_have_an_answer_end_with_patience(busy: Callable[..., BusyBroker]) -> None:
    broker = busy(4, answers=[KafkaError.REQUEST_TIMED_OUT] * 1000)
    with pytest.raises(BrokerError):
        create(KAFKA, NAMES, 4, timeout=30)
    assert broker.now < 33


def test_a_topic_has_one_partition_at_least(busy: Callable[..., BusyBroker]) -> None:
    busy(1)
    assert set(create(KAFKA, NAMES, 1).created) == set(NAMES.all())
    with pytest.raises(ValueError, match=r"topics.partitions=0 must be at least 1"):
        create(KAFKA, NAMES, 0)


def test_a_topic_that_another_client_creates_at_the_same_moment_is_not_ours(
    busy: Callable[..., BusyBroker],
) -> None:
    busy(4, answers=[KafkaError.TOPIC_ALREADY_EXISTS])
    creation = create(KAFKA, NAMES, 4)
    assert (creation.created, set(creation.existed)) == ((), set(NAMES.all()))


def test_a_topic_that_this_client_may_not_see_is_not_waited_for(busy: Callable[..., BusyBroker]) -> None:
    broker = busy(4)
    name = next(iter(NAMES.all()))
    broker.hidden = {name}
    with pytest.raises(CatalogueError, match=f"topic '{name}' must allow Describe"):
        create(KAFKA, NAMES, 4)
    assert broker.now < 5


def test_partitions_whose_leader_refuses_requests_are_counted(busy: Callable[..., BusyBroker]) -> None:
    busy(4, steps=1)
    count = 4 * len(NAMES.all())
    with pytest.raises(
        BrokerError, match=f"a leader that answers: {count}, of busy.*, busy.*, busy.* and 1[0-9] more"
    ):
        create(KAFKA, NAMES, 4, timeout=0)


def test_the_end_of_patience_names_what_is_missing_and_how_to_go_on(busy: Callable[..., BusyBroker]) -> None:
    broker = busy(4, steps=10_000)
    with pytest.raises(BrokerError) as raised:
        create(KAFKA, NAMES, 4, timeout=30)
    assert "cannot be used after 30 s, 0 of " in str(raised.value)
    assert "partitions without a leader that answers" in str(raised.value)
    assert "--timeout" in str(raised.value)
    assert 30 <= broker.now < 33
    broker.steps = 3
    assert create(KAFKA, NAMES, 4).created == (), "the second call waits for what the first one made"
    assert broker.steps <= 0


def test_patience_grows_with_the_partitions(busy: Callable[..., BusyBroker]) -> None:
    broker = busy(64, steps=10_000)
    with pytest.raises(BrokerError, match="cannot be used after"):
        create(KAFKA, NAMES, 64)
    assert broker.now >= 60 + 0.1 * 64 * len(NAMES.all())


def test_a_broker_that_takes_connections_and_does_not_answer_is_waited_for_as_long_as_asked() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        done = CliRunner().invoke(
            app, ["topics", "create", "--timeout", "1", "--bootstrap-servers", f"127.0.0.1:{port}"]
        )
    assert done.exit_code != 0
    assert "did not answer within 1 s" in str(done.exception)


def test_a_broker_that_is_not_there_is_an_error_without_that_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    monkeypatch.setattr(creation, "TIMEOUT_S", 3.0)  # the client has to connect, and be refused, in this time
    with pytest.raises(BrokerError, match="did not answer within 3 s .*refused"):
        create({"bootstrap.servers": f"127.0.0.1:{port}"}, NAMES, timeout=3600)
