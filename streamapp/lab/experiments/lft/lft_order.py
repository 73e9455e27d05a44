"""LFT, order effect: 13 permutations of the same training records of Waveform-40, for each kind of leaf."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.lft.lft_common import (
    LEAVES,
    TEST,
    TRAINING,
    claims_table,
    curve,
    drawn,
    test_set,
)

TITLE = "LFT (Learning Forests of Trees), effect of the order of the training records"
SET: Final = "Waveform-40"
PERMUTATIONS: Final = 13
"""The number on the axis of the figure."""

# Training records, test records, permutations
SETTINGS: Final[dict[Size, tuple[int, int, int]]] = {
    "quick": (1_000, 5_000, 3),
    "medium": (50_000, TEST, PERMUTATIONS),
    "full": (TRAINING, TEST, PERMUTATIONS),
}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    train, test, permutations = SETTINGS[size]
    return [
        {"system": system, "permutation": number, "train": train, "test": test}
        for system in LEAVES
        for number in range(1, permutations + 1)
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Train on a permutation of the records, and test at the end."""
    n = cell["train"]
    x, y = drawn(SET, n)
    order = np.random.default_rng([cell["permutation"]]).permutation(n)
    (point,) = curve(SET, cell["system"], [n], (x[order], y[order]), test_set(SET, cell["test"]))
    return {key: point[key] for key in ("error", "leaves", "seconds")}


def report(rows: Sequence[Row]) -> Report:
    """Return the five numbers of each box, the claim, and a chart."""
    errors = {s: np.array([row["error"] for row in rows if row["system"] == s]) for s in LEAVES}
    table: list[Row] = []
    for system, of_system in errors.items():
        low, first, median, third, high = np.quantile(of_system, [0.0, 0.25, 0.5, 0.75, 1.0])
        leaves = [row["leaves"] for row in rows if row["system"] == system]
        table.append(
            {"leaves": system, "permutations": len(of_system)}
            | {"least": round(low, 4), "first quartile": round(first, 4), "median": round(median, 4)}
            | {"third quartile": round(third, 4), "most": round(high, 4), "range": round(high - low, 4)}
            | {"leaves of the forest": f"{min(leaves)}-{max(leaves)}"}
        )
    ranges = {system: float(of_system.max() - of_system.min()) for system, of_system in errors.items()}
    claim = (
        "majority class leaves depend most on the order",
        "order effect",
        ranges["mc"] > max(ranges["nb"], ranges["idbd"]),
        "range of the errors: " + ", ".join(f"{system} {width:.4f}" for system, width in ranges.items()),
    )
    lines = tuple(
        Line(system, tuple((float(i + 1), float(error)) for i, error in enumerate(of_system)))
        for system, of_system in errors.items()
    )
    return Report(
        tables={"order": table, "order-claims": claims_table([claim])},
        charts={"order": Chart(SET, Axis("permutation"), Axis("error on the test set"), lines)},
    )
