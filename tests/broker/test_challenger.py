"""A worker that is killed during a challenge decides at the same record as one that never stopped."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamapp.worker.observability.pages.snapshot_page import fetch_model
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from tests.broker.workers import PATIENCE, Installation, wait_until
from topics.columns.records import RawRecords

pytestmark = pytest.mark.broker

KEY = "m"
SPEC: dict[str, Any] = {"learner": "majority-class", "query": "never"}
CHALLENGER: dict[str, Any] = {"learner": {"name": "h-tree", "grace_period": 20, "delta": 0.1, "tau": 0.3}}
BEGAN_MS = time.time_ns() // 10**6  # a broker deletes old records
SCHEMA = {"attributes": [{"name": "a"}, {"name": "b"}], "classes": ["no", "yes"]}
CONTROLS = (
    orjson.dumps({"command": "create", "schema": SCHEMA}),
    orjson.dumps({"command": "challenge", "spec": CHALLENGER, "warm_up": 5}),
)
FREQUENT = {"GROVE_SNAPSHOT_MAX_REPLAY_MS": "1", "GROVE_SNAPSHOT_INTERVAL_MS": "100"}


def value(number: int) -> bytes:
    a, b = number * 37 % 101 / 10, number * 53 % 89 / 10
    return orjson.dumps({"id": str(number), "features": {"a": a, "b": b}, "label": "yes" if a > 5 else "no"})


def time_of(number: int) -> int:
    """Return the event time of an instance: ten in a step at which decisions take effect."""
    return BEGAN_MS + 1000 + 10 * number


def undisturbed(n: int) -> tuple[bytes, list[Any]]:
    """Return the model that one task makes of all records, and its events about challenges."""
    task = Task(0, TaskConfig(model_spec=json.dumps(SPEC)))
    key = KEY.encode()
    effects = [
        task.process(TaskRun("controls", _raw([*CONTROLS], [BEGAN_MS] * len(CONTROLS), key))),
        task.process(TaskRun("instances", _raw([*map(value, range(n))], [*map(time_of, range(n))], key))),
    ]
    events = [happening.event for effect in effects for happening in effect.happened]
    ends = [(event.event, event.offset) for event in events if event.event in ("challenged", "promoted")]
    return task.models.cache.model(task.models.keys.slot(KEY)).snapshot(), ends


def _raw(values: list[bytes | None], times: list[int], key: bytes) -> RawRecords:
    n = len(values)
    return RawRecords("t", 0, list(range(n)), times, [key] * n, values, [()] * n)


class Sending:
    """The records of one key."""

    def __init__(self, place: Installation) -> None:
        self.place, self.n = place, 0
        producer = place.producer()
        for control in CONTROLS:
            producer.produce(place.names.controls, control, KEY, 0, timestamp=BEGAN_MS)
        assert producer.flush(PATIENCE) == 0

    def grow(self, n: int) -> None:
        producer = self.place.producer()
        for number in range(self.n, self.n + n):
            topic, at = self.place.names.instances, time_of(number)
            producer.produce(topic, value(number), KEY, 0, timestamp=at)
        assert producer.flush(PATIENCE) == 0
        self.n += n


def test_a_killed_worker_decides_at_the_same_record(broker: Any, tmp_path: Path) -> None:
    settings = FREQUENT | {"GROVE_MODEL_SPEC": json.dumps(SPEC)}
    place = Installation(broker.bootstrap_servers, "duel.", 1, tmp_path, settings, "streamapp worker")
    sending = Sending(place)
    sending.grow(12)
    with place.worker("w0") as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(PATIENCE, [worker])
        worker.kill()
        sending.grow(6)
        worker.start()
        worker.wait_until_ready()
        place.wait_for_lag_0(PATIENCE, [worker])
        worker.kill()
        sending.grow(400)
        worker.start()
        worker.wait_until_ready()
        place.wait_for_lag_0(PATIENCE, [worker])

        def ends() -> list[Any]:
            events = place.read(place.names.model_events)
            of_challenges = [event for event in events if event["event"] in ("challenged", "promoted")]
            return [(event["event"], event["offset"]) for event in of_challenges]

        model, expected = undisturbed(sending.n)
        assert [name for name, _ in expected] == ["challenged", "promoted"]
        wait_until(lambda: ends() == expected, PATIENCE, lambda: f"{ends()} {worker.log}")
        assert fetch_model(worker.web.removeprefix("http://"), KEY) == model
        assert worker.terminate() == 0, worker.log
