"""Logs whose offsets have gaps: transaction markers, aborted batches, compaction. Nothing is lost, the lag
reaches 0.
"""

import random
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.workers import PATIENCE, Installation, ms_ago, wait_until
from tests.conftest import Broker

pytestmark = pytest.mark.broker


def transactional(place: Installation, name: str) -> Producer:
    properties = {"transactional.id": place.prefix + name, "transaction.timeout.ms": 900_000}
    producer = place.producer(**properties)
    producer.init_transactions(PATIENCE)
    return producer


def test_aborted_records_are_skipped_and_markers_do_not_hold_the_lag(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "txn.", 2, tmp_path)
    randomness = random.Random(7)
    producers = [transactional(place, f"txn-{i}") for i in range(2)]
    expected: list[str] = []
    with place.worker("w") as worker:
        worker.wait_until_ready()
        for round_ in range(40):
            commits = randomness.random() < 0.6
            producer = producers[round_ % 2]
            producer.begin_transaction()
            for i in range(randomness.randrange(1, 60)):
                value = f"{round_}-{i}"
                topic = place.names.labels if i % 5 == 4 else place.names.instances
                producer.produce(topic, value.encode(), b"key", i % 2)
                expected += [value] * commits
            producer.flush(PATIENCE)
            producer.commit_transaction(PATIENCE) if commits else producer.abort_transaction(PATIENCE)
        place.wait_for_lag_0(alive=[worker])  # also behind the last marker
        assert worker.metric("grove_sought_back_total") == 0
        assert worker.terminate() == 0
    assert sorted(echo["value"] for echo in place.read(place.names.predictions)) == sorted(expected)


def test_an_open_transaction_on_one_topic_does_not_hold_back_the_others(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "open.", 1, tmp_path)
    pending = transactional(place, "open-1")
    pending.begin_transaction()
    start = ms_ago(60)
    pending.produce(place.names.labels, b"pending", b"key", 0, timestamp=start)
    assert pending.flush(PATIENCE) == 0
    plain = place.producer()
    with place.worker("w") as worker:
        worker.wait_until_ready()
        for i in range(10):
            plain.produce(place.names.instances, str(i).encode(), b"key", 0, timestamp=start + 100 + i)
        assert plain.flush(PATIENCE) == 0
        wait_until(lambda: len(place.read(place.names.predictions)) == 10, PATIENCE, lambda: worker.log)
        pending.commit_transaction(PATIENCE)
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    assert place.read(place.names.predictions)[-1]["value"] == "pending"


def test_holes_of_compaction_are_not_taken_for_losses(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "compact.", 1, tmp_path)
    compact(place, place.names.instances)
    producer = place.producer(**{"batch.num.messages": 50})
    n = 4000
    for i in range(n):
        producer.produce(place.names.instances, str(i).encode() + b"." * 1000, f"key-{i % 10}".encode(), 0)
        if i % 1000 == 999:
            assert producer.flush(PATIENCE) == 0
    wait_until(
        lambda: surviving(place) < n,
        PATIENCE,
        lambda: f"{surviving(place)} records: nothing was compacted",
        1.0,
    )
    left = surviving(place)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.metric("grove_sought_back_total") == 0
        assert worker.metric("grove_records_lost_total") == 0
        assert worker.terminate() == 0
    offsets = [echo["offset"] for echo in place.read(place.names.predictions)]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == n - 1
    assert 10 <= len(offsets) <= left


def surviving(place: Installation) -> int:
    return sum(1 for _ in place.raw(place.names.instances))


def compact(place: Installation, topic: str) -> None:
    """Make the broker compact a topic as soon as it can."""
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",  # the least a broker takes
        "segment.ms": "500",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "1000",
        "min.compaction.lag.ms": "0",
        "delete.retention.ms": "0",
    }
    place.configure(topic, settings)


def test_records_deleted_by_retention_before_they_were_read_are_reported(
    broker: Broker, tmp_path: Path
) -> None:
    place = Installation(broker.bootstrap_servers, "deleted.", 1, tmp_path)
    producer = place.producer()
    for i in range(100):
        producer.produce(place.names.instances, str(i).encode(), b"key", 0)
    assert producer.flush(PATIENCE) == 0
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0
    for i in range(100, 200):
        producer.produce(place.names.instances, str(i).encode(), b"key", 0)
    assert producer.flush(PATIENCE) == 0
    place.delete_before(place.names.instances, 0, 150)
    with place.worker("w") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        assert worker.metric("grove_records_lost_total") == 50
        assert "offsets 100 to 149 were deleted" in worker.log
        assert worker.terminate() == 0
    values = [int(echo["value"]) for echo in place.read(place.names.predictions)]
    assert values == [*range(100), *range(150, 200)]


def test_retention_that_overtakes_a_lagging_worker_loses_nothing_that_was_fetched(
    broker: Broker, tmp_path: Path
) -> None:
    settings = {
        "GROVE_MAX_TASK_IDLE_MS": "600000",  # instances wait for a record of each other source
        "GROVE_MAX_POLL_RECORDS": "10",
    }
    n, cut = 6000, 5000  # of 2 kB; a fetch has 1 MiB, and a worker two of them at most
    place = Installation(broker.bootstrap_servers, "overtaken.", 1, tmp_path, settings)
    names, start, noise = place.names, ms_ago(600), random.Random(5)
    producer = place.producer(**{"batch.num.messages": 10})

    def produce(topic: str, *values: int, at: int) -> None:
        for value in values:
            text = f"{value} {noise.randbytes(1000).hex()}"  # the topic may be compressed
            producer.produce(topic, text.encode(), b"key", 0, timestamp=at)
        assert producer.flush(PATIENCE) == 0

    def echoed() -> list[int]:
        echoes = place.read(names.predictions)
        return [int(echo["value"].split()[0]) for echo in echoes if echo["source"] == "instances"]

    with place.worker("w") as worker:
        worker.wait_until_ready()
        produce(names.instances, *range(n), at=start)
        wait_until(lambda: worker.metric("kafka_consumergroup_lag") > 0, PATIENCE, lambda: worker.log)
        place.delete_before(names.instances, 0, cut)
        assert echoed() == []
        for topic in (names.controls, names.labels, names.feature_values):
            produce(topic, 0, at=start + 1000)  # now the instances may go
        wait_until(lambda: n - 1 in echoed(), PATIENCE, lambda: worker.log)
        fetched = len(echoed()) - (n - cut)
        assert 0 < fetched < cut, "some waited here when the log was cut off, others were never fetched"
        assert echoed() == [*range(fetched), *range(cut, n)]
        assert worker.metric("grove_records_lost_total") == cut - fetched
        assert f"offsets {fetched} to {cut - 1} were deleted by retention" in worker.log
        assert worker.terminate() == 0, worker.log
    produce(names.instances, n, at=start)
    with place.worker("w") as worker:  # the journal and the offsets agree
        worker.wait_until_ready()
        produce(names.instances, n + 1, at=start + 2000)
        wait_until(lambda: n in echoed(), PATIENCE, lambda: worker.log)
        assert worker.terminate() == 0, worker.log
    assert echoed() == [*range(fetched), *range(cut, n + 1)]


def test_a_worker_that_begins_at_the_end_and_dies_goes_on_where_it_began(
    broker: Broker, tmp_path: Path
) -> None:
    settings = {"GROVE_KAFKA_AUTO_OFFSET_RESET": "latest"}
    place = Installation(broker.bootstrap_servers, "latest.", 1, tmp_path, settings)
    producer = place.producer()

    def produce(value: str) -> None:
        producer.produce(place.names.instances, value.encode(), b"key", 0)
        assert producer.flush(PATIENCE) == 0

    produce("before it lived")
    with place.worker("w") as worker:
        worker.wait_until_ready()
        worker.kill()
        produce("while it was dead")
        worker.start()
        worker.wait_until_ready()
        produce("afterwards")
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0, worker.log
    values = [echo["value"] for echo in place.read(place.names.predictions)]
    assert values == ["while it was dead", "afterwards"]
