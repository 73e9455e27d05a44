"""Replay on a real broker: every row once, on time, in the right partition."""

import json
import threading
import time
import uuid
from collections import Counter

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.broker.kafka_log import read_topic
from tests.broker.workers import PATIENCE, wait_until
from tests.unit.topics.memory_dataset import MemoryDataset, counting
from topics.clients import admin
from topics.clients.cluster import Cluster
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames
from topics.delay import Delay
from topics.errors import BrokerError, CatalogueError, DatasetError, DeliveryError
from topics.replay import LoopGroups, Replay, ReplayPlan, ReplayProgress

pytestmark = pytest.mark.broker

PARTITIONS = 4
CHUNK_MS = 12  # by so much may a row be early, rounding of timestamps included


@pytest.fixture
def kafka(broker):
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def names(kafka):
    names = TopicNames(f"test-{uuid.uuid4().hex[:12]}.")
    admin.create(kafka, names, PARTITIONS)
    return names


def run(dataset, kafka, **plan):
    return Replay(dataset, ReplayPlan(**plan), kafka).run()


def rows_of(messages):
    """Return the row numbers in the ids of JSON records."""
    return [int(json.loads(m.value())["id"]) for m in messages]


def test_every_row_once_in_order_in_its_partition(kafka, names):
    report = run(counting(10_000), kafka, names=names)
    messages = read_topic(kafka, names.instances)
    assert rows_of(messages) == list(range(10_000))
    assert {m.partition() for m in messages} == {partition_of(b"default", PARTITIONS)}
    assert json.loads(messages[7].value()) == {"id": "7", "features": {"f1": 7.0, "f2": 3.5}, "label": "yes"}
    assert (report.rows, report.instances, report.next_row, report.total_rows) == (
        10_000,
        10_000,
        10_000,
        10_000,
    )
    assert not report.stopped and report.rows_per_second > 0


def test_many_keys_go_where_murmur2_says(kafka, names):
    keys = tuple(f"model-{n}" for n in range(50))
    run(counting(5000), kafka, names=names, keys=keys, spread="zipf")
    messages = read_topic(kafka, names.instances)
    assert sorted(rows_of(messages)) == list(range(5000))
    assert all(m.partition() == partition_of(m.key(), PARTITIONS) for m in messages)
    assert {m.partition() for m in messages} == set(range(PARTITIONS))
    counts = Counter(m.key() for m in messages)
    assert counts.most_common(1)[0][0] == b"model-0"


@pytest.mark.parametrize("format", ["json", "packed", "arrow"])
def test_labels_apart_are_complete(kafka, names, format):
    report = run(
        counting(3000),
        kafka,
        names=names,
        labels="apart",
        label_delay=Delay(50),
        format=format,
        block_rows=500,
    )
    assert (report.labels_lost, report.labels_owed) == (0, 0)
    expected = (6, 6) if format == "arrow" else (3000, 3000)
    assert (report.instances, report.labels) == expected
    assert len(read_topic(kafka, names.instances)) == expected[0]
    labels = read_topic(kafka, names.labels)
    assert len(labels) == expected[1]
    if format == "json":
        assert [json.loads(m.value()) for m in labels[:2]] == [
            {"id": "0", "label": "no"},
            {"id": "1", "label": "yes"},
        ]


def test_no_row_of_a_rate_is_sent_before_its_time(kafka, names):
    began = time.time() * 1000
    report = run(counting(3000), kafka, names=names, rate=2000)
    stamps = np.array([m.timestamp()[1] for m in read_topic(kafka, names.instances)])
    late = stamps - began - np.arange(3000) / 2.0  # ms
    # Sent in chunks of 10 ms, so never earlier than that; a busy machine may be late.
    assert late.min() >= -CHUNK_MS
    assert report.seconds > 1.4


def test_a_low_rate_sends_row_by_row(kafka, names):
    began = time.time() * 1000
    run(counting(8), kafka, names=names, rate=20)
    stamps = np.array([m.timestamp()[1] for m in read_topic(kafka, names.instances)])
    # One row every 50 ms; a busy machine may send some late, and then others closely behind.
    assert (stamps - began - 50 * np.arange(8)).min() >= -CHUNK_MS


def test_labels_wait_for_the_clock(kafka, names):
    began = time.time() * 1000
    report = run(
        counting(400), kafka, names=names, labels="apart", label_delay=Delay(0.4, "seconds"), rate=1000
    )
    labels = read_topic(kafka, names.labels)
    assert rows_of(labels) == list(range(400))
    stamps = np.array([m.timestamp()[1] for m in labels])
    assert (stamps - began - np.arange(400)).min() >= 400 - CHUNK_MS
    assert report.seconds >= 0.79  # the last row at 0.4 s, its label 0.4 s later


def test_ten_minutes_of_event_time_at_once(kafka, names):
    start = int(time.time() * 1000) - 600_000
    started = time.monotonic()
    plan = {
        "labels": "apart",
        "label_delay": Delay(30, "seconds", "exponential"),
        "start_ms": start,
        "step_ms": 100.0,
    }
    run(counting(6000), kafka, names=names, **plan)
    assert time.monotonic() - started < 300, "half of it at most"
    instances = read_topic(kafka, names.instances)
    assert [m.timestamp()[1] for m in instances] == [start + 100 * n for n in range(6000)]
    labels = read_topic(kafka, names.labels)
    stamps = [m.timestamp()[1] for m in labels]
    assert stamps == sorted(stamps)
    waited = np.array(
        [m.timestamp()[1] - (start + 100 * row) for m, row in zip(labels, rows_of(labels), strict=True)]
    )
    assert sorted(rows_of(labels)) == list(range(6000))
    assert waited.min() >= 0 and abs(waited.mean() - 30_000) < 4 * 30_000 / np.sqrt(6000)


def test_stopped_and_resumed_is_every_row_once(kafka, names):
    dataset = counting(20_000)
    plan = {"names": names, "labels": "apart", "label_delay": Delay(500), "seed": 3}
    first = Replay(dataset, ReplayPlan(rate=20_000, **plan), kafka)
    heard = []

    def stop_midway(progress):
        heard.append(progress)
        if progress.rows >= 4000:
            first.stop()

    stopped = first.run(stop_midway)
    assert stopped.stopped and 4000 <= stopped.rows < 20_000
    assert stopped.next_row == stopped.rows and stopped.labels_owed == 0
    assert heard[0].labels_owed > 0 and heard[0].total_rows == 20_000
    resumed = run(dataset, kafka, from_row=stopped.next_row, **plan)
    assert resumed.rows == 20_000 - stopped.rows and not resumed.stopped
    assert rows_of(read_topic(kafka, names.instances)) == list(range(20_000))
    assert rows_of(read_topic(kafka, names.labels)) == list(range(20_000))


def test_a_loop_counts_on_and_can_be_resumed(kafka, names):
    run(counting(100), kafka, names=names, loop=True, records=250)
    run(counting(100), kafka, names=names, loop=True, records=30, from_row=250)
    messages = read_topic(kafka, names.instances)
    assert rows_of(messages) == list(range(280))
    assert [json.loads(m.value())["features"]["f1"] for m in messages] == [n % 100 for n in range(280)]


def test_an_endless_loop_stops_when_told(kafka, names):
    replay = Replay(counting(100), ReplayPlan(names=names, loop=True, rate=5000), kafka)
    done: dict[str, ReplayProgress] = {}
    thread = threading.Thread(
        target=lambda: done.update(report=replay.run(lambda p: p.rows > 500 and replay.stop()))
    )
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    report = done["report"]
    assert report.stopped and report.total_rows is None
    assert rows_of(read_topic(kafka, names.instances)) == list(range(report.rows))


def test_from_row_and_records(kafka, names):
    report = run(counting(100), kafka, names=names, from_row=90, records=5)
    assert rows_of(read_topic(kafka, names.instances)) == [90, 91, 92, 93, 94]
    assert (report.rows, report.next_row, report.total_rows) == (5, 95, 5)
    assert run(counting(100), kafka, names=names, from_row=100).rows == 0
    with pytest.raises(DatasetError, match="from_row=101 must be at most the 100 rows"):
        run(counting(100), kafka, names=names, from_row=101)


def test_nothing_to_loop_over(kafka, names):
    with pytest.raises(DatasetError, match="no rows to loop over"):
        run(MemoryDataset(np.empty((0, 1)), []), kafka, names=names, loop=True)


def test_a_full_queue_is_waited_for(kafka, names):
    run(counting(5000), kafka | {"queue.buffering.max.messages": 50}, names=names)
    assert rows_of(read_topic(kafka, names.instances)) == list(range(5000))


@pytest.mark.parametrize("rows", [1, 3])
def test_a_timestamp_that_the_topic_refuses_is_an_error_with_its_setting(kafka, names, rows):
    far = 10**13  # beyond message.timestamp.after.max.ms, which is an hour
    with pytest.raises(DeliveryError, match=r"not delivered; .*message\.timestamp\.after\.max\.ms"):
        run(counting(rows), kafka, names=names, start_ms=far)


def test_a_record_that_the_topic_refuses_is_an_error(kafka, names):
    client = AdminClient(kafka)
    prefix = names.prefix + "small."
    topic = NewTopic(prefix + "instances", PARTITIONS, 1, config={"max.message.bytes": "2000"})
    client.create_topics([topic])[topic.topic].result(PATIENCE)
    admin.wait_until_ready(Cluster(kafka), [topic.topic])
    dataset = MemoryDataset(np.random.default_rng(1).normal(size=(10, 500)), np.zeros(10))
    with pytest.raises(DeliveryError, match=r"10 records were not delivered; .*max.message.bytes"):
        run(dataset, kafka, names=TopicNames(prefix))


def test_missing_topics_and_different_counts_are_said_first(kafka, names):
    with pytest.raises(
        CatalogueError, match=r"topic 'absent.instances' does not exist .*grove topics create"
    ):
        run(counting(1), kafka, names=TopicNames("absent."))
    prefix = names.prefix + "odd."
    client = AdminClient(kafka)
    topics = [NewTopic(prefix + "instances", 4, 1), NewTopic(prefix + "labels", 3, 1)]
    for future in client.create_topics(topics).values():
        future.result(PATIENCE)
    admin.wait_until_ready(Cluster(kafka), [topic.topic for topic in topics])
    with pytest.raises(
        CatalogueError, match=r"labels' has 3 partitions, .*instances' has 4; they must be equal"
    ):
        run(counting(1), kafka, names=TopicNames(prefix), labels="apart")


def test_no_broker_is_one_error():
    with pytest.raises(BrokerError, match="bootstrap.servers=127.0.0.1:1 did not answer"):
        Replay(counting(1), ReplayPlan(), {"bootstrap.servers": "127.0.0.1:1"})


def test_a_broker_that_goes_and_comes_back_gets_every_row_once(private_broker):
    kafka = {"bootstrap.servers": private_broker.bootstrap_servers}
    names = TopicNames()
    admin.create(kafka, names, 2)
    replay = Replay(counting(6000), ReplayPlan(names=names, rate=1000), kafka)
    midway = threading.Event()
    thread = threading.Thread(target=replay.run, args=(lambda p: p.rows > 1000 and midway.set(),))
    thread.start()
    assert midway.wait(PATIENCE)
    private_broker.stop()
    private_broker.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert rows_of(read_topic(kafka, names.instances)) == list(range(6000))


def test_stopped_while_the_broker_is_away_ends_with_the_reason(private_broker):
    kafka = {"bootstrap.servers": private_broker.bootstrap_servers}
    names = TopicNames()
    admin.create(kafka, names, 2)
    replay = Replay(counting(100_000), ReplayPlan(names=names, rate=1000), kafka)
    midway = threading.Event()
    raised = []

    def run_replay():
        with pytest.raises(DeliveryError) as caught:
            replay.run(lambda p: p.rows > 500 and midway.set())
        raised.append(str(caught.value))

    thread = threading.Thread(target=run_replay)
    thread.start()
    assert midway.wait(PATIENCE)
    private_broker.stop()
    replay.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert "not delivered within 10 s of the stop: the broker is away" in raised[0]


class Loop:
    """Workers and oracle of a replay, who commit what the test wants."""

    def __init__(self, kafka, names):
        self.kafka, self.names, self.cluster = kafka, names, Cluster(kafka)
        self.groups = LoopGroups(*(f"{names.prefix}{who}" for who in ("workers", "oracle", "features")))
        self.producer = Producer(kafka)

    def ends(self, topic):
        places = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        offsets = self.cluster.offsets(places, OffsetSpec.latest())
        return [offsets[topic, p] for p in range(PARTITIONS)]

    def sent(self):
        return sum(self.ends(self.names.instances))

    def commit(self, group, topic):
        consumer = Consumer(self.kafka | {"group.id": group})
        ends = [TopicPartition(topic, p, at) for p, at in enumerate(self.ends(topic))]
        consumer.commit(offsets=ends, asynchronous=False)
        consumer.close()

    def put(self, topic):
        self.producer.produce(topic, b"{}", b"default", partition_of(b"default", PARTITIONS))
        assert self.producer.flush(PATIENCE) == 0


def test_a_replay_waits_for_the_label_loop_and_is_never_further_ahead_than_it_may(kafka, names):
    loop, has_told = Loop(kafka, names), threading.Event()
    plan = ReplayPlan(names=names, labels="none", max_outstanding=10)
    replay = Replay(counting(40), plan, kafka, loop.groups, lambda line: has_told.set())
    thread = threading.Thread(target=replay.run)
    thread.start()
    wait_until(lambda: loop.sent() == 10, PATIENCE, loop.sent)
    loop.put(names.label_requests)
    loop.commit(loop.groups.workers, names.instances)
    assert loop.sent() == 10, "the oracle has a request before it"
    assert has_told.wait(PATIENCE), "a person hears that it waits"
    assert loop.sent() == 10
    loop.put(names.labels)
    loop.commit(loop.groups.oracle, names.label_requests)
    assert loop.sent() == 10, "the workers have a label before them"
    loop.commit(loop.groups.workers, names.labels)
    for most in (20, 30, 40):  # of these rows nothing is asked
        wait_until(lambda: loop.sent() == most, PATIENCE, loop.sent)  # noqa: B023 - it ends in this turn
        loop.commit(loop.groups.workers, names.instances)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_labels_in_their_instances_need_no_oracle_and_a_stop_ends_the_wait(kafka, names):
    loop = Loop(kafka, names)
    plan = ReplayPlan(names=names, max_outstanding=7)
    replay = Replay(counting(40), plan, kafka, loop.groups)
    reports = []
    thread = threading.Thread(target=lambda: reports.append(replay.run()))
    thread.start()
    wait_until(lambda: loop.sent() == 7, PATIENCE, loop.sent)
    loop.commit(loop.groups.workers, names.instances)
    wait_until(lambda: loop.sent() == 14, PATIENCE, loop.sent)
    replay.stop()
    thread.join(PATIENCE)
    assert (reports[0].rows, reports[0].stopped) == (14, True)
