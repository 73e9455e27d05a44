"""Who is in a consumer group, as its coordinator says."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from topics.clients import consumer_group as module
from topics.clients.cluster import Cluster
from topics.clients.consumer_group import committed_of, members_of, static_members_of
from topics.errors import BrokerError

KAFKA = {"bootstrap.servers": "none:1"}


class Coordinator:
    """Answers with one error code after the other, then with members."""

    def __init__(self, codes: Iterable[int], *members: tuple[str, str | None]) -> None:
        self._codes = list(codes)
        self._members = [SimpleNamespace(member_id=a, group_instance_id=b) for a, b in members]
        self.polls = 0

    def describe(self, _kafka: Any, _group: str, _seconds: float) -> SimpleNamespace:
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return SimpleNamespace(members=self._members)

    def poll(self, seconds: float) -> None:
        self.polls += 1


def asked(monkeypatch: pytest.MonkeyPatch, coordinator: Coordinator) -> Coordinator:
    class Known(Cluster):
        client = coordinator

    monkeypatch.setattr(module, "Cluster", Known)
    monkeypatch.setattr(module, "describe_group", coordinator.describe)
    return coordinator


def test_members_have_their_own_name_or_that_of_the_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    asked(monkeypatch, Coordinator([], ("c", None), ("b", "worker-2"), ("a", "worker-1")))
    assert members_of(KAFKA, "group") == ["c", "worker-1", "worker-2"]
    assert static_members_of(KAFKA, "group") == {"worker-1", "worker-2"}


@pytest.mark.parametrize("ask", [members_of, static_members_of])
def test_a_coordinator_that_moves_is_asked_again(monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    moving = [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS]
    coordinator = asked(monkeypatch, Coordinator(moving, ("a", "worker-1")))
    assert list(ask(KAFKA, "group")) == ["worker-1"]
    assert coordinator.polls == 2


@pytest.mark.parametrize("ask", [members_of, static_members_of])
def test_what_is_denied_is_not_asked_again(monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    coordinator = asked(monkeypatch, Coordinator([KafkaError.GROUP_AUTHORIZATION_FAILED]))
    with pytest.raises(BrokerError, match="group 'group' must allow Describe"):
        ask(KAFKA, "group")
    assert coordinator.polls == 0


def offsets_of(monkeypatch: pytest.MonkeyPatch, *codes: int | None) -> list[int]:
    """The committed offsets of answers whose only partition has these errors, one after the other; then 7."""
    answers = iter([None if code is None else KafkaError(code) for code in codes])

    class Asked:
        def __init__(self, properties: Any) -> None: ...

        def committed(self, partitions: Any, timeout: float) -> list[Any]:
            error = next(answers)
            return [SimpleNamespace(topic="t", partition=0, offset=-1001 if error else 7, error=error)]

        def close(self) -> None: ...

    asked(monkeypatch, Coordinator([]))
    monkeypatch.setattr(module, "Consumer", Asked)
    return [tp.offset for tp in committed_of(KAFKA, "group", [TopicPartition("t", 0)])]


def test_an_error_of_one_partition_does_not_count_as_nothing_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert offsets_of(monkeypatch, KafkaError.NOT_COORDINATOR, None) == [7]
    with pytest.raises(BrokerError, match="topic 't' must allow Describe"):
        offsets_of(monkeypatch, KafkaError.TOPIC_AUTHORIZATION_FAILED)
