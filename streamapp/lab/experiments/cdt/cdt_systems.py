"""The trees of CDT as its published code grows them, the grids of their parameters, the averaging [D61]."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core import registry
from streamapp.lab.experiments import leaf_curve
from streamapp.lab.experiments.base import Row

SETTING = {"grace_period": 100, "tau": 0.0, "binary_splits": True, "leaf_model": "mc", "compat": "cdt"}
REACHED = 0.1
"""A leaf count is left out if a smaller share of the streams than this has reached it."""
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Leaves at the end of a stream for which trees are compared."""


@dataclass(frozen=True, slots=True)
class System:
    """A tree, and the parameter that is tuned on each data set."""

    learner: str
    parameter: str
    given: tuple[tuple[str, Any], ...] = ()

    def grid(self, values: int) -> list[float]:
        """Return `values` values whose bounds have equal ratios (leaf_curve.py)."""
        return [float(f"{value:.6g}") for value in leaf_curve.grid(self.parameter, values)]

    def spec(self, value: float) -> dict[str, Any]:
        learner = {"name": self.learner, **SETTING, **dict(self.given), self.parameter: value}
        return {"learner": learner, "evaluation": {"every": 0}}


SYSTEMS = {
    "C-Tree": System("c-tree", "c", (("criterion", "gini"), ("freeze_null", True))),
    "H-Tree": System("h-tree", "delta", (("criterion", "gini"),)),
    "CorrH-Tree": System("corrh-tree", "delta"),
}


def systems() -> list[str]:
    here = registry.names("learners")
    return [name for name, system in SYSTEMS.items() if system.learner.replace("-", "_") in here]


def by_leaves(curve: Iterable[tuple[int, float, int]]) -> list[tuple[int, float]]:
    """Return for each leaf count of a run the last performance before the tree left that count."""
    points = list(curve)
    last = leaf_curve.leaf_curve([leaves for _, _, leaves in points], [measure for _, measure, _ in points])
    return list(last.items())


def best_value(rows: Sequence[Row], **which: Any) -> float:
    """Return the parameter value with the best mean performance at the end, among rows of one kind."""
    ends: dict[float, list[float]] = defaultdict(list)
    for row in rows:
        if all(row[key] == value for key, value in which.items()):
            ends[row["value"]].append(row["performance"])
    return max(sorted(ends), key=lambda value: float(np.mean(ends[value])))


def averaged(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return (leaves, mean performance) over the streams that reached the number of leaves."""
    means = leaf_curve.mean_curve([dict(row["by_leaves"]) for row in rows], REACHED)
    return [(float(leaves), measure) for leaves, measure in means.items()]


def at_equal_leaves(curves: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Return each system's mean performance over the leaf counts that all of them have reached."""
    common = set.intersection(*({leaves for leaves, _ in curve} for curve in curves.values()))
    return {
        name: float(np.mean([performance for leaves, performance in curve if leaves in common]))
        for name, curve in curves.items()
        if common
    }


def comparison(rows: Sequence[Row]) -> tuple[list[Row], dict[str, list[tuple[float, float]]]]:
    """Return a line and a curve for each system; rows: runs with the best values."""
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
            "sd": round(float(np.std([row["performance"] for row in own], ddof=min(1, len(own) - 1))), 5),
            "leaves": round(float(np.mean([row["leaves"] for row in own])), 1),
            "performance at equal leaves": round(equal[name], 5) if name in equal else None,
        }
        for name, own in runs.items()
    ]
    return lines, curves


def by_size(rows: Sequence[Row], stream: str) -> tuple[list[Row], dict[str, list[tuple[float, float]]]]:
    """Return performance at the end for trees of one size: a line for each size, a curve for each system.

    A line also has the points by which C-Tree leads each other system: mean and standard deviation over
    the streams. rows: runs over the grid; stream: the member with the stream of a row.
    """
    apart: dict[str, list[leaf_curve.Curve]] = {}
    for name in systems():
        own = [row for row in rows if row["system"] == name]
        streams = list(dict.fromkeys(row[stream] for row in own))
        ends = [
            [(r["leaves"], r["performance"]) for r in own if r[stream] == stream_name]
            for stream_name in streams
        ]
        apart[name] = [leaf_curve.at_sizes(stream_ends, SIZES) for stream_ends in ends]
    curves = {name: leaf_curve.mean_curve(own, share=1.0) for name, own in apart.items()}
    first, *others = apart
    lines: list[Row] = []
    for size in SIZES:
        if all(size in curve for curve in curves.values()):
            line: dict[str, Any] = {"leaves": size}
            line |= {name: round(curve[size], 5) for name, curve in curves.items()}
            for other in others:
                line |= lead(other, [curve[size] for curve in apart[first]], [c[size] for c in apart[other]])
            lines.append(line)
    return lines, {name: [(float(n), m) for n, m in curve.items()] for name, curve in curves.items()}


def lead(other: str, ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return the points by which the first system leads another on the same streams: mean and deviation."""
    points = 100.0 * (np.array(ours) - np.array(theirs))
    spread = float(np.std(points, ddof=1)) if len(points) > 1 else 0.0
    return {f"over {other}": round(float(points.mean()), 2), f"sd over {other}": round(spread, 2)}
