"""More than two classes: a BOCT for each class against the rest, beside trees for all classes; as JSON lines.

    python -m benchmarks.boct_classes [--runs 10] [--most 1000] [--datasets FOLDER]

The pool protocol (streamapp/lab/pool/pool_protocol.py): half of a data set is the pool, half the test set,
with a new split in each run. All systems label the same rows, drawn evenly, except ``boct_al``, whose trees
choose rows in turn. The predicted class is that with the highest share from its tree, (k + 1) / (T + 2).
Accuracy is the mean over the runs with its standard deviation; seconds are processor time of learning;
bytes are those of all trees of a system at the end. C4.5 is built again from all labels for each
evaluation; its bytes are those of its arrays.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.datasets import folder
from core.batch.c45 import C45, C45Tree
from core.layout.model import Floats, Ints
from core.learners.boct import boct
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.lab.pool.batch_tree import BatchSystem
from streamapp.lab.pool.pool_models import ModelSystem
from streamapp.lab.pool.pool_protocol import PICK, Records, pick, split
from streamapp.lab.pool.pool_run import read_records
from topics.readers import open_dataset

FILES: Final = {
    "balance-scale": "balance.scale.arff.gz",
    "fetal-health": "fetal_health.csv.gz",
    "waveform": "waveform5000.arff.gz",
    "led7": "led7.csv.gz",
}
JUDGED: Final = (50, 100, 200, 500, 1000)


class OneVsRest:
    """A BOCT for each class; ``query`` is random, or boct_al, in which the trees choose rows in turn."""

    def __init__(self, schema: Schema, x: Floats, query: str, delta: float) -> None:
        self._at_random, self._asked = query == "random", 0
        learner = {"name": "boct", "sizes": "pool", "delta": delta}
        spec = Spec.parse({"learner": learner, "query": query, "evaluation": {"every": 0}})
        two = Schema.of(schema.attributes, ("rest", "own"))
        self._systems = [ModelSystem(spec, two, x) for _ in range(schema.n_classes)]

    @property
    def leaves(self) -> int:
        return sum(system.leaves for system in self._systems)

    @property
    def nbytes(self) -> int:
        return sum(system.model.nbytes for system in self._systems)

    def choose(self, unlabelled: Ints, drawn: Floats) -> int:
        if self._at_random:
            return pick(unlabelled, drawn[PICK])
        self._asked += 1
        return self._systems[self._asked % len(self._systems)].choose(unlabelled, drawn)

    def learn(self, row: int, label: int) -> None:
        for c, system in enumerate(self._systems):
            system.learn(row, int(label == c))

    def predict(self, x: Floats) -> Ints:
        shares = []
        for system in self._systems:
            leaves, ends = boct.leaves(system.model), boct.leaf_of(system.model, x)
            at = np.searchsorted(leaves.node, ends)
            shares.append((leaves.positives[at] + 1) / (leaves.labels[at] + 2))
        best: Ints = np.argmax(shares, axis=0)
        return best


def one_vs_rest(query: str, delta: float) -> Callable[[Schema, Floats], Any]:
    return lambda schema, x: OneVsRest(schema, x, query, delta)


def tree(learner: dict[str, object]) -> Callable[[Schema, Floats], Any]:
    spec = Spec.parse({"learner": learner, "query": "random", "evaluation": {"every": 0}})
    return lambda schema, x: ModelSystem(spec, schema, x)


SYSTEMS: Final[dict[str, Callable[[Schema, Floats], Any]]] = {
    "boct against the rest": one_vs_rest("random", 0.2),
    "the same, delta 0.35": one_vs_rest("random", 0.35),
    "the same, boct_al in turns": one_vs_rest("boct_al", 0.35),
    "c4.5": lambda schema, x: BatchSystem(C45(), schema, x),
    "h-tree": tree({"name": "h-tree"}),
    "h-tree, majority class, grace period 20": tree(
        {"name": "h-tree", "grace_period": 20, "leaf_model": "mc"}
    ),
}


def size_of(system: Any) -> int:
    if isinstance(system, BatchSystem):
        grown: C45Tree = system.tree
        return sum(int(getattr(grown, name).nbytes) for name in C45Tree.__slots__)
    return int(system.nbytes if isinstance(system, OneVsRest) else system.model.nbytes)


def label(system: Any, pool: Records, test: Records, most: int, seed: int) -> tuple[dict[int, float], float]:
    """Return the accuracy at the evaluated numbers of labels, and the seconds of learning."""
    drawn = np.random.default_rng([seed, 1]).random((most, 2))
    unlabelled, seconds, accuracies = np.arange(len(pool.y)), 0.0, {}
    for labels in range(1, most + 1):
        row = system.choose(unlabelled, drawn[labels - 1])
        began = time.process_time()
        system.learn(row, int(pool.y[row]))
        seconds += time.process_time() - began
        unlabelled = np.delete(unlabelled, np.searchsorted(unlabelled, row))
        if labels in JUDGED:
            began = time.process_time()
            if isinstance(system, BatchSystem):
                assert system.tree is not None  # built here, not when the test set is predicted
                seconds += time.process_time() - began
            accuracies[labels] = float((system.predict(test.x) == test.y).mean())
    return accuracies, seconds


def compare(records: Records, runs: int, most: int) -> Iterator[dict[str, object]]:
    for name, make in SYSTEMS.items():
        curves, seconds, sizes, leaves = [], 0.0, [], []
        for seed in range(1, runs + 1):
            pool_rows, test_rows = split(len(records.y), 0.5, seed)
            pool, test = records.part(pool_rows), records.part(test_rows)
            system = make(records.schema, pool.x)
            accuracies, seconds_of_learning = label(system, pool, test, min(most, len(pool.y)), seed)
            curves.append(accuracies)
            seconds += seconds_of_learning
            sizes.append(size_of(system))
            leaves.append(system.leaves)
        line: dict[str, object] = {"system": name, "classes": records.schema.n_classes, "runs": runs}
        for labels in curves[0]:
            values = [curve[labels] for curve in curves]
            line[str(labels)] = f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
        line["leaves"] = round(float(np.mean(leaves)), 1)
        line["kilobytes"] = round(float(np.mean(sizes)) / 1e3, 1)
        line["ms_per_label"] = round(1e3 * seconds / runs / min(most, len(pool.y)), 3)
        yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--most", type=int, default=1000, help="labels")
    parser.add_argument("--datasets", type=Path, default=folder(), help="folder of data sets")
    options = parser.parse_args()
    for name, file in FILES.items():
        records, _ = read_records(open_dataset([options.datasets / file]))
        for line in compare(records, options.runs, options.most):
            print(json.dumps({"set": name, **line}), flush=True)


if __name__ == "__main__":
    main()
