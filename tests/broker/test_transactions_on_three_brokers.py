"""Leaders and coordinators move in the middle of transactions: nothing is lost and nothing is doubled."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, ElectionType, KafkaException, TopicPartition

from streamapp.embedded import EmbeddedCluster
from tests.broker.kafka_log import read_topic
from tests.broker.topics_made import made_topic
from tests.broker.workers import PATIENCE, wait_until
from topics.clients.cluster import Cluster
from topics.clients.group_member import GroupMember
from topics.errors import AbortedError
from topics.producing.transactional_producer import TransactionalProducer

pytestmark = [pytest.mark.broker, pytest.mark.nightly]  # three brokers start, and each of them again

PARTITIONS = 3
STATE = "__transaction_state"


class Transactions:
    """Numbered transactions, one after the other; one that is aborted is sent again."""

    def __init__(self, kafka: dict[str, Any], topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self.number = 0
        self.aborted = 0
        self._moved = threading.Condition()

    def run_until(self, faults: Future[None]) -> None:
        with closing(TransactionalProducer(self._kafka, self._topic)) as producer:
            producer.open()
            while not faults.done():
                self._take_one(producer)
                with self._moved:
                    self._moved.notify_all()

    def _take_one(self, producer: TransactionalProducer) -> None:
        places, nothing, zeros = np.arange(PARTITIONS), [None] * PARTITIONS, [0] * PARTITIONS
        try:
            for half in (b"first", b"second"):
                values = [b"%d-%s" % (self.number, half)] * PARTITIONS
                producer.send_run(self._topic, places, values, nothing, zeros)
                producer.flush()
            producer.commit({(self._topic, 0): self.number + 1}, GroupMember(self._topic))
        except AbortedError:
            self.aborted += 1
            producer.abort()
            producer.open()
            if self.position() != self.number + 1:
                return
        self.number += 1

    def position(self) -> int:
        """Return the committed offset, which shows whether a transaction counts."""
        consumer = Consumer({**self._kafka, "group.id": self._topic, "log_level": 0})
        found: list[int] = []

        def is_found() -> bool:
            with contextlib.suppress(KafkaException):  # the coordinator of the group moves, too
                found.append(consumer.committed([TopicPartition(self._topic, 0)], timeout=20)[0].offset)
            return bool(found)

        with closing(consumer):
            wait_until(is_found, PATIENCE, lambda: "no committed offset can be read")
        return found[0]

    def go_on(self) -> None:
        """Return when ten more transactions are committed."""
        until = self.number + 10
        with self._moved:
            assert self._moved.wait_for(lambda: self.number >= until, PATIENCE)


def coordinator_of(cluster: EmbeddedCluster, transactional_id: str) -> int:
    """Return the node that leads the id's partition of the transactions' topic."""
    number = 0
    for letter in transactional_id:  # Java's hash of a string
        number = (31 * number + ord(letter)) & 0xFFFFFFFF
    number &= 0x7FFFFFFF
    return cluster.leader(STATE, number % len(cluster.metadata(STATE).topics[STATE].partitions))


@pytest.mark.timeout(900)
def test_leaders_and_coordinators_move_in_the_middle_of_transactions() -> None:
    with EmbeddedCluster(3, brief=True) as cluster, ThreadPoolExecutor(1) as pool:
        kafka = {"bootstrap.servers": cluster.bootstrap_servers}
        topic = made_topic(kafka, "three", PARTITIONS, replicas=3)
        transactions = Transactions(kafka, topic)

        def lead_again() -> None:
            """Let the preferred replicas lead: a move without a failure."""
            places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            Cluster(kafka).client.elect_leaders(ElectionType.PREFERRED, places).result(PATIENCE)
            transactions.go_on()

        def move() -> None:
            transactions.go_on()
            for kill in (True, False):
                for node_of in (
                    lambda: cluster.leader(topic, 0),
                    lambda: coordinator_of(cluster, topic),
                    lambda: cluster.coordinator(topic),
                ):
                    node = node_of()
                    cluster.stop(node, kill=kill)
                    transactions.go_on()
                    cluster.start(node)
                    transactions.go_on()
                    lead_again()

        transactions.run_until(pool.submit(move))
        wait_until(lambda: transactions.position() == transactions.number, PATIENCE, lambda: "no position")
        halves = [b"%d-%s" % (n, half) for n in range(transactions.number) for half in (b"first", b"second")]
        values = [(message.partition(), message.value()) for message in read_topic(kafka, topic)]
        assert values == [(partition, half) for partition in range(PARTITIONS) for half in halves]
        assert transactions.aborted < transactions.number / 4
