"""Records without a transaction are delivered in order, or fail alone, whatever brokers answer."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError

from tests.unit.topics.producing.idempotent.batches_read import numbers_of, records_of
from tests.unit.topics.producing.idempotent.delivery_rig import Rig, drained, send, send_and_flush
from tests.unit.topics.producing.scripted_brokers import LOST, SILENT, ScriptedBrokers
from topics.columns.headers import Headers
from topics.errors import BrokerError, DeliveryError
from topics.producing import batch_sender
from topics.producing.idempotent import delivery_flow, delivery_sender


def test_records_of_several_partitions_are_one_request(rig: Rig) -> None:
    producer = rig.producer()
    with producer.gathering():
        for partition in range(4):
            send(producer, b"1", b"2", partition=partition)
    producer.flush()
    assert [(node, len(wires)) for node, wires in rig.brokers.sent] == [(1, 4)]
    assert [rig.values(partition) for partition in range(4)] == [[b"1", b"2"]] * 4
    assert (producer.n_queued, producer.failed) == (0, 0)


def test_sequence_numbers_go_on(rig: Rig) -> None:
    producer = rig.producer()
    for values in ((b"1", b"2"), (b"3",), (b"4",)):
        send_and_flush(producer, *values)
    assert rig.numbers() == [(8, 0, 0), (8, 0, 2), (8, 0, 3)]


def test_records_that_come_while_a_request_is_in_flight_go_together(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_flow, "MERGE_S", 60.0)
    monkeypatch.setattr(batch_sender, "MERGE_S", 60.0)
    answer, is_sent = asyncio.Event(), threading.Event()

    class Held(ScriptedBrokers):
        async def _append(self, node: int, request: Any) -> Any:
            is_sent.set()
            await answer.wait()
            return await super()._append(node, request)

    rig.brokers.__class__ = Held
    producer = rig.producer()
    send(producer, b"first")
    assert is_sent.wait(10)
    for number in range(20):
        send(producer, b"%d" % number)
        producer._loop.run(asyncio.sleep(0))
    producer._loop.soon(answer.set)
    producer.flush()
    assert rig.values() == [b"first", *(b"%d" % number for number in range(20))]
    assert len(rig.brokers.sent) <= 3


RETRIABLE = [
    LOST,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.INVALID_MSG,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
]


@pytest.mark.parametrize("code", RETRIABLE)
def test_a_batch_is_repeated_under_its_numbers_and_keeps_its_order(rig: Rig, code: Any) -> None:
    rig.script["a", 0] = [code, code]
    producer = rig.producer(batch_size=1)
    send(producer, b"0", b"1", b"2")
    send_and_flush(producer, b"other", partition=1)
    assert (rig.values(), rig.values(1)) == ([b"0", b"1", b"2"], [b"other"])
    assert [numbers for numbers in rig.numbers() if numbers[2] == 0][:2] == [(8, 0, 0)] * 2


@pytest.mark.parametrize(
    ("codes", "numbers"),
    [
        ([KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER], (8, 1)),
        ([KafkaError.UNKNOWN_PRODUCER_ID, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER], (8, 2)),
        ([KafkaError.INVALID_PRODUCER_ID_MAPPING], (9, 0)),
        ([KafkaError.INVALID_PRODUCER_EPOCH], (9, 0)),
        ([KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH], (10, 0)),
    ],
)
def test_a_forgotten_producer_goes_on_under_new_numbers(
    rig: Rig, codes: list[int], numbers: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    producer = rig.producer(batch_size=1)
    send_and_flush(producer, b"0", b"1")
    send_and_flush(producer, b"other", partition=1)
    rig.script["a", 0] = [*codes]
    send_and_flush(producer, b"2", b"3", b"4")
    send_and_flush(producer, b"other", partition=1)
    send_and_flush(producer, b"5")
    assert rig.values() == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [numbers_of(wire) for wire in rig.brokers.log["a", 0]] == [
        (8, 0, 0),
        (8, 0, 1),
        *((*numbers, sequence) for sequence in range(4)),
    ]
    assert [numbers_of(wire) for wire in rig.brokers.log["a", 1]] == [(8, 0, 0), (8, 0, 1)], "not its fault"
    assert "producer: a[0]: Broker: " in caplog.text
    assert "its records are sent under new numbers" in caplog.text


def test_after_the_last_epoch_comes_a_new_id(rig: Rig) -> None:
    rig.brokers.epoch = 32767
    rig.script["a", 0] = [KafkaError.UNKNOWN_PRODUCER_ID]
    producer = rig.producer()
    producer._loop.run(asyncio.sleep(0))
    send_and_flush(producer, b"0")
    assert [number for number, _, _ in rig.numbers()] == [8, 9]
    assert rig.values() == [b"0"]


def test_a_batch_begun_while_the_identity_is_replaced_has_numbers(rig: Rig) -> None:
    is_sent, answer = threading.Event(), asyncio.Event()

    class Held(ScriptedBrokers):
        async def _append(self, node: int, request: Any) -> Any:
            if node == 1 and not is_sent.is_set():
                is_sent.set()
                await answer.wait()
            return await super()._append(node, request)

    rig.brokers.__class__ = Held
    rig.brokers.leaders["a", 1] = [2]
    rig.script["a", 0] = [KafkaError.INVALID_PRODUCER_ID_MAPPING]
    producer = rig.producer()
    send(producer, b"0")
    assert is_sent.wait(10)

    def answered_in_the_turn_of_a_plan() -> None:
        answer.set()  # the task that waits for it runs before the task that the plan begins
        producer._flow.handed_over()

    with producer.gathering():
        send(producer, b"1", partition=1)
    producer._loop.soon(answered_in_the_turn_of_a_plan)
    producer.flush()
    assert {identity for identity, _, _ in rig.numbers()} <= {8, 9}
    assert (rig.values(), rig.values(1)) == ([b"0"], [b"1"])


def test_a_batch_that_is_too_large_is_split_until_one_record_is_left(rig: Rig) -> None:
    large = KafkaError.MSG_SIZE_TOO_LARGE
    rig.script["a", 0] = [large, 0, large, large, large]
    producer = rig.producer()
    send(producer, *(b"%d" % number for number in range(9)))
    with pytest.raises(
        DeliveryError, match=r"^1 record was not delivered; a\[0\]: Broker: .*too large; raise max"
    ):
        producer.flush()
    drained(producer)
    assert rig.values() == [b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"8"]
    assert [numbers_of(wire)[2] for wire in rig.brokers.log["a", 0]] == [0, 4, 5]


@pytest.mark.parametrize("code", [KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP])
def test_refused_records_fail_alone(rig: Rig, code: int) -> None:
    rig.script["a", 0] = [(code, 1, 3)]
    rig.script["a", 1] = [code, code, 0]
    producer = rig.producer()
    with producer.gathering():
        send(producer, b"0", b"1", b"2", b"3")
        send(producer, b"0", b"1", partition=1)
    with pytest.raises(DeliveryError, match=r"^[23] records were not delivered; a\[0\]: "):
        producer.flush()
    drained(producer)
    assert producer.failed == 3
    assert (rig.values(), rig.values(1)) == ([b"0", b"2"], [b"1"]), "one by one, if the broker names none"


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN])
def test_a_refused_batch_fails_and_the_next_one_takes_its_numbers(rig: Rig, code: int) -> None:
    rig.script["a", 0] = [code]
    producer = rig.producer(batch_size=1)
    with producer.gathering():  # else the failure may be known before the second call
        send(producer, b"0", b"1")
        send(producer, b"other", partition=1)
    producer.hand_over()
    denied = code == KafkaError.TOPIC_AUTHORIZATION_FAILED
    text = "topic 'a' must allow Write,Describe" if denied else "Unknown broker error"
    with pytest.raises(DeliveryError, match=rf"^1 record was not delivered; (a\[0\]: )?{text}"):
        producer.flush()
    drained(producer)
    assert (rig.values(), rig.values(1)) == ([b"1"], [b"other"])
    assert numbers_of(rig.brokers.log["a", 0][0]) == (8, 0, 0)


@pytest.mark.parametrize("code", [LOST, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_a_batch_that_may_be_appended_takes_its_numbers_with_it(rig: Rig, code: Any) -> None:
    """Under the same numbers the broker would take the next batch for the one that it has."""
    rig.script["a", 0] = [code, KafkaError.UNKNOWN]
    producer = rig.producer(batch_size=1)
    send(producer, b"0", b"1")
    with pytest.raises(DeliveryError):
        producer.flush()
    drained(producer)
    assert numbers_of(rig.brokers.log["a", 0][-1]) == (8, 1, 0)
    assert rig.values()[-1] == b"1"


def test_what_is_not_delivered_in_time_fails_and_what_is_behind_it_has_its_own_time(rig: Rig) -> None:
    rig.brokers.leaders["a", 0] = [None]
    producer = rig.producer(delivery_timeout_ms=50)
    send(producer, b"0", b"1")
    send(producer, b"other", partition=1)
    with pytest.raises(
        DeliveryError, match=r"^2 records were not delivered; a\[0\]: Local: Message timed out"
    ):
        producer.flush()
    assert rig.values(1) == [b"other"]


def test_a_lost_batch_that_is_too_late_fails(rig: Rig) -> None:
    rig.script["a", 0] = [LOST] * 10_000
    producer = rig.producer(delivery_timeout_ms=50)
    send(producer, b"0")
    with pytest.raises(DeliveryError, match="Local: Message timed out"):
        producer.flush()


def test_partitions_with_late_replicas_go_on_a_connection_of_their_own(rig: Rig) -> None:
    rig.script["a", 0] = [KafkaError.REQUEST_TIMED_OUT]
    producer = rig.producer()
    with producer.gathering():
        send(producer, b"0")
        send(producer, b"other", partition=1)
    producer.flush()
    assert rig.brokers.lines == [(1, False), (1, True)]
    send_and_flush(producer, b"1")
    assert rig.brokers.lines[-1] == (1, False), "it has caught up"
    assert (rig.values(), rig.values(1)) == ([b"0", b"1"], [b"other"])


def test_a_silent_broker_stops_no_other_one(rig: Rig) -> None:
    rig.brokers.leaders["a", 1] = [2]
    rig.script["a", 1] = [SILENT]
    producer = rig.producer()
    send(producer, b"hangs", partition=1)
    for number in range(5):
        send(producer, b"hangs", partition=1)
        send(producer, b"%d" % number)
        while len(rig.values()) <= number:
            producer._loop.run(producer._flow._sender.move(0.01))
    assert rig.values() == [b"%d" % number for number in range(5)]


def test_a_silent_broker_is_no_reason_to_wait_for_others(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_flow, "MERGE_S", 60.0)
    monkeypatch.setattr(batch_sender, "MERGE_S", 0.0)  # the silent request is old at once
    rig.brokers.leaders["a", 1] = [2]
    rig.script["a", 1] = [SILENT]
    producer = rig.producer()
    for number in range(3):
        send(producer, b"%d" % number, partition=1)
        producer._loop.run(producer._flow._sender.move(0.01))
    send(producer, b"x")
    deadline = time.monotonic() + 30
    while not rig.values() and time.monotonic() < deadline:
        producer._loop.run(producer._flow._sender.move(0.01))
    assert rig.values() == [b"x"]


def test_large_requests_whose_answers_are_lost_become_smaller(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_sender, "LEAST_BYTES", 100)
    rig.script["a", 0] = [LOST, LOST]
    producer = rig.producer()
    with producer.gathering():
        for partition in range(8):
            send(producer, bytes(200), partition=partition)
    producer.flush()
    first, second, third = [len(wires) for _, wires in rig.brokers.sent][:3]
    assert first == 2 * second == 4 * third
    assert sum(len(rig.brokers.log["a", partition]) for partition in range(8)) == 8


@pytest.mark.parametrize("is_known", [False, True])
def test_a_missing_topic_fails_after_a_while(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    monkeypatch.setattr(delivery_sender, "GONE_S", 0.05)
    producer = rig.producer(topic_metadata_propagation_max_ms=10_000 if is_known else 50)
    if is_known:
        send_and_flush(producer, b"before")
    rig.brokers.leaders |= {("a", 0): [None], ("a", 9): [None]}
    rig.brokers.absent = {("a", 9)}
    send(producer, b"0", partition=9)
    with pytest.raises(DeliveryError, match=r"a\[9\]: Local: Unknown partition"):
        producer.flush()
    rig.brokers.absent = {("a", 0)}
    another = rig.producer(topic_metadata_propagation_max_ms=0)
    send(another, b"0")
    with pytest.raises(DeliveryError, match=r"a\[0\]: Broker: Unknown topic .*'grove topics create'"):
        another.flush()


def test_a_topic_that_is_not_shown_fails_at_once(rig: Rig) -> None:
    rig.brokers.leaders["denied", 0] = [None]
    producer = rig.producer()
    producer.offer_run("denied", 0, [b"x"], [None], [1])
    with pytest.raises(DeliveryError, match="topic 'denied' must allow Write,Describe"):
        producer.flush()


def test_a_client_without_rights_ends_for_good(rig: Rig) -> None:
    rig.script["InitProducerId"] = [KafkaError.CLUSTER_AUTHORIZATION_FAILED]
    producer = rig.producer()
    for use in (lambda: send_and_flush(producer, b"x"), producer.flush, producer.check):
        with pytest.raises(BrokerError, match="^the producer has failed for good: .*IdempotentWrite"):
            use()


def test_an_identity_is_waited_for(rig: Rig) -> None:
    rig.script["InitProducerId"] = [LOST, KafkaError.COORDINATOR_LOAD_IN_PROGRESS]
    producer = rig.producer()
    send_and_flush(producer, b"x")
    assert rig.values() == [b"x"]
    assert rig.brokers.n_opened >= 4, "the configured addresses may lead to other brokers"


def test_new_attempts_are_logged_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.script["InitProducerId"] = [LOST] * 3
    with caplog.at_level(logging.WARNING):
        send_and_flush(rig.producer(), b"x")
    assert caplog.text.count("producer: lost; trying again") == 1


@pytest.mark.parametrize("trouble", [[None], [2]])
def test_records_of_a_partition_in_trouble_make_few_batches_and_keep_their_order(
    rig: Rig, trouble: list[int | None]
) -> None:
    """It has no leader, or its leader is silent: its records wait unwritten, those of others are sent."""
    rig.brokers.leaders["a", 1] = trouble
    answer = asyncio.Event()
    former = rig.brokers._append

    async def append(node: int, request: Any) -> Any:
        if node == 2:
            await answer.wait()
        return await former(node, request)

    rig.brokers._append = append  # type: ignore[method-assign]
    producer = rig.producer()
    headers: list[Headers] = [[("h", b"0"), ("i", None)], [], [("h", b"2")]]
    for number in range(30):
        values = [b"%d-%d" % (number, at) for at in range(3)]
        places = np.array([1, 0, 1])
        producer.offer_run("a", places, values, [b"k", None, b""], [1, 2, 3], headers)
        while len(rig.values()) <= number:
            producer._loop.run(producer._flow._sender.move(0.01))
    if trouble == [None]:
        rig.brokers.leaders["a", 1] = [1]
    producer._loop.soon(answer.set)
    producer.flush()
    assert rig.values() == [b"%d-1" % number for number in range(30)]
    assert rig.values(1) == [b"%d-%d" % (number, at) for number in range(30) for at in (0, 2)]
    assert len(rig.brokers.log["a", 1]) <= delivery_flow.MOST_WAITING + 2
    records = [record for wire in rig.brokers.log["a", 1] for record in records_of(wire)]
    assert [record[1] for record in records] == [b"k", b""] * 30
    assert [record[4] for record in records] == [headers[0], headers[2]] * 30
    assert producer._offered.n_kept_bytes == 0
