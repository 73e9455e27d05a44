"""The transaction of a worker that is gone, on a real broker."""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streamapp.embedded import EmbeddedBroker
from streamapp.errors import NotYetError
from streamapp.settings.loading import load_settings
from streamapp.worker.processing.abandoned_transactions import AbandonedTransactions
from streamapp.worker.restore.log_reader import LogReader
from tests.broker.workers import PATIENCE, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker

SESSION_MS = 15_000  # as long as a busy machine may let it be silent; the test waits until it is over


class OpenTransaction:
    """The worker `w0` of a group, with a transaction that it does not end, and the parts of an heir `w1`."""

    def __init__(self, servers: str, member: Consumer, name: str) -> None:
        self.name, self.member = name, member
        kafka = {"bootstrap.servers": servers, "log_level": 0}
        settings = load_settings(application_id=name, kafka={"bootstrap.servers": servers})
        self.abandoned = AbandonedTransactions.of(settings, "w1", kafka, lambda: False)
        self.reader = LogReader(kafka, name, lambda: False)
        member.subscribe([name])
        wait_until(lambda: member.poll(0.1) is None and bool(member.assignment()), PATIENCE, str)
        self.producer = Producer(
            kafka | {"transactional.id": f"{name}-w0", "transaction.timeout.ms": 600_000}
        )
        self.producer.init_transactions(PATIENCE)
        self.producer.begin_transaction()
        self.producer.produce(name, b"pending", partition=0)
        self.producer.send_offsets_to_transaction(
            [TopicPartition(name, 0, 1)], member.consumer_group_metadata(), PATIENCE
        )
        self.producer.flush()

    def is_pending(self) -> bool:
        try:
            self.reader.offsets((self.name,), 0, 0.5)
        except NotYetError:
            return True
        return False

    def leave(self) -> None:
        """Close the member and wait until the group gives it up: one that has a name does not leave."""
        self.member.close()
        wait_until(lambda: not self.abandoned._members(), PATIENCE, str)


@contextmanager
def open_transaction(servers: str) -> Iterator[OpenTransaction]:
    name = f"departed-{uuid.uuid4().hex[:8]}"
    kafka = {"bootstrap.servers": servers, "log_level": 0}
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    (made,) = client.create_topics([NewTopic(name, 1, 1)]).values()
    made.result(PATIENCE)
    static = {
        "group.id": name,
        "group.instance.id": "w0",
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 1000,
    }
    with closing(Consumer(kafka | static)) as member:
        transaction = OpenTransaction(servers, member, name)
        with transaction.reader:
            yield transaction


def test_what_a_member_that_is_gone_left_open_is_ended_and_nothing_of_those_that_are_there(
    broker: Broker,
) -> None:
    with open_transaction(broker.bootstrap_servers) as of_w0:
        for _ in range(2):  # it is there
            assert of_w0.abandoned.check_now(abort=True)
            assert of_w0.abandoned._seen == {"w0"}
            assert of_w0.is_pending()

        of_w0.leave()
        assert of_w0.abandoned.check_now(abort=True)
        reader = of_w0.reader
        assert reader.committed((of_w0.name,), 0) == {of_w0.name: None}
        reader.open(of_w0.name, 0)
        assert [value for raw in reader.to_end() for value in raw.values] == []
        assert reader.end is not None
        assert reader.end > 0, "what was pending, and the marker of its abort"
        with pytest.raises(KafkaException) as failure:
            of_w0.producer.commit_transaction(PATIENCE)
        assert failure.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


def test_a_broker_that_is_away_for_a_while_does_not_leave_it_open(
    private_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with open_transaction(private_broker.bootstrap_servers) as of_w0:
        assert of_w0.abandoned.check_now(abort=True)
        of_w0.leave()
        private_broker.stop(kill=True)
        of_w0.abandoned.check(abort=True)
        wait_until(
            lambda: "the members of the group are not known" in caplog.text, PATIENCE, lambda: caplog.text
        )
        private_broker.start()
        with caplog.at_level("INFO"):
            wait_until(lambda: not of_w0.is_pending(), PATIENCE, lambda: caplog.text)
            # Its thread must not look for a broker that is gone, and log that into other tests.
            wait_until(lambda: not of_w0.abandoned._left_open, PATIENCE, lambda: caplog.text)
