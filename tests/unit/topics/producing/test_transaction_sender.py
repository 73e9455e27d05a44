"""Batches of a transaction are delivered once and in order, whatever brokers answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError

from tests.unit.topics.producing.scripted_brokers import LOST, SILENT, Script, ScriptedBrokers
from topics.clients.access import Access
from topics.clients.delivery_failures import DeliveryFailures
from topics.errors import AbortedError, FencedError
from topics.producing import batch_sender
from topics.producing.batch_encoder import WrittenBatch
from topics.producing.transaction_requests import Place
from topics.producing.transaction_sender import TransactionSender


def batch(topic: str, partition: int, text: bytes = b"x") -> WrittenBatch:
    return WrittenBatch(topic, partition, 1, text)


async def add_nothing(_: Sequence[Place] | str) -> None:
    await asyncio.sleep(0)


def sender_of(
    brokers: ScriptedBrokers,
    acknowledged: list[WrittenBatch],
    is_overdue: Callable[[], bool] = lambda: False,
    add: Callable[[Sequence[Place]], Awaitable[None]] = add_nothing,
) -> TransactionSender:
    failures = DeliveryFailures(Access.of({}))
    return TransactionSender(brokers, "id", add, add_nothing, failures, acknowledged.extend, is_overdue)


def run(
    script: Script,
    batches: Sequence[WrittenBatch],
    leaders: dict[Place, list[int | None]] | None = None,
    then: Callable[[TransactionSender], Awaitable[Any]] = TransactionSender.flush,
    seconds: float = 30.0,
    quiet: Sequence[int] = (),
) -> tuple[ScriptedBrokers, Any, list[WrittenBatch]]:
    """Put batches into a sender; return brokers, the result or error of `then`, and acknowledged batches."""
    brokers, acknowledged = ScriptedBrokers(script, leaders or {}), list[WrittenBatch]()
    added: list[Place] = []

    async def add(places: Sequence[Place]) -> None:
        await asyncio.sleep(0)
        assert not brokers.sent
        added.extend(places)

    async def work() -> Any:
        sender = sender_of(brokers, acknowledged, add=add)
        for node in quiet:
            brokers.be_quiet(node, 0.05)
        sender.begin(seconds)
        sender.put(batches)
        try:
            return await then(sender)
        except AbortedError as error:
            return error
        finally:
            await sender.stop(0.0)

    result = asyncio.run(work())
    assert set(added) == {(each.topic, each.partition) for each in batches}
    return brokers, result, acknowledged


def test_all_partitions_of_a_broker_go_in_one_request() -> None:
    batches = [batch(topic, partition) for topic in "ab" for partition in range(4)]
    leaders: dict[Place, list[int | None]] = {("a", 3): [2], ("b", 3): [2]}
    brokers, result, acknowledged = run({}, batches, leaders)
    assert result is None
    assert sorted((node, len(sent)) for node, sent in brokers.sent) == [(1, 6), (2, 2)]
    assert len(acknowledged) == 8


def test_a_broker_that_asks_for_a_pause_gets_its_request_later() -> None:
    leaders: dict[Place, list[int | None]] = {("a", 1): [2]}
    for quiet, order in (((1,), [2, 1]), ((2,), [1, 2])):
        brokers, result, _ = run({}, [batch("a", 0), batch("a", 1)], leaders, quiet=quiet)
        assert result is None
        assert [node for node, _ in brokers.sent] == order


def test_batches_of_a_partition_follow_each_other() -> None:
    brokers, _, _ = run({}, [batch("a", 0, b"%d" % n) for n in range(3)])
    assert brokers.sent == [(1, [b"0"]), (1, [b"1"]), (1, [b"2"])]


def test_a_request_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sender, "REQUEST_BYTES", 10)
    brokers, _, _ = run({}, [batch("a", n, bytes(size)) for n, size in enumerate((4, 50, 5, 4))])
    assert [[len(wire) for wire in sent] for _, sent in brokers.sent] == [[4, 5], [50], [4]]


RETRIABLE = [LOST, KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.REQUEST_TIMED_OUT, KafkaError.INVALID_MSG]
MOVED = [
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
]


@pytest.mark.parametrize("code", [*RETRIABLE, *MOVED])
def test_the_same_batch_is_sent_again(code: Any) -> None:
    batches = [batch("a", 0, b"0"), batch("a", 0, b"1"), batch("a", 1, b"other")]
    brokers, result, _ = run({("a", 0): [code, code]}, batches)
    assert result is None
    assert brokers.log == {("a", 0): [b"0", b"1"], ("a", 1): [b"other"]}
    firsts = [sent[0] for _, sent in brokers.sent if sent[0] != b"other"]
    assert firsts == [b"0", b"0", b"0", b"1"]


def test_a_batch_that_is_there_already_is_delivered() -> None:
    brokers, result, acknowledged = run(
        {("a", 0): [LOST, KafkaError.DUPLICATE_SEQUENCE_NUMBER]}, [batch("a", 0)]
    )
    assert result is None
    assert brokers.log == {("a", 0): [b"x"]}
    assert len(acknowledged) == 1


def test_after_its_deadline_a_transaction_plans_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[float] = []
    plan = TransactionSender._may_send

    def counted(self: TransactionSender, now: float) -> bool:
        plans.append(now)
        return plan(self, now)

    monkeypatch.setattr(TransactionSender, "_may_send", counted)

    async def after_the_deadline(sender: TransactionSender) -> None:
        with pytest.raises(AbortedError, match=r"not delivered within transaction.timeout.ms"):
            await sender.flush()
        before = len(plans)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(plans) - before <= 1

    run({("a", 0): [SILENT]}, [batch("a", 0)], then=after_the_deadline, seconds=0.05)


def test_a_batch_follows_its_leader() -> None:
    leaders: dict[Place, list[int | None]] = {("a", 0): [1, None, 2]}
    script: Script = {("a", 0): [KafkaError.NOT_LEADER_FOR_PARTITION]}
    brokers, result, _ = run(script, [batch("a", 0)], leaders)
    assert result is None
    assert [node for node, _ in brokers.sent] == [1, 2]


@pytest.mark.parametrize("code", [KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED])
def test_a_fenced_producer_sends_no_more(code: int) -> None:
    brokers, result, _ = run({("a", 0): [code]}, [batch("a", 0, b"0"), batch("a", 0, b"1")])
    assert isinstance(result, FencedError)
    assert len(brokers.sent) == 1


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_TXN_STATE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ],
)
def test_other_errors_abort_the_transaction(code: int) -> None:
    brokers, result, acknowledged = run({("a", 1): [code]}, [batch("a", 0), batch("a", 1), batch("a", 1)])
    assert type(result) is AbortedError
    assert "1 records of a[1] were not delivered" in str(result)
    assert len(acknowledged) == 1
    assert len(brokers.sent) == 1


def test_a_topic_that_is_not_shown_aborts_the_transaction() -> None:
    brokers, result, _ = run({}, [batch("denied", 0)], {("denied", 0): [None]})
    assert isinstance(result, AbortedError)
    assert "must allow Write" in str(result)
    assert brokers.sent == []


def test_records_that_are_not_delivered_in_time_abort_the_transaction() -> None:
    leaders: dict[Place, list[int | None]] = {("a", 0): [None]}
    _, result, _ = run({}, [batch("a", 0)], leaders, seconds=0.05)
    assert isinstance(result, AbortedError)
    assert "1 records were not delivered within transaction.timeout.ms" in str(result)


def test_a_stop_tells_whether_a_broker_may_still_append_a_batch() -> None:
    async def stopped(sender: TransactionSender) -> bool:
        await sender.added("group")
        for _ in range(5):
            await asyncio.sleep(0)
        return await sender.stop(0.01)

    assert run({}, [batch("a", 0)], then=stopped)[1] is True
    assert run({("a", 0): [SILENT]}, [batch("a", 0)], then=stopped)[1] is False
    assert run({("a", 0): [LOST]}, [batch("a", 0)], then=stopped)[1] is False


def test_a_lost_answer_counts_until_a_broker_has_the_batch() -> None:
    """The first request may still be on its way, whatever another leader answers to the second one."""

    async def refused(sender: TransactionSender) -> bool:
        with pytest.raises(AbortedError, match="too large"):
            await sender.flush()
        return await sender.stop(0.01)

    leaders: dict[Place, list[int | None]] = {("a", 0): [1, 2]}
    script: Script = {("a", 0): [LOST, KafkaError.MSG_SIZE_TOO_LARGE]}
    brokers, is_answered, _ = run(script, [batch("a", 0)], leaders, refused)
    assert [node for node, _ in brokers.sent] == [1, 2]
    assert is_answered is False


def test_a_stop_ends_the_wait_for_a_delivery() -> None:
    async def given_up(sender: TransactionSender) -> Any:
        waiting = asyncio.ensure_future(sender.flush())
        await asyncio.sleep(0.01)
        await sender.stop(0.01)
        async with asyncio.timeout(10):
            await waiting

    _, result, _ = run({("a", 0): [SILENT]}, [batch("a", 0)], then=given_up)
    assert isinstance(result, AbortedError)
    assert "given up" in str(result)


def test_a_look_up_that_goes_on_does_not_hinder_the_next_transaction() -> None:
    """The metadata may come by another way while a broker that is away is waited for."""

    class SlowBrokers(ScriptedBrokers):
        async def look_up_brokers(self) -> bool:
            await super().look_up_brokers()
            return await asyncio.Event().wait()

    leaders: dict[Place, list[int | None]] = {("a", 0): [1, 2]}
    brokers = SlowBrokers({("a", 0): [KafkaError.NOT_LEADER_FOR_PARTITION]}, leaders)

    async def work() -> None:
        sender = sender_of(brokers, [])
        for text in (b"first", b"second"):
            sender.begin(30.0)
            sender.put([batch("a", 0, text), batch("a", 1, text)])
            await sender.flush()
        assert await sender.stop(10.0)

    asyncio.run(work())
    assert brokers.log["a", 0] == [b"first", b"second"]


def test_an_error_of_planning_is_the_failure_of_the_transaction() -> None:
    async def work() -> None:
        is_overdue = iter([False])
        sender = sender_of(ScriptedBrokers({}), [], lambda: next(is_overdue))
        sender.begin(30.0)
        sender.put([batch("a", 0)])
        with pytest.raises(AbortedError, match="StopIteration"):
            await sender.flush()
        await sender.stop(0.0)

    asyncio.run(work())


def test_a_batch_goes_on_one_connection_though_its_leader_changes_before_the_request_begins() -> None:
    """Else the answers of both requests would count, one of them for the next batch."""

    async def changed(sender: TransactionSender) -> None:
        await sender.added("group")
        sender._leaders.clear()
        sender._brokers.leaders["a", 0] = [2]  # type: ignore[attr-defined] # of scripted brokers
        sender.put([batch("a", 0, b"2")])
        await sender.flush()

    brokers, result, acknowledged = run({}, [batch("a", 0, b"1")], {("a", 0): [1]}, then=changed)
    assert result is None
    assert brokers.log["a", 0] == [b"1", b"2"]
    assert [given.wire for given in acknowledged] == [b"1", b"2"]
