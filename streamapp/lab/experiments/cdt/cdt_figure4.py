"""CDT, Figure 4: performance against leaves on permutations of real data sets, parameters tuned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.cdt.cdt_data import PUBLISHED, found, load
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

TITLE = "CDT (Confidence Decision Trees), Figure 4: performance against leaves on real data"

SAMPLE = 200

# Records of a set at most, permutations, permutations to tune on, values of the grid
SETTINGS: dict[str, tuple[int | None, int, int, int]] = {
    "quick": (4_000, 2, 1, 5),
    "medium": (None, 5, 3, 10),
    "full": (None, 10, 10, 200),
}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return the runs that tune each system's parameter on each set."""
    limit, _, tuned_on, values = SETTINGS[size]
    return [
        _cell("tune", name, system, value, order, data, limit)
        for name in found(data)
        for system in systems()
        for value in SYSTEMS[system].grid(values)
        for order in range(tuned_on)
    ]


def then(size: Size, data: Path | None, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the runs of the comparison: each system with the best value for the set."""
    limit, permutations, _, _ = SETTINGS[size]
    return [
        _cell("compare", name, system, best_value(rows, set=name, system=system), order, data, limit)
        for name in found(data)
        for system in systems()
        for order in range(permutations)
    ]


def _cell(
    stage: str, name: str, system: str, value: float, order: int, data: Path | None, limit: int | None
) -> dict[str, Any]:
    return {
        "stage": stage,
        "set": name,
        "system": system,
        "value": value,
        "order": order,
        "folder": str(data),
        "limit": limit,
    }


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Run a system on one permutation of a set."""
    records = load(cell["set"], Path(cell["folder"]), cell["limit"]).permuted(cell["order"])
    spec = SYSTEMS[cell["system"]].spec(cell["value"])
    by_f1 = PUBLISHED[cell["set"]].uses_f1
    return grow(spec, records.schema, in_memory(records.x, records.y), SAMPLE, by_f1=by_f1)


def report(rows: Sequence[Row]) -> Report:
    """Return each system's line and curve on each set, and trees of one size at the end."""
    result = Report(tables={"figure4": [], "figure4-sizes": []})
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        lines, along = comparison([row for row in own if row["stage"] == "compare"])
        sizes, ends = by_size([row for row in own if row["stage"] == "tune"], "order")
        result.tables["figure4"] += [{"set": name, **line} for line in lines]
        result.tables["figure4-sizes"] += [{"set": name, **line} for line in sizes]
        measure = "F-measure of the rarer class" if PUBLISHED[name].uses_f1 else "accuracy"
        result.charts[f"figure4-{name}"] = _chart(name, Axis("number of leaves"), measure, along)
        by_end = Axis("number of leaves at the end", log=True)
        result.charts[f"figure4-{name}-sizes"] = _chart(name, by_end, measure, ends)
    return result


def _chart(name: str, x: Axis, measure: str, curves: dict[str, list[tuple[float, float]]]) -> Chart:
    return Chart(
        name, x, Axis(measure), tuple(Line(system, tuple(curve)) for system, curve in curves.items())
    )
