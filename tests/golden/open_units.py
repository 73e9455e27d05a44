"""Writes units of a task with open challenges and episodes: ``python -m tests.golden.open_units``.

``open-units-<format>-<state>.bin`` has the layout of the files of `units`: a task with a challenger beside a
model, and with records that wait for features. ``.json`` beside it has the names of the units, and what the
task sends when it goes on. Files of formats that were released stay, and stay readable.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import orjson

from core.state_version import ALIKE_SINCE
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import FORMAT_VERSION, Unit
from tests.golden import units
from tests.golden.versions import ascending
from tests.topology.partition import ALWAYS, PARTITION, Partition, Record, config

HERE: Final = Path(__file__).parent
SCHEMA: Final[dict[str, Any]] = {
    "attributes": [{"name": "x", "range": [0, 10], "cost": 2.5}, {"name": "y", "thresholds": [3, 6]}],
    "classes": ["low", "high"],
}
BUYERS: Final[dict[str, dict[str, Any]]] = {
    "random": {"acquire": {"name": "random", "share": 1.0}},
    "ufodt": {"learner": {"name": "ufodt", "hypotheses": 20}},
}
"""Specs of the models that buy features, by their keys: one has its episodes in its own words."""
CHALLENGER: Final[dict[str, Any]] = {"learner": "majority-class"}


def configuration() -> TaskConfig:
    return config(ALWAYS)


def files() -> list[Path]:
    return ascending(HERE.glob("open-units-*.bin"))


def file_of_now() -> Path:
    """Return the file of the version in which models of these specs are written."""
    return HERE / f"open-units-{FORMAT_VERSION}-{ALIKE_SINCE}.bin"


def document(n: int) -> dict[str, Any]:
    x = n * 7 % 11
    return {"id": f"i{n}", "features": {"x": x, "y": n * 5 % 7}, "label": ["low", "high"][x > 5]}


def played() -> Partition:
    """Return a partition whose challenge has compared some labels, and whose episodes are open."""
    here = Partition(configuration())
    here.instances(*(document(n) for n in range(60)))
    here.control("challenge", spec=CHALLENGER, warm_up=10, decide="person", at=10)
    here.instances(*(document(n) for n in range(60, 120)), at=20)
    for key, spec in BUYERS.items():
        here.control("create", key=key, spec=ALWAYS | spec, schema=SCHEMA, at=30)
        here.instances(*(document(n) for n in range(40)), key=key, at=31)
        here.instances({"id": "open", "features": {"unrelated": 1.0}}, key=key, at=32)
    assert here.task.open_episodes == len(BUYERS)
    assert here.dead_letters == []
    return here


def goes_on(task: Task, offsets: dict[Any, int]) -> dict[str, Any]:
    """Return what a task sends from here on: answers of episodes, and the events of the challenge."""
    here = Partition(configuration())
    here.task = task
    here._offsets.update(offsets)
    for key in BUYERS:
        for name in ("x", "y"):
            values = {"id": "open", "unavailable": {name: "broken"}, "finish": name == "y"}
            here.feed(Record("feature_values", key.encode(), orjson.dumps(values), 40))
    here.instances(*(document(n) for n in range(120, 400)), at=50)
    here.control("promote", at=5000)
    here.instances({"id": "after", "features": {"x": 9.0}}, at=5001)
    events = [sent.json for sent in here.sent["model-events"]]
    return {
        "answers": [[each["label"], each.get("challenger"), each["version"]] for each in here.predictions],
        "acquired": [each["acquired"] for each in here.predictions if "acquired" in each],
        "events": [[event["event"], event["detail"].get("by"), event["records"]] for event in events],
        "labels": [
            event["detail"]["challenge"]["labels"] for event in events if "challenge" in event["detail"]
        ],
        "reasons": [sent.reason for sent in here.dead_letters],
        "open": task.open_episodes,
    }


def again(stored: list[Unit]) -> Task:
    return Task.from_units(PARTITION, configuration(), None, stored)


def main() -> None:
    here, path = played(), file_of_now()
    stored = list(here.task.cut().units())
    units.write(path, stored)
    offsets = dict(here._offsets)
    body = {
        "names": [str(unit.name) for unit in stored],
        "offsets": offsets,
        "then": goes_on(again(stored), offsets),
    }
    path.with_suffix(".json").write_text(json.dumps(body) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
