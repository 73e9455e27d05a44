"""Replay of existing topics on a real broker: which records, in which order, and where to."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer

from streamapp.cli.main import main
from tests.broker.kafka_log import read_topic
from tests.broker.workers import PATIENCE, ms_ago
from tests.conftest import Broker
from topics.clients import admin
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames

pytestmark = pytest.mark.broker

KEYS = [b"a", b"b", b"c", "ü".encode()]


@pytest.fixture
def places(broker: Broker) -> tuple[dict[str, str], TopicNames, TopicNames]:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    old, new = (TopicNames(f"{name}-{uuid.uuid4().hex[:8]}.") for name in ("old", "new"))
    admin.create(kafka, old, 3)
    admin.create(kafka, new, 2)
    return kafka, old, new


def fill(kafka: dict[str, str], old: TopicNames, start: int) -> list[tuple[int, str, bytes, bytes]]:
    """Instances and labels of four keys, one of either every 10 ms, some in transactions that are aborted."""
    sent = []
    plain = Producer(kafka | {"enable.idempotence": True})
    wrapped = Producer(kafka | {"transactional.id": uuid.uuid4().hex})
    wrapped.init_transactions(PATIENCE)
    for i in range(400):
        topic = (old.instances, old.labels)[i % 2]
        key, value, at = KEYS[i * 7 % 4], b'{"n":%d}' % i, start + 10 * i
        headers: list[tuple[str, str | bytes | None]] = [("trace", b"\x00\xff"), ("n", str(i).encode())]
        where: dict[str, Any] = {"partition": partition_of(key, 3), "timestamp": at}
        where |= {"headers": headers} if i % 5 else {}  # most producers send none
        producer = plain
        if i % 50 >= 40:  # a tenth of a second of either kind, at the end of each half
            producer = wrapped
            if i % 50 == 40:
                wrapped.begin_transaction()
        producer.produce(topic, value, key, **where)
        if producer is plain or i % 100 < 50:
            sent.append((at, topic, key, value))
        if i % 50 == 49:
            assert plain.flush(PATIENCE) == wrapped.flush(PATIENCE) == 0
            (wrapped.commit_transaction if i % 100 < 50 else wrapped.abort_transaction)(PATIENCE)
    plain.produce(old.instances, b"nobody's", None, 0, timestamp=start + 1000)
    assert plain.flush(PATIENCE) == 0
    return sent


def test_records_of_a_time_go_to_the_partitions_of_their_keys_in_order(
    places: tuple[dict[str, str], TopicNames, TopicNames], capsys: pytest.CaptureFixture[str]
) -> None:
    kafka, old, new = places
    start = ms_ago(3600)
    sent = fill(kafka, old, start)
    begin, end = start + 500, start + 3705

    def replay(*options: str) -> dict[str, Any]:
        words = [
            "replay",
            "-b",
            kafka["bootstrap.servers"],
            "--topics-prefix",
            new.prefix,
            "--json",
            *options,
        ]
        words += [f"--from-topic={old.instances}", f"--from-topic={old.labels}=labels", f"--to={iso(end)}"]
        assert main(words) == 0, capsys.readouterr().err
        return dict(json.loads(capsys.readouterr().out))

    in_time = [entry for entry in sent if begin <= entry[0] < end]
    first = replay(f"--from={iso(begin)}", "--records=100")
    assert (first["records"], first["next_ms"], first["left_out"]) == (100, in_time[100][0], 1)
    rest = replay(f"--from={iso(first['next_ms'])}")
    assert (rest["records"], rest["next_ms"], rest["left_out"]) == (len(in_time) - 100, None, 0)
    for ours, theirs in ((new.instances, old.instances), (new.labels, old.labels)):
        messages = list(read_topic(kafka, ours))
        for partition in range(2):
            there = [m for m in messages if m.partition() == partition]
            here = [
                entry for entry in in_time if entry[1] == theirs and partition_of(entry[2], 2) == partition
            ]
            assert [(m.timestamp()[1], m.key(), m.value()) for m in there] == [
                (at, key, value) for at, _, key, value in here
            ]
            numbers = [json.loads(m.value())["n"] for m in there]
            assert [m.headers() for m in there] == [
                [("trace", b"\x00\xff"), ("n", str(n).encode())] if n % 5 else None for n in numbers
            ]


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
