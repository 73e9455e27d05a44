"""BOCT: labels per second beside a naive twin, cost of a label, and ten thousand models; as JSON lines.

    python -m benchmarks.boct labels          # at 10³, 10⁴, 10⁵ labels, 8 and 60 attributes
    python -m benchmarks.boct cost            # µs per label against d·T, with and without skipped searches
    python -m benchmarks.boct models          # 10,000 models in one table
    python -m benchmarks.boct cap             # rows that a leaf may keep: accuracy, leaves, bytes, time

CPU time of the process. The twin (tests/naive/boct.py) scores all cuts in Python at every label. It runs for
``--seconds``, and the output has the number of labels that it reached.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.datasets import folder
from core.learners.boct import boct
from core.learners.boct.bound_table import BoundTable
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from streamapp.lab.pool.pool_protocol import Records
from streamapp.lab.pool.pool_run import read_records
from tests.naive.compare import twin_of
from tests.naive.rows import Stream
from topics.readers import open_dataset

NOISE = 0.1


def records(n: int, d: int, seed: int = 0) -> Stream:
    """Return two classes on both sides of a diagonal, one label in ten wrong."""
    draw = np.random.default_rng(seed)
    x = draw.random((n, d))
    y = (x[:, 0] + x[:, 1] > 1.0) ^ (draw.random(n) < NOISE)
    return Stream(x, y.astype(np.int32), np.ones(n), (None,) * d, 2)


def table_of(d: int, models: int = 1, **learner: object) -> ModelTable:
    spec = Spec.parse(
        {"learner": {"name": "boct", **learner}, "query": "never", "evaluation": {"every": 0, "window": 10}}
    )
    schema = Schema.of([Attribute(f"x{i}") for i in range(d)], ("a", "b"))
    table = ModelTable()
    for _ in range(models):
        table.add(Model.create(spec, schema))
    return table


def learn(table: ModelTable, rows: Stream, first: int, last: int) -> float:
    """Return the CPU seconds for learning records with labels."""
    n, began = last - first, time.process_time()
    table.answer(np.zeros(n, dtype=np.int64), rows.x[first:last], rows.y[first:last], np.ones(n))
    return time.process_time() - began


def twin_rate(rows: Stream, seconds: float) -> tuple[float, int]:
    """Return the twin's labels per second, and the number of labels that it reached."""
    twin = twin_of({"learner": "boct"}, rows)
    began, n_labels = time.process_time(), 0
    for x, y in zip(rows.x.tolist(), rows.y.tolist(), strict=True):
        twin.answer(x, y)
        n_labels += 1
        if time.process_time() - began > seconds:
            break
    return n_labels / (time.process_time() - began), n_labels


def labels(seconds: float, most: int) -> Iterator[dict[str, object]]:
    for d in (8, 60):
        for n in (1_000, 10_000, 100_000):
            if n > most:
                continue
            rows = records(n, d)
            table = table_of(d)
            ours = n / learn(table, rows, 0, n)
            theirs, n_twin = twin_rate(rows, seconds)
            size = table.model(0).summary()
            yield {
                "labels": n,
                "attributes": d,
                "labels_per_s": round(ours),
                "leaves": size.leaves,
                "megabytes": round(table.model(0).nbytes / 1e6, 1),
                "twin_labels_per_s": round(theirs, 2),
                "twin_came_to": n_twin,
            }


def cost(most: int) -> Iterator[dict[str, object]]:
    """Measure a leaf that never splits: labels are random, and δ is small."""
    for d in (8, 60):
        rows = records(most, d)
        rows.y = (np.random.default_rng(1).random(most) < 0.3).astype(np.int32)
        for delta in (0.001, 0.01):
            micros = {}
            for exhaustive in (False, True):
                table = table_of(d, delta=delta, exhaustive=exhaustive, capacity=most, max_leaves=1)
                keep = table.model(0)
                before = 0
                for size in (250, 500, 1_000, 2_000, 4_000):
                    if size <= most:
                        learn(table, rows, before, size - 100)
                        micros[size, exhaustive] = 1e6 * learn(table, rows, size - 100, size) / 100
                        before = size
                stopped = keep.summary().growth_stopped
            for size in sorted({size for size, _ in micros}):
                yield {
                    "attributes": d,
                    "labels": size,
                    "delta": delta,
                    "us_per_label": round(micros[size, False], 1),
                    "us_per_label_exhaustive": round(micros[size, True], 1),
                    "ratio": round(micros[size, True] / micros[size, False], 1),
                    "stopped": stopped,
                }


def models(n: int, per_model: int) -> Iterator[dict[str, object]]:
    d = 8
    table, rows = table_of(d, models=n), records(n * per_model, d)
    index = np.random.default_rng(0).permutation(np.repeat(np.arange(n), per_model))
    learn(table_of(d), records(2_000, d), 0, 2_000)  # fills the table of bounds
    began = time.process_time()
    table.answer(index, rows.x, rows.y, np.ones(n * per_model))
    seconds = time.process_time() - began
    n_bytes = sum(table.model(i).nbytes for i in range(n))
    yield {
        "models": n,
        "records_each": per_model,
        "records_per_s": round(n * per_model / seconds),
        "megabytes": round(n_bytes / 1e6, 1),
        "leaves": sum(table.model(i).summary().leaves for i in range(n)),
    }


def cap(n: int, data: Path) -> Iterator[dict[str, object]]:
    """Measure accuracy before the label, over all records and over the last half, with and without a cap of
    rows.
    """
    drawn = records(n, 8)
    schema = Schema.of([Attribute(f"x{i}") for i in range(8)], ("a", "b"))
    streams = {"diagonal": Records(schema, drawn.x, drawn.y.astype(np.int64))}
    for file in ("elecNormNew.arff.gz", "a9a.gz"):
        streams[file.partition(".")[0]], _ = read_records(open_dataset([data / file]))
    for (name, rows), delta in itertools.product(streams.items(), (0.2, 0.001)):
        x, y = rows.x[:n], rows.y[:n].astype(np.int32)
        for capacity in (50, 200, 500, 2_000, 1_000_000):
            learner = {"name": "boct", "delta": delta, "capacity": capacity}
            table = ModelTable()
            table.add(Model.create(Spec.parse({"learner": learner, "query": "never"}), rows.schema))
            began = time.process_time()
            answers = table.answer(np.zeros(len(y), dtype=np.int64), x, y, np.ones(len(y)))
            seconds = time.process_time() - began
            right, leaves = answers.prediction == y, boct.leaves(table.model(0))
            yield {
                "stream": name,
                "delta": delta,
                "capacity": capacity,
                "labels": len(y),
                "accuracy": round(float(right.mean()), 4),
                "accuracy_of_last_half": round(float(right[len(y) // 2 :].mean()), 4),
                "leaves": len(leaves.node),
                "labels_kept": int(leaves.labels.sum()),
                "megabytes": round(table.model(0).nbytes / 1e6, 1),
                "labels_per_s": round(len(y) / seconds),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("labels", "cost", "models", "cap"))
    parser.add_argument("--datasets", type=Path, default=folder(), help="folder of data sets, of cap")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time of the twin")
    parser.add_argument("--most", type=int, default=100_000, help="labels")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=100, help="records of a model")
    options = parser.parse_args()
    kept = [BoundTable.of(0, 0, delta) for delta in (0.2, 0.001, 0.01)]  # filled once for all runs
    learn(table_of(2), records(50, 2), 0, 50)  # loads the kernels
    if options.what == "labels":
        lines = labels(options.seconds, options.most)
    elif options.what == "cost":
        lines = cost(min(options.most, 4_000))
    elif options.what == "cap":
        lines = cap(min(options.most, 20_000), options.datasets)
    else:
        lines = models(options.models, options.each)
    for line in lines:
        print(json.dumps(line), flush=True)
    del kept


if __name__ == "__main__":
    main()
