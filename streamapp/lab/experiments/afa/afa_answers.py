"""AFA, answers: the same purchases answered by the published theta, and by means of the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamapp.lab.experiments.afa import afa_data, afa_reports
from streamapp.lab.experiments.afa.afa_runs import aggregate
from streamapp.lab.experiments.base import Report, Row, Size

TITLE = "AFA (Active Feature Acquisition), answers: a draw, the mean and the geometric mean of the posterior"

RULES: Final = ("", "-mean", "-geometric")
"""Suffixes of systems, the published rule first; purchases and learning are the same with all three."""
SEEDS: Final = {"quick": 1, "medium": 10, "full": 20}
run = afa_reports.run


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return a run for each set, criterion, choice of thresholds, rule and seed; tested at the end alone."""
    runs = []
    for names, ways in ((afa_data.BITS, ("",)), (afa_data.NUMBERS, ("", "-Exp3"))):
        if not any(afa_data.is_here(name, data) for name in names):
            continue
        systems = tuple(f"{c}{way}{rule}" for c in ("EC2", "IG") for way in ways for rule in RULES)
        cells_of = afa_reports.cells_of(names, systems, size, data, SEEDS[size])
        runs += [cell | {"tests": 1} for cell in cells_of]
    return runs


def report(rows: Sequence[Row]) -> Report:
    """Return the accuracy of each rule, and the gain of the means over the published rule, paired by run."""
    lines: list[Row] = []
    of = {(row["set"], row["system"], row["seed"]): row for row in rows}
    systems = dict.fromkeys((row["set"], row["system"].removesuffix("-mean")) for row in rows)
    for name, system in systems:
        if system.endswith("-geometric"):
            continue
        seeds = [seed for set_name, rule, seed in of if (set_name, rule) == (name, system)]
        line: dict[str, Any] = {"set": name, "system": system}
        for word, measured in (("test", _tested), ("stream", _streamed)):
            published = [measured(of[name, system, seed]) for seed in seeds]
            line[f"{word}, published"] = _with_error(published)
            for rule in RULES[1:]:
                own = [measured(of[name, system + rule, seed]) for seed in seeds]
                gains = np.subtract(own, published).tolist()
                line[f"{word}, {rule[1:]}: gain"] = _with_error(gains, signed=True)
        lines.append(line | {"runs": len(seeds)})
    result = Report(tables={"answers": lines})
    names = (*afa_data.BITS, *afa_data.NUMBERS)
    if missing := afa_data.left_out(names, {row["set"] for row in rows}):
        result.tables["not run"] = list(missing)
    return result


def _tested(row: Row) -> float:
    return float(row["right"][-1])


def _streamed(row: Row) -> float:
    return float(row["hits"])


def _with_error(values: Sequence[float], *, signed: bool = False) -> str:
    mean, error = aggregate(values)
    return f"{mean:+.4f} ± {error:.4f}" if signed else f"{mean:.4f} ± {error:.4f}"
