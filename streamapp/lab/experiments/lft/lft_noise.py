"""LFT, noise: wrong labels in the training records, and the error on a test set without noise [D66]."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.lft.lft_common import (
    BATCH,
    LEAVES,
    SYSTEMS,
    TEST,
    TRAINING,
    Labels,
    claims_table,
    curve,
    drawn,
    schema_of,
    test_set,
)

TITLE = "LFT (Learning Forests of Trees), noise in the labels of the training records"
SETS: Final = ("Waveform-21", "LED")
LEVELS: Final = (0.0, 0.05, 0.10, 0.15, 0.20, 0.30)

# Training records, test records, levels
SETTINGS: Final[dict[Size, tuple[int, int, tuple[float, ...]]]] = {
    "quick": (1_000, 5_000, (0.0, 0.30)),
    "medium": (51_200, TEST, LEVELS),
    "full": (TRAINING, TEST, LEVELS),
}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    train, test, levels = SETTINGS[size]
    return [
        {"set": name, "system": system, "noise": level, "train": train, "test": test}
        for name in SETS
        for system in SYSTEMS
        for level in levels
    ]


def noisy(y: Labels, classes: int, level: float) -> Labels:
    """Return labels of which a share has another class, uniformly drawn; each call returns the same."""
    draw = np.random.default_rng(66)
    wrong, by = draw.random(len(y)) < level, draw.integers(1, classes, len(y))
    return np.where(wrong, (y + by) % classes, y).astype(np.int32)


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Train on noisy labels, test on the generator's labels."""
    name, n = cell["set"], cell["train"]
    x, y = drawn(name, n)
    labels = noisy(y, schema_of(name).n_classes, cell["noise"])
    (point,) = curve(name, cell["system"], [n], (x, labels), test_set(name, cell["test"]))
    return {key: point[key] for key in ("error", "leaves", "seconds")}


def report(rows: Sequence[Row]) -> Report:
    """Return errors and leaves by level, the increase of the error by level, and a chart for each set."""
    result = Report(tables={"noise": [], "noise-claims": []})
    costs: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(row["set"] for row in rows):
        own = {(row["system"], row["noise"]): row for row in rows if row["set"] == name}
        levels = sorted({level for _, level in own})
        for level in levels:
            line: dict[str, Any] = {"set": name, "noise": level}
            line |= {system: round(own[system, level]["error"], 4) for system in SYSTEMS}
            line |= {f"leaves {system}": own[system, level]["leaves"] for system in SYSTEMS}
            result.tables["noise"].append(line)
        costs[name] = {
            system: own[system, levels[-1]]["error"] - own[system, levels[0]]["error"] for system in SYSTEMS
        }
        result.charts[f"noise-{name.lower()}"] = Chart(
            name,
            Axis("share of wrong labels in training"),
            Axis("error on the test set"),
            tuple(Line(s, tuple((level, own[s, level]["error"]) for level in levels)) for s in SYSTEMS),
        )
    claim = (
        "a forest loses less by noise than C4.5 (the figure has no text: what one would look for)",
        "noise",
        all(cost[system] < cost[BATCH] for cost in costs.values() for system in LEAVES),
        "error at the highest level less that without: "
        + "; ".join(
            f"{name} " + ", ".join(f"{system} {cost:+.4f}" for system, cost in by_system.items())
            for name, by_system in costs.items()
        ),
    )
    result.tables["noise-claims"] += claims_table([claim])
    return result
