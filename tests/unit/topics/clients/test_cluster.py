"""A broker that is there and busy is asked again; one that is not there is told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from topics.clients.cluster import Cluster
from topics.errors import BrokerError, UnansweredError

KAFKA = {"bootstrap.servers": "here:1"}
NO_OFFSET = OFFSET_INVALID
"""In place of the code of an error: success without an offset, as librdkafka answers when a leader dies."""


class Client:
    """Lets its first requests run out of time."""

    def __init__(self, unanswered: int, code: int = KafkaError._TIMED_OUT) -> None:
        self.left, self.code, self.asked = unanswered, code, 0
        self.waits: list[float] = []  # seconds
        self.refreshed: list[str] = []  # topics whose metadata was requested again
        self.hidden: Mapping[str, int] = {}  # topic → the error of its description
        self.reports: Callable[[], None] = lambda: None

    def list_topics(self, topic: str = "", *, timeout: float) -> Any:
        if topic:
            self.refreshed.append(topic)
            return SimpleNamespace(topics={topic: 1}, cluster_id="c")
        self.asked += 1
        if self.asked <= self.left:
            raise KafkaException(KafkaError(self.code))
        return SimpleNamespace(topics={"t": 1}, cluster_id="c")

    def list_offsets(self, requests: Any, **_: Any) -> Any:
        self.asked += 1
        answers: dict[Any, Future[Any]] = {tp: Future() for tp in requests}
        for tp, answer in answers.items():
            if self.asked <= self.left and tp.partition == 1:
                if self.code == NO_OFFSET:
                    answer.set_result(SimpleNamespace(offset=OFFSET_INVALID))
                else:
                    answer.set_exception(KafkaException(KafkaError(self.code)))
            else:
                answer.set_result(SimpleNamespace(offset=10 * self.asked + tp.partition))
        return answers

    def describe_topics(self, topics: Any, **_: Any) -> Any:
        answers: dict[str, Future[Any]] = {name: Future() for name in self.hidden}
        for name, code in self.hidden.items():
            answers[name].set_exception(KafkaException(KafkaError(code)))
        return answers

    def poll(self, seconds: float) -> None:
        """Report what there is; no time passes."""
        self.waits.append(seconds)
        self.reports()


def cluster_of(client: Client, patience_s: float = 60.0) -> Cluster:
    cluster = Cluster(KAFKA, patience_s=patience_s)
    cluster._client = cast("Any", client)
    cluster._complaint = type(cluster._complaint)()  # nothing is said by the client that was replaced
    return cluster


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._TRANSPORT])
def test_a_busy_broker_is_asked_until_it_answers(code: int) -> None:
    client = Client(3, code)
    assert cluster_of(client).topics() == {"t": 1}
    assert client.asked == 4


def test_patience_has_an_end_that_the_error_names() -> None:
    client = Client(10)
    with pytest.raises(UnansweredError, match="here:1 did not answer within 8 s"):
        cluster_of(client, patience_s=0.0).topics()
    assert client.asked == 1


def test_where_no_broker_can_be_reached_nothing_is_asked_again() -> None:
    client = Client(10)
    cluster = cluster_of(client)
    for code, text in ((KafkaError._TRANSPORT, "refused"), (KafkaError._ALL_BROKERS_DOWN, "1/1 are down")):
        cluster._complaint(KafkaError(code, text))
    with pytest.raises(UnansweredError, match="did not answer within 8 s .*refused"):
        cluster.topics()
    assert client.asked == 1


def test_one_broker_of_several_that_is_away_is_no_reason_to_give_up() -> None:
    client = Client(2)
    cluster = cluster_of(client)
    cluster._complaint(KafkaError(KafkaError._TRANSPORT, "refused"))
    assert cluster.topics() == {"t": 1}


def test_brokers_none_of_which_is_down_are_asked_again() -> None:
    """So librdkafka reports brokers that are slow to let it connect."""
    client = Client(2)
    cluster = cluster_of(client)
    cluster._complaint(KafkaError(KafkaError._ALL_BROKERS_DOWN, "0/3 brokers are down"))
    assert cluster.topics() == {"t": 1}


def test_what_a_broker_refuses_is_not_asked_again() -> None:
    client = Client(10, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError, match="refused the request"):
        cluster_of(client).topics()
    assert client.asked == 1


@pytest.mark.parametrize(
    "code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH, NO_OFFSET]
)
def test_only_partitions_without_a_leader_are_asked_again_after_a_pause(code: int) -> None:
    client = Client(2, code)
    partitions = [TopicPartition("t", number) for number in range(3)]
    offsets = cluster_of(client).offsets(partitions, OffsetSpec.latest())
    assert offsets == {("t", 0): 10, ("t", 1): 31, ("t", 2): 12}
    pauses = [seconds for seconds in client.waits if seconds > 0]
    assert len(pauses) == 2, "one before each further request"
    assert client.refreshed == ["t", "t"], "the client would send what it has cached again"


def test_a_topic_that_may_be_there_is_hidden_and_one_that_is_not_there_is_not() -> None:
    client = Client(0)
    client.hidden = {
        "mine": KafkaError.TOPIC_AUTHORIZATION_FAILED,
        "none": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    assert cluster_of(client).hidden(["mine", "none"]) == ["mine"]
    client.hidden = {"none": KafkaError.UNKNOWN_TOPIC_OR_PART, "broken": KafkaError.INVALID_REQUEST}
    with pytest.raises(BrokerError, match="refused the request"):
        cluster_of(client).hidden(["none", "broken"])


def test_the_reason_of_a_timeout_that_is_reported_last_is_in_the_error() -> None:
    client = Client(0)
    cluster = cluster_of(client, patience_s=0.0)
    client.reports = lambda: cluster._complaint(KafkaError(KafkaError._TRANSPORT, "connection refused"))
    failed: Future[Any] = Future()
    failed.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    with pytest.raises(UnansweredError, match=r"did not answer within 8 s .*connection refused"):
        cluster.result(failed, "t", "Describe", "topic")
