"""Curves of BCI's figures 5 and 6: grids of δ, runs grouped in cells, the value with the best mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from core.layout.model import Floats
from streamapp.lab.experiments.base import Row

DELTAS: Final = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
"""The grid of δ, δ1 and δ2 [D62]: the paper states that they were tuned, but not over which values."""
HOEFFDING_DELTAS: Final = tuple(float(f"{value:.4g}") for value in np.geomspace(1e-4, 0.9, 13))
FRESH: Final = 1_000_000
"""First seed of the runs that are compared; no parameter was tuned on them."""
EACH: Final = 25
"""Runs of a cell, at most."""


def thinned(grid: Sequence[float], values: int) -> list[float]:
    """Return `values` values of a grid, evenly spaced, with both ends."""
    return [grid[round(i * (len(grid) - 1) / (values - 1))] for i in range(values)]


def pairs_of(first: Sequence[float], second: Sequence[float]) -> list[list[float]]:
    return [[a, b] for a in first for b in second]


def cells_of(common: dict[str, Any], stage: str, deltas: list[float], runs: int) -> list[dict[str, Any]]:
    """Return the cells of a system with its parameters; each has the seeds ``seed`` … ``seed + runs - 1``."""
    start = 1 if stage == "tune" else FRESH
    return [
        {"stage": stage, **common, "deltas": deltas, "seed": start + i, "runs": min(EACH, runs - i)}
        for i in range(0, runs, EACH)
    ]


def summed(curves: Sequence[Floats] | Floats, labels: Sequence[int]) -> dict[str, Any]:
    """Return the results of a cell: sums and sums of squares over its runs, at each label count."""
    table = np.array(curves)
    means = table.mean(axis=1)
    return {
        "labels": list(labels),
        "sum": table.sum(axis=0).tolist(),
        "squares": (table**2).sum(axis=0).tolist(),
        "mean": float(means.mean()),
    }


def merged(rows: Sequence[Row]) -> tuple[list[int], Floats, Floats, int]:
    """Return label counts, mean risk and standard deviation over the runs at each, and the number of runs."""
    runs = sum(row["runs"] for row in rows)
    mean = np.sum([row["sum"] for row in rows], axis=0) / runs
    square = np.sum([row["squares"] for row in rows], axis=0) / runs
    spread = np.sqrt(np.maximum(square - mean**2, 0.0) * runs / max(runs - 1, 1))
    return list(rows[0]["labels"]), mean, spread, runs


def best_deltas(rows: Sequence[Row], **which: Any) -> list[float]:
    """Return the parameters with the least risk, averaged over whole runs; of equal values, the first."""
    risks: dict[tuple[float, ...], list[tuple[float, int]]] = defaultdict(list)
    for row in rows:
        if row["stage"] == "tune" and all(row[key] == value for key, value in which.items()):
            risks[tuple(row["deltas"])].append((row["mean"], row["runs"]))

    def risk(deltas: tuple[float, ...]) -> float:
        return sum(mean * runs for mean, runs in risks[deltas]) / sum(runs for _, runs in risks[deltas])

    ordered = sorted(risks)
    return list(ordered[int(np.argmin([risk(deltas) for deltas in ordered]))])


def sparse(values: int, labels: int) -> list[int]:
    """Return at most `values` label counts up to ``labels``, evenly spaced, with the last one."""
    return sorted({max(1, round(labels * i / values)) for i in range(1, values + 1)})


Claim = tuple[str, str, bool | None, str]
"""A claim of the paper, its place, whether our runs confirm it (None: undecided), and our figures."""


def claims_table(claims: Sequence[Claim]) -> list[Row]:
    return [
        {"claim": claim, "where": where, "seen": {True: "yes", False: "no", None: "-"}[seen], "ours": ours}
        for claim, where, seen, ours in claims
    ]


def nearest(labels: Sequence[int], count: int) -> int:
    """Return the position of the label count that is nearest to `count`."""
    return int(np.abs(np.array(labels) - count).argmin())


def is_least(value: float, spread: float, other: float, other_spread: float, errors: float = 2.0) -> bool:
    """Return whether a mean is at most another mean plus `errors` standard errors of their difference."""
    return value <= other + errors * float(np.hypot(spread, other_spread))
