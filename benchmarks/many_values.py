"""Multiway tests on attributes with many meaningless values: ``python -m benchmarks.many_values``.

Ten nominal columns have 1,024 random values. Beside them are three numbers and two columns of four values,
some of which decide the class; one label in ten is inverted, so the best accuracy of a tree is 0.9. Prints
one JSON line per setting and seed: accuracy (test-then-train), leaves, size of the model.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from core.model.model import Model
from core.model_table import LABELLED, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

NOISE, VALUES = 10, 1024
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "max_branches": {"max_branches": 100},
    "binary_splits": {"binary_splits": True},
    "gini": {"criterion": "gini"},
    "gini, max_branches": {"criterion": "gini", "max_branches": 100},
    "moa": {"compat": "moa"},
}
RUN = 1000


def schema() -> Schema:
    """Return the schema; all values are declared."""
    noise = [Attribute(f"noise{i}", "nominal", tuple(map(str, range(VALUES)))) for i in range(NOISE)]
    numbers = [Attribute(f"number{i}") for i in range(3)]
    letters = [Attribute(f"letter{i}", "nominal", tuple("abcd")) for i in range(2)]
    return Schema.of([*noise, *numbers, *letters], ("no", "yes"))


def rows(n: int, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return x float64[n, 15] and y int32[n]."""
    random = np.random.default_rng(seed)
    x = np.empty((n, NOISE + 5))
    x[:, :NOISE] = random.integers(0, VALUES, (n, NOISE))
    x[:, NOISE : NOISE + 3] = random.uniform(0.0, 1.0, (n, 3))
    x[:, NOISE + 3 :] = np.column_stack([random.integers(0, 4, n), random.integers(0, 4, n)])
    concept = (x[:, NOISE] + x[:, NOISE + 1] > 1.0) ^ (x[:, NOISE + 3] == 2)
    return x, (concept ^ (random.random(n) < 0.1)).astype(np.int32)


def measure(setting: str, n: int, seed: int) -> dict[str, Any]:
    x, y = rows(n, seed)
    table = ModelTable()
    spec = Spec.parse({"learner": {"name": "h-tree"} | SETTINGS[setting]})
    index = table.add(Model.create(spec, schema()))
    hits = 0
    for first in range(0, n, RUN):
        part = slice(first, first + RUN)
        m = len(y[part])
        answers = table.answer(np.full(m, index), x[part], y[part], np.ones(m), LABELLED)
        hits += int(np.count_nonzero(answers.prediction == y[part]))
    model = table.model(index)
    size = round(model.nbytes / 1e6, 1)
    return {
        "setting": setting,
        "seed": seed,
        "accuracy": round(hits / n, 4),
        "leaves": model.summary().leaves,
        "MB": size,
    }


def main() -> None:
    """Print a line for each setting and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    options = parser.parse_args()
    for setting in options.settings:
        for seed in range(1, options.seeds + 1):
            print(json.dumps(measure(setting, options.records, seed)), flush=True)


if __name__ == "__main__":
    main()
