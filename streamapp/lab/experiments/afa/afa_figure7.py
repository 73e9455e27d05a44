"""AFA, Figures 7 and 8: purchased features and training utility against the number of hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamapp.lab.experiments.afa import afa_reports
from streamapp.lab.experiments.afa.afa_runs import aggregate
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line

TITLE = "AFA (Active Feature Acquisition), Figures 7 and 8: cost and utility against sampled hypotheses"

SETS: Final = ("LED", "Zoo", "Heart")
SYSTEMS: Final = ("EC2", "IG", "US", "Random")
SWEEP: Final[dict[Size, tuple[int, ...]]] = {
    "quick": (20, 60),
    "medium": (30, 60, 90, 120, 180, 240),
    "full": tuple(range(90, 250, 10)),
}
"""Sizes of the sample of hypotheses; the authors' code goes from 90 to 240."""
run = afa_reports.run


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return a run for each set, system, seed and number of hypotheses."""
    every = afa_reports.cells_of(SETS, SYSTEMS, size, data)
    return [cell | {"hypotheses": n, "tests": 1} for cell in every for n in SWEEP[size]]


def report(rows: Sequence[Row]) -> Report:
    """Return cost and training utility of each set, system and number of hypotheses."""
    result = Report(tables={"figure7": []})
    for name in dict.fromkeys(row["set"] for row in rows):
        charts: dict[str, list[Line]] = {"cost": [], "utility": []}
        for system in dict.fromkeys(row["system"] for row in rows):
            points: dict[str, list[tuple[float, float]]] = {"cost": [], "utility": []}
            own = [row for row in rows if (row["set"], row["system"]) == (name, system)]
            for n in sorted({row["hypotheses"] for row in own}):
                matching = [row for row in own if row["hypotheses"] == n]
                cost, error = aggregate([row["cost"] / row["records"] for row in matching])
                trained = float(np.mean([row["accuracy"] for row in matching]))
                points["cost"].append((float(n), cost))
                points["utility"].append((float(n), trained))
                result.tables["figure7"].append(
                    {
                        "set": name,
                        "system": system,
                        "hypotheses": n,
                        "bought a record": f"{cost:.2f} ± {error:.2f}",
                        "training utility": round(trained, 4),
                        "runs": len(matching),
                    }
                )
            for measured, line in points.items():
                charts[measured].append(Line(system, tuple(line)))
        for measured, label in (("cost", "features bought a record"), ("utility", "training utility")):
            result.charts[f"{measured}-{name.lower()}"] = Chart(
                name, Axis("hypotheses"), Axis(label), tuple(charts[measured])
            )
    return result
