"""Learners with their defaults on the same streams: accuracy, time per record, bytes; JSON or a table.

    python -m benchmarks.learners --records 20000 --table
    python -m benchmarks.learners --learners h-tree,arf --streams electricity,led

Learners test then train, with each label at once, and one seed. Times are microseconds of processor time of
one thread, evaluation included, with kernels compiled before; sizes are kilobytes of the model at the end. A
learner that does not support a stream's classes or attributes has no figure for it. The table has means over
the streams that all its learners support, and then accuracy by stream; docs/choosing.md shows it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

import numpy as np

from benchmarks.datasets import Rows
from benchmarks.forest_accuracy import STREAMS, open_stream
from core.errors import GroveError
from core.kernels import jit
from core.model.model import Model
from core.model_table import ModelTable
from core.plan_words import compiled_modules
from core.spec import Spec

LEARNERS = (
    "majority-class",
    "naive-bayes",
    "h-tree",
    "c-tree",
    "imac",
    "efdt",
    "efdt-imac",
    "plastic",
    "last",
    "hat",
    "efhat",
    "ufft",
    "boct",
    "sgbt",
    "leveraging-bagging",
    "srp",
    "arf",
)


def measured(rows: Rows, learner: str) -> dict[str, Any] | None:
    """Return the figures of a learner with its defaults on a stream, None if it does not support such
    records.
    """
    spec = Spec.parse({"learner": learner, "evaluation": {"every": 0}})
    jit.warm(compiled_modules(spec))
    n = len(rows.y)
    try:
        for end in (10, n):
            table = ModelTable()
            table.add(Model.create(spec, rows.schema_with_ranges))
            began = time.process_time()
            which = np.zeros(end, dtype=np.int64)
            answers = table.answer(which, rows.x[:end], rows.y[:end], np.ones(end))
    except GroveError as error:
        print(f"{learner} on {rows.name}: {error}", file=sys.stderr)
        return None
    seconds = time.process_time() - began
    return {
        "learner": learner,
        "stream": rows.name,
        "records": n,
        "accuracy": round(100.0 * float((answers.prediction == rows.y).mean()), 2),
        "us": round(1e6 * seconds / n, 3),
        "kb": round(table.model(0).nbytes / 1000, 1),
    }


def table_of(results: list[dict[str, Any]]) -> str:
    """Return the runs as a table of Markdown: means, then accuracy by stream."""
    streams = list(dict.fromkeys(row["stream"] for row in results))
    learners = list(dict.fromkeys(row["learner"] for row in results))
    runs = {(row["learner"], row["stream"]): row for row in results}
    common = [stream for stream in streams if all((learner, stream) in runs for learner in learners)]
    lines = [
        f"| learner | accuracy, mean | µs a record | kB | {' | '.join(streams)} |",
        f"|{'---|' * (4 + len(streams))}",
    ]
    for learner in learners:
        own = [runs[learner, stream] for stream in common]
        means = [statistics.fmean(row[name] for row in own) for name in ("accuracy", "us", "kb")]
        by_stream = [
            f"{runs[learner, stream]['accuracy']:.1f}" if (learner, stream) in runs else "-"
            for stream in streams
        ]
        shown = f"{means[0]:.1f} | {means[1]:.2f} | {means[2]:,.0f}"
        lines.append(f"| `{learner}` | {shown} | {' | '.join(by_stream)} |")
    return "\n".join([*lines, f"Means over {', '.join(common)}."])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learners", description="Learners side by side."
    )
    parser.add_argument("--streams", default=",".join(STREAMS), metavar="A,B")
    parser.add_argument("--learners", default=",".join(LEARNERS), metavar="A,B")
    parser.add_argument("--records", type=int, default=20_000, help="of a stream at most")
    parser.add_argument("--table", action="store_true", help="Markdown instead of JSON")
    options = parser.parse_args(arguments)
    results: list[dict[str, Any]] = []
    for stream in options.streams.split(","):
        rows = open_stream(stream, options.records)
        for learner in options.learners.split(","):
            if row := measured(rows, learner):
                results.append(row)
                print(json.dumps(row), file=sys.stderr)
    print(table_of(results) if options.table else json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
