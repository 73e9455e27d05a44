"""One of two brokers is away: what it leads is not served, and that is no sign of a dead worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streamapp.embedded import EmbeddedBroker
from streamapp.embedded.configuration import Membership
from streamapp.worker.reserved_ports import free_ports
from tests.broker.workers import PATIENCE, Installation, wait_until
from topics.clients import admin

pytestmark = pytest.mark.broker


@contextmanager
def two_brokers(directory: Path) -> Iterator[tuple[Installation, EmbeddedBroker]]:
    """Topics and groups on a node that is broker and controller; and a second node that is broker alone."""
    with EmbeddedBroker(brief=True) as first:
        join_a_group(first)
        begin_transactions(first)
        place = Installation(first.bootstrap_servers, "away.", 2, directory)
        identity = (first.directory / "data" / "meta.properties").read_text()
        (cluster,) = (line[11:] for line in identity.splitlines() if line.startswith("cluster.id="))
        ports = (port := free_ports(2)), port + 1
        member = Membership(2, cluster, ports, ports, first.ports[1:])
        with EmbeddedBroker(brief=True, member=member) as second:
            yield place, second


def join_a_group(broker: EmbeddedBroker) -> None:
    """Let the topic of the groups' offsets be made while there is no other broker."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "first", "log_level": 0})
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    consumer.subscribe(["none"])
    wait_until(
        lambda: consumer.poll(0.1) is None and "__consumer_offsets" in client.list_topics().topics,
        PATIENCE,
        str,
    )
    consumer.close()


def begin_transactions(broker: EmbeddedBroker) -> None:
    """Let the topic of the transactions' state be made while there is no other broker.

    Else the broker that goes away is the coordinator of every second transactional id, and nothing at all can
    be committed until it is back.
    """
    named = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "first", "log_level": 0}
    Producer(named).init_transactions(PATIENCE)


@pytest.mark.nightly
def test_a_topic_whose_leader_is_away_is_told_and_read_on_when_it_is_back(
    tmp_path: Path,
) -> None:
    with two_brokers(tmp_path) as (place, second):
        client = AdminClient({"bootstrap.servers": place.servers, "log_level": 0})
        wait_until(lambda: len(client.list_topics(timeout=PATIENCE).brokers) == 2, PATIENCE, str)
        place.delete(place.names.labels)
        wait_until(lambda: place.names.labels not in client.list_topics().topics, PATIENCE, str)
        labels = NewTopic(place.names.labels, 2, replica_assignment=[[2], [1]])
        (made,) = client.create_topics([labels]).values()
        made.result(PATIENCE)
        # Each broker leads a part: both know it then.
        admin.wait_until_ready(place.cluster, [place.names.labels])
        producer = place.producer()
        with place.worker("w") as worker:
            worker.wait_until_ready()
            producer.produce(place.names.labels, b"before", b"key", 0)
            assert producer.flush(PATIENCE) == 0
            wait_until(lambda: len(place.read(place.names.predictions)) == 1, PATIENCE, lambda: worker.log)
            second.stop(kill=True)
            wait_until(
                lambda: "does not serve" in worker.page("/livez?verbose")[1], PATIENCE, lambda: worker.log
            )
            status, text = worker.page("/livez?verbose")
            assert status == 200
            assert f"the broker does not serve {place.names.labels}-0" in text
            producer.produce(place.names.instances, b"served", b"key", 0)
            assert producer.flush(PATIENCE) == 0
            wait_until(lambda: len(place.read(place.names.predictions)) == 2, PATIENCE, lambda: worker.log)
            second.start()
            producer.produce(place.names.labels, b"back", b"key", 0)
            assert producer.flush(PATIENCE) == 0
            wait_until(lambda: len(place.read(place.names.predictions)) == 3, PATIENCE, lambda: worker.log)
            wait_until(lambda: "does not serve" not in worker.page("/livez?verbose")[1], PATIENCE, str)
            assert "their records wait, all others go on" in worker.log
            assert "the broker serves all partitions again" in worker.log
            assert worker.terminate() == 0
            second.stop(kill=True)
            # Before, a worker's first requests may go to a broker that is not there any more: it then ends.
            wait_until(lambda: len(client.list_topics(timeout=PATIENCE).brokers) == 1, PATIENCE, str)
            worker.start()
            waits = f"partition-0 failed: waits: {place.names.labels}-0: no leader is known"
            wait_until(lambda: waits in worker.page("/readyz?verbose")[1], PATIENCE, lambda: worker.log)
            producer.produce(place.names.instances, b"elsewhere", b"key", 1)
            assert producer.flush(PATIENCE) == 0
            wait_until(lambda: len(place.read(place.names.predictions)) == 4, PATIENCE, lambda: worker.log)
            assert "partition-1 ok: live" in worker.page("/readyz?verbose")[1]
            second.start()
            worker.wait_until_ready()
            assert worker.terminate() == 0
