"""Calibration: the error of probabilities before and after it, and the coverage of conformal sets.

A tree answers each record and asks for a tenth of the labels; calibrators and sets learn from these labels
alone. The errors are measured over all records. Labels come at once, or when 1,000 later records have been
answered (2,000 on a stream with an abrupt change).
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.layout.published import KNOWN, RAW, THRESHOLD
from core.model.model import Model
from core.model_table import NO_LABEL, ON_REQUEST, Answers, ModelTable
from core.spec import Spec
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.probabilities.probability_streams import (
    BATCH_ROWS,
    DETECTORS,
    LATE,
    LATER,
    STREAMS,
    batches,
    found,
)

TITLE = "Calibration and conformal sets: their errors over all records, learned from a tenth of the labels"

LIMIT: Final = 0.1
ALPHA: Final = 0.1
BINS: Final = 15
CALIBRATIONS: Final = ("platt", "isotonic")
QUERIES: Final = ("ask", "random")

# Generators, records, seeds
SETTINGS: Final[dict[Size, tuple[int, int, int]]] = {
    "quick": (2, 6_000, 1),
    "medium": (9, 20_000, 5),
    "full": (9, 30_000, 10),
}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    streams, records, seeds = SETTINGS[size]
    addresses = dict(list(STREAMS.items())[:streams])
    if data is not None and size != "quick":
        addresses |= found(data)
    return [
        {
            "stream": stream,
            "address": address,
            "calibration": calibration,
            "query": query,
            "delay": delay,
            "records": records,
            "seeds": seeds,
        }
        for stream, address in addresses.items()
        for calibration in CALIBRATIONS
        for query in QUERIES
        for delay in ((0, LATER.get(stream, LATE)) if query == "ask" else (0,))
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the mean figures of the seeds, and standard errors of some of them; None: one seed."""
    of_seeds = [figures_of(cell, seed) for seed in range(1, cell["seeds"] + 1)]
    columns = {name: [figures[name] for figures in of_seeds] for name in of_seeds[0]}
    means = {name: round(statistics.fmean(values), 5) for name, values in columns.items()}
    return means | {f"{name}_se": standard_error(columns[name]) for name in UNCERTAIN}


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean, None for one value."""
    return round(statistics.stdev(values) / math.sqrt(len(values)), 5) if len(values) > 1 else None


def spec_of(cell: dict[str, Any], seed: int) -> Spec:
    """Return the spec of a cell's model."""
    return Spec.parse(
        {
            "learner": "h-tree",
            "query": cell["query"],
            "budget": {"limit": LIMIT},
            "evaluation": {"every": 0},
            "calibration": cell["calibration"],
            "conformal": {"alpha": ALPHA},
            "drift": DETECTORS.get(cell["stream"], "none"),
            "seed": seed,
        }
    )


def figures_of(cell: dict[str, Any], seed: int) -> dict[str, float]:
    """Return the figures of one run."""
    spec = spec_of(cell, seed)
    table, index, owed = ModelTable(), -1, deque[Owed]()
    judged = Judged()
    for schema, x, y in batches(cell, seed, spec):
        if index < 0:
            index = table.add(Model.create(spec, schema))
        elif table.model(index).schema is not schema:
            table.model(index).adopt(schema)
            table.refresh(index)
        judged.add(answered(table, index, x, y, owed, cell["delay"]), y)
    return judged.figures()


Owed = tuple[npt.NDArray[np.float64], npt.NDArray[np.int32], Answers]


def answered(
    table: ModelTable,
    index: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
    owed: deque[Owed],
    delay: int,
) -> Answers:
    """Return the answers to a batch, and learn the labels that are due; owed: batches whose labels come."""
    n = len(y)
    model, ones = np.full(n, index, np.int64), np.ones(n)
    if not delay:
        return table.answer(model, x, y, ones, ON_REQUEST)
    answers = table.answer(model, x, np.full(n, NO_LABEL, np.int32), ones)
    owed.append((x, y, answers))
    if len(owed) * BATCH_ROWS > delay:
        x, y, then = owed.popleft()
        at = np.flatnonzero(then.asked & (y >= 0))
        assert then.report is not None
        drawn = then.asked[at], then.sampled[at], then.importance[at]
        kept = then.probability[at], then.report[at]
        table.learn(model[: len(at)], x[at], y[at], ones[: len(at)], then.prediction[at], *drawn, *kept)
    return answers


class Judged:
    """Claims and hits of all answers with a label, before and after calibration, and their sets."""

    def __init__(self) -> None:
        self._claims: dict[str, list[npt.NDArray[np.float64]]] = {"before": [], "after": []}
        self._hits: dict[str, list[npt.NDArray[np.bool_]]] = {"before": [], "after": []}
        self._losses: dict[str, list[npt.NDArray[np.float64]]] = {"before": [], "after": []}
        self._inside: list[npt.NDArray[np.bool_]] = []
        self._sizes: list[npt.NDArray[np.int64]] = []

    def add(self, answers: Answers, y: npt.NDArray[np.int32]) -> None:
        """Judge the answers to a batch with labels y: int32[n]."""
        report = answers.report
        assert report is not None
        at = np.flatnonzero((answers.prediction >= 0) & (y >= 0) & (y < answers.probability.shape[1]))
        rows, label = np.arange(len(at)), y[at]
        for name, shares in (("before", report[at, RAW:]), ("after", answers.probability[at])):
            best = shares.argmax(axis=1)
            self._claims[name].append(shares[rows, best])
            self._hits[name].append(best == label)
            self._losses[name].append(((shares - np.eye(shares.shape[1])[label]) ** 2).sum(axis=1))
        least = 1.0 - report[at, THRESHOLD][:, np.newaxis]
        is_known = np.arange(answers.probability.shape[1]) < report[at, KNOWN][:, np.newaxis]
        inside = (answers.probability[at] >= least) & is_known
        self._inside.append(inside[rows, label])
        self._sizes.append(inside.sum(axis=1))

    def figures(self) -> dict[str, float]:
        """Return the errors; without the first tenth of the answers, in which little has been learned."""
        figures: dict[str, float] = {}
        for name in ("before", "after"):
            claims, hits = np.concatenate(self._claims[name]), np.concatenate(self._hits[name])
            losses = np.concatenate(self._losses[name])
            first = len(claims) // 10
            figures |= {
                f"error_{name}": expected_error(claims[first:], hits[first:]),
                f"accuracy_{name}": float(hits[first:].mean()),
                f"brier_{name}": float(losses[first:].mean()),
            }
        inside, sizes = np.concatenate(self._inside), np.concatenate(self._sizes)
        first = len(inside) // 10
        figures["coverage"] = float(inside[first:].mean())
        figures["set_size"] = float(sizes[first:].mean())
        figures["single"] = float((sizes[first:] == 1).mean())
        return figures


def expected_error(claims: npt.NDArray[np.float64], hits: npt.NDArray[np.bool_]) -> float:
    """Return the expected calibration error in bins of equal width (Guo and others 2017)."""
    places = np.minimum((claims * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(places, hits - claims, BINS)
    return float(np.abs(gaps).sum() / len(claims))


def report(rows: Sequence[Row]) -> Report:
    """Return a line for each cell, and the means over the streams."""
    heads = ("calibration", "query", "delay")
    columns = (*FIGURES, *(f"{name}_se" for name in UNCERTAIN))
    result = Report(tables={"means": [], "streams": []})
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in heads), []).append(row)
        result.tables["streams"].append({name: row[name] for name in ("stream", *heads, *columns)})
    for key, members in groups.items():
        means = {name: round(statistics.fmean(row[name] for row in members), 4) for name in FIGURES}
        errors = {f"{name}_se": error_of_mean([row[f"{name}_se"] for row in members]) for name in UNCERTAIN}
        result.tables["means"].append(dict(zip(heads, key, strict=True)) | means | errors)
    return result


def error_of_mean(errors: Sequence[float | None]) -> float | None:
    """Return the standard error of a mean over streams from those of the streams, which are independent."""
    numbers = [error for error in errors if error is not None]
    return round(math.hypot(*numbers) / len(numbers), 5) if numbers and len(numbers) == len(errors) else None


FIGURES: Final = (
    *(f"{figure}_{time}" for figure in ("error", "accuracy", "brier") for time in ("before", "after")),
    "coverage",
    "set_size",
    "single",
)
"""Figures of a cell."""
UNCERTAIN: Final = ("error_before", "error_after", "brier_before", "brier_after", "coverage")
"""Figures with a standard error over the seeds; seeds change only the chosen labels of a file's records."""
