"""The producers of the benchmark of transactions commit the same records and offsets."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Consumer, TopicPartition

from benchmarks.rig.commits import PRODUCERS, Load
from benchmarks.transactions import turn
from tests.broker.kafka_log import read_topic
from tests.conftest import Broker
from topics.clients import admin
from topics.definitions import TopicNames

pytestmark = pytest.mark.broker

PARTITIONS, COMMITS = 2, 3


@pytest.mark.parametrize("producer", PRODUCERS)
def test_every_commit_is_visible_with_its_offsets(broker: Broker, producer: str) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    names = TopicNames(f"commits-{uuid.uuid4().hex[:6]}.")
    admin.create(kafka, names, PARTITIONS)
    load = Load(names, PARTITIONS, 6)
    sender = PRODUCERS[producer](broker.bootstrap_servers, load, names.prefix, 5)
    for number in range(1, COMMITS + 1):
        sender.commit(number)
    sender.close()
    answers = [
        (message.partition(), message.key(), message.value())
        for message in read_topic(kafka, names.predictions)
    ]
    expected = list(zip(load.places.tolist(), load.keys, load.values, strict=True)) * COMMITS
    assert sorted(answers) == sorted(expected)
    journal = [message.value() for message in read_topic(kafka, names.journal)]
    assert sorted(journal) == sorted(load.journal * COMMITS)
    consumer = Consumer({**kafka, "group.id": names.prefix})
    partitions = [TopicPartition(names.instances, number) for number in range(PARTITIONS)]
    committed = consumer.committed(partitions, timeout=20)
    consumer.close()
    assert [position.offset for position in committed] == [COMMITS] * PARTITIONS
    assert {part: len(took) for part, took in sender.parts.items()} == dict.fromkeys(
        ("offsets", "flush", "end"), COMMITS
    )


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_turn_measures_every_commit(broker: Broker, producer: str) -> None:
    names = TopicNames(f"commits-{uuid.uuid4().hex[:6]}.")
    admin.create({"bootstrap.servers": broker.bootstrap_servers}, names, 1)
    found = turn(broker.bootstrap_servers, Load(names, 1, 2), producer, 5, 0.0, COMMITS)
    assert len(found.parts["all"]) == COMMITS
    assert min(found.parts["all"]) > 0
    assert found.cpu_ms > 0
