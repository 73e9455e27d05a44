"""Forests beside MOA's: records a second and prequential accuracy on the same rows, in turns, by members.

    python -m benchmarks.forests --members 10 100 --json
    python -m benchmarks.forests --stream sea --records 100000 --learners arf srp --seeds 5

Processor time of one thread, test-then-train over all rows, no evaluation but whether answers were right.
Ours and MOA's take turns; MOA's programs make a pass more before, which does not count. `--compat moa` gives
ours MOA's rules. Seeds of ours are 1, 2, …; MOA's has the seed that is its default.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.datasets import Rows, load
from benchmarks.peers import moa
from core import jit
from core.model.model import Model
from core.model_table import ModelTable
from core.plan_words import compiled_modules
from core.spec import Spec

MOA_OPTIONS = {
    "arf": "meta.AdaptiveRandomForest -s {members}",
    "leveraging-bagging": "meta.LeveragingBag -s {members}",
    "srp": "meta.StreamingRandomPatches -s {members}",
}


def ours(rows: Rows, learner: str, members: int, seed: int, compat: str | None) -> dict[str, Any]:
    """Return seconds, right answers and bytes of a forest of ours."""
    body = {"name": learner, "members": members, "compat": compat}
    spec = Spec.parse({"learner": body, "seed": seed, "evaluation": {"every": 0}})
    jit.warm(compiled_modules(spec))
    warm, table = ModelTable(), ModelTable()
    for each, n in ((warm, 10), (table, len(rows.y))):
        each.add(Model.create(spec, rows.schema))
        began = time.process_time()
        which = np.zeros(n, dtype=np.int64)
        answers = each.answer(which, rows.x[:n], rows.y[:n], np.ones(n))
    seconds = time.process_time() - began
    right = int((answers.prediction == rows.y).sum())
    return {"seconds": seconds, "right": right, "bytes": table.model(0).nbytes}


def compared(rows: Rows, learner: str, members: int, seeds: int, compat: str | None) -> dict[str, Any]:
    """Return what both systems did, a run of each in turns."""
    n, own, theirs = len(rows.y), [], []
    for seed in range(1, seeds + 1):
        own.append(ours(rows, learner, members, seed, compat))
        passes, accuracy = moa.ensemble(rows, MOA_OPTIONS[learner].format(members=members), repeats=2)
        theirs.append({"seconds": min(passes[1:]), "right": accuracy * n})
    means = [statistics.mean(run["right"] for run in runs) / n for runs in (own, theirs)]
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
        "accuracy": round(means[0], 4),
        "moa_accuracy": round(means[1], 4),
        "bytes_per_member": round(own[-1]["bytes"] / members),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stream", default="electricity")
    parser.add_argument("--records", type=int)
    parser.add_argument("--members", type=int, nargs="+", default=[10])
    parser.add_argument("--learners", nargs="+", default=sorted(MOA_OPTIONS), choices=sorted(MOA_OPTIONS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--compat", choices=("moa",))
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    given = parser.parse_args()
    rows = load(given.stream, given.records)
    for learner in given.learners:
        for members in given.members:
            found = compared(rows, learner, members, given.seeds, given.compat)
            line = json.dumps(found) if given.json else "  ".join(f"{k} {v}" for k, v in found.items())
            print(line, flush=True)


if __name__ == "__main__":
    main()
