"""Cost of the input detector: nanoseconds per answered record, and bytes per model, as JSON lines.

    python -m benchmarks.inputs
    python -m benchmarks.inputs --streams hyperplane --rounds 200

Two models with the same tree answer the same unlabelled records of ten features in runs of 5,000, in turn;
one of them watches its inputs. Times are CPU time; the ratio is the median over pairs, so that a busy machine
disturbs both alike. With --task a task decodes, answers and encodes JSON instances of ten features, with and
without the detector, in turn. With --models the bytes of many models are counted.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

import numpy as np

from benchmarks.answer_cost import Times, arguments, in_kernel, in_task, spec_of
from core.model.model import Model
from core.model_table import ModelTable
from core.streams.base import open_generator

STREAMS = ("rbf", "hyperplane", "random_tree")
VARIANTS: dict[str, dict[str, Any]] = {"without": {"drift": "none"}, "with": {"drift": ["none", "input"]}}


def compare(stream: str, rounds: int) -> dict[str, Any]:
    """Return the cost of an answer with and without the detector."""
    times, sizes = in_kernel(stream, VARIANTS, rounds)
    pairs = list(zip(times["without"], times["with"], strict=True))
    return {
        "stream": stream,
        "attributes": open_generator(stream, seed=1).schema.n_attributes,
        "without": round(statistics.median(times["without"]), 1),
        "with": round(statistics.median(times["with"]), 1),
        "added": round(statistics.median(watched - without for without, watched in pairs), 1),
        "ratio": ratio_of(times),
        "bytes": sizes["with"] - sizes["without"],
    }


def ratio_of(times: Times) -> float:
    """Return the median ratio of an answer with the detector to the answer without it in the same turn."""
    pairs = zip(times["without"], times["with"], strict=True)
    return round(statistics.median(watched / without for without, watched in pairs), 3)


def compare_tasks(turns: int) -> dict[str, Any]:
    """Return the microseconds of an answer in a task: decoding, processing and encoding together."""
    times = in_task(VARIANTS, 100, turns)
    figures = {name: round(statistics.median(values), 3) for name, values in times.items()}
    return {"task": figures, "ratio": ratio_of(times)}


def count_models(models: int, variant: dict[str, Any]) -> dict[str, Any]:
    """Return the bytes of new models of ten features, each of which answers one record."""
    generator = open_generator("rbf", seed=1)
    spec = spec_of(variant)
    table = ModelTable()
    for _ in range(models):
        table.add(Model.create(spec, generator.schema))
    ((x, _),) = generator.batches(models, models)
    table.answer(np.arange(models), x, np.full(models, -1, np.int32), np.ones(models))
    return {"models": models, **variant, "bytes": sum(table.model(i).nbytes for i in range(models))}


def main() -> None:
    """Measure all streams, and count the bytes of many models."""
    parser = arguments("inputs", __doc__.splitlines()[0], STREAMS, 80)
    parser.add_argument("--models", action="store_true", help="count the bytes of many models instead")
    options = parser.parse_args()
    if options.task:
        print(json.dumps(compare_tasks(options.turns)))
        return
    if options.models:
        print(json.dumps(count_models(100_000, VARIANTS["without"])))
        print(json.dumps(count_models(10_000, VARIANTS["with"])))
        return
    for stream in options.streams:
        print(json.dumps(compare(stream, options.rounds)))


if __name__ == "__main__":
    main()
