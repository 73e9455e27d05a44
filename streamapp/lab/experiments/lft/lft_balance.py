"""LFT, Balance Scale: error of each class on all 625 weighings after records drawn with replacement.

A balance (B) occurs where two products are equal: normal distributions of single attributes do not show
it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.batch.c45 import C45
from core.layout.model import Floats
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.lft.lft_common import (
    BATCH,
    SYSTEMS,
    Labels,
    Learned,
    claims_table,
    doublings,
    numeric_schema,
    spec_of,
)

TITLE = "LFT (Learning Forests of Trees), Balance Scale by class"
NAMES: Final = ("left-weight", "left-distance", "right-weight", "right-distance")
CLASSES: Final = ("L", "B", "R")
TRAINING: Final[dict[Size, int]] = {"quick": 1_600, "medium": 51_200, "full": 204_800}


def table_of_weighings() -> tuple[Floats, Labels]:
    """Return all 625 weighings: x float64[625, 4], y int32[625] (288 L, 49 B, 288 R)."""
    x = np.array(list(itertools.product(range(1, 6), repeat=4)), dtype=np.float64)
    left, right = x[:, 0] * x[:, 1], x[:, 2] * x[:, 3]
    return x, np.select([left > right, left == right], [0, 1], 2).astype(np.int32)


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    return [{"system": system, "train": TRAINING[size]} for system in SYSTEMS]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Train on weighings drawn with replacement; test on all of them, which are equally likely."""
    x, y = table_of_weighings()
    rows = np.random.default_rng(625).integers(0, len(y), cell["train"])
    model = None
    if cell["system"] != BATCH:
        model = Learned(spec_of(cell["system"]), numeric_schema(NAMES, CLASSES))
    points, n_learned = [], 0
    for n in doublings(cell["train"]):
        if model is None:
            began = time.process_time()
            tree = C45().fit(x[rows[:n]], y[rows[:n]], classes=3)
            seconds, leaves = time.process_time() - began, tree.leaves
            answers = tree.predict(x).astype(np.int32)
        else:
            model.learn(x[rows[n_learned:n]], y[rows[n_learned:n]])
            seconds, leaves, answers = model.seconds, model.summary.leaves, model.predict(x)
        n_learned = n
        points.append(
            {"n": n, "error": float(np.mean(answers != y)), "leaves": leaves, "seconds": round(seconds, 4)}
            | {name: float(np.mean(answers[y == c] != c)) for c, name in enumerate(CLASSES)}
        )
    return {"curve": points}


def report(rows: Sequence[Row]) -> Report:
    """Return errors by class and size, the claim, and a chart."""
    table: list[Row] = []
    for row in rows:
        for point in row["curve"]:
            line: dict[str, Any] = {"system": row["system"], "records": point["n"]}
            line |= {name: round(point[name], 4) for name in ("error", *CLASSES)}
            table.append(line | {"leaves": point["leaves"], "seconds": point["seconds"]})
    last = {row["system"]: row["curve"][-1] for row in rows}
    claim = (
        "B is never learned well by distributions of single attributes (error of B at least ½, mc, nb, idbd)",
        "Balance Scale",
        all(point["B"] >= 0.5 for system, point in last.items() if system != BATCH),
        ", ".join(f"{system} {point['B']:.4f}" for system, point in last.items()),
    )
    lines = tuple(
        Line(row["system"], tuple((float(p["n"]), p["error"]) for p in row["curve"])) for row in rows
    )
    chart = Chart("Balance Scale", Axis("training records", log=True), Axis("error on all weighings"), lines)
    return Report(
        tables={"balance": table, "balance-claims": claims_table([claim])}, charts={"balance": chart}
    )
