"""Cuts of the task of a partition, and the units that a snapshot has after them."""

from __future__ import annotations

from typing import Any

from streamapp.worker.task.state.cut import Cut
from streamapp.worker.task.unit import Unit, UnitName
from tests.topology.partition import ALWAYS, Partition, config, instance


def latest(units: dict[UnitName, Unit], cut: Cut) -> dict[UnitName, Unit]:
    """Return units with what a cut changed, which is then done."""
    made = {unit.name: unit for unit in cut.units()}
    left = {name: unit for name, unit in units.items() if name not in cut.removed}
    cut.done()
    return left | made


def partition_of(keys: str, **settings: Any) -> Partition:
    partition = Partition(config(ALWAYS, **settings))
    partition.feed(*(instance({"id": f"{key}1", "features": {"x": 1.0}}, key=key) for key in keys))
    return partition
