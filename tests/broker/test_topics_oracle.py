"""The oracle on a real broker: requests answered from the data set, none forgotten."""

import threading
import time
import uuid
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka import Producer

from tests.broker.kafka_log import read_topic
from tests.broker.workers import PATIENCE, wait_until
from tests.unit.topics.memory_dataset import counting
from topics.clients import admin
from topics.clients.partitioner import partition_of
from topics.codecs import Limits, decode_labels, encode_feature_requests, encode_label_requests
from topics.columns.records import FeatureRequest, LabelRequests, RawRecords
from topics.definitions import TopicNames
from topics.delay import Delay
from topics.errors import CatalogueError
from topics.oracle import Oracle, OraclePlan, OracleProgress

pytestmark = pytest.mark.broker

PARTITIONS = 4
CLASSES = ("a", "b", "c")
KEYS = [b"model-0", b"model-1", b"model-2"]


@pytest.fixture
def kafka(broker):
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def names(kafka):
    names = TopicNames(f"test-{uuid.uuid4().hex[:12]}.")
    admin.create(kafka, names, PARTITIONS)
    return names


def ask(kafka, names, ids, timestamp=0, keys=KEYS):
    """Send a request for each id, the keys in turn."""
    n = len(ids)
    values = encode_label_requests(
        LabelRequests(
            [f"r-{i}" for i in ids],
            list(ids),
            [],
            [None] * n,
            ["random"] * n,
            np.full(n, np.nan),
            np.full(n, -1, dtype=np.int64),
        )
    )
    producer = Producer(kafka)
    for number, value in enumerate(values):
        key = keys[number % len(keys)]
        producer.produce(
            names.label_requests,
            value,
            key,
            partition_of(key, PARTITIONS),
            timestamp=timestamp + number * bool(timestamp),
        )
    assert producer.flush(PATIENCE) == 0


def labels(kafka, names):
    """Return (id, label, annotator, message) of every label sent; None: declined."""
    messages = read_topic(kafka, names.labels)
    n = len(messages)
    raw = RawRecords(
        names.labels,
        0,
        list(range(n)),
        [0] * n,
        [m.key() for m in messages],
        [m.value() for m in messages],
        [()] * n,
    )
    batch = decode_labels(raw, Limits())
    assert batch.malformed == []
    named = [batch.label_values[c] if c >= 0 else None for c in batch.label.tolist()]
    return list(zip(batch.ids, named, batch.annotators, messages, strict=True))


def answer(kafka, names, dataset=None, **plan):
    plan = {"group_id": names.prefix + "oracle", "idle_seconds": 0.3} | plan
    return Oracle(dataset or counting(1000, CLASSES), OraclePlan(names=names, **plan), kafka).run()


def test_every_request_is_answered_from_the_data_set_where_it_was_asked(kafka, names):
    ask(kafka, names, [str(n) for n in range(900)])
    report = answer(kafka, names)
    given = labels(kafka, names)
    assert {(i, label) for i, label, *_ in given} == {(str(n), CLASSES[n % 3]) for n in range(900)}
    assert len(given) == 900
    assert all(annotator == "oracle" for *_, annotator, _ in given)
    assert all(
        m.key() == KEYS[int(i) % 3] and m.partition() == partition_of(m.key(), PARTITIONS)
        for i, *_, m in given
    )
    assert (report.requests, report.answered, report.wrong, report.waiting) == (900, 900, 0, 0)


def test_features_are_those_of_the_row_where_they_were_asked_for(kafka, names):
    asked = [
        FeatureRequest(f"r-{n}", str(n), ["f1", "f2"] if n % 2 else ["f2"], 1.0, np.nan, {}, 0)
        for n in range(300)
    ]
    producer = Producer(kafka)
    for number, value in enumerate(encode_feature_requests(asked)):
        key = KEYS[number % 3]
        producer.produce(names.feature_requests, value, key, partition_of(key, PARTITIONS))
    assert producer.flush(PATIENCE) == 0
    report = answer(kafka, names, features=True, unavailable=0.1)
    sent = {}
    for message in read_topic(kafka, names.feature_values):
        document = orjson.loads(message.value())
        number = int(document["id"])
        assert message.key() == KEYS[number % 3]
        assert message.partition() == partition_of(message.key(), PARTITIONS)
        values, refused = document.get("features", {}), document.get("unavailable", {})
        assert {*values, *refused} == {*asked[number].features}
        assert all(value == {"f1": number, "f2": number / 2}[name] for name, value in values.items())
        sent[number] = len(values), len(refused)
    assert sorted(sent) == list(range(300))
    assert (report.requests, report.answered, report.malformed, report.waiting) == (300, 300, 0, 0)
    assert (report.features, report.unavailable) == tuple(map(sum, zip(*sent.values(), strict=True)))
    assert 0 < report.unavailable < 90


def test_what_is_committed_is_not_answered_again(kafka, names):
    ask(kafka, names, [str(n) for n in range(50)])
    assert answer(kafka, names).answered == 50
    ask(kafka, names, [str(n) for n in range(50, 70)])
    assert answer(kafka, names).answered == 20
    assert sorted(int(i) for i, *_ in labels(kafka, names)) == list(range(70))


def test_answers_that_wait_at_the_stop_are_given_by_the_next(kafka, names):
    ask(kafka, names, [str(n) for n in range(300)])
    slow = Oracle(
        counting(1000, CLASSES),
        OraclePlan(names=names, group_id=names.prefix + "oracle", delay=Delay(3600, "seconds")),
        kafka,
    )
    stopped = slow.run(lambda p: p.waiting == 300 and slow.stop())
    assert (stopped.answered, stopped.waiting) == (0, 300)
    assert labels(kafka, names) == []
    assert answer(kafka, names).answered == 300
    assert sorted(int(i) for i, *_ in labels(kafka, names)) == list(range(300))


def test_a_limit_leaves_the_rest_to_the_next(kafka, names):
    ask(kafka, names, [str(n) for n in range(500)])
    first = answer(kafka, names, limit=120, idle_seconds=None)
    assert first.answered == 120 and len(labels(kafka, names)) == 120
    second = answer(kafka, names)
    assert second.answered == 380
    assert sorted(int(i) for i, *_ in labels(kafka, names)) == list(range(500))


def test_shares_of_wrong_declined_and_lost(kafka, names):
    n = 3000
    ask(kafka, names, [str(i) for i in range(n)])
    report = answer(
        kafka, names, counting(n, CLASSES), error_rate=0.2, declined=0.1, loss=0.1, annotator=None
    )
    given = labels(kafka, names)
    counts = Counter(
        "declined" if label is None else "right" if label == CLASSES[int(i) % 3] else "wrong"
        for i, label, *_ in given
    )
    assert (counts["wrong"], counts["declined"]) == (report.wrong, report.declined)
    assert report.lost == n - len(given) and report.answered == len(given)
    assert all(annotator is None for *_, annotator, _ in given)
    for count, share in ((report.lost, 0.1), (report.declined, 0.09), (report.wrong, 0.162)):
        assert abs(count - n * share) < 4 * np.sqrt(n * share)


def test_answers_wait_for_the_clock(kafka, names):
    ask(kafka, names, [str(n) for n in range(200)])
    requests = read_topic(kafka, names.label_requests)
    asked = {orjson.loads(m.value())["instance_id"]: m.timestamp()[1] for m in requests}
    assert len(asked) == 200
    started = time.time() * 1000
    answer(kafka, names, delay=Delay(0.8, "seconds"))
    given = labels(kafka, names)
    waited = np.array([m.timestamp()[1] - asked[i] for i, *_, m in given])
    assert len(given) == 200 and waited.min() >= 799
    assert all(m.timestamp()[1] >= started for *_, m in given)


def test_event_time_is_that_of_the_requests(kafka, names):
    start = int(time.time() * 1000) - 3_600_000
    ask(kafka, names, [str(n) for n in range(600)], timestamp=start, keys=KEYS[:1])
    started = time.monotonic()
    answer(kafka, names, delay=Delay(60, "seconds", "exponential"), event_time=True)
    assert time.monotonic() - started < 100, "the answers are due after minutes"
    given = labels(kafka, names)
    waited = np.array([m.timestamp()[1] - (start + int(i)) for i, *_, m in given])
    assert len(given) == 600 and waited.min() >= 0
    assert abs(waited.mean() - 60_000) < 4 * 60_000 / np.sqrt(600)
    stamps = [m.timestamp()[1] for *_, m in given]
    assert stamps == sorted(stamps)


def test_what_cannot_be_answered_is_counted(kafka, names):
    ask(kafka, names, ["5", "1000", "x", "6"])
    producer = Producer(kafka)
    producer.produce(names.label_requests, b"not json", b"k", 0)
    producer.produce(names.label_requests, None, b"k", 0)
    assert producer.flush(PATIENCE) == 0
    report = answer(kafka, names)
    assert (report.requests, report.answered, report.unknown, report.malformed) == (6, 2, 2, 2)
    assert report.first_unknown in ("1000", "x")
    assert sorted(i for i, *_ in labels(kafka, names)) == ["5", "6"]


def test_two_oracles_of_a_group_share_the_work(kafka, names):
    """The second one joins while answers wait: its partitions' answers leave the first one."""
    n, hour = 2000, 3600
    ids = [str(i) for i in range(n)]
    keys = [f"key-{i}".encode() for i in range(20)]
    ask(kafka, names, ids[: n // 2], keys=keys)
    plan = OraclePlan(names=names, group_id=names.prefix + "oracle", delay=Delay(hour, "seconds"))
    oracles = [Oracle(counting(n, CLASSES), plan, kafka) for _ in range(2)]
    heard: list[Any] = [None, None]
    threads = [threading.Thread(target=oracles[k].run, args=(partial(heard.__setitem__, k),)) for k in (0, 1)]
    try:
        threads[0].start()
        wait_until(lambda: heard[0] is not None and heard[0].waiting == n // 2, PATIENCE, lambda: str(heard))
        threads[1].start()
        wait_until(
            lambda: heard[1] and heard[1].waiting and heard[0].waiting + heard[1].waiting == n // 2,
            PATIENCE,
            lambda: str(heard),
        )
        overdue = int(time.time() * 1000) - 2 * hour * 1000
        ask(kafka, names, ids[n // 2 :], timestamp=overdue, keys=keys)
        wait_until(lambda: sum(h.answered for h in heard) == n // 2, PATIENCE, lambda: str(heard))
    finally:
        for oracle, thread in zip(oracles, threads, strict=True):
            oracle.stop()
            if thread.ident is not None:
                thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert all(h.answered > 0 for h in heard)
    assert sorted(i for i, *_ in labels(kafka, names)) == sorted(ids[n // 2 :])
    assert answer(kafka, names).answered >= n // 2  # what is behind an unanswered one was not committed
    assert {i for i, *_ in labels(kafka, names)} == set(ids)


def test_missing_topics_are_said_first(kafka):
    with pytest.raises(CatalogueError, match=r"topic 'absent.label-requests' does not exist"):
        Oracle(counting(1), OraclePlan(names=TopicNames("absent.")), kafka)


def test_a_broker_that_goes_and_comes_back_gets_every_answer(private_broker):
    kafka = {"bootstrap.servers": private_broker.bootstrap_servers}
    names = TopicNames()
    admin.create(kafka, names, PARTITIONS)
    ask(kafka, names, [str(n) for n in range(300)])
    plan = OraclePlan(names=names, delay=Delay(4.0, "seconds", "exponential"), idle_seconds=1.0)
    oracle = Oracle(counting(1000, CLASSES), plan, kafka)
    some = threading.Event()
    done: dict[str, OracleProgress] = {}
    thread = threading.Thread(
        target=lambda: done.update(report=oracle.run(lambda p: p.answered > 20 and some.set()))
    )
    thread.start()
    assert some.wait(PATIENCE)
    private_broker.stop()
    private_broker.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    given = Counter(i for i, *_ in labels(kafka, names))
    assert set(given) == {str(n) for n in range(300)}
    assert sum(given.values()) == done["report"].answered


def bounded(names, **plan):
    return OraclePlan(names=names, group_id=names.prefix + "oracle", waiting_max=40, idle_seconds=0.3, **plan)


def test_while_many_answers_wait_no_requests_are_taken(kafka, names, monkeypatch):
    monkeypatch.setattr("topics.oracle.oracle.PROGRESS_S", 0)
    ask(kafka, names, [str(n) for n in range(600)])
    oracle = Oracle(counting(1000, CLASSES), bounded(names, delay=Delay(3600, "seconds")), kafka)
    waited = []

    def look(state):
        waited.append(state.waiting)
        if waited.count(40) == 20:
            oracle.stop()

    report = oracle.run(look)
    assert (report.requests, report.waiting, max(waited)) == (40, 40, 40)
    assert answer(kafka, names).answered == 600, "nothing was committed"


def test_when_the_answers_are_due_it_goes_on_taking_requests(kafka, names, monkeypatch):
    monkeypatch.setattr("topics.oracle.oracle.PROGRESS_S", 0)
    ahead = int(time.time() * 1000) + 6_000  # asked in the future: all wait
    ask(kafka, names, [str(n) for n in range(600)], timestamp=ahead)
    waited = []
    report = Oracle(counting(1000, CLASSES), bounded(names), kafka).run(lambda s: waited.append(s.waiting))
    assert (report.answered, report.waiting) == (600, 0)
    assert max(waited) <= 40
    assert sorted(int(i) for i, *_ in labels(kafka, names)) == list(range(600))
    assert answer(kafka, names).requests == 0, "all are committed"


def test_in_event_time_the_earliest_of_too_many_answers_go_out(kafka, names, monkeypatch):
    monkeypatch.setattr("topics.oracle.oracle.PROGRESS_S", 0)
    now = int(time.time() * 1000)
    ask(kafka, names, [str(n) for n in range(600)], timestamp=now)
    plan = bounded(names, event_time=True, delay=Delay(900, "seconds"))
    waited = []
    report = Oracle(counting(1000, CLASSES), plan, kafka).run(lambda state: waited.append(state.waiting))
    assert (report.answered, report.waiting) == (600, 0)
    assert max(waited) == 40
    given = labels(kafka, names)
    assert {m.timestamp()[1] - now - 900_000 for *_, m in given} == set(range(600))
    for partition in range(PARTITIONS):
        sent = [int(i) for i, *_, m in given if m.partition() == partition]
        assert sent == sorted(sent), "in the order of their timestamps"
