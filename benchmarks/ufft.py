"""UFFT: records per second beside MOA's ensembles and a twin, cost over time, new classes; JSON lines.

    python -m benchmarks.ufft speed           # K = 2, 10, 26: K(K-1)/2 trees beside MOA's bag of equal size
    python -m benchmarks.ufft cost            # processor time per record by stretches of 10⁷ records
    python -m benchmarks.ufft classes         # the record that meets a new class, up to 64 of them; bytes

Processor time of the process, test-then-train, one record at a time. The twin (tests/naive/ufft.py) runs for
``--seconds``; the output has the number of records that it reached. MOA runs a bag of Hoeffding trees
(OzaBag) of the size of the forest, which all see every record; in a forest only the trees of the record's
class learn it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.datasets import Rows
from benchmarks.peers import moa
from core.kernels import jit
from core.model.model import Model
from core.model_table import ModelTable
from core.plan_words import compiled_modules
from core.spec import Spec
from core.streams.base import open_generator
from tests.naive.compare import twin_of
from tests.naive.rows import Stream

SPEC: dict[str, Any] = {"learner": {"name": "ufft", "leaf_model": "nb"}, "evaluation": {"every": 0}}
ATTRIBUTES = 16
STRETCHES = 10


def clusters(n: int, d: int, classes: int, seed: int = 0) -> Rows:
    """Return records of overlapping normal clusters, one for each class."""
    draw = np.random.default_rng(seed)
    means = draw.normal(scale=1.5, size=(classes, d))
    y = draw.integers(0, classes, n).astype(np.int32)
    x = means[y] + draw.normal(size=(n, d))
    return Rows(f"clusters-{classes}", x, y, (None,) * d, classes)


def table_of(rows: Rows) -> ModelTable:
    spec = Spec.parse(SPEC)
    jit.warm(compiled_modules(spec))
    table = ModelTable()
    table.add(Model.create(spec, rows.schema))
    return table


def learn(table: ModelTable, x: Any, y: Any) -> tuple[float, int]:
    """Return the processor seconds of learning records with labels, and the number of correct answers."""
    which, ones = np.zeros(len(y), dtype=np.int64), np.ones(len(y))
    began = time.process_time()
    answers = table.answer(which, x, y, ones)
    return time.process_time() - began, int((answers.prediction == y).sum())


def speed(records: int, seconds: float, repeats: int) -> Iterator[dict[str, object]]:
    """Run our forest, MOA's bag and the twin on the same records; yield the least time of the repeats."""
    for classes in (2, 10, 26):
        rows = clusters(records, ATTRIBUTES, classes)
        trees = classes * (classes - 1) // 2
        ours, right = min(learn(table_of(rows), rows.x, rows.y) for _ in range(max(repeats, 2)))
        bag, theirs_right, _ = moa.ensemble(
            rows, f"meta.OzaBag -s {trees} -l (trees.HoeffdingTree -l NB)", repeats=repeats + 1
        )
        rate, came_to = twin_rate(rows, seconds)
        yield {
            "classes": classes,
            "trees": trees,
            "records": records,
            "records_per_s": round(records / ours),
            "accuracy": round(right / records, 4),
            "moa_records_per_s": round(records / min(bag[1:])),
            "moa_accuracy": round(theirs_right, 4),
            "times_moa": round(min(bag[1:]) / ours, 2),
            "twin_records_per_s": round(rate, 2),
            "twin_came_to": came_to,
            "times_twin": round(records / ours / rate),
        }


def twin_rate(rows: Rows, seconds: float) -> tuple[float, int]:
    """Return the twin's records per second, and the number of records that it reached."""
    stream = Stream(rows.x, rows.y, np.ones(len(rows.y)), rows.attributes, rows.classes)
    twin = twin_of(SPEC, stream)
    began, n_records = time.process_time(), 0
    for x, y in zip(rows.x.tolist(), rows.y.tolist(), strict=True):
        twin.answer(x, y)
        n_records += 1
        if time.process_time() - began > seconds:
            break
    return n_records / (time.process_time() - began), n_records


def cost(records: int) -> Iterator[dict[str, object]]:
    """Yield, for Waveform-21 and three trees, the processor time per record in each tenth of the stream."""
    generator = open_generator("waveform", seed=1)
    first = generator.take(1)
    rows = Rows("waveform", *first, (None,) * first[0].shape[1], 3)
    table = table_of(rows)
    per_stretch = records // STRETCHES
    micros = []
    for stretch in range(STRETCHES):
        spent = 0.0
        for x, y in generator.batches(per_stretch, 50_000, start=stretch * per_stretch):
            spent += learn(table, x, y)[0]
        summary = table.model(0).summary()
        micros.append(1e6 * spent / per_stretch)
        yield {
            "from_record": stretch * per_stretch,
            "us_per_record": round(micros[-1], 3),
            "leaves": summary.leaves,
            "depth": summary.depth,
            "megabytes": round(table.model(0).nbytes / 1e6, 2),
        }
    yield {"records": records, "last_to_second_stretch": round(micros[-1] / micros[1], 3)}


def classes(most: int, d: int) -> Iterator[dict[str, object]]:
    """Begin a class every 50 records; yield the latency of its first record, and of the other records."""
    rows = clusters(most * 50, d, most)
    block = np.arange(len(rows.y)) // 50
    draw = np.random.default_rng(2)
    y = draw.integers(0, block + 1).astype(np.int32)
    y[block * 50 == np.arange(len(y))] = np.arange(most)
    means = np.random.default_rng(0).normal(scale=1.5, size=(most, d))
    x = np.ascontiguousarray(means[y] + draw.normal(size=(len(y), d)))
    table = table_of(rows)
    new: list[float] = []
    others: list[float] = []
    for i in range(len(y)):
        began = time.perf_counter()
        learn(table, x[i : i + 1], y[i : i + 1])
        (new if i % 50 == 0 else others).append(1e3 * (time.perf_counter() - began))
    met = table.model(0).nbytes
    more = clusters(most * 1_000, d, most, seed=3)
    learn(table, more.x, more.y)
    last = others[-49 * 5 :]
    yield {
        "classes": most,
        "attributes": d,
        "trees": most * (most - 1) // 2,
        "ms_new_class_median": round(float(np.median(new)), 3),
        "ms_new_class_most": round(max(new[1:]), 3),
        "ms_last_new_class": round(new[-1], 3),
        "ms_others_at_the_end_median": round(float(np.median(last)), 3),
        "megabytes_all_classes_met": round(met / 1e6, 1),
        "megabytes_memories_full": round(table.model(0).nbytes / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("speed", "cost", "classes"))
    parser.add_argument("--records", type=int, help="default: 20,000 (speed), 10,000,000 (cost)")
    parser.add_argument("--seconds", type=float, default=20.0, help="processor time of the twin")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--classes", type=int, default=64)
    parser.add_argument("--attributes", type=int, default=40)
    options = parser.parse_args()
    parts = {
        "speed": lambda: speed(options.records or 20_000, options.seconds, options.repeats),
        "cost": lambda: cost(options.records or 10_000_000),
        "classes": lambda: classes(options.classes, options.attributes),
    }
    for line in parts[options.what]():
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
