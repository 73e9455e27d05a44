"""VFS, Figure 1: total time and attempt time on the random tree, against attributes and records.

Attempt time is the time of split attempts and, with IMAC, of the work by which it needs fewer of them. An
attempt stops the compiled loop, so that its time can be taken. IMAC's work at every record does not stop
it. Its time is estimated as the total time minus VFDT's, both without attempts. The trees are nearly the
same, so that the rest of VFDT's time is the cost of learning and answering alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.events import Event
from core.model_table import ModelTable
from core.run import DECISION_DUE, Cursor
from core.streams import open_generator
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.trace import trace
from streamapp.lab.experiments.vfs.vfs_table2 import SYSTEMS, systems

TITLE = "VFS (Speeding up VFDT with low computational cost), Figure 1: time against attributes and records"

# Ranges [D60]: attributes at AT_RECORDS records, and records at AT_ATTRIBUTES attributes.
ATTRIBUTES = (50, 100, 200, 400, 800)
RECORDS = (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
AT_RECORDS = 1_000_000
AT_ATTRIBUTES = 400
SHARE = {"quick": 0.004, "medium": 0.05, "full": 1.0}
NAMES = {"seconds": "total time (s)", "attempt seconds": "attempt time (s)", "attempts": "split attempts"}


class TimedTable(ModelTable):
    """A table that measures attempts: ``seconds`` of processor time."""

    seconds = 0.0

    def _decide(self, reason: int, cursor: Cursor, index: int, events: list[Event]) -> None:
        began = time.process_time()
        super()._decide(reason, cursor, index, events)
        if reason == DECISION_DUE:
            self.seconds += time.process_time() - began


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
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
    table = TimedTable()
    traced = trace(spec, generator.schema, generator.batches(cell["records"]), table=table)
    return {
        "seconds": round(traced.seconds, 4),
        "deciding": round(table.seconds, 4),
        "attempts": traced.summary.attempts,
        "leaves": traced.summary.leaves,
        "accuracy": round(traced.accuracy, 5),
    }


def report(rows: Sequence[Row]) -> Report:
    """Return the points, and charts of total time, attempt time and attempts for each panel."""
    point = ("panel", "system", "attributes", "records")
    keys = (*point, "seconds", "attempt seconds", "attempts", "leaves", "accuracy")
    lines = [{**row, "attempt seconds": attempt_seconds(row, rows)} for row in rows]
    charts = {
        f"figure1-{panel}-{what.replace(' ', '-')}": _chart(lines, panel, what)
        for panel in ("attributes", "records")
        for what in NAMES
    }
    return Report(tables={"figure1": [{key: line[key] for key in keys} for line in lines]}, charts=charts)


def attempt_seconds(row: Row, rows: Sequence[Row]) -> float:
    """Return the attempt time of a point; rows: all points."""
    if row["system"] != "IMAC":
        return float(row["deciding"])
    same = ("panel", "attributes", "records")
    (plain,) = (
        other for other in rows if other["system"] == "VFDT" and all(other[key] == row[key] for key in same)
    )
    watching = (row["seconds"] - row["deciding"]) - (plain["seconds"] - plain["deciding"])
    return round(float(row["deciding"] + max(watching, 0.0)), 4)


def _chart(rows: Sequence[Row], panel: str, what: str) -> Chart:
    lines = []
    for system in SYSTEMS:
        own = [row for row in rows if row["panel"] == panel and row["system"] == system and row[what] > 0]
        lines.append(Line(system, tuple((row[panel], row[what]) for row in own)))
    name = NAMES[what]
    return Chart(
        f"Random tree: {name}", Axis(f"number of {panel}", log=True), Axis(name, log=True), tuple(lines)
    )
