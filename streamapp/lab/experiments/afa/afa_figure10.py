"""AFA, Figure 10: test utility on Stagger against sampled hypotheses and the quality of the prior."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.model.model import Model
from streamapp.lab.experiments.afa import afa_stagger
from streamapp.lab.experiments.afa.afa_runs import aggregate
from streamapp.lab.experiments.afa.afa_stream import CONCEPTS, stagger
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line

TITLE = "AFA (Active Feature Acquisition), Figure 10: Stagger against sampled hypotheses and prior quality"

SWEEP: Final = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)
GAMMAS: Final = (0.0, 0.05)
QUALITIES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""λ of the prior [D65]: α = 1 + 20·λ·θ, β = 1 + 20·λ·(1 - θ), where θ is the shares of the first concept."""
STRENGTH: Final = 20.0


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    """Return a run for each number of hypotheses, and each quality of the prior, discount and seed."""
    runs = []
    for seed in range(101, 101 + afa_stagger.SEEDS[size]):
        for gamma in GAMMAS:
            common = {"system": "ec2", "discount": gamma, "seed": seed, "every": afa_stagger.EVERY[size]}
            for n in SWEEP[:: 4 if size == "quick" else 1]:
                runs.append(common | {"part": "hypotheses", "hypotheses": n, "quality": 0.0})
            for quality in QUALITIES[:: 2 if size == "quick" else 1]:
                runs.append(
                    common | {"part": "prior", "hypotheses": afa_stagger.HYPOTHESES, "quality": quality}
                )
    return runs


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Run UFODT-EC2 over the three concepts, from a prior of the cell's quality."""
    return afa_stagger.run(cell, lambda model: give_prior(model, cell["quality"], cell["seed"]))


def give_prior(model: Model, quality: float, seed: int) -> None:
    """Set the prior of a new model to the statistics of the first concept's records, scaled by `quality`."""
    x, y = stagger(CONCEPTS[0], afa_stagger.BLOCK, seed, part=0)
    counts = model.plan.blocks.named(model.ints, model.block_places[0])["nominal"]
    for c in range(2):
        ones = x[y == c].mean(axis=0)
        counts[c, 0::2] = 1.0 + STRENGTH * quality * (1.0 - ones)
        counts[c, 1::2] = 1.0 + STRENGTH * quality * ones


def report(rows: Sequence[Row]) -> Report:
    """Return test utility, averaged over the run, and cost against both parameters."""
    result = Report(tables={"hypotheses": [], "prior": []})
    for part, measured in (("hypotheses", "hypotheses"), ("prior", "quality")):
        lines = []
        for gamma in GAMMAS:
            own = [row for row in rows if row["part"] == part and row["discount"] == gamma]
            points = []
            for value in sorted({row[measured] for row in own}):
                matching = [row for row in own if row[measured] == value]
                utility, error = aggregate([row["mean"] for row in matching])
                first = float(np.mean([_first_block(row) for row in matching]))
                points.append((float(value), utility))
                result.tables[part].append(
                    {
                        "discount": gamma,
                        measured: value,
                        "test utility": f"{utility:.4f} ± {error:.4f}",
                        "in the first concept": round(first, 4),
                        "cost": round(float(np.mean([row["cost"] for row in matching])), 1),
                        "runs": len(matching),
                    }
                )
            lines.append(Line(f"Algorithm {6 if gamma else 2}", tuple(points)))
        result.charts[f"figure10-{part}"] = Chart(
            "Stagger", Axis(measured), Axis("test utility"), tuple(lines)
        )
    return result


def _first_block(row: Row) -> float:
    """Return the test utility averaged over the first concept."""
    first = [
        utility
        for step, utility in zip(row["steps"], row["utility"], strict=True)
        if step <= afa_stagger.BLOCK
    ]
    return float(np.mean(first))
