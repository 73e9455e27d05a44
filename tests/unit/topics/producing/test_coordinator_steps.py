"""Steps of a transaction are repeated until they count, or end in the error that fits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from tests.unit.topics.producing.scripted_brokers import LOST, SILENT, Script, ScriptedBrokers
from topics.clients.access import Access
from topics.clients.group_member import GroupMember
from topics.errors import AbortedError, BrokerError, FencedError
from topics.producing import coordinator_steps
from topics.producing.coordinator_steps import CoordinatorSteps
from topics.producing.step_errors import FailedProducerError, UnfinishedError
from topics.producing.transaction_requests import ProducerIdentity
from topics.producing.transactional_offsets import OffsetToCommit

IDENTITY = ProducerIdentity(7, 1)
OFFSETS = {("a", 0): OffsetToCommit(5)}


def run(
    script: Script,
    step: Callable[[CoordinatorSteps], Awaitable[Any]],
    is_overdue: bool = False,
    transaction_nodes: tuple[int, ...] = (1,),
) -> tuple[Any, list[tuple[int, str]]]:
    """Return the result or error of a step, and the brokers and names of all requests."""
    brokers = ScriptedBrokers(script)
    brokers.coordinators["transaction"] = [*transaction_nodes]

    async def work() -> Any:
        steps = CoordinatorSteps(brokers, "id", 40_000, Access.of({}), lambda: is_overdue)
        try:
            return await step(steps)
        except BrokerError as error:
            return error
        finally:
            assert steps.call is None

    return asyncio.run(work()), [(node, name) for node, name, _ in brokers.steps]


def end(steps: CoordinatorSteps) -> Awaitable[None]:
    return steps.end(IDENTITY, committed=True, seconds=30.0)


def test_an_identity_comes_from_the_coordinator() -> None:
    result, sent = run({}, lambda steps: steps.init_producer_id(30.0))
    assert result == ProducerIdentity(7, 1)
    assert sent == [(1, "InitProducerId")]


def test_offsets_go_to_both_coordinators() -> None:
    async def add_and_send(steps: CoordinatorSteps) -> None:
        await steps.add_group(IDENTITY, "g", 30.0)
        await steps.send_offsets(IDENTITY, GroupMember("g"), OFFSETS, 30.0)

    result, sent = run({}, add_and_send)
    assert result is None
    assert sent == [(1, "AddOffsets"), (2, "TxnOffsetCommit")]


@pytest.mark.parametrize(
    "code", [KafkaError.CONCURRENT_TRANSACTIONS, KafkaError.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_coordinator_that_is_busy_gets_the_step_again(code: int) -> None:
    result, sent = run({"EndTxn": [code] * 3}, end, transaction_nodes=(1, 9))
    assert result is None
    assert sent == [(1, "EndTxn")] * 4


@pytest.mark.parametrize("code", [LOST, KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE])
def test_a_step_follows_its_coordinator(code: Any) -> None:
    script: Script = {"EndTxn": [code], "FindCoordinator": [0, KafkaError.COORDINATOR_NOT_AVAILABLE, LOST]}
    result, sent = run(script, end, transaction_nodes=(1, 9))
    assert result is None
    assert sent == [(1, "EndTxn"), (9, "EndTxn")]


@pytest.mark.parametrize(
    ("answer", "further"),
    [
        (LOST, [0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]),
        (KafkaError.NOT_COORDINATOR, [0.04, 0.08, *[0.1] * 5]),
        (KafkaError.CONCURRENT_TRANSACTIONS, [0.02] * 7),  # as soon as a broker that goes away is gone
    ],
)
def test_pauses_double_up_to_the_longest(
    answer: Any, further: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    run({"EndTxn": [answer] * 10}, end)
    assert pauses == [0.005, 0.01, 0.02, *further]


@pytest.mark.parametrize("answer", [SILENT, *([[KafkaError.CONCURRENT_TRANSACTIONS] * 100])])
def test_a_step_without_an_answer_is_unfinished(answer: Any) -> None:
    script: Script = {"EndTxn": answer if isinstance(answer, list) else [answer]}
    result, _ = run(script, lambda steps: steps.end(IDENTITY, committed=True, seconds=0.05))
    assert isinstance(result, UnfinishedError)
    assert "EndTxn was not answered within" in str(result)


def test_a_stop_does_not_wait_for_a_broker_that_is_away() -> None:
    result, sent = run({"EndTxn": [LOST] * 9}, end, is_overdue=True)
    assert isinstance(result, AbortedError)
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("step", "code", "kind", "text"),
    [
        ("EndTxn", KafkaError.PRODUCER_FENCED, FencedError, "another producer has this id"),
        ("EndTxn", KafkaError.INVALID_TXN_STATE, FailedProducerError, "transactional.id=id: EndTxn: "),
        ("EndTxn", KafkaError.UNKNOWN_PRODUCER_ID, AbortedError, "EndTxn"),
        ("EndTxn", KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, BrokerError, "kafka-acls --add"),
        (
            "FindCoordinator",
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            BrokerError,
            "kafka-acls --add",
        ),
    ],
)
def test_other_codes_end_the_step(step: str, code: int, kind: type[BrokerError], text: str) -> None:
    result, _ = run({step: [code]}, end)
    assert type(result) is kind
    assert text in str(result)


def test_a_member_that_its_group_refuses_aborts_the_transaction() -> None:
    def offsets(steps: CoordinatorSteps) -> Awaitable[None]:
        return steps.send_offsets(IDENTITY, GroupMember("g"), OFFSETS, 30.0)

    for code in (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID):
        assert type(run({"TxnOffsetCommit": [code]}, offsets)[0]) is AbortedError
    denied = KafkaError.GROUP_AUTHORIZATION_FAILED
    for result, _ in (
        run({"TxnOffsetCommit": [denied]}, offsets),
        run({"AddOffsets": [denied]}, lambda steps: steps.add_group(IDENTITY, "g", 30.0)),
    ):
        assert type(result) is AbortedError
        assert "group 'g' must allow Read" in str(result)


def test_a_timeout_that_the_brokers_refuse_has_a_remedy() -> None:
    result, _ = run(
        {"InitProducerId": [KafkaError.INVALID_TRANSACTION_TIMEOUT]},
        lambda steps: steps.init_producer_id(30.0),
    )
    assert type(result) is BrokerError
    assert "40000 ms; lower transaction.timeout.ms, or raise the brokers' transaction.max.timeout.ms" in str(
        result
    )


def add(steps: CoordinatorSteps) -> Awaitable[None]:
    return steps.add_partitions(IDENTITY, [("a", 0), ("a", 1)], 30.0)


def test_a_new_topic_is_waited_for() -> None:
    result, sent = run({"AddPartitions": [KafkaError.UNKNOWN_TOPIC_OR_PART] * 2}, add)
    assert result is None
    assert sent == [(1, "AddPartitions")] * 3


def test_a_topic_that_does_not_exist_ends_the_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_steps, "MISSING_S", 0.01)
    result, _ = run({"AddPartitions": [KafkaError.UNKNOWN_TOPIC_OR_PART] * 9}, add)
    assert type(result) is BrokerError, "no abort helps"
    assert "topic a does not exist, or has no partition 0" in str(result)


def test_a_topic_that_is_denied_is_named_with_the_right_to_grant() -> None:
    result, _ = run({"AddPartitions": [KafkaError.TOPIC_AUTHORIZATION_FAILED]}, add)
    assert type(result) is AbortedError
    assert "topic 'a' must allow Write to this client; grant it with kafka-acls --add" in str(result)


def test_a_partition_that_is_refused_is_named() -> None:
    result, _ = run({"AddPartitions": [KafkaError.TOPIC_EXCEPTION]}, add)
    assert "transactional.id=id: AddPartitionsToTxn: a[0]: Broker: Invalid topic" in str(result)
