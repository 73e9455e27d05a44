"""Cost of writing the state of a partition with many models, and of making a task from it again.

    python -m benchmarks.snapshots --json
    python -m benchmarks.snapshots --models 10000 --attributes 30 --labels 40

Times are CPU time, which is valid on a busy machine. `bare` is the cost of copying and hashing the same bytes
in one piece, the minimum for a snapshot. `minute` is the share of a core for one snapshot per minute. The
garbage collector is set as in a worker.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.task.unit import Unit, UnitName
from streamapp.worker.worker import GC_THRESHOLDS
from topics.codecs import encode_instances
from topics.columns.records import Features, RawRecords

RUN = 2_000
NOW = 1_700_000_000_000
LEARNER = {"name": "h-tree", "grace_period": 20, "delta": 0.1, "tau": 0.3}


class Clock:
    """CPU seconds of this process."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> Clock:
        self._start = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._start


class Partition:
    """A task that gets rows of all its models in turn."""

    def __init__(self, models: int, attributes: int) -> None:
        spec = {"learner": LEARNER, "query": "never"}
        self.config = TaskConfig(model_spec=json.dumps(spec), pending_keep="all", pending_max_bytes=64 << 20)
        self.task = Task(0, self.config)
        self.models = models
        self._names = tuple(f"x{i}" for i in range(attributes))
        self._rng = np.random.default_rng(1)
        self._offset = 0

    def feed(self, models: np.ndarray[Any, Any], *, labelled: bool) -> None:
        """Process one row of each of the models, in runs."""
        for start in range(0, len(models), RUN):
            part = models[start : start + RUN].tolist()
            x = np.round(self._rng.random((len(part), len(self._names))) * 10, 4)
            labels = np.where(x[:, 0] + x[:, 1] <= 9, "a", "b").tolist() if labelled else None
            offsets = list(range(self._offset, self._offset + len(part)))
            self._offset += len(part)
            raw = RawRecords(
                "instances",
                0,
                offsets,
                [NOW + offset for offset in offsets],
                [b"model-%d" % model for model in part],
                [*encode_instances(Features.of(self._names, x), labels=labels)],
                [()] * len(part),
            )
            self.task.process(TaskRun("instances", raw))


def written(partition: Partition, units: dict[UnitName, Unit], between: Callable[[], None]) -> dict[str, Any]:
    """Write the changed units; `between` is called after the cut."""
    with Clock() as cutting:
        cut = partition.task.cut()
    models = cut.n_models
    with Clock() as copying:
        between()
    units_written: list[Unit] = []
    steps: list[float] = []
    step = cut.units()
    with Clock() as writing:
        while True:
            begin = time.process_time()
            unit = next(step, None)
            if unit is None:
                break
            steps.append(time.process_time() - begin)
            units_written.append(unit)
    with Clock() as ending:
        for name in cut.removed:
            del units[name]
        cut.done()
    units.update((unit.name, unit) for unit in units_written)
    return {
        "models": models,
        "units": len(units_written),
        "megabytes": round(sum(len(unit.data) for unit in units_written) / 1e6, 2),
        "cut_ms": round(1e3 * cutting.seconds, 3),
        "between_ms": round(1e3 * copying.seconds, 1),
        "write_ms": round(1e3 * writing.seconds, 1),
        "write_us_per_model": round(1e6 * writing.seconds / max(models, 1), 2),
        "longest_step_ms": round(1e3 * max(steps), 2),
        "done_ms": round(1e3 * ending.seconds, 1),
        "minute": round((cutting.seconds + writing.seconds + ending.seconds) / 60, 5),
    }


def bare(units: dict[UnitName, Unit]) -> float:
    """Return the CPU seconds of copying and hashing the bytes of all units."""
    sources = [np.frombuffer(unit.data, dtype=np.uint8) for unit in units.values()]
    with Clock() as clock:
        for source in sources:
            hashlib.blake2b(source.tobytes(), digest_size=8).digest()
    return clock.seconds


def run_cost(partition: Partition, everyone: np.ndarray[Any, Any]) -> float:
    with Clock() as clock:
        partition.feed(everyone, labelled=True)
    return clock.seconds


def measure(options: argparse.Namespace) -> dict[str, Any]:
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    partition = Partition(options.models, options.attributes)
    everyone = np.arange(options.models)
    few = everyone[:: max(options.models // 100, 1)]
    for _ in range(options.labels):
        partition.feed(everyone, labelled=True)
    partition.feed(everyone, labelled=False)  # instances that wait for their label
    units: dict[UnitName, Unit] = {}
    figures: dict[str, Any] = {"first": written(partition, units, lambda: None)}
    model_bytes = [len(unit.data) for name, unit in units.items() if name.kind == "model"]
    figures["model_bytes"] = {"median": int(statistics.median(model_bytes)), "sum": sum(model_bytes)}
    figures["bare_us_per_model"] = round(1e6 * bare(units) / options.models, 2)
    plain = run_cost(partition, everyone)
    figures["all_change_after_the_cut"] = written(
        partition, units, lambda: partition.feed(everyone, labelled=True)
    )
    figures["all_change_after_the_cut"]["same_runs_without_cut_ms"] = round(1e3 * plain, 1)
    latest = written(partition, units, lambda: None)
    partition.feed(few, labelled=True)
    figures["all_again"], figures["few"] = latest, written(partition, units, lambda: None)
    with Clock() as clock:
        again = Task.from_units(0, partition.config, None, units.values())
    figures["restore_us_per_model"] = round(1e6 * clock.seconds / options.models, 2)
    figures["same"] = again.digest() == partition.task.digest()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.snapshots", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--attributes", type=int, default=30)
    parser.add_argument("--labels", type=int, default=40, help="labels each model has learned")
    parser.add_argument("--json", action="store_true", help="one line")
    options = parser.parse_args()
    print(json.dumps(measure(options), indent=None if options.json else 2))


if __name__ == "__main__":
    main()
