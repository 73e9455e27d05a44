"""Feature traffic while workers are killed: nothing is lost, asked twice or charged twice."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from tests.broker.workers import PATIENCE, Installation, wait_until
from tests.conftest import Broker
from tests.unit.topics.memory_dataset import MemoryDataset
from topics.clients.partitioner import partition_of
from topics.delay import Delay
from topics.oracle import Oracle, OraclePlan, OracleProgress

pytestmark = pytest.mark.broker

PARTITIONS = 2
ROWS = 400
NAMES = ("x", "y", "z")
KEYS = [f"bank-{n}".encode() for n in range(4)]
KILLED_AT = (80, 160, 240)
"""Answers after which the worker is killed."""
SPEC = {
    "learner": {"name": "h-tree", "grace_period": 10, "delta": 0.1, "tau": 0.3},
    "query": "never",
    "acquire": {"name": "path", "explore": 0.4, "timeout_ms": 600_000},
}
SCHEMA = {"attributes": [{"name": name} for name in NAMES], "classes": ["high", "low"]}


def key_of(row: int) -> bytes:
    return KEYS[row % len(KEYS)]


def data() -> MemoryDataset:
    x = np.random.default_rng(5).random((ROWS, 3))
    return MemoryDataset(x, (x[:, 0] > 0.5).astype(int), ("high", "low"), names=NAMES)


@pytest.mark.nightly
def test_nothing_is_lost_asked_twice_or_charged_twice(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "faults.", PARTITIONS, tmp_path, module="streamapp worker")
    names, kafka = place.names, {"bootstrap.servers": broker.bootstrap_servers}
    send(
        place, names.controls, [(key, {"command": "create", "spec": SPEC, "schema": SCHEMA}) for key in KEYS]
    )
    # Late values keep episodes open when a worker dies; some are not to be had.
    plan = OraclePlan(
        names=names,
        group_id=place.prefix + "features",
        features=True,
        unavailable=0.1,
        delay=Delay(0.3, "seconds", distribution="exponential"),
    )
    oracle, reports = Oracle(data(), plan, kafka), list[OracleProgress]()
    answering = threading.Thread(target=lambda: reports.append(oracle.run()))
    answering.start()
    try:
        run_through(place)
    finally:
        oracle.stop()
        answering.join(PATIENCE)
    assert not answering.is_alive() and reports[0].malformed == reports[0].unknown == 0
    check(place)


def run_through(place: Installation) -> None:
    """Send everything, kill the worker again and again, until all is answered."""
    draw, y = random.Random(1), data().y
    rows = [
        (key_of(row), {"id": str(row), "features": {}, "label": ("high", "low")[y[row]]})
        for row in range(ROWS)
    ]
    for row, (_, document) in enumerate(rows):
        document["features"] = {NAMES[draw.randrange(3)]: None} if row % 2 else {"y": float(data().x[row, 1])}
    sent = 0
    for at in (*KILLED_AT, ROWS):
        with place.worker("w", fresh=True) as worker:
            worker.wait_until_ready()
            send(place, place.names.instances, rows[sent : at + 40])
            sent = min(ROWS, at + 40)
            wait_until(partial(has_answered, place, at), PATIENCE, lambda: worker.log)
            if at < ROWS:
                os.kill(worker.pid, signal.SIGKILL)
            else:
                place.wait_for_lag_0(alive=[worker])
                assert worker.metric("grove_open_episodes") == 0
                assert worker.terminate() == 0


def has_answered(place: Installation, n: int) -> bool:
    return len(place.read(place.names.predictions)) >= n


def check(place: Installation) -> None:
    """Compare what was asked, what came and what was charged."""
    names = place.names
    answered = place.read(names.predictions)
    assert sorted(int(answer["id"]) for answer in answered) == list(range(ROWS))
    assert all(answer["key"] == key_of(int(answer["id"])) for answer in answered)
    asked = Counter(
        (request["instance_id"], feature)
        for request in place.read(names.feature_requests)
        for feature in request["features"]
    )
    assert set(asked.values()) == {1}, "nothing is asked twice"
    came: set[tuple[str, str]] = set()
    refused: set[tuple[str, str]] = set()
    for value in place.read(names.feature_values):
        came |= {(value["id"], feature) for feature in value.get("features", ())}
        refused |= {(value["id"], feature) for feature in value.get("unavailable", ())}
    assert came | refused == set(asked) and came and refused
    charged = Counter((answer["id"], name) for answer in answered for name in answer["acquired"]["features"])
    assert charged == Counter(came), "what came is charged once, and nothing else"
    assert sum(answer["acquired"]["cost"] for answer in answered) == len(came)
    assert place.read(names.dead_letters) == []


def send(place: Installation, topic: str, records: list[tuple[bytes, dict[str, Any]]]) -> None:
    producer = place.producer()
    for key, document in records:
        producer.produce(topic, orjson.dumps(document), key, partition_of(key, PARTITIONS))
    assert producer.flush(PATIENCE) == 0
