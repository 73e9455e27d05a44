"""The trees of CDT with its settings, the grids their parameters are tuned on, and its averaging [D61]."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core import registry
from streamapp.experiments.base import Row

SETTING = {"grace_period": 100, "tau": 0.0, "binary_splits": True, "leaf_model": "mc"}
REACHED = 0.1
"""A leaf count that fewer streams than this share have reached is left out."""


@dataclass(frozen=True, slots=True)
class System:
    """A tree, and the parameter that is tuned on each data set."""

    learner: str
    parameter: str
    least: float
    most: float
    given: tuple[tuple[str, Any], ...] = ()

    def grid(self, values: int) -> list[float]:
        """Return so many values, equal ratios apart."""
        return [float(f"{value:.6g}") for value in np.geomspace(self.least, self.most, values)]

    def spec(self, value: float) -> dict[str, Any]:
        """Return the model spec with a value of the parameter."""
        learner = {"name": self.learner, **SETTING, **dict(self.given), self.parameter: value}
        return {"learner": learner, "evaluation": {"every": 0}}


SYSTEMS = {
    "C-Tree": System("c-tree", "c", 1e-4, 1.999, (("criterion", "gini"),)),
    "H-Tree": System("h-tree", "delta", 1e-10, 0.999, (("criterion", "gini"),)),
    "CorrH-Tree": System("corrh-tree", "delta", 1e-10, 0.999),
}


def systems() -> list[str]:
    """Return the systems that this build has."""
    here = registry.names("learners")
    return [name for name, system in SYSTEMS.items() if system.learner.replace("-", "_") in here]


def by_leaves(curve: Iterable[tuple[int, float, int]]) -> list[tuple[int, float]]:
    """Return for each leaf count of a run its last performance before the tree left that count."""
    last: dict[int, float] = {}
    for _, performance, leaves in curve:
        last[leaves] = performance
    return sorted(last.items())


def best_value(rows: Sequence[Row], **which: Any) -> float:
    """Return the parameter value with the best mean performance at the end, among rows of one kind."""
    ends: dict[float, list[float]] = defaultdict(list)
    for row in rows:
        if all(row[key] == value for key, value in which.items()):
            ends[row["value"]].append(row["performance"])
    return max(sorted(ends), key=lambda value: float(np.mean(ends[value])))


def averaged(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return (leaves, mean performance) over the streams that reached so many leaves."""
    reached: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        for leaves, performance in row["by_leaves"]:
            reached[leaves].append(performance)
    enough = max(1.0, REACHED * len(rows))
    return [
        (float(leaves), float(np.mean(found)))
        for leaves, found in sorted(reached.items())
        if len(found) >= enough
    ]


def at_equal_leaves(curves: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Return each system's mean performance over the leaf counts that all of them have reached."""
    common = set.intersection(*({leaves for leaves, _ in curve} for curve in curves.values()))
    return {
        name: float(np.mean([performance for leaves, performance in curve if leaves in common]))
        for name, curve in curves.items()
        if common
    }


def comparison(rows: Sequence[Row]) -> tuple[list[Row], dict[str, list[tuple[float, float]]]]:
    """Return a line and a curve for each system; rows: runs with the values that were found."""
    runs = {name: [row for row in rows if row["system"] == name] for name in systems()}
    curves = {name: averaged(own) for name, own in runs.items()}
    equal = at_equal_leaves(curves)
    lines: list[Row] = [
        {
            "system": name,
            "parameter": SYSTEMS[name].parameter,
            "value": own[0]["value"],
            "runs": len(own),
            "performance at the end": round(float(np.mean([row["performance"] for row in own])), 5),
            "leaves": round(float(np.mean([row["leaves"] for row in own])), 1),
            "performance at equal leaves": round(equal[name], 5) if name in equal else None,
        }
        for name, own in runs.items()
    ]
    return lines, curves
