"""Transactions, their producer and the task manager together; a coordinator does not answer as it should."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from streamapp.worker import blocking_calls
from streamapp.worker.journal.entry import Entry, decode
from streamapp.worker.processing.transactions import Transactions
from tests.positions import at
from tests.unit.streamapp.worker.processing.rig import Worker, run
from tests.unit.topics.producing.scripted_brokers import LOST, SILENT, ScriptedBrokers
from topics.errors import HungError
from topics.fetching.batches import Limit, opened, spans_of
from topics.producing import transaction_flow
from topics.producing.transactional_producer import TransactionalProducer


class Rig:
    """Real transactions on scripted brokers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.brokers = ScriptedBrokers({})
        monkeypatch.setattr(transaction_flow, "BrokerConnections", lambda *_: self.brokers)
        monkeypatch.setattr(transaction_flow, "STUCK_S", 0.2)
        monkeypatch.setattr(transaction_flow, "ABORT_S", 0.1)
        self.producer = TransactionalProducer({"compression.type": "none"}, "worker-1")
        self.transactions = Transactions(self.producer, "journal", "group", 8)

    @property
    def steps(self) -> list[str]:
        return [name for _, name, _ in self.brokers.steps]

    def entries(self) -> list[Any]:
        """Return what stands in the journal, with what was aborted."""
        batches: list[Any] = [
            opened(wire, 0, len(wire), 0, Limit()) for wire in self.brokers.log["journal", 0]
        ]
        columns: list[Any] = [spans_of(batch, 0) for batch in batches]
        return [decode(value, "journal", 0) for spans in columns for value in spans.values]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    made = Rig(monkeypatch)
    yield made
    made.producer.close()


def test_a_commit_that_sticks_is_aborted_once_and_a_new_identity_goes_on(rig: Rig) -> None:
    async def story(w: Worker) -> None:
        rig.brokers.script["EndTxn"] = [LOST] * 6  # the pauses between them are longer than the time for it
        await w.assign()
        await w.deliver(0)
        await w.commit("sticks")
        assert (w.group.rejoined, w.ended, w.here) == (1, None, [])
        assert rig.steps.count("EndTxn") > 2, "a lost answer is no reason to give up"
        assert w.metric("grove_transactions_aborted_total") == 1
        rig.brokers.steps.clear()
        rig.brokers.script.clear()
        await w.assign()
        await w.deliver(0)
        await w.commit("again")
        assert rig.steps == ["InitProducerId", "AddPartitions", "AddOffsets", "TxnOffsetCommit", "EndTxn"]
        topics = {topic: rows for topic, rows, _ in rig.brokers.steps[3][2][-2]}
        assert topics["instances"][0][1] == 1
        assert all("partitions=8" in note for rows in topics.values() for *_, note, _ in rows if note)
        *_, entry = rig.entries()
        assert isinstance(entry, Entry)
        assert entry.after == at(instances=1)

    run(story, transactions=rig.transactions)


def test_an_abort_that_is_refused_is_followed_by_a_new_identity(rig: Rig) -> None:
    async def story(w: Worker) -> None:
        denied = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        rig.brokers.script |= {"TxnOffsetCommit": [KafkaError.ILLEGAL_GENERATION], "EndTxn": [denied]}
        await w.assign()
        await w.deliver(0)
        await w.commit("the group moved on")
        assert (w.group.rejoined, w.ended) == (1, None)
        assert rig.steps[-1] == "EndTxn"
        await w.assign()
        assert rig.steps[-1] == "InitProducerId"

    run(story, transactions=rig.transactions)


def test_a_step_that_does_not_come_back_ends_the_worker(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(w: Worker) -> None:
        monkeypatch.setattr(blocking_calls, "CHECK_S", 0.01)
        rig.brokers.script["TxnOffsetCommit"] = [SILENT]
        await w.assign()
        await w.deliver(0)
        await w.commit("hangs")
        assert isinstance(w.ended, HungError)
        assert "only a new process helps" in str(w.ended)

    run(story, transactions=rig.transactions)
