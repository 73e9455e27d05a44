"""Writes the golden files anew: ``python -m tests.golden.renew trees`` (or ``efdt``: need MOA), ``… curves``.

A golden file changes only when what it holds was meant to change; the commit says why.

- ``moa_trees.json``: what MOA's HoeffdingTree (release 2024.07.0) does on the first records of each stream:
  the splits, and the CRC-32 of all predictions as int32. Our tree with ``compat="moa"`` must do the same.
- ``moa_efdt.json``: what MOA's EFDT does on them: the size of its tree, the CRC-32 of all predictions, and
  how many tests it installs.
- ``curves.json``: hits of our tree in each thousand records, and its size at the end, in default mode.
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np

from benchmarks.datasets import GENERATED, REAL, load
from benchmarks.peers import grove_tree, moa
from benchmarks.peers.result import Task

HERE = Path(__file__).parent
RECORDS = 20_000
LEAF_MODELS = ("mc", "nb", "nba")


def crc(predictions):
    return zlib.crc32(np.ascontiguousarray(predictions, "<i4").tobytes())


def moa_tree(rows, leaf_model):
    run = moa.drive(rows, moa.options(Task(leaf_model=leaf_model)), trace=True)
    return {
        "splits": [list(split) for split in run.installed],
        "leaves": run.leaves,
        "depth": run.depth,
        "predictions": crc(run.predictions),
    }


def moa_efdt(rows):
    run = moa.drive(rows, moa.options(Task(learner="efdt")), learner="EFDT", trace=True)
    return {
        "installed": len(run.installed),
        "splits": run.splits,
        "leaves": run.leaves,
        "depth": run.depth,
        "predictions": crc(run.predictions),
    }


def curve(rows, leaf_model):
    model, trace = grove_tree.trace(rows, Task(leaf_model=leaf_model))
    hits = (trace.predictions == rows.y).reshape(-1, 1000).sum(axis=1)
    summary = model.summary()
    return {
        "hits": hits.tolist(),
        "leaves": summary.leaves,
        "attempts": summary.attempts,
        "depth": summary.depth,
    }


WHAT = {
    "trees": ("moa_trees.json", moa_tree),
    "efdt": ("moa_efdt.json", moa_efdt),
    "curves": ("curves.json", curve),
}


def main(what):
    name, make = WHAT[what]
    found = {}
    for stream in (*GENERATED, *REAL):
        rows = load(stream, RECORDS)
        if what == "efdt":  # which predicts nba, whatever it is told
            found[stream] = make(rows)
        else:
            found[stream] = {leaf_model: make(rows, leaf_model) for leaf_model in LEAF_MODELS}
    (HERE / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
