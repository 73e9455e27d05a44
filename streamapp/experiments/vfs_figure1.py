"""VFS, Figure 1: time on the random tree against the number of attributes, and of records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.streams import open_generator
from streamapp.experiments.base import Report, Row, Size
from streamapp.experiments.chart import Axis, Chart, Line
from streamapp.experiments.trace import trace
from streamapp.experiments.vfs_table2 import SYSTEMS, systems

TITLE = "VFS (Speeding up VFDT with low computational cost), Figure 1: time against attributes and records"

# Ranges [D60]: attributes at so many records, and records (millions) at 400 attributes.
ATTRIBUTES = (50, 100, 200, 400, 800)
RECORDS = (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
AT_RECORDS = 1_000_000
AT_ATTRIBUTES = 400
SHARE = {"quick": 0.004, "medium": 0.05, "full": 1.0}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return one cell for each point of each line."""
    share = SHARE[size]
    points = [(d, round(AT_RECORDS * share), "attributes") for d in ATTRIBUTES]
    points += [(AT_ATTRIBUTES, round(n * share), "records") for n in RECORDS]
    return [
        {"panel": panel, "attributes": d, "records": n, "system": system}
        for d, n, panel in points
        for system in systems()
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Run a system on a random tree of half nominal and half numeric attributes."""
    half = cell["attributes"] // 2
    generator = open_generator("random_tree", rng="java", classes=25, nominal=half, numeric=half)
    spec = {
        "learner": {"name": SYSTEMS[cell["system"]], "compat": "imac", "leaf_model": "mc"},
        "evaluation": {"every": 0},
    }
    found = trace(spec, generator.schema, generator.batches(cell["records"]))
    return {
        "seconds": found.seconds,
        "attempts": found.summary.attempts,
        "leaves": found.summary.leaves,
        "accuracy": found.accuracy,
    }


def report(rows: Sequence[Row]) -> Report:
    """Return the points, and a chart of time and of attempts for each panel."""
    keys = ("panel", "system", "attributes", "records", "seconds", "attempts", "leaves", "accuracy")
    charts = {
        f"figure1-{panel}-{what}": _chart(rows, panel, what)
        for panel in ("attributes", "records")
        for what in ("seconds", "attempts")
    }
    return Report(tables={"figure1": [{key: row[key] for key in keys} for row in rows]}, charts=charts)


def _chart(rows: Sequence[Row], panel: str, what: str) -> Chart:
    lines = []
    for system in SYSTEMS:
        own = [row for row in rows if row["panel"] == panel and row["system"] == system and row[what] > 0]
        lines.append(Line(system, tuple((row[panel], row[what]) for row in own)))
    name = {"seconds": "total time (s)", "attempts": "split attempts"}[what]
    return Chart(
        f"Random tree: {name}", Axis(f"number of {panel}", log=True), Axis(name, log=True), tuple(lines)
    )
