"""CDT, Figure 3: accuracy against leaves on streams from random trees, parameters tuned."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.layout.model import Floats
from core.schema.schema import Schema
from core.streams import open_generator
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.cdt.cdt_growth import grow
from streamapp.lab.experiments.cdt.cdt_systems import (
    SYSTEMS,
    best_value,
    by_size,
    comparison,
    systems,
)
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.trace import in_memory

TITLE = "CDT (Confidence Decision Trees), Figure 3: accuracy against leaves on random trees"

LEAVES = 50
BAYES = 0.7
SAMPLE = 200

# Records of a leaf, trees, trees to tune on, values of the grid
SETTINGS = {"quick": (1_000, 3, 2, 10), "medium": (10_000, 10, 10, 14), "full": (10_000, 1000, 5, 200)}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return the runs that tune each system's parameter, on other trees than the comparison."""
    per_leaf, trees, tuned_on, values = SETTINGS[size]
    return [
        {"stage": "tune", "system": system, "value": value, "tree": trees + 1 + tree, "per_leaf": per_leaf}
        for system in systems()
        for value in SYSTEMS[system].grid(values)
        for tree in range(tuned_on)
    ]


def then(size: Size, data: Path | None, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the runs of the comparison, with the best values."""
    per_leaf, trees, _, _ = SETTINGS[size]
    best = {system: best_value(rows, stage="tune", system=system) for system in systems()}
    return [
        {"stage": "compare", "system": system, "value": value, "tree": 1 + tree, "per_leaf": per_leaf}
        for system, value in best.items()
        for tree in range(trees)
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Run a system on the stream of one random tree."""
    schema, x, y = stream_of(cell["tree"], cell["per_leaf"])
    return grow(SYSTEMS[cell["system"]].spec(cell["value"]), schema, in_memory(x, y), SAMPLE)


@functools.lru_cache(maxsize=5)
def stream_of(tree: int, per_leaf: int) -> tuple[Schema, Floats, npt.NDArray[np.int32]]:
    """Return the schema and the records of a random tree, x float64[n, d] and y int32[n]."""
    generator = open_generator("rand_cbt", model_seed=tree, seed=tree, leaves=LEAVES, per_leaf=per_leaf)
    x, y = next(generator.batches(LEAVES * per_leaf, LEAVES * per_leaf))
    return generator.schema, x, y


def report(rows: Sequence[Row]) -> Report:
    """Return each system's curve, its value, the means at equal leaves, and trees of one size at the end."""
    lines, along = comparison([row for row in rows if row["stage"] == "compare"])
    sizes, ends = by_size([row for row in rows if row["stage"] == "tune"], "tree")
    limit = f"no tree can be right more often than {BAYES:.0%}"
    return Report(
        tables={"figure3": lines, "figure3-sizes": sizes},
        charts={
            "figure3": Chart(
                f"Streams of {LEAVES} leaves; {limit}",
                Axis("number of leaves"),
                Axis("accuracy"),
                tuple(Line(system, tuple(curve)) for system, curve in along.items()),
            ),
            "figure3-sizes": Chart(
                f"At the end of the stream, by size; {limit}",
                Axis("number of leaves at the end", log=True),
                Axis("accuracy"),
                tuple(Line(system, tuple(curve)) for system, curve in ends.items()),
            ),
        },
    )
