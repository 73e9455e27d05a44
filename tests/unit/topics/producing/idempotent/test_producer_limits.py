"""A producer without transactions holds records within its limits, and ends when it has to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.topics.producing.idempotent.delivery_rig import Rig, send, send_and_flush
from tests.unit.topics.producing.scripted_brokers import SILENT
from topics.clients import stop_deadline
from topics.errors import BrokerError, DeliveryError
from topics.producing.idempotent import delivery_flow
from topics.producing.idempotent.idempotent_producer import IdempotentProducer


def test_records_wait_for_the_linger_unless_they_fill_a_batch_or_are_flushed(rig: Rig) -> None:
    producer = rig.producer(linger_ms=600_000, batch_size=1000)
    send(producer, b"1")
    send(producer, b"2")
    producer._loop.run(asyncio.sleep(0.01))
    assert rig.brokers.sent == []
    producer.flush()
    assert len(rig.brokers.sent) == 1
    send(producer, bytes(2000))
    while not rig.values()[2:]:
        producer._loop.run(producer._flow._sender.move(0.01))


def test_a_full_producer_is_drained_until_half_of_it_is_free(rig: Rig) -> None:
    producer = rig.producer(queue_buffering_max_messages=10, linger_ms=600_000)
    send(producer, *[b"x"] * 10)
    assert producer.is_full
    thread = threading.Thread(target=producer.drain)
    thread.start()
    producer._loop.soon(producer._flow._write_when_due)
    producer.flush()
    thread.join(10)
    assert not thread.is_alive()
    assert not producer.is_full


@pytest.mark.parametrize("wait", [IdempotentProducer.flush, IdempotentProducer.drain])
def test_close_gives_up_what_waits_and_ends_other_threads(
    rig: Rig, wait: Callable[[IdempotentProducer], None]
) -> None:
    rig.script["a", 0] = [SILENT]
    producer = rig.producer(queue_buffering_max_messages=2)
    send(producer, b"x", b"y")
    errors: list[str] = []

    def waits() -> None:
        try:
            wait(producer)
        except DeliveryError as error:
            errors.append(str(error))

    thread = threading.Thread(target=waits)
    thread.start()
    while not rig.brokers.sent:
        thread.join(0.001)
    producer.close()
    thread.join(10)
    assert errors == ["2 records were not delivered: the producer was closed"]
    assert producer.failed == 2
    with pytest.raises(DeliveryError, match="the producer was closed"):
        producer.flush()


@pytest.mark.parametrize(
    "use", [IdempotentProducer.hand_over, IdempotentProducer.flush, lambda p: send(p, b"x")]
)
def test_a_closed_producer_takes_nothing_more(rig: Rig, use: Callable[[IdempotentProducer], None]) -> None:
    producer = rig.producer()
    producer.close()
    with pytest.raises(DeliveryError, match="^the producer is closed$"):
        use(producer)


def test_a_queue_of_0_messages_has_no_limit(rig: Rig) -> None:
    producer = rig.producer(queue_buffering_max_messages=0)
    send(producer, b"x")
    assert not producer.is_full


def test_a_stop_leaves_the_broker_some_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_deadline, "STOP_S", 0.05)
    rig.script["a", 0] = [SILENT]
    producer = rig.producer()
    producer._deadline._stopped = lambda: True
    send(producer, b"x")
    with pytest.raises(
        DeliveryError, match="^1 records were not delivered within 10 s of the stop: the broker"
    ):
        producer.flush()


def test_a_record_above_the_limit_is_refused_and_those_before_it_are_sent(rig: Rig) -> None:
    producer = rig.producer(message_max_bytes=2000)
    with pytest.raises(
        DeliveryError, match=r"^a\[0\]: a record of 3000 bytes: .*Broker: Message size too large$"
    ):
        send(producer, b"before", bytes(3000), b"after")
    with pytest.raises(DeliveryError, match="3000 bytes"):
        producer.offer_run("a", 1, [b"x"], [b"k"], [1])
    headers = [[("name", bytes(3000))]]
    other = rig.producer(message_max_bytes=2000)
    with pytest.raises(DeliveryError, match="too large"):
        other.offer_run("a", 1, [b"x"], [b"k"], [1], headers)
    other_fits = rig.producer(message_max_bytes=2000)
    other_fits.offer_run("a", 2, [bytes(1800)] * 10, [b"k"] * 10, [1] * 10, [[("name", b"x")]] * 10)
    other_fits.flush()
    assert len(rig.values(2)) == 10


def test_records_that_cannot_be_written_are_not_left_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_runs(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(delivery_flow, "write_runs", write_runs)
    producer = rig.producer()
    with pytest.raises(DeliveryError, match="MemoryError"):
        send_and_flush(producer, b"x")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("acks", "1", "acks=1 must be all"),
        ("compression_type", "brotli", "compression.type='brotli' must be"),
    ],
)
def test_wrong_properties_are_refused(rig: Rig, name: str, value: str, says: str) -> None:
    with pytest.raises(BrokerError, match=says):
        rig.producer(**{name: value})


def test_an_error_of_planning_ends_the_producer(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def leader(_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rig.brokers, "leader", leader)
    with pytest.raises(DeliveryError, match="ZeroDivisionError"):
        send_and_flush(rig.producer(), b"x")
