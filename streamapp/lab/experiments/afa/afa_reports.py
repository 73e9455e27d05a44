"""Cells and reports of AFA's figures on real data: systems over streams, with some seeds each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamapp.lab.experiments.afa import afa_data
from streamapp.lab.experiments.afa.afa_runs import aggregate, holdout_run, mean_line
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line

SEEDS: Final = {"quick": 1, "medium": 3, "full": 10}
"""Number of seeds, from 101 on as in the authors' code."""
TESTS: Final = {"quick": 3, "medium": 20, "full": 50}
"""Tests on the holdout in a run."""
RECORDS: Final = {"quick": 60, "medium": 1000, "full": 10_000}
"""Records of a stream, at most."""

TREES: Final = {"VFDT": "h-tree", "EFDT": "efdt"}
"""With n_min = 1 and δ = 0.001 as in the authors' script; its grid is not searched."""


def learner_of(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the learner of a cell: a tree that pays for all features, or UFODT.

    It answers as published: by the theta of the episode, and on the holdout by a theta drawn for each
    test. If the system's name ends so, it answers by a mean of the posterior.
    """
    if cell["system"] in TREES:
        tree = {"name": TREES[cell["system"]], "grace_period": 1, "delta": 0.001, "leaf_model": "nb"}
        return tree | ({"revisit_period": 1} if cell["system"] == "EFDT" else {})
    criterion, _, options = cell["system"].partition("-")
    answer = next((mean for mean in ("mean", "geometric") if mean in options), None)
    return {
        "name": "ufodt",
        "prediction": "bayes" if answer is None else "posterior",
        "answer": answer or "sampled",
        "criterion": criterion.lower(),
        "hypotheses": cell["hypotheses"],
        "enumerate": False,
        "thresholds": "exp3" if "Exp3" in options else "exhaustive",
        "feature_selection": "OFS" in options,
    }


def cells_of(
    names: tuple[str, ...],
    systems: tuple[str, ...],
    size: Size,
    data: Path | None,
    seeds: int | None = None,
) -> list[dict[str, Any]]:
    """Return a run for each set, system and seed; seeds: their number, None: the number of the size."""
    return [
        {
            "set": name,
            "system": system,
            "seed": 101 + number,
            "hypotheses": afa_data.SETS[name].hypotheses,
            "tests": TESTS[size],
            "records": RECORDS[size],
            "data": None if data is None else str(data),
        }
        for name in afa_data.found(names, data)
        for system in systems
        for number in range(seeds or SEEDS[size])
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Run a system over the stream of a set."""
    folder = None if cell["data"] is None else Path(cell["data"])
    part = afa_data.split(cell["set"], folder, cell["seed"])
    n = min(cell["records"], len(part.y))
    spec = {"learner": learner_of(cell), "evaluation": {"every": 0}, "seed": cell["seed"]}
    return {
        "features": part.schema.n_attributes,
        **holdout_run(
            spec,
            part.schema,
            part.x[:n],
            part.y[:n],
            lambda _: (part.test_x, part.test_y),
            max(n // cell["tests"], 1),
            afa_data.SETS[cell["set"]].measure,
        ),
    }


def table_of(rows: Sequence[Row]) -> list[Row]:
    """Return costs and utilities of every set and system: means over the seeds with one standard error."""
    lines: list[Row] = []
    for name, system in dict.fromkeys((row["set"], row["system"]) for row in rows):
        own = [row for row in rows if (row["set"], row["system"]) == (name, system)]
        cost, cost_error = aggregate([row["cost"] / row["records"] for row in own])
        last, last_error = aggregate([float(np.mean(row["utility"][-3:])) for row in own])
        mean, _ = aggregate([row["mean"] for row in own])
        trained, trained_error = aggregate([row["accuracy"] for row in own])
        right, right_error = aggregate([float(np.mean(row["right"][-3:])) for row in own])
        lines.append(
            {
                "set": name,
                "system": system,
                "features": own[0]["features"],
                "bought a record": f"{cost:.2f} ± {cost_error:.2f}",
                "test utility, mean": round(mean, 4),
                "test utility, end": f"{last:.4f} ± {last_error:.4f}",
                "test accuracy, end": f"{right:.4f} ± {right_error:.4f}",
                "training utility": f"{trained:.4f} ± {trained_error:.4f}",
                "runs": len(own),
            }
        )
    return lines


def curves(rows: Sequence[Row], measured: str, label: str) -> dict[str, Chart]:
    """Return a chart for each set: the measure by record, averaged over the seeds."""
    charts = {}
    for name in dict.fromkeys(row["set"] for row in rows):
        lines = []
        for system in dict.fromkeys(row["system"] for row in rows if row["set"] == name):
            own = [row for row in rows if (row["set"], row["system"]) == (name, system)]
            lines.append(Line(system, mean_line(own, measured)))
        charts[name] = Chart(name, Axis("record"), Axis(label), tuple(lines))
    return charts


def costs(rows: Sequence[Row], name: str) -> dict[str, float]:
    """Return by system the features that were bought for a record on a set."""
    own = [row for row in rows if row["set"] == name]
    return {
        system: float(np.mean([row["cost"] / row["records"] for row in own if row["system"] == system]))
        for system in dict.fromkeys(row["system"] for row in own)
    }


def order_table(rows: Sequence[Row]) -> list[Row]:
    """Return for each set whether costs are in the paper's order: EC2, IG, US and random."""
    lines: list[Row] = []
    for name in dict.fromkeys(row["set"] for row in rows):
        of = costs(rows, name)
        ranked = [system for system in ("EC2", "IG", "US", "Random") if system in of]
        lines.append(
            {
                "set": name,
                "order of costs": " < ".join(sorted(ranked, key=of.__getitem__)),
                "EC2 is cheapest": "yes" if min(ranked, key=of.__getitem__) == "EC2" else "no",
            }
        )
    return lines


def report(rows: Sequence[Row], name: str, sets: tuple[str, ...]) -> Report:
    """Return the table and the charts of test utility, cost and training utility; sets: the figure's."""
    result = Report(tables={name: table_of(rows)})
    if missing := afa_data.left_out(sets, {row["set"] for row in rows}):
        result.tables["not run"] = list(missing)
    for measured, label in (
        ("utility", "test utility"),
        ("bought", "features bought a record"),
        ("trained", "training utility"),
    ):
        for of_set, chart in curves(rows, measured, label).items():
            result.charts[f"{measured}-{of_set.lower().replace(' ', '-')}"] = chart
    return result
