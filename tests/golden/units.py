"""Writes the units of a small task anew: ``python -m tests.golden.units``.

``units-<format>-<state>.bin`` holds every unit of a task that has something of everything: length and bytes
of the name, length and bytes of the unit, one after the other (lengths as uint32, little-endian). Beside it,
``.json`` says what must be found in it. Files of formats that were released stay, and stay readable: a file
is written anew only as long as nobody but us has any of its format. The files of each state version that
is written have the same story; their specs differ (`versions.ADDED`).
"""

from __future__ import annotations

import dataclasses
import json
import struct
import zlib
from pathlib import Path
from typing import Any

from core.state_version import ALIKE_SINCE
from streamapp.worker.task.task import Task
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import FORMAT_VERSION, Unit, UnitName
from tests.golden.versions import WRITTEN, ascending, extended
from tests.topology.partition import PARTITION, Partition, Record, config, instance, label

HERE = Path(__file__).parent
SIZE = struct.Struct("<I")
SPEC: dict[str, Any] = {
    "query": "always",
    "budget": {"name": "count", "limit": 1.0},
    "evaluation": {"window": 8, "every": 1000},
    "drift": "ddm",
}


def config_of(version: int) -> TaskConfig:
    """Return the configuration of the task in the file of a state version."""
    return config(extended(SPEC, version), pending_ttl_ms=1600)


CONFIG = config_of(ALIKE_SINCE)


def files() -> list[Path]:
    return ascending(HERE.glob("units-*.bin"))


def file_of_now(version: int) -> Path:
    """Return the file of a state version that is written (WRITTEN)."""
    return HERE / f"units-{FORMAT_VERSION}-{version}.bin"


def write(path: Path, units: list[Unit]) -> None:
    parts = [part for unit in units for part in (unit.name.encode(), unit.data)]
    path.write_bytes(b"".join(SIZE.pack(len(part)) + part for part in parts))


def read(path: Path) -> list[Unit]:
    data, at = path.read_bytes(), 0
    parts = []
    while at < len(data):
        (size,) = SIZE.unpack_from(data, at)
        at += SIZE.size + size
        parts.append(data[at - size : at])
    return [Unit(UnitName.decode(name), unit) for name, unit in zip(parts[::2], parts[1::2], strict=True)]


def played(task_config: TaskConfig = CONFIG) -> Partition:
    """Return a partition with models, pending instances, early labels, and what goes with them."""
    partition = Partition(task_config)
    for n in range(120):
        features: dict[str, Any] = {"x": n % 10, "colour": ["red", "green"][n % 3 == 0]}
        document: dict[str, Any] = {"id": f"i{n}", "features": features}
        if n % 2:
            document["label"] = "high" if n % 10 > 5 else "low"
        partition.instances(document, key="ab"[n % 2 == 0 and n % 4 == 0], at=10 * n)
        if n % 6 == 0:
            partition.labels({"id": f"i{n}", "label": "low"}, key="ab"[n % 4 == 0], at=10 * n)
    partition.instances({"id": "w", "features": {"x": 1, "new": 2}}, key="a", at=1200)
    partition.labels({"id": "soon", "label": "low"}, {"id": "sooner", "label": "high"}, at=1201)
    partition.instances({"id": "sooner", "features": {"x": 1}}, at=1202)
    partition.control("create", key="awaited", spec={"query": "never"}, at=1203)
    partition.control("create", key="gone", schema={"attributes": [{"name": "x"}]}, at=1204)
    partition.control("delete", key="gone", at=1205)
    partition.control("freeze", key="b", at=1206)
    partition.instances({"id": "w", "label": "low", "features": {"x": 1}}, key="a", at=1207)
    part = {"id": "9f", "part": 1, "parts": 2, "crc": zlib.crc32(b"grovetrv"), "data": "Z3JvdmV0cnY="}
    partition.control("import", key="arriving", at=1208, **part)
    return partition


def described(task: Task) -> dict[str, Any]:
    """Return what can be compared across machines: whole numbers and names."""
    store, pending = task.models, task.pending
    return {
        "next": task.next,
        "clock": task.clock,
        "models": {
            key: dataclasses.asdict(store.cache.model(slot).summary())
            | {"incarnation": store.record(slot).incarnation, "frozen": store.record(slot).frozen}
            | {"classes": store.traits.schema(slot).classes, "known": store.record(slot).known_classes}
            for key, slot in store.keys.names()
        },
        "awaited": {key: spec.to_dict() for key, spec in task.awaited.items()},
        "pending": [len(pending), pending.waiting, pending.outstanding, pending.bytes],
        "early": task.early_labels,
    }


def goes_on(task: Task, offsets: dict[Any, int], task_config: TaskConfig = CONFIG) -> list[Any]:
    """Return the labels a task answers with from here on, and what it counts."""
    partition = Partition(task_config)
    partition.task = task
    partition._offsets.update(offsets)
    records: list[Record] = [
        label({"id": f"i{n}", "label": "low"}, key="a", at=1300) for n in range(0, 120, 7)
    ]
    partition.feed(*records)
    given = [({"x": n, "colour": "red"}, key) for n in range(10) for key in "abm"]
    partition.feed(
        *(instance({"id": f"n{n}", "features": x}, key=key, at=1310) for n, (x, key) in enumerate(given))
    )
    partition.instances({"id": "soon", "features": {"x": 1}}, at=1320)
    return [[answer["label"] for answer in partition.predictions], partition.counts]


def renew(version: int) -> None:
    """Write the files of a state version."""
    task_config = config_of(version)
    partition = played(task_config)
    units = list(partition.task.cut().units())
    path = file_of_now(version)
    write(path, units)
    body: dict[str, Any] = {
        "names": [str(unit.name) for unit in units],
        "offsets": dict(partition._offsets),
        "task": described(partition.task),
    }
    again = Task.from_units(PARTITION, task_config, None, units)
    body["then"] = goes_on(again, partition._offsets, task_config)
    path.with_suffix(".json").write_text(json.dumps(body, indent=1) + "\n")


def main() -> None:
    for version in WRITTEN:
        renew(version)


if __name__ == "__main__":
    main()
