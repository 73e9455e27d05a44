"""Batches of a few kilobytes that become hundreds of megabytes: one dead letter each, and all else goes on.

Before and after the worker is killed, and for every other reader of the topics.
"""

from __future__ import annotations

import gzip
import time
from collections import Counter
from pathlib import Path

import cramjam
import orjson
import pytest

from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record, encode_records
from streamapp.tools.dead_letters.find import DeadLetterFilter, DeadLetterLog
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from tests.broker.workers import PATIENCE, UNHURRIED, Installation, wait_until
from tests.conftest import Broker
from topics.codecs import encode_controls

pytestmark = pytest.mark.broker

GZIP, ZSTD = 1, 4
MOST_KB = 1_500_000
"""Of a worker's memory: what it takes itself, and some of the bound. A bomb alone becomes 400 MB."""


def instances(first: int, n: int) -> list[Record]:
    now = int(time.time() * 1000)
    return [
        Record(
            b"m", orjson.dumps({"id": str(i), "features": {"x": i % 7}, "label": "ab"[i % 7 > 3]}), (), now
        )
        for i in range(first, first + n)
    ]


def bomb(n: int, size: int) -> bytes:
    """Records of so many zero bytes."""
    return encode_records([Record(b"m", bytes(size), (), 0)] * n)


def peak_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_bomb_is_one_dead_letter_and_the_partition_goes_on_before_and_after_a_kill(
    broker: Broker, tmp_path: Path, guarantee: str
) -> None:
    settings = UNHURRIED | {
        "GROVE_PROCESSING_GUARANTEE": guarantee,
        "GROVE_SNAPSHOT_MAX_REPLAY_MS": "600000",  # no snapshot: all is replayed
        "GROVE_SNAPSHOT_INTERVAL_MS": "600000",
    }
    place = Installation(broker.bootstrap_servers, "bombs.", 1, tmp_path, settings, module="streamapp worker")
    topic = place.names.instances
    body = bomb(20, 20 << 20)
    with RawClient(place.servers, topic, 0) as producer, place.worker("w") as worker:
        worker.wait_until_ready()
        producer.write(instances(0, 100))
        assert producer.write_body(bytes(cramjam.zstd.compress(body)), 20, ZSTD) == 100
        producer.write(instances(120, 100), compressed=True)
        assert producer.write_body(gzip.compress(body, 1), 20, GZIP) == 220
        producer.write(instances(240, 60))
        place.wait_for_lag_0(alive=[worker])
        address = worker.web.removeprefix("http://")
        before = fetch_model(address, "m")
        assert peak_kb(worker.pid) < MOST_KB
        worker.kill()
        worker.start()
        worker.wait_until_ready()
        assert worker.metric("grove_replayed_records_total") == 260
        assert fetch_model(address, "m") == before
        producer.write(instances(300, 40))
        place.wait_for_lag_0(alive=[worker])
        assert peak_kb(worker.pid) < MOST_KB
        assert worker.terminate() == 0, worker.log
    answered = Counter(answer["id"] for answer in place.read(place.names.predictions))
    assert answered == {str(i): 1 for i in (*range(100), *range(120, 220), *range(240, 340))}
    kafka = {"bootstrap.servers": place.servers}
    letters = list(DeadLetterLog(kafka, place.group, place.names).read(DeadLetterFilter()))
    assert [(letter.reason, letter.origin, letter.last_offset) for letter in letters] == [
        ("batch-too-large", (0, 100), 119),
        ("batch-too-large", (0, 220), 239),
    ]
    assert "becomes more than 67,108,864 (raise fetch.decompressed.max.bytes" in str(letters[0].detail)


def test_a_partition_that_waits_with_large_batches_holds_up_no_other(broker: Broker, tmp_path: Path) -> None:
    settings = UNHURRIED | {
        "GROVE_FETCH_DECOMPRESSED_MAX_BYTES": str(1 << 20),
        "GROVE_RECORD_MAX_BYTES": str(1 << 20),
        "GROVE_MAX_TASK_IDLE_MS": "3600000",
    }
    place = Installation(
        broker.bootstrap_servers, "stalls.", 2, tmp_path, settings, module="streamapp worker"
    )
    now = int(time.time() * 1000)
    value = orjson.dumps({"id": "i", "features": {"x": 1.0}, "note": "a" * 700_000})
    with (
        RawClient(place.servers, place.names.instances, 0) as waits,
        RawClient(place.servers, place.names.instances, 1) as instances_1,
        RawClient(place.servers, place.names.labels, 1) as labels_1,
        RawClient(place.servers, place.names.feature_values, 1) as values_1,
        RawClient(place.servers, place.names.controls, 1) as controls_1,
        place.worker("w") as worker,
    ):
        worker.wait_until_ready()
        for _ in range(3):  # of partition 0, which waits for its other topics
            waits.write([Record(b"m", value, (), now)], compressed=True)
        wait_until(lambda: "gives back decompressed" in worker.log, PATIENCE, lambda: worker.log)
        instances_1.write([Record(b"m", orjson.dumps({"id": "j", "features": {"x": 1.0}}), (), now + 1)])
        labels_1.write([Record(b"m", orjson.dumps({"id": "j", "label": "a"}), (), now + 2)])
        values_1.write([Record(b"m", b"{}", (), now + 3)])
        (control,) = encode_controls([("create", {})])
        controls_1.write([Record(b"m", control, (), now)])
        wait_until(lambda: "created; its first instance" in worker.log, PATIENCE, lambda: worker.log)
        assert worker.terminate() == 0, worker.log
    assert place.lag() == 6, "all but the control wait"
