"""Forests and adaptive trees in the real worker: their alerts; the same bytes after a kill and a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from core.model.model import Model
from streamapp.worker.observability.pages.snapshot_page import fetch_model
from tests.broker.test_snapshots import FREQUENT, KEYS, PARTITIONS, SECONDS, Stream
from tests.broker.workers import Installation
from tests.conftest import Broker
from topics.columns.records import DriftAlert

pytestmark = pytest.mark.broker

SPEC = {"learner": {"name": "ufft", "delta": 0.01, "tau": 0.05, "memory": 200}}
TURN = 3000


class Turning(Stream):
    """Three classes, met one after the other, whose concept turns round; with a nominal attribute."""

    spec: ClassVar[dict[str, Any]] = SPEC

    @staticmethod
    def value(number: int) -> bytes:
        a, b = number * 37 % 101 / 10, number * 53 % 89 / 10
        code = (a > 5) + (b > 6 and number > 200)
        label = ("low", "middle", "high")[(code + (number >= TURN)) % 3]
        colour = ("red", "green", "blue")[number * 7 % 3]
        return orjson.dumps(
            {"id": str(number), "features": {"a": a, "b": b, "colour": colour}, "label": label}
        )

    def told(self) -> dict[str, list[dict[str, Any]]]:
        """Return the drift alerts of each model, as they stand in the log."""
        records_of_key: dict[str, list[dict[str, Any]]] = {key: [] for key in KEYS}
        for record in self.place.read(self.place.names.drift_alerts):
            records_of_key[record["key"].decode()].append(record)
        return records_of_key


def alerts_of(broker: Broker, directory: Path, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the drifts that a worker tells of, which is killed and stopped on the way.

    They, the answers and the models are those of a task that never stopped.
    """
    settings = FREQUENT | {"GROVE_MODEL_SPEC": json.dumps(spec)}
    name = f"{spec['learner']['name']}."
    place = Installation(broker.bootstrap_servers, name, PARTITIONS, directory, settings, "streamapp worker")
    stream = type("TurningOf", (Turning,), {"spec": spec})(place)
    with place.worker("w0") as worker:
        worker.wait_until_ready()
        stream.grow(TURN // 2)
        place.wait_for_lag_0(SECONDS, [worker])
        stream.grow(TURN // 2 + 500)  # some of it is under way
        worker.kill()
        worker.start()
        worker.wait_until_ready()
        stream.check(worker)
        assert worker.terminate() == 0, worker.log
        worker.start()
        worker.wait_until_ready()
        stream.grow(1500)
        stream.check(worker)
        models, effects = stream.played()
        summaries = [Model.restore(models[key]).summary() for key in KEYS]
        assert any(summary.splits > 0 for summary in summaries)
        assert fetch_model(worker.web.removeprefix("http://"), KEYS[0]) == models[KEYS[0]]
        assert worker.terminate() == 0, worker.log
    alerts_told = stream.told()
    expected: dict[str, list[DriftAlert]] = {key: [] for key in KEYS}
    for alert in effects.alerts:
        expected[Stream.key(alert.record)].append(alert.alert)
    assert sum(map(len, alerts_told.values())) > 0
    names = ("node", "depth", "member", "classes", "level", "detector", "action", "version", "instance_id")
    for key in KEYS:
        assert [[alert.get(name) for name in names] for alert in alerts_told[key]] == [
            [getattr(alert, name) for name in names] for alert in expected[key]
        ]
    return [alert for alerts in alerts_told.values() for alert in alerts]


def test_nodes_of_ufft_raise_alerts(broker: Broker, tmp_path: Path) -> None:
    drifts = alerts_of(broker, tmp_path, SPEC)
    assert {tuple(sorted(alert["classes"])) for alert in drifts} >= {("high", "low"), ("low", "middle")}
    assert {alert["action"] for alert in drifts} == {"subtree pruned", "leaf began anew"}
    assert max(alert["depth"] for alert in drifts) > 0
    turned = [alert for alert in drifts if int(alert["instance_id"]) >= TURN]
    assert len(turned) > len(drifts) / 2, "it is the turn that they tell of"


def test_nodes_of_an_adaptive_tree_grow_alternates(broker: Broker, tmp_path: Path) -> None:
    learner = {"name": "hat", "grace_period": 50, "delta": 0.01, "tau": 0.1}
    drifts = alerts_of(broker, tmp_path, {"learner": learner})
    assert {alert["action"] for alert in drifts} == {"alternate tree started", "alternate tree took over"}
    assert max(alert["depth"] for alert in drifts) > 0
    assert min(int(alert["instance_id"]) for alert in drifts) >= TURN, "it is the turn that they tell of"


def test_members_of_a_forest_are_replaced(broker: Broker, tmp_path: Path) -> None:
    learner = {"name": "arf", "members": 3, "member": {"name": "h-tree", "grace_period": 50, "delta": 0.01}}
    drifts = alerts_of(broker, tmp_path, {"learner": learner})
    assert {(alert["action"], alert["member"]) for alert in drifts} == {("new tree", n) for n in range(3)}
    assert min(int(alert["instance_id"]) for alert in drifts) >= TURN, "it is the turn that they tell of"
