"""Transactions, their sender and the task manager together; the client loses sight of its coordinator."""

from itertools import count
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamapp.worker import blocking_calls
from streamapp.worker.journal.entry import Entry, decode
from streamapp.worker.processing.transactions import Transactions
from tests.positions import at
from tests.unit.streamapp.worker.processing.rig import Worker, run
from topics.clients import sender, transactional_sender
from topics.clients.transactional_sender import TransactionalSender
from topics.errors import HungError

_AUTHORIZATION = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Client:
    """A client whose coordinator answers, keeping what its transactions have committed."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.open: list[bytes] = []
        self.committed: list[bytes] = []
        self.offsets: dict[str, int] = {}
        self.noted: dict[str, str] = {}

    def init_transactions(self, timeout: float) -> None:
        self.steps.append("init")

    def begin_transaction(self) -> None:
        self.steps.append("begin")

    def produce(self, topic: str, value: bytes, *rest: Any) -> None:
        self.open.append(value)

    def send_offsets_to_transaction(self, positions: Any, group: bytes, timeout: float) -> None:
        self.steps.append("offsets")
        self.offsets |= {at.topic: at.offset for at in positions}
        self.noted = {at.topic: at.metadata for at in positions}

    def commit_transaction(self, timeout: float) -> None:
        self.steps.append("commit")
        self.committed += self.open

    def abort_transaction(self, timeout: float) -> None:
        self.steps.append("abort")

    def purge(self) -> None:
        self.steps.append("purge")

    def poll(self, seconds: float) -> int:
        return 0


class LostSight(Client):
    """Its commits never come to an end, and then librdkafka refuses every other step, at once."""

    def commit_transaction(self, timeout: float) -> None:
        self.steps.append("commit")
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Timed out waiting", False, True))

    def abort_transaction(self, timeout: float) -> None:
        self.steps.append("abort")
        conflict = KafkaError._CONFLICT
        raise KafkaException(KafkaError(conflict, "another call is in progress", False, True))


class Denied(LostSight):
    """The right to its id is taken away meanwhile."""

    def abort_transaction(self, timeout: float) -> None:
        raise KafkaException(KafkaError(_AUTHORIZATION, "Transactional Id authorization failed"))


class Hanging(Client):
    """Does not come back from the step that gives it the offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.released = Event()

    def send_offsets_to_transaction(self, offsets: Any, group: bytes, timeout: float) -> None:
        self.released.wait()


def on_clients(monkeypatch: pytest.MonkeyPatch, *clients: Client) -> Transactions:
    """Return real transactions on these clients, one after the other; time flies for them."""
    now, left = count(step=5), list(clients)
    monkeypatch.setattr(transactional_sender, "time", SimpleNamespace(monotonic=lambda: float(next(now))))
    monkeypatch.setattr(sender, "Producer", lambda properties, logger: left.pop(0))
    return Transactions(
        TransactionalSender({"bootstrap.servers": "127.0.0.1:1"}, "worker-1"), "journal", "group", 8
    )


def test_a_commit_that_sticks_is_aborted_once_and_a_new_client_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stuck, good = LostSight(), Client()

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.commit("sticks")
        assert (w.group.rejoined, w.ended, w.here) == (1, None, [])
        assert stuck.steps.count("commit") > 10, "an outage is waited for"
        assert stuck.steps[-2:] == ["abort", "purge"], "what is in the way is not asked again and again"
        assert w.metric("grove_transactions_aborted_total") == 1
        await w.assign()
        await w.deliver(0)
        await w.commit("again")
        assert good.steps == ["init", "begin", "offsets", "commit"]
        assert good.offsets["instances"] == 1
        assert all("partitions=8" in note for note in good.noted.values() if note)
        (entry,) = (decode(value, "journal", 0) for value in good.committed)
        assert isinstance(entry, Entry)
        assert entry.after == at(instances=1)

    run(story, transactions=on_clients(monkeypatch, stuck, good))


def test_an_abort_that_is_refused_gets_a_new_client_too(monkeypatch: pytest.MonkeyPatch) -> None:
    denied, good = Denied(), Client()

    async def story(w: Worker) -> None:
        await w.assign()
        await w.deliver(0)
        await w.commit("sticks")
        assert (w.group.rejoined, w.ended) == (1, None)
        await w.assign()
        assert good.steps == ["init"]

    run(story, transactions=on_clients(monkeypatch, denied, good))


def test_a_client_that_does_not_come_back_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = Hanging()

    async def story(w: Worker) -> None:
        monkeypatch.setattr(blocking_calls, "CHECK_S", 0.01)
        await w.assign()
        await w.deliver(0)
        await w.commit("hangs")
        assert isinstance(w.ended, HungError)
        assert "only a new process helps" in str(w.ended)
        hanging.released.set()

    run(story, transactions=on_clients(monkeypatch, hanging))
