"""BCI, Figure 5: true risk on the toy problem against labels, BOCT and BOCT-AL beside fixed partitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.layout.model import Floats
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.bci import bci_toy
from streamapp.lab.experiments.bci.bci_curves import (
    DELTAS,
    Claim,
    best_deltas,
    cells_of,
    claims_table,
    is_least,
    merged,
    nearest,
    pairs_of,
    summed,
    thinned,
)
from streamapp.lab.experiments.chart import Axis, Chart, Line

TITLE = "BCI (Bayesian Credible Intervals), Figure 5: true risk on the toy problem against labels"
HOURS: Final[dict[Size, float]] = {"full": 0.5}
"""Hours of one core, for both readings of the formula."""

SYSTEMS: Final = ("BOCT", "BOCT-AL", "mbinomial_8", "mbinomial_64")
EVERY: Final = 10
AXIS: Final = (0.22, 0.34)
"""Risks at the ends of the printed axis; labels go from 0 to 1,000."""
SHOWN: Final = (20, 50, 100, 200, 300, 500, 750, 1000)

PAIRS: Final = ((0.2, 0.2), (0.3, 0.1), (0.3, 0.3), (0.35, 0.35))
"""δ1 and δ2 at which BOCT-AL is compared with BOCT, run by run."""

# Labels, values of each grid, runs to tune on, runs
SETTINGS: dict[Size, tuple[int, int, int, int]] = {
    "quick": (200, 3, 2, 4),
    "medium": (1000, 5, 12, 100),
    "full": (1000, 13, 100, 100),
}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return the runs that tune each system on each reading, and the runs of pairs of systems."""
    labels, values, runs, compared = SETTINGS[size]
    grid = thinned(DELTAS, values)
    return [
        cell
        for root in bci_toy.ROOTS
        for system in SYSTEMS
        for deltas in (pairs_of(grid, grid) if system == "BOCT-AL" else [[value] for value in grid])
        for cell in cells_of({"root": root, "system": system, "count": labels}, "tune", deltas, runs)
    ] + [
        cell
        for root in bci_toy.ROOTS
        for system in ("BOCT-AL", bci_toy.BY_EXCESS)
        for deltas in (PAIRS[:1] if size == "quick" else PAIRS)
        for cell in cells_of({"root": root, "system": system, "count": labels}, "pair", [*deltas], compared)
    ]


def then(size: Size, data: Path | None, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return fresh runs of each system with the best parameters."""
    labels, _, _, runs = SETTINGS[size]
    return [
        cell
        for root in bci_toy.ROOTS
        for system in SYSTEMS
        for cell in cells_of(
            {"root": root, "system": system, "count": labels},
            "compare",
            best_deltas(rows, root=root, system=system),
            runs,
        )
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Run a system on the toy problem with each seed of the cell; for a pair, return BOCT's excess risk."""
    seeds = range(cell["seed"], cell["seed"] + cell["runs"])

    def curves(system: str) -> Floats:
        toy_system = bci_toy.system_of(system, cell["deltas"], len(seeds))
        return bci_toy.run(toy_system, cell["count"], EVERY, seeds, cell["root"])

    if cell["stage"] != "pair":
        return summed(curves(cell["system"]), range(0, cell["count"] + 1, EVERY))
    leads = curves("BOCT") - curves(cell["system"])
    ends = leads[:, -1].tolist()
    return {"means": [float(lead.mean()) for lead in leads], "ends": ends}


def report(rows: Sequence[Row]) -> Report:
    """Return risks at some label counts, the claims, the grid, and the curves."""
    result = Report(
        tables={
            "figure5": [],
            "figure5-claims": [],
            "figure5-pairs": pairs_table(rows),
            "figure5-grid": grid_table(rows),
        }
    )
    for root in bci_toy.ROOTS:
        _add_reading(result, root, [row for row in rows if row["root"] == root])
    return result


def _add_reading(result: Report, root: str, rows: Sequence[Row]) -> None:
    """Add risks, claims and curves of one reading of the formula."""
    compared = [row for row in rows if row["stage"] == "compare"]
    curves = {name: merged([row for row in compared if row["system"] == name]) for name in SYSTEMS}
    for name, (labels, mean, spread, runs) in curves.items():
        line: dict[str, Any] = {
            "root": root,
            "system": name,
            "δ": ", ".join(f"{value:g}" for value in best_deltas(rows, system=name)),
            "runs": runs,
            "mean": round(float(mean.mean()), 4),
        }
        for count in SHOWN:
            if count <= labels[-1]:
                at = nearest(labels, count)
                line[str(count)] = f"{mean[at]:.4f} ± {spread[at]:.4f}"
        result.tables["figure5"].append(line)
    result.tables["figure5-claims"] += [{"root": root, **line} for line in claims_table(claims(curves))]
    result.charts[f"figure5-{bci_toy.ROOTS.index(root) + 1}"] = Chart(
        f"Toy problem, {root}",
        Axis("number of labeled instances"),
        Axis(f"true risk (the printed axis: {AXIS[0]} to {AXIS[1]})"),
        tuple(
            Line(name, tuple(zip(map(float, labels), mean.tolist(), strict=True)))
            for name, (labels, mean, _, _) in curves.items()
        ),
    )


def pairs_table(rows: Sequence[Row]) -> list[Row]:
    """Return the excess risk of BOCT over a system with the same δ1 and seeds: mean ± standard error."""
    paired = [row for row in rows if row["stage"] == "pair"]
    lines: list[Row] = []
    for root, system, deltas in dict.fromkeys(
        (row["root"], row["system"], tuple(row["deltas"])) for row in paired
    ):
        own = [
            row
            for row in paired
            if (row["root"], row["system"], tuple(row["deltas"])) == (root, system, deltas)
        ]
        line: dict[str, Any] = {"root": root, "system": system, "δ": ", ".join(f"{d:g}" for d in deltas)}
        line["runs"] = sum(row["runs"] for row in own)
        for name, key in (("over the run", "means"), ("at the end", "ends")):
            leads = np.array([lead for row in own for lead in row[key]])
            error = leads.std(ddof=min(1, len(leads) - 1)) / np.sqrt(len(leads))
            line[name] = f"{leads.mean():+.4f} ± {error:.4f}"
        lines.append(line)
    return lines


def grid_table(rows: Sequence[Row]) -> list[Row]:
    """Return the mean risk of each value of the grid."""
    tuned = [row for row in rows if row["stage"] == "tune"]
    lines: list[Row] = []
    for root, system in dict.fromkeys((row["root"], row["system"]) for row in tuned):
        own = [row for row in tuned if (row["root"], row["system"]) == (root, system)]
        for deltas in dict.fromkeys(tuple(row["deltas"]) for row in own):
            of_value = [row for row in own if tuple(row["deltas"]) == deltas]
            _, mean, _, runs = merged(of_value)
            lines.append(
                {
                    "root": root,
                    "system": system,
                    "δ": ", ".join(f"{value:g}" for value in deltas),
                    "runs": runs,
                    "mean": round(float(mean.mean()), 5),
                    "end": round(float(mean[-1]), 5),
                }
            )
    return lines


def claims(curves: dict[str, tuple[list[int], Any, Any, int]]) -> list[Claim]:
    """Return the claims of section VI on the figure, with our results."""
    labels = curves["BOCT"][0]
    error = {name: spread / np.sqrt(runs) for name, (_, _, spread, runs) in curves.items()}
    mean = {name: curve[1] for name, curve in curves.items()}
    end = len(labels) - 1
    early = nearest(labels, labels[-1] // 10)

    def both(first: str, second: str, at: int) -> str:
        return f"{first} {mean[first][at]:.4f}, {second} {mean[second][at]:.4f} after {labels[at]} labels"

    best_fixed = np.minimum(mean["mbinomial_8"], mean["mbinomial_64"])
    wider = np.maximum(error["mbinomial_8"], error["mbinomial_64"])
    behind = mean["BOCT-AL"] - best_fixed
    level = behind <= 2.0 * np.hypot(error["BOCT-AL"], wider)
    worst = int(behind[1:].argmax()) + 1
    in_axis = [float(((m[1:] >= AXIS[0]) & (m[1:] <= AXIS[1])).mean()) for m in mean.values()]
    return [
        (
            "mbinomial_8 is better than mbinomial_64 with a few labels",
            "VI c",
            bool(mean["mbinomial_8"][early] < mean["mbinomial_64"][early]),
            both("mbinomial_8", "mbinomial_64", early),
        ),
        (
            "mbinomial_64 is better than mbinomial_8 at the end",
            "VI c",
            bool(mean["mbinomial_64"][end] < mean["mbinomial_8"][end]),
            both("mbinomial_8", "mbinomial_64", end),
        ),
        (
            "BOCT-AL is level with the better of the two at any time",
            "VI c",
            bool(level[1:].all()),
            f"at {level[1:].mean():.0%} of the points within two standard errors; "
            f"most behind by {behind[worst]:.4f} after {labels[worst]} labels",
        ),
        (
            "BOCT-AL is better than BOCT",
            "VI c",
            bool(mean["BOCT-AL"].mean() < mean["BOCT"].mean())
            and is_least(mean["BOCT-AL"][end], error["BOCT-AL"][end], mean["BOCT"][end], error["BOCT"][end]),
            f"mean over the run {mean['BOCT-AL'].mean():.4f} and {mean['BOCT'].mean():.4f}; "
            + both("BOCT-AL", "BOCT", end),
        ),
        (
            f"risks lie between {AXIS[0]} and {AXIS[1]} (the printed axis)",
            "figure 5",
            None,
            "; ".join(f"{name} {share:.0%}" for name, share in zip(mean, in_axis, strict=True)),
        ),
    ]
