"""Cost of calibration and of conformal sets: nanoseconds per answered record, as JSON lines.

    python -m benchmarks.probabilities
    python -m benchmarks.probabilities --task

Models with the same tree answer the same unlabelled records in runs of 5,000, in turn; one has neither part,
the others calibrators, sets or both. Times are CPU time. The ratio to the plain answer is the median over
turns, so that a busy machine disturbs all alike. With --task a task decodes, answers and encodes JSON
instances of ten features.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

import numpy as np

from benchmarks.inputs import nanoseconds
from benchmarks.name_lists import add_name_lists
from benchmarks.task import measure
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from core.streams.base import open_generator

RUN = 5_000
LEARNED = 20_000
STREAMS = ("hyperplane", "waveform", "led")
"""Streams of two, three and ten classes."""
PARTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "platt": {"calibration": "platt"},
    "isotonic": {"calibration": "isotonic"},
    "sets": {"conformal": {}},
    "platt and sets": {"calibration": "platt", "conformal": {}},
    "isotonic and sets": {"calibration": "isotonic", "conformal": {}},
}


def table_of(stream: str, parts: dict[str, Any]) -> ModelTable:
    """Return a table with a model that has learned."""
    generator = open_generator(stream, seed=1)
    spec = {"learner": "h-tree", "query": "never", "evaluation": {"every": 0}} | parts
    table = ModelTable()
    table.add(Model.create(Spec.parse(spec), generator.schema))
    for x, y in generator.batches(LEARNED, RUN):
        table.answer(np.zeros(len(y), dtype=np.int64), x, y, np.ones(len(y)))
    return table


def figures(times: dict[str, list[float]], digits: int) -> dict[str, Any]:
    """Return the median time of each part, and its median ratio to the plain answer of the same turn."""
    plain = times["plain"]
    return {
        name: {
            "time": round(statistics.median(values), digits),
            "ratio": round(statistics.median(t / p for t, p in zip(values, plain, strict=True)), 3),
        }
        for name, values in times.items()
    }


def compare(stream: str, rounds: int) -> dict[str, Any]:
    """Return the nanoseconds of an answer with each part; the first fifth of the turns warms up."""
    tables = {name: table_of(stream, parts) for name, parts in PARTS.items()}
    generator = open_generator(stream, seed=1)
    times: dict[str, list[float]] = {name: [] for name in PARTS}
    for turn, (x, _) in enumerate(generator.batches(RUN * rounds, RUN)):
        for name in list(PARTS) if turn % 2 else list(PARTS)[::-1]:
            times[name].append(nanoseconds(tables[name], x))
    kept = {name: values[rounds // 5 :] for name, values in times.items()}
    sizes = {name: tables[name].model(0).nbytes - tables["plain"].model(0).nbytes for name in PARTS}
    return {"stream": stream, "ns": figures(kept, 1), "bytes": sizes}


def in_task(turns: int) -> dict[str, Any]:
    """Return the microseconds of an answer in a task: decoding, processing and encoding together."""
    options = argparse.Namespace(attributes=10, runs=40, leaf="nba", handler="stop-partition")
    times: dict[str, list[float]] = {name: [] for name in PARTS}
    for turn in range(turns):
        for name in list(PARTS) if turn % 2 else list(PARTS)[::-1]:
            stages = measure(options, 1, labelled=False, query="never", **PARTS[name])
            microseconds = stages["us_per_record"]
            times[name].append(sum(microseconds[stage] for stage in ("decode", "process", "encode")))
    return {"task": True, "us": figures(times, 3)}


def main() -> None:
    """Measure all streams, or answers in a task."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probabilities", description=__doc__.splitlines()[0]
    )
    add_name_lists(parser, {"streams": STREAMS})
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--task", action="store_true", help="measure a whole answer in a task instead")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(in_task(options.turns)))
        return
    for stream in options.streams:
        print(json.dumps(compare(stream, options.rounds)))


if __name__ == "__main__":
    main()
