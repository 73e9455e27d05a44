"""Drift detectors in a tree: delay, misses and false alarms, at several label budgets.

Each stream has one change, in its middle: at one record, or along a sigmoid. A tree answers and learns, a
detector watches its errors, and an alarm starts a new tree. With a budget below 100 % labels are requested at
random, so that the detector sees fewer errors; delays are counted in records all the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from core import registry
from core.events import Drift
from core.model.model import Model
from core.model_table import ON_REQUEST, ModelTable
from core.spec import Spec
from core.streams.base import Generator
from streamapp.lab.experiments.base import Report, Row, Size
from streamapp.lab.experiments.chart import Axis, Chart, Line
from streamapp.lab.experiments.drift.concept_change import KINDS, change_of, changing_stream

TITLE = "Drift detectors: delay, misses and false alarms on abrupt and gradual changes"

CONCEPTS: Final[dict[str, tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "sea": ("sea", {"function": 3}, {"function": 4}),
    "agrawal": ("agrawal", {"function": 1}, {"function": 4}),
    "led": ("led", {}, {"drift": 7}),
    "stagger": ("stagger", {"function": 1}, {"function": 3}),
    "sine": ("sine", {"function": 1}, {"function": 2}),
    "rbf": ("rbf", {"model_seed": 1}, {"model_seed": 2}),
}
"""Stream → its generator, and the options before and after the change."""

BUDGETS: Final = (1.0, 0.1, 0.02)
BATCH_ROWS: Final = 4096

# Streams, records, seeds
SETTINGS: Final[dict[Size, tuple[int, int, int]]] = {
    "quick": (2, 4_000, 2),
    "medium": (6, 20_000, 10),
    "full": (6, 100_000, 30),
}


def cells(size: Size, data: Path | None) -> list[dict[str, Any]]:
    streams, records, seeds = SETTINGS[size]
    return [
        {
            "stream": stream,
            "kind": kind,
            "detector": detector,
            "budget": budget,
            "records": records,
            "seeds": seeds,
        }
        for stream in list(CONCEPTS)[:streams]
        for kind in KINDS
        for detector in registry.names("drift")
        if detector != "none"
        for budget in BUDGETS
    ]


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Return, for each seed, the alarms before the change, and the delay of the first one after it."""
    early, delays = [], []
    for seed in range(cell["seeds"]):
        alarms = alarms_of(cell, seed)
        change = change_of(cell["kind"], cell["records"])
        early.append(sum(alarm < change for alarm in alarms))
        after = [alarm - change for alarm in alarms if alarm >= change]
        delays.append(after[0] if after else None)
    return {"early": early, "delays": delays}


def stream_of(cell: dict[str, Any], seed: int) -> Generator:
    """Return the stream of a seed."""
    generator, before, after = CONCEPTS[cell["stream"]]
    return changing_stream((generator, before), (generator, after), cell["kind"], cell["records"], seed)


def alarms_of(cell: dict[str, Any], seed: int) -> list[int]:
    """Return the records, from 0 on, at which a detector reports a drift."""
    stream, n = stream_of(cell, seed), cell["records"]
    spec = Spec.parse(
        {
            "learner": "h-tree",
            "query": "always" if cell["budget"] == 1.0 else "random",
            "budget": {"limit": cell["budget"]},
            "drift": {"name": cell["detector"], "reaction": "reset"},
            "evaluation": {"every": 0},
            "seed": seed,
        }
    )
    table = ModelTable()
    model = table.add(Model.create(spec, stream.schema))
    alarms, first = [], 0
    for x, y in stream.batches(n, BATCH_ROWS):
        answers = table.answer(np.full(len(y), model, np.int64), x, y, np.ones(len(y)), ON_REQUEST)
        alarms += [
            first + event.row
            for event in answers.events
            if isinstance(event, Drift) and event.level == "drift"
        ]
        first += len(y)
    return alarms


def report(rows: Sequence[Row]) -> Report:
    """Return a line for each detector, kind of change and budget, over all streams and seeds; and charts."""
    result = Report(tables={"detectors": [], "streams": []})
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["detector"], row["kind"], row["budget"]), []).append(row)
        result.tables["streams"].append(
            {name: row[name] for name in ("stream", "kind", "detector", "budget")} | figures([row])
        )
    for (detector, kind, budget), members in groups.items():
        head = {"detector": detector, "kind": kind, "budget": budget}
        result.tables["detectors"].append(head | figures(members))
    for kind in KINDS:
        lines = [
            Line(detector, tuple((b, d) for b in BUDGETS if (d := delay_at(groups, detector, kind, b))))
            for detector in dict.fromkeys(row["detector"] for row in rows)
        ]
        result.charts[f"delay-{kind}"] = Chart(
            f"Median delay of an alarm, {kind} change",
            Axis("share of the labels", log=True),
            Axis("records", log=True),
            tuple(line for line in lines if line.points),
        )
    return result


def delay_at(
    groups: dict[tuple[str, str, float], list[Row]], detector: str, kind: str, budget: float
) -> float | None:
    """Return the median delay of a detector in records; None: it detected no change, or there is no cell."""
    delay: float | None = figures(groups.get((detector, kind, budget), []))["delay"]
    return delay


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures of some cells.

    delay: median of the records from the change to the first alarm; missed: share of changes without one;
    false: alarms before a change, in a run; between: records between two of these, None: there is none.
    """
    delays = [delay for row in rows for delay in row["delays"]]
    detected = [delay for delay in delays if delay is not None]
    early = [n for row in rows for n in row["early"]]
    calm = sum(change_of(row["kind"], row["records"]) * len(row["early"]) for row in rows)
    return {
        "delay": statistics.median(detected) if detected else None,
        "missed": round(1 - len(detected) / len(delays), 3) if delays else None,
        "false": round(statistics.fmean(early), 2) if early else None,
        "between": round(calm / sum(early)) if sum(early) else None,
    }
