"""Forests of streamgrove, MOA and River: records per second, bytes per member and accuracy on the same rows.

    python -m benchmarks.forests --members 10 100 --json
    python -m benchmarks.forests --stream sea --records 100000 --learners arf srp --seeds 5

Figures are processor time of one thread, test-then-train over all rows, with no evaluation except counting
correct answers. Systems take turns; MOA's programs run one pass more before, which does not count. `--compat
moa` gives our forests MOA's rules. Seeds are 1, 2, … in all systems. Rates are medians over seeds, accuracies
means, with the standard deviation for several seeds. River (extra ``bench``; no figures if it is not
installed) gets the first rows only, for the first seed: `--river-records`; its trees are small then. Bytes
are the size of the model at the end, with room to grow; for MOA, the heap that its classifier holds. `hat` is
one tree for any `--members`.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.datasets import Rows, load
from benchmarks.peers import moa, river_forest
from core.kernels import jit
from core.model.model import Model
from core.model_table import ModelTable
from core.plan_words import compiled_modules
from core.spec import Spec

MOA_OPTIONS = {
    "arf": "meta.AdaptiveRandomForest -s {members}",
    "leveraging-bagging": "meta.LeveragingBag -s {members}",
    "ozaboost": "meta.OzaBoost -s {members}",
    "sgbt": "meta.StreamingGradientBoostedTrees -s {members}",
    "srp": "meta.StreamingRandomPatches -s {members}",
    "hat": "trees.HoeffdingAdaptiveTree",
}
ALONE = ("hat",)
"""Learners that are not forests and have no members."""


def ours(rows: Rows, learner: str, members: int, seed: int, compat: str | None) -> dict[str, Any]:
    """Return seconds, correct answers and bytes of one of our forests."""
    body = {"name": learner, "compat": compat} | ({} if learner in ALONE else {"members": members})
    spec = Spec.parse({"learner": body, "seed": seed, "evaluation": {"every": 0}})
    jit.warm(compiled_modules(spec))
    warm, table = ModelTable(), ModelTable()
    gc.freeze()  # as a worker does
    for table_of_turn, n in ((warm, 10), (table, len(rows.y))):
        table_of_turn.add(Model.create(spec, rows.schema))
        began = time.process_time()
        which = np.zeros(n, dtype=np.int64)
        answers = table_of_turn.answer(which, rows.x[:n], rows.y[:n], np.ones(n))
    seconds = time.process_time() - began
    right = int((answers.prediction == rows.y).sum())
    return {"seconds": seconds, "right": right, "bytes": table.model(0).nbytes}


def river_rate(rows: Rows, learner: str, members: int, seed: int) -> float | None:
    """Return the records per second of River's forest; None if River or the forest is missing."""
    if learner in ALONE:
        return None
    began = time.process_time()
    try:
        river_forest.accuracy(rows, learner, members, seed)
    except ImportError:
        return None
    return len(rows.y) / (time.process_time() - began)


def compared(
    rows: Rows, learner: str, members: int, seeds: int, compat: str | None, river_records: int
) -> dict[str, Any]:
    """Return the figures of all systems, one run each in turn."""
    n, own, theirs = len(rows.y), [], []
    for seed in range(1, seeds + 1):
        own.append(ours(rows, learner, members, seed, compat))
        options = MOA_OPTIONS[learner].format(members=members)
        passes, accuracy, n_bytes = moa.ensemble(rows, options, repeats=2, seed=seed)
        theirs.append({"seconds": min(passes[1:]), "right": accuracy * n, "bytes": n_bytes})
    river = river_rate(rows.first(river_records), learner, members, 1) if river_records else None
    means, spreads = [], []
    for runs in (own, theirs):
        shares = [run["right"] / n for run in runs]
        means.append(round(statistics.mean(shares), 4))
        spreads.append(round(statistics.stdev(shares), 4) if seeds > 1 else None)
    rates = [n / statistics.median(run["seconds"] for run in runs) for runs in (own, theirs)]
    return {
        "stream": rows.name,
        "learner": learner,
        "members": members,
        "compat": compat,
        "seeds": seeds,
        "records": n,
        "records_per_s": round(rates[0]),
        "moa_records_per_s": round(rates[1]),
        "ratio": round(rates[0] / rates[1], 2),
        "river_records_per_s": None if river is None else round(river, 1),
        "river_records": None if river is None else min(river_records, n),
        "river_ratio": None if river is None else round(rates[0] / river),
        "accuracy": means[0],
        "accuracy_sd": spreads[0],
        "moa_accuracy": means[1],
        "moa_accuracy_sd": spreads[1],
        "bytes_per_member": round(own[-1]["bytes"] / members),
        "moa_bytes_per_member": round(theirs[-1]["bytes"] / members),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stream", default="electricity")
    parser.add_argument("--records", type=int)
    parser.add_argument("--members", type=int, nargs="+", default=[10])
    parser.add_argument("--learners", nargs="+", default=sorted(MOA_OPTIONS), choices=sorted(MOA_OPTIONS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--compat", choices=("moa",))
    parser.add_argument("--river-records", type=int, default=2000, help="rows that River gets, 0: none")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    options = parser.parse_args()
    rows = load(options.stream, options.records)
    for learner in options.learners:
        for members in options.members:
            figures = compared(rows, learner, members, options.seeds, options.compat, options.river_records)
            line = json.dumps(figures) if options.json else "  ".join(f"{k} {v}" for k, v in figures.items())
            print(line, flush=True)


if __name__ == "__main__":
    main()
