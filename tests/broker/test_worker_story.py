"""The real worker on a real broker: an outage of the worker while instances and labels pile up."""

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from core.kernels.jit import cache_directory
from tests.broker.workers import PATIENCE, UNHURRIED, Installation, wait_until
from tests.conftest import Broker
from topics.clients.partitioner import partition_of

pytestmark = pytest.mark.broker

MINUTES = 10
EVERY_MS = 50
DELAY_MS = 400
SPEC = {"learner": {"name": "h-tree"}, "query": {"name": "always"}}
FIGURES = ("accuracy_powered", "accuracy_powered_low", "accuracy_always_high", "kappa_unbiased", "brier")


def files_of_kernels() -> dict[Path, int]:
    """The compiled kernels of the product in the cache, and when each was written.

    Tests that run beside this one may compile kernels of their own.
    """
    directories = [directory for half in (False, True) if (directory := cache_directory(half))]
    paths = (path for directory in directories for path in directory.rglob("*.nb[ci]"))
    return {path: path.stat().st_mtime_ns for path in paths if not path.name.startswith("test_")}


def test_after_ten_minutes_without_worker_every_label_is_learned(broker: Broker, tmp_path: Path) -> None:
    place = Installation(broker.bootstrap_servers, "piled.", 2, tmp_path, module="streamapp worker")
    settings: Any = UNHURRIED | {
        "GROVE_MODEL_SPEC": orjson.dumps(SPEC).decode(),
        "GROVE_PENDING_TTL_MS": "5000",
    }
    producer = place.producer()
    keys = [b"model-%d" % i for i in range(3)]
    n = MINUTES * 60_000 // EVERY_MS
    start = int(time.time() * 1000) - MINUTES * 60_000 - DELAY_MS  # not so old that the broker deletes it
    for i in range(n):
        key, at = keys[i % 3], start + i * EVERY_MS
        partition = partition_of(key, 2)
        instance = orjson.dumps({"id": f"i{i}", "features": {"a": i % 10, "b": i % 7}})
        label = orjson.dumps({"id": f"i{i}", "label": "high" if i % 10 > 5 else "low"})
        producer.produce(place.names.instances, instance, key, partition, timestamp=at)
        producer.produce(place.names.labels, label, key, partition, timestamp=at + DELAY_MS)
    assert producer.flush(PATIENCE) == 0
    assert place.lag() == 2 * n
    with place.worker("w", **settings) as worker:
        worker.wait_until_ready()
        place.wait_for_lag_0(alive=[worker])
        outcomes = {
            (topic, outcome): worker.metric_of("grove_records_total", topic=topic, outcome=outcome)
            for topic, outcome in (
                ("instances", "answered"),
                ("labels", "learned"),
                ("labels", "late"),
                ("labels", "early"),
            )
        }
        names = [key.decode() for key in keys]
        shown = {name: [worker.metric_of(f"grove_{f}", model_key=name) for f in FIGURES] for name in names}
        recall = worker.metric_of("grove_class_recall", **{"model_key": "model-0", "class": "high"})
        assert worker.terminate() == 0
    sent = {document["key"].decode(): document for document in place.read(place.names.evaluations)}
    assert shown == {name: [sent[name][figure] for figure in FIGURES] for name in names}
    assert recall == sent["model-0"]["per_class"]["high"]["recall"] > 0.9
    assert outcomes == {
        ("instances", "answered"): n,
        ("labels", "learned"): n,
        ("labels", "late"): 0,
        ("labels", "early"): 0,
    }, worker.log
    predictions = place.read(place.names.predictions)
    assert {p["id"] for p in predictions} == {f"i{i}" for i in range(n)}
    newest = [p for p in predictions if int(p["id"][1:]) > n - 1000]
    right = [p for p in newest if p["label"] == ("high" if int(p["id"][1:]) % 10 > 5 else "low")]
    assert len(right) > 0.95 * len(newest), "what was learned in between shows"


STARTS = 4
"""Starts of a worker until one finds all kernels: tests beside it share the cache, and may compile others."""


def test_a_worker_on_warm_kernels_compiles_nothing(broker: Broker, tmp_path: Path) -> None:
    """And so is at work within seconds; a figure of seconds would be one of the machine's load."""
    place = Installation(broker.bootstrap_servers, "warm.", 2, tmp_path, module="streamapp worker")
    producer = place.producer()
    compiled = [files_of_kernels()]
    for start in range(1, STARTS + 1):  # the first may have to compile the kernels
        producer.produce(place.names.instances, b'{"features":{"a":1},"label":"x"}', b"key", 0)
        assert producer.flush(PATIENCE) == 0
        with place.worker("w", fresh=True) as worker:
            wait_until(
                lambda n=start: len(place.read(place.names.predictions)) == n,  # type: ignore[misc]
                PATIENCE,
                lambda: worker.log,
            )
            assert worker.terminate() == 0
        compiled.append(files_of_kernels())
        if compiled[-1] == compiled[-2]:
            break
    assert compiled[-1] == compiled[-2] != {}
