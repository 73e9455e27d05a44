"""Boosted trees where the concept drifts: ``python -m benchmarks.boosted_drifts``.

Lets MOA's gradient boosting and `sgbt`, each with and without alternate trees, and `sgbt` with a detector of
the spec predict and learn the first rows of each stream. Prints one JSON line for each: percent of the
answers right, in all rows and in the two thousand after the change, and megabytes of the model at its end,
means over seeds. The seed draws the trees' subsets of attributes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any, Final

import numpy as np

from benchmarks.datasets import Rows, load
from benchmarks.peers import moa
from core.kernels import jit
from core.model.model import Model
from core.model_table import ModelTable
from core.plan_words import compiled_modules
from core.spec import Spec

CHANGE: Final = 10_000
"""Record around which the generated concepts change."""
AFTER: Final = slice(CHANGE, CHANGE + 2_000)
DRIFT: Final = f"gen:drift?before=({{}})&after=({{}})&position={CHANGE}&width=1000"
STREAMS: Final = {
    "electricity": "electricity",
    "sea": DRIFT.format("sea?function=1", "sea?function=4"),
    "agrawal": DRIFT.format("agrawal?function=1", "agrawal?function=2"),
}
MOA_TREES: Final = {
    "moa": "trees.FIMTDD -s VarianceReductionSplitCriterion -g 25 -c 0.05 -e -p",
    "moa, no detectors": "trees.FIMTDD -s VarianceReductionSplitCriterion -g 25 -c 0.05 -e -p -h 2147483647",
}
SPECS: Final[dict[str, dict[str, Any]]] = {
    "sgbt": {},
    "sgbt, no alternates": {"learner": {"alternates": False}},
    "sgbt, adwin": {"drift": "adwin"},
    "sgbt, ddm": {"drift": "ddm"},
    "sgbt, no alternates, adwin": {"learner": {"alternates": False}, "drift": "adwin"},
    "sgbt, no alternates, ddm": {"learner": {"alternates": False}, "drift": "ddm"},
}


def run_moa(rows: Rows, tree: str, members: int, seed: int) -> tuple[Any, float, float]:
    """Return which predictions of MOA are right; it has no figures of seconds and bytes."""
    learner = f"meta.StreamingGradientBoostedTrees -s {members} -r {seed} -l ({tree})"
    return moa.evaluate(rows, learner).predictions == rows.y, 0.0, 0.0


def run_sgbt(rows: Rows, parts: dict[str, Any], members: int, seed: int) -> tuple[Any, float, float]:
    """Return which predictions of `sgbt` are right, seconds of processor time, and bytes of the model."""
    learner = {"name": "sgbt", "members": members} | parts.get("learner", {})
    spec = Spec.parse(parts | {"learner": learner, "seed": seed, "evaluation": {"every": 0}})
    jit.warm(compiled_modules(spec))
    table = ModelTable()
    table.add(Model.create(spec, rows.schema))
    n = len(rows.y)
    which, weight = np.zeros(n, dtype=np.int64), np.ones(n)
    began = time.process_time()
    answers = table.answer(which, rows.x, rows.y, weight)
    return answers.prediction == rows.y, time.process_time() - began, float(table.model(0).nbytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--systems", nargs="+", default=[*MOA_TREES, *SPECS], choices=[*MOA_TREES, *SPECS])
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for stream in options.streams:
        rows = load(STREAMS[stream], options.records)
        for system in options.systems:
            runs = [
                run_moa(rows, MOA_TREES[system], options.members, seed)
                if system in MOA_TREES
                else run_sgbt(rows, SPECS[system], options.members, seed)
                for seed in range(1, options.seeds + 1)
            ]
            right = [float(hits.mean()) * 100.0 for hits, _, _ in runs]
            line = {
                "stream": stream,
                "system": system,
                "accuracy": round(statistics.mean(right), 2),
                "runs": [round(share, 1) for share in right],
                "after": round(statistics.mean(float(hits[AFTER].mean()) * 100.0 for hits, _, _ in runs), 1),
            }
            if system in SPECS:
                seconds = statistics.median(seconds for _, seconds, _ in runs)
                line["records_per_s"] = round(len(rows.y) / seconds)
                line["MB"] = round(statistics.mean(size for *_, size in runs) / 1e6, 1)
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
