"""Leaders move while records are delivered without a transaction: nothing is lost, doubled or reordered."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from confluent_kafka import ElectionType, TopicPartition

from streamapp.embedded import EmbeddedCluster
from tests.broker.kafka_log import read_topic
from tests.broker.topics_made import made_topic
from tests.broker.workers import PATIENCE
from topics.clients.cluster import Cluster
from topics.producing.idempotent.idempotent_producer import IdempotentProducer

pytestmark = [pytest.mark.broker, pytest.mark.nightly]  # three brokers start, and each of them again

PARTITIONS = 6


class Deliveries:
    """Numbered rounds of one record for each partition; every tenth round is flushed."""

    def __init__(self, kafka: dict[str, Any], topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self.number = 0
        self._moved = threading.Condition()

    def run_until(self, faults: Future[None]) -> None:
        places, nothing, zeros = np.arange(PARTITIONS), [None] * PARTITIONS, [0] * PARTITIONS
        with closing(IdempotentProducer(self._kafka)) as producer:
            while not faults.done():
                for _ in range(10):
                    values = [b"%d" % self.number] * PARTITIONS
                    producer.send_run(self._topic, places, values, nothing, zeros)
                    self.number += 1
                producer.flush()
                with self._moved:
                    self._moved.notify_all()

    def go_on(self) -> None:
        """Return when a hundred more rounds are delivered."""
        until = self.number + 100
        with self._moved:
            assert self._moved.wait_for(lambda: self.number >= until, PATIENCE)


@pytest.mark.timeout(900)
def test_leaders_move_while_records_are_delivered() -> None:
    with EmbeddedCluster(3, brief=True) as cluster, ThreadPoolExecutor(1) as pool:
        kafka = {"bootstrap.servers": cluster.bootstrap_servers}
        topic = made_topic(kafka, "three", PARTITIONS, {"min.insync.replicas": "2"}, replicas=3)
        deliveries = Deliveries(kafka, topic)

        def move() -> None:
            places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            deliveries.go_on()
            for kill in (True, False):
                for partition in (0, 1, 2):
                    node = cluster.leader(topic, partition)
                    cluster.stop(node, kill=kill)
                    deliveries.go_on()
                    cluster.start(node)
                    deliveries.go_on()
                    Cluster(kafka).client.elect_leaders(ElectionType.PREFERRED, places).result(PATIENCE)
                    deliveries.go_on()

        deliveries.run_until(pool.submit(move))
        values = [(message.partition(), message.value()) for message in read_topic(kafka, topic)]
    rounds = [b"%d" % number for number in range(deliveries.number)]
    assert values == [(partition, value) for partition in range(PARTITIONS) for value in rounds]
