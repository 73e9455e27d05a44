"""Added cost of the measures per class: nanoseconds per labelled record, as JSON lines.

    python -m benchmarks.measures
    python -m benchmarks.measures --streams led --leaves nba --rounds 200

Two models learn the same labelled records in runs of 5,000, in turn; one of them keeps the sums of the
measures (`evaluation.per_class`). Evaluations are read after every 1,000 labels, or never (`every` 0). Times
are CPU time; the ratio is the median over pairs, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from benchmarks.datasets import Rows, load
from benchmarks.name_lists import add_name_lists
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec

RUN = 5_000
STREAMS = ("sea", "agrawal", "led")
LEAVES = ("nba", "mc")


def table_of(rows: Rows, leaf: str, every: int, per_class: bool) -> ModelTable:
    """Return a table with a new model."""
    spec = {
        "learner": {"name": "h-tree", "leaf_model": leaf},
        "query": "never",
        "evaluation": {"every": every, "per_class": per_class},
    }
    table = ModelTable()
    table.add(Model.create(Spec.parse(spec), rows.schema))
    return table


def nanoseconds(table: ModelTable, rows: Rows, begin: int) -> float:
    """Return the CPU time of answering and learning a run of records, per record."""
    part = slice(begin, begin + RUN)
    x, label = np.ascontiguousarray(rows.x[part]), rows.y[part]
    models, weights = np.zeros(RUN, dtype=np.int64), np.ones(RUN)
    began = time.process_time_ns()
    table.answer(models, x, label, weights)
    return (time.process_time_ns() - began) / RUN


def compare(stream: str, leaf: str, every: int, rounds: int) -> dict[str, object]:
    """Return the cost of a model with measures, beside one without; the first fifth warms up."""
    rows = load(stream, RUN * rounds)
    tables = [table_of(rows, leaf, every, per_class) for per_class in (False, True)]
    pairs = []
    for number in range(rounds):
        order = (0, 1) if number % 2 else (1, 0)
        times = {which: nanoseconds(tables[which], rows, RUN * number) for which in order}
        pairs.append((times[0], times[1]))
    kept = pairs[rounds // 5 :]
    return {
        "stream": stream,
        "leaf": leaf,
        "every": every,
        "without": round(statistics.median(without for without, _ in kept), 1),
        "with": round(statistics.median(kept_sums for _, kept_sums in kept), 1),
        "ratio": round(statistics.median(kept_sums / without for without, kept_sums in kept), 3),
    }


def main() -> None:
    """Measure all streams and leaves."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measures", description=__doc__.splitlines()[0]
    )
    add_name_lists(parser, {"streams": STREAMS, "leaves": LEAVES})
    parser.add_argument("--rounds", type=int, default=80)
    options = parser.parse_args()
    for stream in options.streams:
        for leaf in options.leaves:
            for every in (0, 1000):
                print(json.dumps(compare(stream, leaf, every, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
