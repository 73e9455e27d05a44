"""Accuracy of a forest under `max_bytes`: leaves ranked at reviews, beside trees that stop at equal parts:
JSON.

    python -m benchmarks.forest_memory --streams airlines,rbf --records 100000 --seeds 3 --share 0.1

A forest without a cap runs first; the cap is the given share of its size at the end, with the sections
counted. ``bytes`` is the largest size of the model, checked every 1,000 records. Accuracies are prequential,
in percent, means over the seeds; all forests get the same rows.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.datasets import Rows
from benchmarks.forest_accuracy import STREAMS, open_stream
from benchmarks.name_lists import add_name_lists
from core.learners.forest import placement
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec

RUN = 1000
PERIODS = {"ranked": placement.REVIEW, "stopped": 0}
LEARNERS = ("arf", "leveraging-bagging", "srp")


def run(rows: Rows, learner: str, members: int, seed: int, cap: float, period: int) -> dict[str, Any]:
    """Return accuracy, bytes and leaves of a forest under a cap; `period` is in labels between reviews, 0: no
    reviews.
    """
    placement.REVIEW = period  # type: ignore[misc]
    body = {"name": learner, "members": members, "max_bytes": cap}
    spec = Spec.parse({"learner": body, "seed": seed, "evaluation": {"every": 0}})
    table, right, most, began = ModelTable(), 0, 0, time.process_time()
    table.add(Model.create(spec, rows.schema))
    for first in range(0, len(rows.y), RUN):
        x, y = rows.x[first : first + RUN], rows.y[first : first + RUN]
        answers = table.answer(np.zeros(len(y), dtype=np.int64), x, y, np.ones(len(y)))
        right += int((answers.prediction == y).sum())
        most = max(most, table.model(0).nbytes)
    model = table.model(0)
    leaves = model.plan.blocks.summary(model.ints, model.first).leaves
    seconds = time.process_time() - began
    return {"accuracy": 100 * right / len(rows.y), "bytes": most, "leaves": leaves, "seconds": seconds}


def mean(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Return the means of the runs' figures."""
    return {name: round(statistics.mean(run_figures[name] for run_figures in runs), 2) for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_name_lists(parser, {"streams": STREAMS, "learners": LEARNERS})
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.1, help="of what the forest takes without a cap")
    options = parser.parse_args()
    for stream in options.streams:
        rows = open_stream(stream, options.records)
        for learner in options.learners:
            runs: dict[str, list[dict[str, Any]]] = {"free": [], "ranked": [], "stopped": []}
            for seed in range(1, options.seeds + 1):
                free = run(rows, learner, options.members, seed, float(1 << 34), 0)
                runs["free"].append(free)
                for name, period in PERIODS.items():
                    cap = options.share * free["bytes"] + period  # no plan of the other forest is available
                    runs[name].append(run(rows, learner, options.members, seed, cap, period))
            figures = {"stream": stream, "learner": learner, "records": len(rows.y), "share": options.share}
            print(
                json.dumps(figures | {name: mean(runs_of_name) for name, runs_of_name in runs.items()}),
                flush=True,
            )


if __name__ == "__main__":
    main()
