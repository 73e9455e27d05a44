"""Thresholds of boosted trees: ``python -m benchmarks.sketch_sizes``.

Lets `sgbt` predict and learn the first rows of each stream with several values of `bins`, and prints one JSON
line for each: percent of the answers right and its standard deviation over seeds, records per second of
processor time, megabytes of the model at its end. The seed draws the trees' subsets of attributes.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

from benchmarks.boosted_drifts import run_sgbt
from benchmarks.datasets import Rows, load

STREAMS = ("sea", "agrawal", "rbf", "electricity", "weather")


def measure(rows: Rows, members: int, bins: int, seeds: int) -> dict[str, Any]:
    """Return the means over seeds."""
    parts = {"learner": {"bins": bins}}
    hits, seconds, size = zip(
        *(run_sgbt(rows, parts, members, seed) for seed in range(1, seeds + 1)), strict=True
    )
    right = [float(of_run.mean()) * 100.0 for of_run in hits]
    return {
        "stream": rows.name,
        "records": len(rows.y),
        "members": members,
        "bins": bins,
        "seeds": seeds,
        "accuracy": round(statistics.mean(right), 2),
        "accuracy_sd": round(statistics.stdev(right), 2) if seeds > 1 else None,
        "records_per_s": round(len(rows.y) / statistics.median(seconds)),
        "MB": round(statistics.mean(size) / 1e6, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", nargs="+", default=STREAMS)
    parser.add_argument("--bins", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for stream in options.streams:
        rows = load(stream, options.records)
        for bins in options.bins:
            print(json.dumps(measure(rows, options.members, bins, options.seeds)), flush=True)


if __name__ == "__main__":
    main()
