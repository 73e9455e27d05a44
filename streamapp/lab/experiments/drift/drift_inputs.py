"""Input detector: false alarms, delays and misses without labels, and the gain of labels after an alarm.

Detection: streams whose inputs never change (their concept may), and streams whose inputs change in their
middle. Gain: a tree with few labels on streams whose inputs and concept change together; the labels of the
records after an alarm are requested, or not. They count as spent, so that both runs have about equally many.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.events import InputsChanged
from core.model.model import Model
from core.model_table import ON_REQUEST, ModelTable
from core.spec import Spec
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.drift.concept_change import KINDS, change_of, changing_stream

TITLE = (
    "Input detector: false alarms, delays and misses without labels, and the gain of labels after an alarm"
)

CALM: Final[dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "sea": ("sea", "sea", {"function": 3}, {"function": 4}),
    "agrawal": ("agrawal", "agrawal", {"function": 1}, {"function": 4}),
    "stagger": ("stagger", "stagger", {"function": 1}, {"function": 3}),
    "sine": ("sine", "sine", {"function": 1}, {"function": 2}),
}
"""Stream → its generators and their options before and after a change of the concept alone."""

MOVING: Final[dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "rbf": ("rbf", "rbf", {"model_seed": 1}, {"model_seed": 2}),
    "led": ("led", "led", {}, {"drift": 7}),
    "waveform": ("waveform", "waveform_drift", {}, {}),
}
"""The same for a change of inputs and concept."""

ALPHAS: Final = (0.5, 0.01)
BATCH_ROWS: Final = 4096
LIMIT: Final = 0.02
OPEN: Final = {"closed": (0, 1.0), "a fifth of 1,000": (1000, 0.2), "all of 200": (200, 1.0)}
"""Variant → records after an alarm whose labels are requested, and their share: 200 labels."""

# Records, seeds
SETTINGS: Final[dict[Size, tuple[int, int]]] = {
    "quick": (6_000, 2),
    "medium": (20_000, 20),
    "full": (100_000, 30),
}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    records, seeds = SETTINGS[size]
    common = {"records": records, "seeds": seeds}
    streams = [*CALM, *MOVING] if size != "quick" else ["sea", "rbf"]
    detection = [
        {"part": "detection", "stream": stream, "kind": kind, "alpha": alpha, **common}
        for stream in streams
        for kind in KINDS
        for alpha in ALPHAS
    ]
    gain = [
        {"part": "gain", "stream": stream, "kind": "abrupt", "open": variant, **common}
        for stream in streams
        if stream in MOVING
        for variant in OPEN
    ]
    return [*detection, *gain]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the alarms of each seed, the share of right answers after the change, and the labels."""
    results: dict[str, list[Any]] = {"alarms": [], "soon": [], "late": [], "labels": []}
    half = cell["records"] // 2
    for seed in range(cell["seeds"]):
        alarms, is_right, labels = run_of(cell, seed)
        results["alarms"].append(alarms)
        results["soon"].append(float(is_right[half : half + half // 5].mean()))
        results["late"].append(float(is_right[half:].mean()))
        results["labels"].append(labels)
    return results


def run_of(cell: dict[str, Any], seed: int) -> tuple[list[int], np.ndarray[Any, Any], int]:
    """Return the records of alarms, bool[n] of right answers, and the number of labels."""
    before, after, first_options, second_options = (CALM | MOVING)[cell["stream"]]
    n = cell["records"]
    stream = changing_stream((before, first_options), (after, second_options), cell["kind"], n, seed)
    table = ModelTable()
    model = table.add(Model.create(spec_of(cell, seed), stream.schema))
    alarms, hits, first, labels = [], [], 0, 0
    for x, y in stream.batches(n, BATCH_ROWS):
        answers = table.answer(np.full(len(y), model, np.int64), x, y, np.ones(len(y)), ON_REQUEST)
        alarms += [first + event.row for event in answers.events if isinstance(event, InputsChanged)]
        hits.append(answers.prediction == y)
        labels += int(answers.asked.sum())
        first += len(y)
    return alarms, np.concatenate(hits), labels


def spec_of(cell: dict[str, Any], seed: int) -> Spec:
    """Return the spec of a cell; detection needs no labels, and a cheap learner is enough."""
    if cell["part"] == "detection":
        detector = {"name": "input", "alpha": cell["alpha"]}
        body = {"learner": "majority-class", "query": "never", "drift": detector}
        return Spec.parse(body | {"evaluation": {"every": 0}, "seed": seed})
    records, share = OPEN[cell["open"]]
    inputs = {"name": "input", "open_records": records, "open_share": share}
    return Spec.parse(
        {
            "learner": "h-tree",
            "budget": {"limit": LIMIT},
            "drift": [{"name": "hddm_a", "reaction": "reset"}, inputs],
            "evaluation": {"every": 0},
            "seed": seed,
        }
    )


def report(rows: Sequence[Row]) -> Report:
    """Return false alarms, delays and misses by stream; and the gain by variant, beside the closed budget."""
    result = Report(tables={"detection": [], "gain": []})
    closed = {row["stream"]: row for row in rows if row["part"] == "gain" and row["open"] == "closed"}
    for row in rows:
        if row["part"] == "detection":
            head = {name: row[name] for name in ("stream", "kind", "alpha")}
            result.tables["detection"].append(head | detection_of(row))
        elif row["open"] != "closed":
            head = {"stream": row["stream"], "open": row["open"]}
            result.tables["gain"].append(head | gain_of(row, closed[row["stream"]]))
    return result


def detection_of(row: Row) -> dict[str, Any]:
    """Return the share of runs with a false alarm, the median delay in records, and the share of misses.

    All alarms on streams whose inputs never change are false, else those before the change.
    """
    is_moving = row["stream"] in MOVING
    change = change_of(row["kind"], row["records"])
    early = [any(not is_moving or alarm < change for alarm in alarms) for alarms in row["alarms"]]
    delays = [next((alarm - change for alarm in alarms if alarm >= change), None) for alarms in row["alarms"]]
    detected = [delay for delay in delays if delay is not None]
    return {
        "false": round(statistics.fmean(early), 3),
        "delay": round(statistics.median(detected)) if is_moving and detected else None,
        "missed": round(1 - len(detected) / len(delays), 3) if is_moving else None,
    }


def gain_of(row: Row, closed: Row) -> dict[str, Any]:
    """Return points of accuracy gained in a fifth of the rest of the stream and in all of it, ± one error."""
    gains = {
        name: [100 * (a - b) for a, b in zip(row[name], closed[name], strict=True)]
        for name in ("soon", "late")
    }
    figures = {}
    for name, values in gains.items():
        error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        figures[name] = f"{statistics.fmean(values):+.2f} ± {error:.2f}"
    return figures | {
        "labels": round(statistics.fmean(row["labels"])),
        "closed": round(statistics.fmean(closed["labels"])),
    }
