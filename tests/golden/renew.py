"""Writes golden files anew: ``python -m tests.golden.renew trees|efdt|hat|boost|sgbt|capymoa|cdt|…``.

All but curves are of MOA.

A golden file changes only when what it holds was meant to change; the commit says why.

- ``moa_trees.json``: what MOA's HoeffdingTree (release 2024.07.0) does on the first records of each stream:
  the splits, and the CRC-32 of all predictions as int32. Our tree with ``compat="moa"`` must do the same.
- ``moa_efdt.json``: what MOA's EFDT does on them: the size of its tree, the CRC-32 of all predictions, and
  how many tests it installs.
- ``moa_hat.json``: the CRC-32 of all predictions of MOA's HoeffdingAdaptiveTree on them, on a stream that
  drifts, and on two with holes; grace period 50 and δ 0.01, so that subtrees are replaced early and often.
- ``moa_boost.json``: the CRC-32 of all predictions of MOA's OzaBoost of ten trees, with weights and without
  chance (``-p``).
- ``moa_sgbt.json``: hits of MOA's gradient boosting with ten iterations, whose trees see all attributes, and
  the CRC-32 of its predictions; the CRC-32 of those with the tree and the criterion of benchmarks/moa, which
  lack faults of MOA's. On drifting streams alternate trees begin early and end soon.
- ``capymoa_trees.json``: learners that only CapyMOA's build of MOA has (``pip install --no-deps
  capymoa==0.15.1``): the CRC-32 of all predictions of LAST on them, with three detectors, and the hits of
  PLASTIC and of its authors' EFHAT on those without holes. It takes half an hour.
- ``cdt_trees.json``: what the trees of CDT's code other than C-Tree do, of which each is MOA's tree with
  some options (a criterion of benchmarks/moa among them): the splits, and the size.
- ``moa_baselines.json``: what MOA's majority class, no change and naive Bayes answer, and what its evaluators
  say of that: the CRC-32 of all predictions, the normalised votes of the last records, accuracy and kappas.
- ``curves.json``: hits of our tree in each thousand records, and its size at the end, in default mode.
"""

import dataclasses
import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.datasets import GENERATED, REAL, load
from benchmarks.peers import capymoa, grove_tree, moa
from benchmarks.peers.result import Task

HERE = Path(__file__).parent
RECORDS = 20_000
LEAF_MODELS = ("mc", "nb", "nba")


def crc(predictions):
    return zlib.crc32(np.ascontiguousarray(predictions, "<i4").tobytes())


def moa_tree(rows, leaf_model):
    run = moa.drive(rows, moa.options(Task(leaf_model=leaf_model)), trace=True)
    assert run.installed is not None, "it was traced"
    return {
        "splits": [list(split) for split in run.installed],
        "leaves": run.leaves,
        "depth": run.depth,
        "predictions": crc(run.predictions),
    }


def moa_efdt(rows):
    run = moa.drive(rows, moa.options(Task(learner="efdt")), learner="EFDT", trace=True)
    assert run.installed is not None, "it was traced"
    return {
        "installed": len(run.installed),
        "splits": run.splits,
        "leaves": run.leaves,
        "depth": run.depth,
        "predictions": crc(run.predictions),
    }


HOLES = "with holes"
DRIFTING = f"gen:drift?before=(sea)&after=(sea?function=3)&position={RECORDS // 2}&rng=java"
HAT_STREAMS = (*GENERATED, *REAL, DRIFTING, f"electricity {HOLES}", f"airlines {HOLES}")


def hat_rows(stream):
    """Return the records of a stream; with holes, one value in twenty is missing."""
    rows = load(stream.removesuffix(f" {HOLES}"), RECORDS)
    if not stream.endswith(HOLES):
        return rows
    missing = np.random.default_rng(1).random(rows.x.shape) < 0.05
    return dataclasses.replace(rows, x=np.where(missing, np.nan, rows.x))


def moa_hat(rows, leaf_model):
    option = {"mc": "MC", "nb": "NB", "nba": "NBAdaptive"}[leaf_model]
    return crc(moa.evaluate(rows, f"trees.HoeffdingAdaptiveTree -l {option} -g 50 -c 0.01").predictions)


def renew_hat():
    curves = {
        stream: {leaf_model: moa_hat(hat_rows(stream), leaf_model) for leaf_model in LEAF_MODELS}
        for stream in HAT_STREAMS
    }
    (HERE / "moa_hat.json").write_text(json.dumps(curves, indent=1) + "\n", encoding="utf-8")


def renew_capymoa():
    answers = {}
    for stream in HAT_STREAMS:
        rows = hat_rows(stream)
        lasts = [learner for learner in capymoa.LEARNERS if learner.startswith("last")]
        answers[stream] = {learner: crc(capymoa.predictions(rows, learner)) for learner in lasts}
        if not stream.endswith(HOLES):
            for learner in ("efhat", "plastic"):
                hits = capymoa.predictions(rows, learner) == rows.y
                answers[stream][learner] = int(hits.sum())
    (HERE / "capymoa_trees.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


BOOST_STREAMS = {
    ("sea", "nba"): 6_000,
    ("agrawal", "nba"): 6_000,
    ("led", "nb"): 3_000,
    ("electricity", "mc"): 6_000,
}
"""Streams and leaf models, with the number of records that MOA's boosting learns.

On Electricity naive Bayes of MOA has infinite votes for a record in a thousand, which add up to no number.
"""


def renew_boost():
    predicted = {}
    for (stream, leaf_model), n in BOOST_STREAMS.items():
        option = {"mc": "MC", "nb": "NB", "nba": "NBAdaptive"}[leaf_model]
        learner = f"meta.OzaBoost -p -l (trees.HoeffdingTree -l {option} -g 50 -c 0.01)"
        predicted[stream] = crc(moa.evaluate(load(stream, n), learner).predictions)
    (HERE / "moa_boost.json").write_text(json.dumps(predicted, indent=1) + "\n", encoding="utf-8")


SGBT_STREAMS = {
    "sea": 3_000,
    "agrawal": 2_000,
    "electricity": 4_000,
    "sea_drift": 3_000,
    "agrawal_drift": 3_000,
    "electricity_eager": 3_000,
}
"""Streams, with the number of records that MOA's gradient boosting learns."""
_CHANGE = "gen:drift?before=({0}?function=1)&after=({0}?function={1})&position=1500&width=1"
SGBT_EAGER = {
    "sea_drift": _CHANGE.format("sea", 4),
    "agrawal_drift": _CHANGE.format("agrawal", 2),
    "electricity_eager": "electricity",
}
"""Streams of those whose trees alarm at 10, compare after 50 records and drop an alternate tree after 300."""


def sgbt_rows(stream):
    return load(SGBT_EAGER.get(stream, stream), SGBT_STREAMS[stream])


MOA_TREE = "trees.FIMTDD -s VarianceReductionSplitCriterion -g 25 -c 0.05 -e -p"
"""The trees of MOA's boosting with its defaults."""
STEADY_TREE = "SteadyTree -s SteadyVarianceReduction -g 25 -c 0.05 -e -p"
"""The same, but with the tree and the criterion of benchmarks/moa."""


def renew_sgbt():
    learner = "meta.StreamingGradientBoostedTrees -s 10 -m 100"
    of_streams = {}
    for stream in SGBT_STREAMS:
        rows = sgbt_rows(stream)
        eager = " -h 10 -y 50 -u 300" if stream in SGBT_EAGER else ""
        predictions = moa.evaluate(rows, f"{learner} -l ({MOA_TREE}{eager})").predictions
        steady = moa.evaluate(rows, f"{learner} -l ({STEADY_TREE}{eager})").predictions
        hits = int((predictions == rows.y).sum())
        of_streams[stream] = {"predictions": crc(predictions), "hits": hits, "steady": crc(steady)}
    (HERE / "moa_sgbt.json").write_text(json.dumps(of_streams, indent=1) + "\n", encoding="utf-8")


def cdt_options(name, delta):
    """Return MOA's options for a tree of CDT's code: twice ε is the ε of δ⁴, and with δ = 1 it is 0."""
    criterion, delta = {
        "h-tree": ("GiniSplitCriterion", delta),
        "corrh-tree": ("SmallestLeft", delta**4),
        "mcdiarmid-tree": ("GiniSplitCriterion", delta),
    }[name]
    observer = "(GaussianNumericAttributeClassObserver -n 100)"
    return f"-l MC -g 100 -c {delta} -t 0 -b -s {criterion} -n {observer} {moa.NO_MEMORY_LIMIT}"


def cdt_tree(rows, name, delta):
    run = moa.drive(rows, cdt_options(name, delta), trace=True)
    assert run.installed is not None, "it was traced"
    splits = [list(split) for split in run.installed]
    return {"delta": delta, "splits": splits, "leaves": run.leaves, "depth": run.depth}


CDT_TREES = {
    "h-tree": ((1e-7, 1e-2), ("electricity", "sea", "agrawal")),
    "corrh-tree": ((1e-2, 0.9), ("electricity", "sea", "agrawal")),
    "mcdiarmid-tree": ((1.0,), ("sea", "agrawal")),
}
"""Trees of CDT's code, with δ (McDiarmid's as its settings have it) and streams.

With ε = 0 Electricity cannot be compared: at record 3,354 two perfect tests lead each other by the last bit.
"""


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


WHAT: dict[str, tuple[str, Callable[..., object]]] = {
    "trees": ("moa_trees.json", moa_tree),
    "efdt": ("moa_efdt.json", moa_efdt),
    "curves": ("curves.json", curve),
}


def renew_cdt():
    trees = {
        name: {
            stream: [cdt_tree(load(stream, RECORDS), name, delta) for delta in deltas] for stream in streams
        }
        for name, (deltas, streams) in CDT_TREES.items()
    }
    (HERE / "cdt_trees.json").write_text(json.dumps(trees, indent=1) + "\n", encoding="utf-8")


BASELINES = {
    "majority-class": "functions.MajorityClass",
    "no-change": "functions.NoChange",
    "naive-bayes": "bayes.NaiveBayes",
}
WINDOW = 700
EVERY = 2500
LAST = 20


def baseline(rows, learner):
    evaluated = moa.evaluate(rows, BASELINES[learner], window=WINDOW, every=EVERY)
    votes = evaluated.votes[-LAST:]
    return {
        "predictions": crc(evaluated.predictions),
        "votes": (votes / votes.sum(axis=1, keepdims=True)).tolist(),
        "measures": evaluated.measures.tolist(),
    }


def renew_baselines():
    baselines_of = {
        stream: {learner: baseline(load(stream, RECORDS), learner) for learner in BASELINES}
        for stream in (*GENERATED, *REAL)
    }
    (HERE / "moa_baselines.json").write_text(json.dumps(baselines_of, indent=1) + "\n", encoding="utf-8")


def main(what):
    if what == "baselines":
        renew_baselines()
        return
    if what == "boost":
        renew_boost()
        return
    if what == "sgbt":
        renew_sgbt()
        return
    if what == "hat":
        renew_hat()
        return
    if what == "capymoa":
        renew_capymoa()
        return
    if what == "cdt":
        renew_cdt()
        return
    name, make = WHAT[what]
    rows_of = {}
    for stream in (*GENERATED, *REAL):
        rows = load(stream, RECORDS)
        if what == "efdt":  # which predicts nba, whatever it is told
            rows_of[stream] = make(rows)
        else:
            rows_of[stream] = {leaf_model: make(rows, leaf_model) for leaf_model in LEAF_MODELS}
    (HERE / name).write_text(json.dumps(rows_of, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
