"""Added cost of query strategies: nanoseconds per record in the kernels, as JSON lines.

    python -m benchmarks.queries
    python -m benchmarks.queries --rounds 200 --leaf mc

For each strategy, budget and share a model that has learned 20,000 records answers runs of unlabelled
records, in turn with the same model with the strategy `never`. Times are CPU time; the ratio is the median
over pairs, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from core import registry
from core.model.model import Model
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

ATTRIBUTES = 9
RUN = 5_000
SETTINGS = ((1.0, 0.0), (0.1, 0.0), (0.1, 0.01))  # limit of the budget, share of the evaluation


def learned(query: str, limit: float, share: float, leaf: str) -> ModelTable:
    """Return a table with a model that has learned 20,000 records."""
    rng = np.random.default_rng(0)
    x = rng.random((20_000, ATTRIBUTES))
    label = ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.3) ^ (rng.random(20_000) < 0.1)).astype(np.int32)
    spec = {
        "learner": {"name": "h-tree", "leaf_model": leaf, "delta": 0.05, "tau": 0.1},
        "query": query,
        "budget": {"limit": limit},
        "evaluation": {"share": share, "every": 0},
    }
    schema = Schema.of([Attribute(f"x{i}") for i in range(ATTRIBUTES)], ("a", "b"))
    table = ModelTable()
    index = table.add(Model.create(Spec.parse(spec), schema))
    table.answer(np.full(len(x), index), x, label, np.ones(len(x)))
    return table


def nanoseconds(table: ModelTable, x: np.ndarray) -> float:
    """Return the CPU time of answering, per record."""
    n = len(x)
    began = time.process_time_ns()
    table.answer(np.zeros(n, dtype=np.int64), x, np.full(n, -1, dtype=np.int32), np.ones(n))
    return (time.process_time_ns() - began) / n


def compare(query: str, limit: float, share: float, leaf: str, rounds: int) -> dict[str, object]:
    """Return the cost of a strategy, beside the strategy `never`."""
    x = np.random.default_rng(1).random((RUN, ATTRIBUTES))
    plain, asking = learned("never", 1.0, 0.0, leaf), learned(query, limit, share, leaf)
    pairs = [(nanoseconds(plain, x), nanoseconds(asking, x)) for _ in range(rounds)]
    return {
        "query": query,
        "limit": limit,
        "share": share,
        "leaf": leaf,
        "never": round(statistics.median(never for never, _ in pairs), 1),
        "asking": round(statistics.median(asking for _, asking in pairs), 1),
        "ratio": round(statistics.median(other / never for never, other in pairs), 3),
    }


def main() -> None:
    """Measure every strategy."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queries", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--leaf", choices=("mc", "nb", "nba"), default="nba")
    parser.add_argument("--queries", default=",".join(registry.names("queries")), help="separated by commas")
    options = parser.parse_args()
    for query in options.queries.split(","):
        for limit, share in SETTINGS:
            print(json.dumps(compare(query, limit, share, options.leaf, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
