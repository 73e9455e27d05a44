"""LFT, SEA concepts: online error on the original file, with and without detection at the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.layout.model import Floats
from streamapp.errors import UsageError
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.lft.lft_common import (
    LEAVES,
    Labels,
    Learned,
    claims_table,
    numeric_schema,
    spec_of,
)

TITLE = "LFT (Learning Forests of Trees), SEA concepts with and without detection"
FILES: Final = ("SEA_training_data.csv.gz", "SEA_training_class.csv.gz")
RECORDS: Final = 50_000
DRIFTS: Final = (12_500, 25_000, 37_500)
"""Records before which the concept changes: θ = 8, 9, 7, 9.5."""
WINDOW: Final = 500
"""Records in a point of the chart's error."""
NEAR: Final = 1_000
"""Records on both sides of a drift whose errors are compared."""

EARLIER: Final = "mc, δ = 0.05"

# Leaves, records of each concept
SETTINGS: Final[dict[Size, tuple[tuple[str, ...], int]]] = {
    "quick": (("nb",), 1_250),
    "medium": ((*LEAVES, EARLIER), 12_500),
    "full": ((*LEAVES, EARLIER), 12_500),
}


def read(data: Path | None) -> tuple[Floats, Labels]:
    """Return the file's records; UsageError if it is missing."""
    if data is None or not all((data / file).is_file() for file in FILES):
        message = (
            f"--datasets {data} must be a folder with {' and '.join(FILES)} (GROVE_DATASETS names it too)"
        )
        raise UsageError(message)
    x = np.loadtxt(data / FILES[0], delimiter=",", dtype=np.float64)
    y = np.loadtxt(data / FILES[1], dtype=np.float64).astype(np.int32)
    if x.shape != (RECORDS, 3) or y.shape != (RECORDS,):
        message = f"{data / FILES[0]} must have {RECORDS} records of 3 attributes; it has {list(x.shape)}"
        raise UsageError(message)
    return x, y


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    read(data)
    leaves, per_concept = SETTINGS[size]
    return [
        {"system": system, "detects": detects, "each": per_concept, "folder": str(data)}
        for system in leaves
        for detects in (True, False)
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Answer and learn the file in its order (or the first records of each concept)."""
    x, y = read(Path(cell["folder"]))
    rows = np.concatenate([np.arange(i, i + cell["each"]) for i in (0, *DRIFTS)])
    model = Learned(spec_of(cell["system"], cell["detects"]), numeric_schema(("x1", "x2", "x3"), ("0", "1")))
    wrong = model.learn(x[rows], y[rows]) != y[rows]
    return {
        "error": float(wrong.mean()),
        "blocks": [float(block.mean()) for block in wrong.reshape(4, -1)],
        "curve": windowed(wrong, WINDOW),
        "jumps": [jump(wrong, cell["each"] * i) for i in (1, 2, 3)],
        "leaves": model.summary.leaves,
        "seconds": round(model.seconds, 4),
    }


def windowed(wrong: npt.NDArray[np.bool_], window: int) -> list[list[float]]:
    """Return [records, error of the last ``window``] at the end of each window."""
    ends = range(window, len(wrong) + 1, window)
    return [[end, float(wrong[end - window : end].mean())] for end in ends]


def jump(wrong: npt.NDArray[np.bool_], at: int) -> list[float]:
    """Return the errors of the records before a place and of the records after it."""
    near = min(NEAR, at)
    return [float(wrong[at - near : at].mean()), float(wrong[at : at + near].mean())]


def report(rows: Sequence[Row]) -> Report:
    """Return errors by concept, the jumps at the drifts, the claims, and a chart."""
    result = Report(tables={"sea": [], "sea-jumps": [], "sea-claims": []})
    for row in rows:
        line: dict[str, Any] = {"leaves": row["system"], "detection": "yes" if row["detects"] else "no"}
        result.tables["sea"].append(
            line
            | {"error": round(row["error"], 4)}
            | {f"concept {i + 1}": round(error, 4) for i, error in enumerate(row["blocks"])}
            | {"leaves of the forest": row["leaves"], "seconds": row["seconds"]}
        )
        result.tables["sea-jumps"].append(
            line | {f"drift {i + 1}": f"{a:.4f} → {b:.4f}" for i, (a, b) in enumerate(row["jumps"])}
        )
    errors = {(row["system"], row["detects"]): row for row in rows}
    systems = list(dict.fromkeys(row["system"] for row in rows))
    after = {key: float(np.mean(row["blocks"][1:])) for key, row in errors.items()}
    result.tables["sea-claims"] += claims_table(
        [
            (
                "detection lowers the online error after drifts (concepts 2 to 4)",
                "concept drift",
                all(after[system, True] < after[system, False] for system in systems),
                "; ".join(f"{s} {after[s, True]:.4f} with, {after[s, False]:.4f} without" for s in systems),
            ),
            (
                "the error jumps at a drift (without detection, at two of three at least)",
                "concept drift",
                all(sum(b > a for a, b in errors[system, False]["jumps"]) >= 2 for system in systems),
                "; ".join(
                    f"{s} " + ", ".join(f"{a:.3f} → {b:.3f}" for a, b in errors[s, False]["jumps"])
                    for s in systems
                ),
            ),
        ]
    )
    result.charts["sea"] = Chart(
        "SEA concepts",
        Axis("records"),
        Axis(f"error of the last {WINDOW} records"),
        tuple(
            Line(
                f"{row['system']}, {'detection' if row['detects'] else 'none'}",
                tuple((float(n), error) for n, error in row["curve"]),
            )
            for row in rows
        ),
    )
    return result
