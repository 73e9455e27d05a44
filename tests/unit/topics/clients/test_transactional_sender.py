"""A transactional producer without a broker: opened, and with a client that does not get on."""

import threading
from contextlib import nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from topics import client_calls
from topics.clients import sender as sender_module
from topics.clients import transactional_sender
from topics.clients.group_member import GroupMember
from topics.clients.transactional_sender import PAUSE_S, TransactionalSender
from topics.errors import AbortedError

FENCED_S = 9.0
"""Seconds after which controllers give up a broker without heartbeats (`broker.session.timeout.ms`)."""


class SlowProducer:
    """A client whose start takes until the broker is there."""

    def __init__(self) -> None:
        self.broker_is_there = threading.Event()
        self.waits = threading.Event()
        self.started = 0

    def init_transactions(self, timeout: float) -> None:
        self.started += 1
        self.waits.set()
        assert self.broker_is_there.wait(60)


def test_who_opens_while_another_one_waits_for_the_broker_waits_with_it() -> None:
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    producer = SlowProducer()
    sender._producer = producer
    openers = [threading.Thread(target=sender.open) for _ in range(3)]
    for opener in openers:
        opener.start()
    assert producer.waits.wait(60)
    producer.broker_is_there.set()
    for opener in openers:
        opener.join(60)
    assert (producer.started, sender.is_open) == (1, True)


class StuckProducer:
    """A client that has lost sight of the transaction coordinator: every step times out."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.waits: list[float] = []  # seconds

    def _step(self, name: str) -> None:
        self.steps.append(name)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Timed out waiting", False, True))

    def init_transactions(self, timeout: float) -> None:
        self._step("init")

    def commit_transaction(self, timeout: float) -> None:
        self._step("commit")

    def send_offsets_to_transaction(self, positions: Any, group: bytes, timeout: float) -> None:
        self.steps.append("offsets")

    def abort_transaction(self, timeout: float) -> None:
        self._step("abort")

    def purge(self) -> None:
        self.steps.append("purge")

    def poll(self, seconds: float) -> int:
        self.waits.append(seconds)
        return 0


@pytest.fixture
def five_seconds_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    now = count(step=5)
    monkeypatch.setattr(transactional_sender, "time", SimpleNamespace(monotonic=lambda: float(next(now))))


@pytest.mark.parametrize(
    ("given", "timeout_ms", "socket_ms"),
    [({}, 40_000, 10_000), ({}, 4000, 4000), ({"socket.timeout.ms": 7000}, 40_000, 7000)],
)
def test_a_request_without_an_answer_is_repeated_before_its_transaction_is_over(
    given: dict[str, int], timeout_ms: int, socket_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[dict[str, Any]] = []
    monkeypatch.setattr(sender_module, "Producer", lambda properties, logger: opened.append(properties))
    TransactionalSender({"bootstrap.servers": "127.0.0.1:1"} | given, "worker-1", timeout_ms=timeout_ms)
    assert [properties["socket.timeout.ms"] for properties in opened] == [socket_ms]


def test_the_coordinator_has_time_to_give_up_a_dead_replica_before_the_transaction_fails() -> None:
    """librdkafka fails a transaction whose offsets were not taken in the time that it was given."""
    seconds: list[float] = []

    class Patient(NarrowProducer):
        def send_offsets_to_transaction(self, positions: Any, group: bytes, timeout: float) -> None:
            seconds.append(timeout)

    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = Patient()
    sender.commit({("instances", 0): 7}, GroupMember("group"))
    assert FENCED_S < min(seconds) < client_calls.CHECK_S * client_calls.MAX_CHECKS


@pytest.mark.usefixtures("five_seconds_a_look")
def test_an_abort_that_does_not_come_to_an_end_gets_a_new_client() -> None:
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = stuck = StuckProducer()
    sender.in_transaction = sender.is_open = True
    sender.abort()
    assert set(stuck.steps) == {"abort", "purge"}
    assert stuck.steps.count("abort") == 2, "a new client ends the transaction sooner than a lost coordinator"
    assert sender._producer is not stuck
    assert (sender.in_transaction, sender.is_open) == (False, False)


def test_an_abort_behind_a_step_that_has_not_come_to_an_end_gets_a_new_client_at_once() -> None:
    """librdkafka refuses it while it waits for the other, without waiting itself."""

    class Busy(StuckProducer):
        def abort_transaction(self, timeout: float) -> None:
            self.steps.append("abort")
            conflict = KafkaError._CONFLICT
            raise KafkaException(KafkaError(conflict, "another call is in progress", False, True))

    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = busy = Busy()
    sender.in_transaction = sender.is_open = True
    sender.abort()
    assert busy.steps == ["abort", "purge"]
    assert sender._producer is not busy
    assert (sender.in_transaction, sender.is_open) == (False, False)


def test_a_call_that_never_returns_is_abandoned_and_the_client_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka loses the answer to it when a coordinator goes away.

    If it returns after all, its thread ends: a broker's restart can cost one such call, and a worker lives
    for many restarts.
    """
    never = threading.Event()
    threads = []

    class Hung(StuckProducer):
        def send_offsets_to_transaction(self, positions: Any, group: bytes, timeout: float) -> None:
            self.steps.append("offsets")
            threads.append(threading.current_thread())
            never.wait()

        def abort_transaction(self, timeout: float) -> None:
            self.steps.append("abort")
            conflict = KafkaError._CONFLICT
            raise KafkaException(KafkaError(conflict, "another call is in progress", False, True))

    monkeypatch.setattr(client_calls, "CHECK_S", 0.01)
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = hung = Hung()
    sender.in_transaction = sender.is_open = True
    with pytest.raises(AbortedError, match="has not returned from a call"):
        sender.commit({("instances", 0): 7}, GroupMember("group"))
    sender.abort()
    assert hung.steps == ["offsets", "abort", "purge"]
    assert sender._producer is not hung
    assert (sender.in_transaction, sender.is_open) == (False, False)
    never.set()
    for thread in threads:
        thread.join(10)
    assert [thread.is_alive() for thread in threads] == [False]
    sender.close()


@pytest.mark.usefixtures("five_seconds_a_look")
def test_a_commit_that_does_not_come_to_an_end_has_to_be_aborted() -> None:
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = stuck = StuckProducer()
    sender.in_transaction = sender.is_open = True
    with pytest.raises(AbortedError, match="not heard of for 60 s"):
        sender.commit({("instances", 0): 7}, GroupMember("group"))
    assert stuck.steps.count("commit") > 10, "an outage is waited for"
    pauses = stuck.waits.count(PAUSE_S)
    assert pauses == stuck.steps.count("commit") - 1, "an error may be told at once, again and again"


@pytest.mark.usefixtures("five_seconds_a_look")
def test_a_start_that_does_not_come_to_an_end_gets_a_new_client(monkeypatch: pytest.MonkeyPatch) -> None:
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = stuck = StuckProducer()
    good = SlowProducer()
    good.broker_is_there.set()
    monkeypatch.setattr(sender, "_new_client", lambda: (sender._failures, good))
    sender.open()
    assert (sender.is_open, good.started, stuck.steps[-1]) == (True, 1, "purge")


def test_a_client_that_is_out_of_order_takes_no_record_and_its_transaction_has_to_be_aborted() -> None:
    """Another producer has its id: whether a record or a check finds that first makes no difference."""

    class Fenced(StuckProducer):
        def begin_transaction(self) -> None:
            """It does not know it yet."""

        def produce(self, *columns: Any) -> None:
            raise KafkaException(KafkaError(KafkaError._FATAL, "fenced by a newer instance", True))

        def produce_batch(self, *columns: Any, **more: Any) -> None:
            self.produce()

    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = Fenced()
    with pytest.raises(AbortedError, match="fenced by a newer instance"):
        sender.send_run("t", 0, [b"v"], [b"k"], [0], [()])
    failures = sender._failures
    failures.ended(KafkaError(KafkaError._FENCED, "fenced", True))
    with pytest.raises(AbortedError, match="the producer has failed for good: fenced"):
        sender.send_run("t", 0, [b"v"], [b"k"], [0], [()])
    sender.abort()
    assert sender._failures is not failures, "a new client"
    assert not sender.is_open


class NarrowProducer(StuckProducer):
    """A client with room for one record, which is free again after each look at the broker."""

    has_room = True

    def begin_transaction(self) -> None:
        self.steps.append("begin")

    def produce(self, topic: str, value: bytes, *columns: Any) -> None:
        if not self.has_room:
            raise BufferError
        self.has_room = False
        self.steps.append(value.decode())

    def poll(self, seconds: float) -> int:
        self.has_room = self.has_room or seconds > 0
        return 0

    def commit_transaction(self, timeout: float) -> None:
        self.steps.append("commit")

    def abort_transaction(self, timeout: float) -> None:
        self.steps.append("abort")


@pytest.mark.parametrize("gathers", [False, True])
def test_a_commit_sends_all_that_was_offered_before_it_ends_the_transaction(gathers: bool) -> None:
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = narrow = NarrowProducer()
    with sender.gathering() if gathers else nullcontext():
        for value in (b"1", b"2", b"3"):
            sender.offer_run("t", 0, [value], [b"k"], [0])
        sender.commit({("instances", 0): 7}, GroupMember("group"))
    assert narrow.steps == ["begin", "1", "2", "3", "offsets", "commit"]
    assert (sender.in_transaction, sender.is_full) == (False, False)


def test_a_record_that_was_not_delivered_lets_its_transaction_only_be_aborted() -> None:
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = narrow = NarrowProducer()
    sender.offer_run("t", 0, [b"1"], [b"k"], [0])
    message = SimpleNamespace(topic=lambda: "t", partition=lambda: 0)
    sender._failures.delivered(KafkaError(KafkaError._MSG_TIMED_OUT, "too long in the queue"), message)
    with pytest.raises(AbortedError, match=r"1 record was not delivered; t\[0\]: too long in the queue"):
        sender.hand_over()
    sender.abort()
    sender.check()
    assert narrow.steps == ["begin", "1", "abort"]


def test_a_record_that_waits_for_room_is_forgotten_with_its_transaction() -> None:
    sender: Any = TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1")
    sender._producer = narrow = NarrowProducer()
    sender.offer_run("t", 0, [b"1", b"2", b"3"], [b"k"] * 3, [0] * 3)
    assert sender.is_full
    sender.abort()
    assert not sender.is_full
    narrow.has_room = True
    sender.offer_run("t", 0, [b"4"], [b"k"], [0])
    sender.commit()
    assert narrow.steps == ["begin", "1", "abort", "begin", "4", "commit"]
