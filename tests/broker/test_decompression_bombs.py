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
from streamapp.worker.observability.pages.models import fetch_model
from tests.broker.workers import UNHURRIED, Installation
from tests.conftest import Broker

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


def bomb(n: int, each: int) -> bytes:
    """Records of so many zero bytes."""
    return encode_records([Record(b"m", bytes(each), (), 0)] * n)


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
    answered = Counter(each["id"] for each in place.read(place.names.predictions))
    assert answered == {str(i): 1 for i in (*range(100), *range(120, 220), *range(240, 340))}
    kafka = {"bootstrap.servers": place.servers}
    letters = list(DeadLetterLog(kafka, place.group, place.names).read(DeadLetterFilter()))
    assert [(letter.reason, letter.origin, letter.last_offset) for letter in letters] == [
        ("batch-too-large", (0, 100), 119),
        ("batch-too-large", (0, 220), 239),
    ]
    assert "becomes more than 67,108,864 (raise fetch.decompressed.max.bytes" in str(letters[0].detail)
