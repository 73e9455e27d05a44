"""Transactions and the journal: what was aborted is no record, what belongs together is written as one."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from core.state_version import STATE_VERSION
from streamapp.tools.offline.errors import OfflineError
from streamapp.tools.offline.stored_partition import StoredPartition
from streamapp.worker.journal.entry import Manifest, Record, Reset
from streamapp.worker.journal.log import JournalLog
from streamapp.worker.restore.identity import Identity
from streamapp.worker.restore.journal_write import write_together
from streamapp.worker.restore.log_reader import LogReader
from streamapp.worker.restore.tail import TailReader
from streamapp.worker.task.task_config import TaskConfig
from tests.broker.workers import PATIENCE, wait_until
from tests.conftest import Broker
from tests.positions import at
from topics.definitions import TopicNames

pytestmark = pytest.mark.broker

ABORTED, OPEN, COMMITTED, TOGETHER = range(4)


@pytest.fixture
def names() -> TopicNames:
    return TopicNames(f"aborted-{uuid.uuid4().hex[:8]}.")


@pytest.fixture
def kafka(broker: Broker, names: TopicNames) -> Iterator[dict[str, str]]:
    """Yield the properties of a cluster where a transaction was aborted, one is open, one is committed."""
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    topics = [NewTopic(topic, 4, 1) for topic in (names.journal, *_sources(names))]
    admin = AdminClient({**kafka})
    for future in admin.create_topics(topics).values():
        future.result(PATIENCE)
    open_one = _begun(kafka, names, OPEN)
    _begun(kafka, names, ABORTED).abort_transaction(PATIENCE)
    _begun(kafka, names, COMMITTED).commit_transaction(PATIENCE)
    yield kafka
    open_one.abort_transaction(PATIENCE)


def _begun(kafka: dict[str, str], names: TopicNames, partition: int) -> Producer:
    properties = kafka | {"transactional.id": f"{names.prefix}{partition}"}
    producer = Producer(properties | {"transaction.timeout.ms": 300_000})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(names.journal, b"an entry", partition=partition)
    assert producer.flush(PATIENCE) == 0
    return producer


def _sources(names: TopicNames) -> tuple[str, ...]:
    return names.controls, names.instances, names.labels


def test_what_was_aborted_is_no_record_of_a_journal(kafka: dict[str, str], names: TopicNames) -> None:
    identity = Identity(kafka)
    # The marker of a commit or abort may come behind the answer.
    wait_until(lambda: not identity.has_open_transaction(names.journal, ABORTED), PATIENCE, lambda: "open")
    wait_until(lambda: not identity.has_open_transaction(names.journal, COMMITTED), PATIENCE, lambda: "open")
    assert identity.has_open_transaction(names.journal, OPEN)
    with LogReader(kafka, "nobody", lambda: False) as log:
        assert log.of(names.journal, ABORTED).range() == (0, 2), "the record and the marker"
        are_empty = [log.of(names.journal, partition).is_empty() for partition in (ABORTED, OPEN, COMMITTED)]
        assert are_empty == [True, True, False]
    journal = JournalLog(kafka, names.journal)
    assert [journal.end(partition) for partition in (ABORTED, OPEN, COMMITTED)] == [2, 1, 2]
    with StoredPartition(kafka, "nobody", names, TaskConfig(), ABORTED) as stored:
        assert stored.now() is None, "nothing was processed yet"
    with (
        StoredPartition(kafka, "nobody", names, TaskConfig(), COMMITTED) as stored,
        pytest.raises(OfflineError, match="group nobody has committed nothing, but there is a journal"),
    ):
        stored.now()


def test_a_reset_and_the_snapshot_to_go_on_from_are_one_transaction(
    kafka: dict[str, str], names: TopicNames
) -> None:
    head = 1, 2, STATE_VERSION, "", at(instances=7), 0, "{}"
    records: list[Record] = [Reset(1, at(instances=7)), Manifest(*head, 3, 4, 5, 6, 7)]
    write_together(kafka, "nobody", names.journal, TOGETHER, records)
    with LogReader(kafka, "nobody", lambda: False) as log:
        tail = TailReader(log.of(names.journal, TOGETHER), names.journal, TOGETHER).newest()
        assert tail.records == ((0, records[0]), (1, records[1]))
        assert log.range() == (0, 3), "the marker makes both of them count"
