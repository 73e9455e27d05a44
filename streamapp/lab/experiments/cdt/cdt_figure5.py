"""CDT, Figure 5: performance of the query strategies against the share of labels, with drift detection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core import registry
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.cdt.cdt_data import PUBLISHED, found, load
from streamapp.lab.experiments.cdt.cdt_systems import SYSTEMS, best_value, systems
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.trace import in_memory, trace

TITLE = "CDT (Confidence Decision Trees), Figure 5: query strategies against the share of labels"

SAMPLE = 10_000
BUDGETS = {
    "quick": (0.1, 0.6),
    "medium": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    "full": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
}
STRATEGIES = {
    "Rnd": {"name": "random"},
    "VarUn": {"name": "variable_uncertainty", "score": "leaf_share"},
    "RndVar": {"name": "randomised_uncertainty", "score": "leaf_share"},
    "Sel-Samp": {"name": "selective_sampling", "score": "leaf_share"},
    "Split": {"name": "split", "score": "leaf_share"},
    "ConfTree": {"name": "conf_tree", "score": "leaf_share"},
    "SplitConfTree": {"name": "split_conf_tree", "score": "leaf_share"},
}
"""The paper measures doubt by the class shares at the leaf, which votes for its majority."""
BASE = "C-Tree"

# Records of a set at most, values of the grid on which the tree is tuned (with all labels), seeds of a
# strategy
SETTINGS: dict[str, tuple[int | None, int, int]] = {
    "quick": (4_000, 4, 2),
    "medium": (None, 8, 5),
    "full": (None, 200, 10),
}


def base() -> str:
    """Return the tree below the strategies: the paper's, or the first tree that this build has."""
    return BASE if BASE in systems() else systems()[0]


def strategies() -> list[str]:
    return [name for name, query in STRATEGIES.items() if query["name"] in registry.names("queries")]


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return the runs with all labels that tune the tree on each set."""
    limit, values, _ = SETTINGS[size]
    return [
        {"stage": "tune", "set": name, "value": value, "folder": str(data), "limit": limit}
        | {"strategy": "all", "budget": 1.0, "seed": 1}
        for name in found(data)
        for value in SYSTEMS[base()].grid(values)
    ]


def then(size: Size, data: Path | None, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a run for each set, strategy, budget and seed."""
    limit, _, seeds = SETTINGS[size]
    return [
        {"stage": "compare", "set": name, "value": best_value(rows, set=name), "folder": str(data)}
        | {"limit": limit, "strategy": strategy, "budget": budget, "seed": 1 + seed}
        for name in found(data)
        for strategy in strategies()
        for budget in BUDGETS[size]
        for seed in range(seeds)
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Run a strategy over a set in the order of the file."""
    records = load(cell["set"], Path(cell["folder"]), cell["limit"])
    by_f1 = PUBLISHED[cell["set"]].uses_f1
    spec = SYSTEMS[base()].spec(cell["value"])
    if cell["stage"] == "compare":
        spec |= {
            "drift": "ddm",
            "query": STRATEGIES[cell["strategy"]],
            "budget": {"name": "count", "limit": cell["budget"]},
            "seed": cell["seed"],
        }
    result = trace(spec, records.schema, in_memory(records.x, records.y), sample=SAMPLE, by_f1=by_f1)
    return {
        "performance": result.f1_rarer if by_f1 else result.accuracy,
        "labels": result.summary.labels / len(records.y),
        "leaves": result.summary.leaves,
        "drifts": result.summary.rebuilds,
    }


def report(rows: Sequence[Row]) -> Report:
    """Return means and standard deviations over the seeds, and for each set a chart over the budgets."""
    kinds = ("set", "strategy", "budget")
    runs: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        runs.setdefault(tuple(row[kind] for kind in kinds), []).append(row)
    table = [averaged(own) for own in runs.values()]
    result = Report(tables={"figure5": table})
    compared = [line for line in table if line["strategy"] != "all"]
    for name in dict.fromkeys(line["set"] for line in compared):
        lines = [
            Line(
                strategy,
                tuple(
                    (line["budget"], line["performance"])
                    for line in compared
                    if line["set"] == name and line["strategy"] == strategy
                ),
            )
            for strategy in strategies()
        ]
        measure = "F-measure of the rarer class" if PUBLISHED[name].uses_f1 else "accuracy"
        result.charts[f"figure5-{name}"] = Chart(name, Axis("budget"), Axis(measure), tuple(lines))
    return result


def averaged(rows: Sequence[Row]) -> Row:
    """Return one line for the runs of a strategy that differ only in their seed (tuning: the best value)."""
    if rows[0]["stage"] == "tune":
        rows = [max(rows, key=lambda row: row["performance"])]
    ends = [row["performance"] for row in rows]
    line = {key: rows[0][key] for key in ("set", "strategy", "budget", "value")}
    line |= {"runs": len(rows), "performance": round(float(np.mean(ends)), 5)}
    line["sd"] = round(float(np.std(ends, ddof=1)), 5) if len(ends) > 1 else 0.0
    means = {key: float(np.mean([row[key] for row in rows])) for key in ("labels", "leaves", "drifts")}
    return line | {key: round(mean, 4) for key, mean in means.items()}
