"""The catalogue on a real cluster: created once, checked for every difference, described with offsets."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.broker.workers import PATIENCE
from topics.clients import admin
from topics.definitions import CATALOGUE, TopicNames, retention
from topics.errors import BrokerError

pytestmark = pytest.mark.broker


@pytest.fixture
def names():
    return TopicNames(f"test-{uuid.uuid4().hex[:12]}.")


@pytest.fixture
def kafka(broker):
    return {"bootstrap.servers": broker.bootstrap_servers}


def make(kafka, **partitions):
    """Create topics beside the catalogue's way."""
    client = AdminClient(kafka)
    for future in client.create_topics([NewTopic(n, c, 1) for n, c in partitions.items()]).values():
        future.result(PATIENCE)


def test_creating_twice_changes_nothing(kafka, names):
    first = admin.create(kafka, names, partitions=4)
    second = admin.create(kafka, names, partitions=8)
    assert first == admin.Creation(tuple(names.all()), ())
    assert second == admin.Creation((), tuple(names.all()))
    assert admin.check(kafka, names, partitions=4) == []


def test_what_one_creator_misses_the_next_one_adds(kafka, names):
    make(kafka, **{names.labels: 4})
    done = admin.create(kafka, names, partitions=4)
    assert done.existed == (names.labels,)
    assert set(done.created) == set(names.all()) - {names.labels}


def test_two_creators_at_once_agree(kafka, names):
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: admin.create(kafka, names, partitions=2), range(2)))
    assert sorted(both[0].created + both[1].created) == sorted(names.all())
    assert admin.check(kafka, names, partitions=2) == []


def test_check_names_missing_topics(kafka, names):
    differences = admin.check(kafka, names)
    assert [d.topic for d in differences] == list(names.all())
    assert {d.what for d in differences} == {"missing"}


def test_check_names_both_topics_and_both_counts_of_a_broken_group(kafka, names):
    make(kafka, **{names.labels: 3})
    admin.create(kafka, names, partitions=4)
    [difference] = [d for d in admin.check(kafka, names) if d.what == "partitions"]
    assert difference.message.startswith(
        f"topic '{names.labels}' has 3 partitions, '{names.instances}' has 4; they must be equal"
    )


def test_check_compares_with_the_setting(kafka, names):
    admin.create(kafka, names, partitions=2)
    by_what = {d.what: d for d in admin.check(kafka, names, partitions=16, replication=3)}
    assert "topics.partitions=16" in by_what["partitions"].message
    assert by_what["replication.factor"].found == "1"
    assert len(admin.check(kafka, names, replication=3)) == len(CATALOGUE)


def test_check_names_every_setting_that_differs(kafka, names):
    admin.create(kafka, names, partitions=1)
    resource = ConfigResource(
        ResourceType.TOPIC,
        names.controls,
        incremental_configs=[
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET),
        ],
    )
    client = AdminClient(kafka)  # its futures live as long as it does
    for future in client.incremental_alter_configs([resource]).values():
        future.result(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while len(differences := admin.check(kafka, names)) < 2:  # the broker applies it a moment later
        assert time.monotonic() < deadline
    assert {(d.topic, d.what, d.found, d.expected) for d in differences} == {
        (names.controls, "cleanup.policy", "compact", "delete"),
        (names.controls, "retention.ms", "60000", "-1"),
    }
    assert all("kafka-configs --alter" in d.message for d in differences)


def test_describe_shows_offsets_leaders_settings_and_lag(kafka, names):
    admin.create(kafka, names, partitions=2)
    producer = Producer(kafka)
    for _ in range(5):
        producer.produce(names.instances, b"{}", b"k", partition=1)
    assert producer.flush(PATIENCE) == 0
    group = names.prefix + "group"
    consumer = Consumer(kafka | {"group.id": group})
    consumer.commit(offsets=[TopicPartition(names.instances, 1, 3)], asynchronous=False)
    consumer.close()

    described = {d.name: d for d in admin.describe(kafka, names, group)}
    assert list(described) == list(names.all())
    instances = described[names.instances]
    assert instances.exists and instances.offsets == 5
    assert [(p.partition, p.start, p.end, p.lag) for p in instances.partitions] == [
        (0, 0, 0, None),
        (1, 0, 5, 2),
    ]
    assert all(p.leader is not None and p.leader in p.in_sync for p in instances.partitions)
    assert instances.config["retention.ms"] == str(7 * 24 * 3600 * 1000)
    assert [(d.cleanup, d.retention, d.key, d.group) for d in described.values()] == [
        (t.cleanup, retention(t.retention_ms), t.key, t.group) for t in CATALOGUE
    ]


def test_describe_lists_topics_that_do_not_exist(kafka, names):
    described = admin.describe(kafka, names)
    assert {(d.exists, d.partitions, d.cleanup, d.retention) for d in described} == {(False, (), None, None)}


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no-such-host.invalid:9092"])
def test_a_broker_that_is_not_there_is_one_error(address):
    with pytest.raises(
        BrokerError, match=f"bootstrap.servers={address} did not answer within .*grove broker"
    ):
        admin.check({"bootstrap.servers": address}, TopicNames())


def test_no_address_is_an_error_that_shows_one():
    with pytest.raises(BrokerError, match=r"bootstrap\.servers must be set, for example"):
        admin.check({}, TopicNames())
