"""The transaction of a worker that is gone, on a real broker."""

import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streamapp.errors import NotYetError
from streamapp.settings.loading import load_settings
from streamapp.worker.processing.abandoned_transactions import AbandonedTransactions
from streamapp.worker.restore.log_reader import LogReader
from tests.broker.workers import PATIENCE, wait_until

pytestmark = pytest.mark.broker

SESSION_MS = 15_000  # as long as a busy machine may let it be silent; the test waits until it is over


def test_what_a_member_that_is_gone_left_open_is_ended_and_nothing_of_those_that_are_there(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"departed-{uuid.uuid4().hex[:8]}"
    kafka = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    client = AdminClient(kafka)
    (made,) = client.create_topics([NewTopic(name, 1, 1)]).values()
    made.result(PATIENCE)
    monkeypatch.setenv("GROVE_KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    settings = load_settings(application_id=name)
    abandoned = AbandonedTransactions.of(settings, "w1", kafka, lambda: False)
    members = {
        "group.id": name,
        "group.instance.id": "w0",
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 1000,
    }
    member = Consumer(kafka | members)
    member.subscribe([name])
    wait_until(lambda: member.poll(0.1) is None and bool(member.assignment()), PATIENCE, str)

    worker = Producer(kafka | {"transactional.id": f"{name}-w0", "transaction.timeout.ms": 600_000})
    worker.init_transactions(PATIENCE)
    worker.begin_transaction()
    worker.produce(name, b"pending", partition=0)
    worker.send_offsets_to_transaction(
        [TopicPartition(name, 0, 1)], member.consumer_group_metadata(), PATIENCE
    )
    worker.flush()

    with LogReader(kafka, name, lambda: False) as reader:
        for _ in range(2):  # it is there
            abandoned.check_now(abort=True)
            assert abandoned._seen == {"w0"}
            with pytest.raises(NotYetError):
                reader.offsets((name,), 0, 0.5)

        member.close()  # a member that has a name does not leave: it is waited for
        wait_until(lambda: not abandoned._members(), PATIENCE, str)
        abandoned.check_now(abort=True)
        assert reader.committed((name,), 0) == {name: None}
        reader.open(name, 0)
        assert [value for raw in reader.to_end() for value in raw.values] == []
        assert reader.end is not None
        assert reader.end > 0, "what was pending, and the marker of its abort"
    with pytest.raises(KafkaException) as failure:
        worker.commit_transaction(PATIENCE)
    assert failure.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
