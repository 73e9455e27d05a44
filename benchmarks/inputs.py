"""Cost of the input detector: nanoseconds per answered record, and bytes per model, as JSON lines.

    python -m benchmarks.inputs
    python -m benchmarks.inputs --streams hyperplane --rounds 200

Two models with the same tree answer the same unlabelled records of ten features in runs of 5,000, in turn;
one of them watches its inputs. Times are CPU time; the ratio is the median over pairs, so that a busy machine
disturbs both alike. With --task a task decodes, answers and encodes JSON instances of ten features, with and
without the detector, in turn. With --models the bytes of many models are counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from benchmarks.name_lists import add_name_lists
from benchmarks.task import measure
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from core.streams.base import open_generator

RUN = 5_000
LEARNED = 20_000
STREAMS = ("rbf", "hyperplane", "random_tree")
DETECTORS = {"without": "none", "with": ["none", "input"]}


def table_of(stream: str, drift: object) -> ModelTable:
    """Return a table with a model that has learned."""
    generator = open_generator(stream, seed=1)
    spec = Spec.parse({"learner": "h-tree", "query": "never", "drift": drift, "evaluation": {"every": 0}})
    table = ModelTable()
    table.add(Model.create(spec, generator.schema))
    for x, y in generator.batches(LEARNED, RUN):
        table.answer(np.zeros(len(y), dtype=np.int64), x, y, np.ones(len(y)))
    return table


def nanoseconds(table: ModelTable, x: np.ndarray) -> float:
    """Return the CPU time of an answer."""
    models, label, weights = np.zeros(RUN, np.int64), np.full(RUN, -1, np.int32), np.ones(RUN)
    began = time.process_time_ns()
    table.answer(models, x, label, weights)
    return (time.process_time_ns() - began) / RUN


def compare(stream: str, rounds: int) -> dict[str, object]:
    """Return the cost of an answer with and without the detector; the first fifth warms up."""
    tables = {name: table_of(stream, drift) for name, drift in DETECTORS.items()}
    generator = open_generator(stream, seed=1)
    pairs: list[tuple[float, float]] = []
    for number, (x, _) in enumerate(generator.batches(RUN * rounds, RUN)):
        names = list(DETECTORS) if number % 2 else list(DETECTORS)[::-1]
        times = {name: nanoseconds(tables[name], x) for name in names}
        pairs.append((times["without"], times["with"]))
    kept = pairs[rounds // 5 :]
    sizes = {name: table.model(0).nbytes for name, table in tables.items()}
    return {
        "stream": stream,
        "attributes": generator.schema.n_attributes,
        "without": round(statistics.median(without for without, _ in kept), 1),
        "with": round(statistics.median(watched for _, watched in kept), 1),
        "added": round(statistics.median(watched - without for without, watched in kept), 1),
        "ratio": round(statistics.median(watched / without for without, watched in kept), 3),
        "bytes": sizes["with"] - sizes["without"],
    }


def in_task(turns: int) -> dict[str, object]:
    """Return the microseconds of an answer in a task: decoding, processing and encoding together."""
    options = argparse.Namespace(attributes=10, runs=100, leaf="nba", handler="stop-partition")
    times: dict[str, list[float]] = {name: [] for name in DETECTORS}
    for turn in range(turns):
        for name in list(DETECTORS) if turn % 2 else list(DETECTORS)[::-1]:
            stages = measure(options, 1, labelled=False, query="never", drift=DETECTORS[name])
            microseconds = stages["us_per_record"]
            times[name].append(sum(microseconds[stage] for stage in ("decode", "process", "encode")))
    ratios = [watched / without for without, watched in zip(*times.values(), strict=True)]
    figures = {name: round(statistics.median(values), 3) for name, values in times.items()}
    return {"task": figures, "ratio": round(statistics.median(ratios), 3)}


def count_models(models: int, drift: object) -> dict[str, object]:
    """Return the bytes of new models of ten features, each of which answers one record."""
    generator = open_generator("rbf", seed=1)
    spec = Spec.parse({"learner": "h-tree", "query": "never", "drift": drift, "evaluation": {"every": 0}})
    table = ModelTable()
    for _ in range(models):
        table.add(Model.create(spec, generator.schema))
    ((x, _),) = generator.batches(models, models)
    table.answer(np.arange(models), x, np.full(models, -1, np.int32), np.ones(models))
    return {"models": models, "drift": drift, "bytes": sum(table.model(i).nbytes for i in range(models))}


def main() -> None:
    """Measure all streams, and count the bytes of many models."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inputs", description=__doc__.splitlines()[0])
    add_name_lists(parser, {"streams": STREAMS})
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--models", action="store_true", help="count the bytes of many models instead")
    parser.add_argument("--task", action="store_true", help="measure a whole answer in a task instead")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(in_task(options.turns)))
        return
    if options.models:
        print(json.dumps(count_models(100_000, "none")))
        print(json.dumps(count_models(10_000, ["none", "input"])))
        return
    for stream in options.streams:
        print(json.dumps(compare(stream, options.rounds)))


if __name__ == "__main__":
    main()
