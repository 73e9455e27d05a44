"""A transaction of our own producer is committed whole, or aborted such that nothing of it can come later."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError

from tests.unit.topics.producing.scripted_brokers import LOST, SILENT, Script, ScriptedBrokers
from topics.clients import stop_deadline
from topics.clients.group_member import GroupMember
from topics.columns.spans import Spans
from topics.errors import AbortedError, BrokerError, FencedError
from topics.fetching.batches import HEAD
from topics.producing import transaction_flow, transactional_producer
from topics.producing.transactional_producer import TransactionalProducer


class Rig:
    """A producer whose brokers are scripted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script: Script = {}
        self.brokers = ScriptedBrokers(self.script)
        monkeypatch.setattr(transaction_flow, "BrokerConnections", lambda *_: self.brokers)
        monkeypatch.setattr(transaction_flow, "ABORT_S", 0.05)
        self.producer = TransactionalProducer({}, "id")
        self.producer.open()
        self.brokers.steps.clear()

    def send(self, partition: int = 0, value: bytes = b"value") -> None:
        self.producer.send_run("a", partition, [value], [b"key"], [1])

    def expect(self, *partitions: int) -> None:
        self.producer.expect([("a", partition) for partition in partitions], "g")

    def wait_for(self, *steps: str) -> None:
        """Return when the brokers have got these steps at least."""
        while not {*steps} <= {*self.steps}:
            self.producer._loop.run(asyncio.sleep(0.001))

    @property
    def steps(self) -> list[str]:
        return [name for _, name, _ in self.brokers.steps]

    def sequences(self) -> list[tuple[int, int]]:
        """Return the epoch and the first sequence number of each batch that was sent."""
        heads = [HEAD.unpack_from(wire) for _, wires in self.brokers.sent for wire in wires]
        return [(head[-3], head[-2]) for head in heads]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    made = Rig(monkeypatch)
    yield made
    made.producer.close()


def test_a_commit_takes_the_steps_in_order(rig: Rig) -> None:
    rig.producer.send_run("a", np.array([1, 0]), [b"1", b"2"], [None, None], [1, 1])
    rig.producer.send_run("b", 0, [b"3"], [None], [1])
    assert rig.brokers.sent == [], "records wait for the commit"
    rig.producer.commit({("in", 0): 5}, GroupMember("g"))
    assert rig.steps == ["AddPartitions", "AddOffsets", "TxnOffsetCommit", "EndTxn"]
    assert len(rig.brokers.sent) == 1
    assert rig.brokers.steps[-1][2][-1] is True


def test_sequence_numbers_go_on_from_one_transaction_to_the_next(rig: Rig) -> None:
    for _ in range(3):
        rig.send()
        rig.producer.commit()
    assert rig.sequences() == [(1, 0), (1, 1), (1, 2)]


def test_a_commit_of_nothing_sends_nothing(rig: Rig) -> None:
    rig.producer.commit()
    assert rig.steps == []


def test_an_abort_ends_the_transaction_and_the_next_one_has_a_new_epoch(rig: Rig) -> None:
    rig.send()
    rig.producer.flush()
    rig.producer.abort()
    assert rig.steps == ["AddPartitions", "EndTxn"]
    assert rig.brokers.steps[-1][2][-1] is False
    with pytest.raises(AbortedError, match="open must come before"):
        rig.send()
        rig.producer.commit()
    rig.producer.abort()
    rig.producer.open()
    rig.send()
    rig.producer.commit()
    assert rig.sequences() == [(1, 0), (2, 0)]


@pytest.mark.parametrize("answer", [SILENT, LOST])
def test_a_batch_that_may_come_later_is_kept_out_by_a_new_epoch(rig: Rig, answer: str) -> None:
    """An abort marker of the same epoch would let it in, and hide all later records."""
    rig.script["a", 0] = [answer, SILENT]
    rig.script["a", 1] = [KafkaError.MSG_SIZE_TOO_LARGE]
    rig.brokers.leaders["a", 1] = [2]
    rig.send(0)
    rig.send(1)
    with pytest.raises(AbortedError, match="too large"):
        rig.producer.commit()
    rig.producer.abort()
    assert rig.steps == ["AddPartitions"]
    rig.producer.open()
    assert rig.steps == ["AddPartitions", "InitProducerId"]


@pytest.mark.parametrize("code", [KafkaError.PRODUCER_FENCED, KafkaError.INVALID_TXN_STATE])
@pytest.mark.parametrize("step", ["AddPartitions", "EndTxn"])
def test_a_used_up_identity_ends_no_transaction(rig: Rig, step: str, code: int) -> None:
    rig.script[step] = [code]
    rig.send()
    with pytest.raises(FencedError if code == KafkaError.PRODUCER_FENCED else AbortedError):
        rig.producer.commit()
    former = rig.steps
    with pytest.raises(AbortedError):
        rig.send()
    rig.producer.abort()
    assert rig.steps == former
    rig.producer.open()
    rig.send()
    rig.producer.commit()
    assert rig.sequences()[-1] == (2, 0)


def test_an_end_that_is_not_answered_is_not_followed_by_an_abort(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction may be committed; the committed offsets show it."""
    monkeypatch.setattr(transaction_flow, "STUCK_S", 0.05)
    rig.script["EndTxn"] = [SILENT]
    rig.send()
    with pytest.raises(AbortedError, match="EndTxn was not answered"):
        rig.producer.commit()
    rig.producer.abort()
    assert rig.steps == ["AddPartitions", "EndTxn"]


@pytest.mark.parametrize("is_early", [False, True])
def test_records_that_cannot_be_written_are_not_left_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, is_early: bool
) -> None:
    def write_runs(*_: Any) -> None:
        raise MemoryError

    rig.send(1, b"fine")
    rig.producer.flush()
    with monkeypatch.context() as patched:
        patched.setattr(transaction_flow, "write_runs", write_runs)
        if is_early:
            patched.setattr(transactional_producer, "EARLY_BYTES", 0)
        with pytest.raises((AbortedError, MemoryError)):
            rig.send()
            rig.producer.commit()
    assert "EndTxn" not in rig.steps
    with pytest.raises(AbortedError, match="MemoryError"):
        rig.producer.commit()
    rig.producer.abort()
    rig.producer.open()
    rig.send()
    rig.producer.commit()
    assert "EndTxn" in rig.steps


def test_a_denied_id_is_no_reason_to_abort(rig: Rig) -> None:
    rig.script["AddPartitions"] = [KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    rig.send()
    with pytest.raises(BrokerError, match="kafka-acls --add") as caught:
        rig.producer.commit()
    assert not isinstance(caught.value, AbortedError)


def test_a_compression_that_kafka_does_not_have_is_refused() -> None:
    with pytest.raises(BrokerError, match="compression.type='brotli' must be one of none, gzip, snappy, lz4"):
        TransactionalProducer({"compression.type": "brotli"}, "id")


def test_columns_that_do_not_fit_together_are_refused_at_once(rig: Rig) -> None:
    with pytest.raises(ValueError, match="keys=2 must be one for each of the 1 records"):
        rig.producer.offer_run("a", 0, [b"value"], [b"k", b"k"], [1])
    arguments: dict[str, Any] = {"offsets": {("in", 0): 1}}
    with pytest.raises(ValueError, match="member must be given"):
        rig.producer.commit(**arguments)


def test_an_abort_that_ends_nothing_before_a_stop_raises(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.script["EndTxn"] = [LOST]
    rig.send()
    rig.producer.flush()
    with monkeypatch.context() as patched:
        patched.setattr(rig.producer._deadline, "_stopped", lambda: True)
        patched.setattr(stop_deadline, "STOP_S", 0.0)
        with pytest.raises(AbortedError, match="not finished before the worker stopped"):
            rig.producer.commit()
        with pytest.raises(AbortedError, match="a transaction was not ended before the stop"):
            rig.producer.abort()


@pytest.mark.parametrize("end", [TransactionalProducer.close, TransactionalProducer.abort])
def test_a_commit_that_meets_an_end_never_counts_without_its_records(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, end: Callable[[TransactionalProducer], None]
) -> None:
    """Another thread ends the producer when the commit has begun, and has not taken the records yet."""
    flow = rig.producer._flow
    former, ends = flow._commit, threading.Event()

    async def commit(*arguments: Any) -> None:
        thread = threading.Thread(target=end, args=[rig.producer])
        thread.start()
        ends.wait(0.2)  # the other thread cannot go on without this loop
        await former(*arguments)

    rig.send()
    rig.producer.flush()
    rig.send()
    monkeypatch.setattr(flow, "_commit", commit)
    with contextlib.suppress(AbortedError):
        rig.producer.commit()
    if [request for request in rig.brokers.steps if request[1] == "EndTxn" and request[2][-1]]:
        assert rig.sequences() == [(1, 0), (1, 1)]


def test_small_records_in_large_buffers_are_sent_early(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a transaction would keep everything in memory that was fetched during it."""
    monkeypatch.setattr(transactional_producer, "HELD_BYTES", 3000)
    buffers = [bytes([number]) * 1000 for number in range(3)]
    references = [sys.getrefcount(buffer) for buffer in buffers]

    def offer(buffer: bytes) -> None:
        with rig.producer.gathering():
            for start in (0, 10):  # two runs in one buffer
                keys = Spans(buffer, np.array([start]), np.array([10]))
                rig.producer.offer_run("a", 0, [b"v"], keys, [1])
        rig.producer.hand_over()

    for buffer in buffers:
        assert rig.steps == []
        offer(buffer)
    del buffer
    rig.producer._loop.run(asyncio.sleep(0))  # returns when the loop has taken the runs
    assert [sys.getrefcount(buffer) for buffer in buffers] == references
    assert "AddPartitions" in rig.steps
    rig.producer.commit()
    assert len(rig.sequences()) == 1


@pytest.mark.parametrize("answers", [[SILENT], [KafkaError.NOT_ENOUGH_REPLICAS] * 99])
def test_an_abort_ends_the_wait_of_another_thread_and_not_the_next_transaction(
    rig: Rig, answers: list[Any]
) -> None:
    """The brokers are silent, or a pause goes on before the next attempt."""
    rig.script["a", 0] = answers
    rig.send()
    errors: list[str] = []

    def flush() -> None:
        try:
            rig.producer.flush()
        except AbortedError as error:
            errors.append(str(error))

    flushing = threading.Thread(target=flush)
    flushing.start()
    while len(rig.brokers.sent) < min(len(answers), 5):
        flushing.join(0.001)
    rig.producer.abort()
    answers.clear()
    flushing.join(10)
    assert errors == ["transactional.id=id: the transaction was given up"]
    rig.producer.open()
    rig.send()
    rig.producer.commit()
    assert rig.sequences()[-1] == (2, 0)


def test_a_commit_of_expected_partitions_has_two_steps(rig: Rig) -> None:
    for _ in range(2):
        rig.brokers.steps.clear()
        rig.expect(0, 1)
        rig.expect(1)
        rig.wait_for("AddPartitions", "AddOffsets")
        rig.send(0)
        rig.producer.commit({("in", 0): 5}, GroupMember("g"))
        assert rig.steps == ["AddPartitions", "AddOffsets", "TxnOffsetCommit", "EndTxn"]
    rig.brokers.steps.clear()
    rig.expect(0)
    rig.wait_for("AddPartitions", "AddOffsets")
    rig.send(0)
    rig.send(2)
    rig.producer.commit({("in", 0): 6}, GroupMember("g"))
    assert rig.steps == ["AddPartitions", "AddOffsets", "AddPartitions", "TxnOffsetCommit", "EndTxn"]
    assert rig.sequences() == [(1, 0), (1, 1), (1, 2), (1, 0)]


def test_an_expected_transaction_of_which_nothing_follows_is_ended(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator would abort it after its time, and refuse the identity."""
    monkeypatch.setattr(transaction_flow, "UNUSED_S", 0.0)
    rig.script["EndTxn"] = [KafkaError.COORDINATOR_LOAD_IN_PROGRESS] * 3
    rig.expect(0)
    rig.wait_for("EndTxn")
    rig.send()  # while the end is under way
    rig.producer.hand_over()
    rig.producer.commit()
    opened = ["AddPartitions", "AddOffsets"]
    assert rig.steps == [*opened, *["EndTxn"] * 4, "AddPartitions", "EndTxn"]
    assert rig.sequences() == [(1, 0)]


def test_an_expected_transaction_with_records_is_ended_by_its_commit_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else records would count without the offsets."""
    monkeypatch.setattr(transaction_flow, "UNUSED_S", 0.02)
    monkeypatch.setattr(transactional_producer, "EARLY_BYTES", 0)
    rig.expect(0)
    rig.send()
    rig.producer.flush()
    rig.producer._loop.run(asyncio.sleep(0.05))  # the time is over
    assert "EndTxn" not in rig.steps
    rig.producer.commit({("in", 0): 5}, GroupMember("g"))
    assert rig.steps == ["AddPartitions", "AddOffsets", "TxnOffsetCommit", "EndTxn"]


@pytest.mark.parametrize("step", ["AddPartitions", "AddOffsets", "EndTxn"])
def test_a_refused_expectation_is_a_reason_to_abort(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(transaction_flow, "UNUSED_S", 0.0)
    rig.script[step] = [KafkaError.INVALID_PRODUCER_ID_MAPPING]
    rig.expect(0)
    rig.wait_for(step)
    with pytest.raises(AbortedError):
        rig.producer.commit({("in", 0): 5}, GroupMember("g"))
    rig.producer.abort()
    rig.producer.open()
    rig.expect(0)
    rig.send()
    rig.producer.commit({("in", 0): 5}, GroupMember("g"))
    assert rig.sequences() == [(2, 0)]


def test_a_step_that_may_come_after_an_abort_is_kept_out_by_a_new_epoch(rig: Rig) -> None:
    """With the same epoch it would begin a transaction that nobody ends."""
    rig.script["AddOffsets"] = [SILENT]
    rig.expect(0)
    rig.wait_for("AddOffsets")
    rig.producer.abort()
    rig.expect(0)
    rig.producer.open()
    assert rig.steps == ["AddPartitions", "AddOffsets", "InitProducerId"]


def test_nothing_is_expected_while_a_transaction_ends(rig: Rig) -> None:
    rig.script["EndTxn"] = [KafkaError.COORDINATOR_LOAD_IN_PROGRESS] * 3
    rig.send()
    committing = threading.Thread(target=rig.producer.commit)
    committing.start()
    rig.wait_for("EndTxn")
    rig.expect(0)
    committing.join()
    assert rig.steps == ["AddPartitions", *["EndTxn"] * 4]
    rig.expect(0)
    rig.wait_for("AddOffsets")
