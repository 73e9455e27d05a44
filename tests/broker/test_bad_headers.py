"""Header names that no client should write: a worker that is killed and replays over them has the same
models, and each record has one outcome.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import orjson
import pytest

from benchmarks.chaos.raw_client import RawClient
from benchmarks.chaos.wire import Record
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from tests.broker.workers import UNHURRIED, Installation
from tests.conftest import Broker

pytestmark = pytest.mark.broker

PACKED = b"application/vnd.grove.packed"
NAMES: dict[bytes, str] = {  # what becomes of a JSON instance with a header of this name and the value PACKED
    "größe".encode("latin-1"): "bad-header",
    b"\xff\xfe": "bad-header",
    b"content-type\0x": "bad-header",  # ends at the NUL: packed, and its value is not
    b"x-trace\0content-type": "answered",
    b"\0": "answered",
    b"x-trace": "answered",
}


def instances(first: int, n: int) -> list[Record]:
    names, now = list(NAMES), int(time.time() * 1000)
    records = []
    for i in range(first, first + n):
        document = {"id": str(i), "features": {"x": i % 7}, "label": "ab"[i % 7 > 3]}
        header = names[i % 10] if i % 10 < len(names) else b"x-trace"
        two = [(header, PACKED), (b"traceparent", b"00-1")] if i % 3 else [(header, None), (header, PACKED)]
        records.append(Record(b"m", orjson.dumps(document), two, now))
    return records


def outcome(i: int) -> str:
    names = list(NAMES)
    return NAMES[names[i % 10]] if i % 10 < len(names) else "answered"


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_worker_that_replays_over_them_goes_on_as_if_it_had_never_died(
    broker: Broker, tmp_path: Path, guarantee: str
) -> None:
    settings = UNHURRIED | {
        "GROVE_PROCESSING_GUARANTEE": guarantee,
        "GROVE_SNAPSHOT_MAX_REPLAY_MS": "600000",  # no snapshot: all is replayed
        "GROVE_SNAPSHOT_INTERVAL_MS": "600000",
    }
    place = Installation(
        broker.bootstrap_servers, "headers.", 1, tmp_path, settings, module="streamapp worker"
    )
    topic = place.names.instances
    with RawClient(place.servers, topic, 0) as producer, place.worker("w") as worker:
        worker.wait_until_ready()
        producer.write(instances(0, 200))
        place.wait_for_lag_0(alive=[worker])
        address = worker.web.removeprefix("http://")
        before = fetch_model(address, "m")
        worker.kill()
        worker.start()
        worker.wait_until_ready()
        assert worker.metric("grove_replayed_records_total") == 200
        assert fetch_model(address, "m") == before
        producer.write(instances(200, 100), compressed=True)
        place.wait_for_lag_0(alive=[worker])
        assert worker.terminate() == 0, worker.log
    answered = Counter(answer["id"] for answer in place.read(place.names.predictions))
    assert answered == {str(i): 1 for i in range(300) if outcome(i) == "answered"}
    letters = Counter(
        (int(headers["__streams.errors.offset"]), headers["grove-dlq-reason"].decode())
        for headers in (dict(letter.headers()) for letter in place.raw(place.names.dead_letters))
    )
    assert letters == {(i, outcome(i)): 1 for i in range(300) if outcome(i) != "answered"}
