"""LFT, learning curves: error on fresh records against training records, three kinds of leaves and C4.5."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.lft.lft_common import (
    BATCH,
    BAYES,
    GENERATED,
    LEAVES,
    SYSTEMS,
    TEST,
    TRAINING,
    Claim,
    claims_table,
    curve,
    doublings,
    drawn,
    test_set,
)

TITLE = "LFT (Learning Forests of Trees), learning curves on Waveform and LED"

# Training records, test records
SETTINGS: Final[dict[Size, tuple[int, int]]] = {
    "quick": (1_600, 5_000),
    "medium": (51_200, TEST),
    "full": (TRAINING, TEST),
}
EARLY_TIES: Final = "mc, τ = 0.05"
EARLY: Final = 1_600
"""Number of training records at which learning is early."""


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    train, test = SETTINGS[size]
    return [
        {"set": name, "system": system, "train": train, "test": test}
        for name in GENERATED
        for system in (SYSTEMS if size == "quick" else (*SYSTEMS, EARLY_TIES))
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Train a system on the first records of a set, and test it at each size."""
    name, n = cell["set"], cell["train"]
    points = curve(name, cell["system"], doublings(n), drawn(name, n), test_set(name, cell["test"]))
    return {"curve": points}


def report(rows: Sequence[Row]) -> Report:
    """Return errors, leaves and seconds by set and size, the claims, and a chart for each set."""
    result = Report(tables={"learning-curves": [], "learning-curves-sizes": [], "learning-curves-claims": []})
    curves: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        curves.setdefault(row["set"], {})[row["system"]] = row["curve"]
    for name, systems in curves.items():
        for i, point in enumerate(systems[LEAVES[0]]):
            line: dict[str, Any] = {"set": name, "records": point["n"]}
            result.tables["learning-curves"].append(
                line | {system: round(points[i]["error"], 4) for system, points in systems.items()}
            )
        for system, points in systems.items():
            last = points[-1]
            result.tables["learning-curves-sizes"].append(
                {"set": name, "system": system, "records": last["n"], "leaves": last["leaves"]}
                | {"seconds": last["seconds"], "error": round(last["error"], 4), "Bayes": BAYES[name]}
            )
        result.charts[f"learning-curves-{name.lower()}"] = Chart(
            name,
            Axis("training records", log=True),
            Axis("error on the test set"),
            tuple(
                Line(system, tuple((float(p["n"]), p["error"]) for p in points))
                for system, points in systems.items()
            ),
        )
    result.tables["learning-curves-claims"] += claims_table(claims(curves))
    return result


def claims(curves: dict[str, dict[str, list[Row]]]) -> list[Claim]:
    """Return the claims of the slides on the figures, with our results."""

    def at(name: str, system: str, n: int) -> float:
        points = curves[name][system]
        return float(max((p for p in points if p["n"] <= n), key=lambda p: p["n"])["error"])

    most = {name: max(p["n"] for p in systems[LEAVES[0]]) for name, systems in curves.items()}

    def said(systems: Sequence[str], n: dict[str, int]) -> str:
        return "; ".join(
            f"{name} " + " / ".join(f"{system} {at(name, system, n[name]):.4f}" for system in systems)
            for name in curves
        )

    early = dict.fromkeys(curves, EARLY)
    functional = [system for system in LEAVES if system != "mc"]
    drops = "; ".join(
        f"{name} "
        + " / ".join(f"{s} {at(name, s, EARLY) - at(name, s, most[name]):.4f}" for s in (*functional, "mc"))
        for name in curves
    )
    best_early = {name: min(at(name, system, EARLY) for system in functional) for name in curves}
    return [
        (
            f"functional leaves: nearly flat from {EARLY:,} records on (at most 0.03 lower at the end)",
            "learning curves",
            all(at(n, s, EARLY) - at(n, s, most[n]) <= 0.03 for n in curves for s in functional),
            f"from {EARLY:,} records to the last error falls by: {drops}",
        ),
        (
            f"with few records ({EARLY:,}) the better functional leaf is near C4.5 (at most 0.02 above)",
            "learning curves",
            all(best_early[name] <= at(name, BATCH, EARLY) + 0.02 for name in curves),
            said((*functional, BATCH), early),
        ),
        (
            "majority class leaves are the worst of the three at the end",
            "learning curves",
            all(
                at(name, "mc", most[name]) >= max(at(name, system, most[name]) for system in functional)
                for name in curves
            ),
            said(LEAVES, most),
        ),
    ]
