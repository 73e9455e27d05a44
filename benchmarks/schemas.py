"""Memory of models with different schemas, which met their nominal values in different orders.

    python -m benchmarks.schemas --models 10000 --features 3 --values 50

`rss` is the growth of the process beyond one model, by number of models: everything, the models' words
included. `models` are these words, `shared` the counted bytes of schemas and plans, each once. `ideal` is the
size of the orders alone: two bytes a value and feature, and the texts once. `freed` is the rest of `shared`
after all models were deleted.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
from pathlib import Path
from typing import Any

import orjson

from core.schema import shared
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.columns.records import RawRecords

NOW = 1_700_000_000_000
STEPS = 4
PAGE = 4096


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=3)
    parser.add_argument("--values", type=int, default=50)
    options = parser.parse_args()
    task = Task(0, TaskConfig(model_spec='{"learner": "h-tree", "query": "never"}'))
    feed(task, 0, options)
    before, steps = resident(), []
    for number in range(1, options.models + 1):
        feed(task, number, options)
        if number % max(1, options.models // STEPS) == 0:
            words = sum(task.models.cache.model(slot).nbytes for slot in range(number + 1))
            steps.append(
                {
                    "number": number,
                    "rss": resident() - before,
                    "models": words,
                    "shared": shared.TALLY.bytes,
                }
            )
    for number in range(options.models + 1):
        control(task, number)
    control(task, 0)  # deletions of a run take effect when the next one begins
    gc.collect()
    ideal = options.models * options.features * options.values * 2 + options.features * options.values * 60
    print(json.dumps({"steps": steps, "ideal": ideal, "freed": {"shared": shared.TALLY.bytes}}, indent=2))


def feed(task: Task, number: int, options: argparse.Namespace) -> None:
    """Send a model all values of all features, in its own order."""
    draw = random.Random(number)
    orders = [draw.sample(range(options.values), options.values) for _ in range(options.features)]
    values = [
        orjson.dumps(
            {
                "features": {f"feature-{j}": f"value-{order[row]}" for j, order in enumerate(orders)},
                "label": "xy"[row % 2],
            }
        )
        for row in range(options.values)
    ]
    process(task, "instances", number, values)


def control(task: Task, number: int) -> None:
    """Delete a model."""
    process(task, "controls", number, [b'{"command": "delete"}'])


def process(task: Task, source: Any, number: int, values: list[bytes]) -> None:
    """Process records of one model as one run."""
    n = len(values)
    raw = RawRecords(f"t.{source}", 0, list(range(n)), [NOW] * n, [b"%d" % number] * n, [*values], [()] * n)
    task.process(TaskRun(source, raw))


def resident() -> int:
    """Return the resident bytes of the process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


if __name__ == "__main__":
    main()
