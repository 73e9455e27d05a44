"""A task with only some models in memory: microseconds per record beside one with all, as JSON.

    python -m benchmarks.residency
    python -m benchmarks.residency --models 100000 --shares 50 10 1 --directory /mnt/slow

The input is labelled JSON instances with keys by Zipf's law (1.1), in runs of 2,000. One task has no limit;
each of the remaining tasks has a limit of some percent of the bytes that the models have once they are
created. All of them process a run before any gets the next one, so that a busy machine slows all alike;
figures are medians over runs. `reload` is the time that a run waits for models before it
(streamapp/worker/processing/model_loading.py), and is part of `total`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.task import RUN, ZIPF, birth, config, instances
from streamapp.worker.processing.model_loading import reload
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.task import Task, TaskRun
from topics.columns.records import RawRecords


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.residency", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=100, help="measured runs")
    parser.add_argument("--leaf", choices=("mc", "nb", "nba"), default="nba")
    parser.add_argument(
        "--shares", type=int, nargs="+", default=[100, 50, 20, 10, 5], help="percent in memory"
    )
    parser.add_argument("--directory", type=Path, help="where evicted models lie; default: the temporary one")
    parser.set_defaults(handler="stop-partition")
    return parser.parse_args()


class Measured:
    """A task, and its time for each run."""

    def __init__(self, options: argparse.Namespace, share: int | None, size: int, directory: Path) -> None:
        """`share` is the percentage of `size` bytes that may be in memory, None: no limit."""
        self.share = share
        self.memory = ModelMemory(0 if share is None else max(1, size * share // 100), directory)
        self.task = Task(0, config(options), None, self.memory)
        self.seconds: dict[str, list[float]] = {"wall": [], "cpu": [], "reload": []}
        self._before = (0, 0, 0)

    def process(self, raw: RawRecords, loop: asyncio.AbstractEventLoop) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        loop.run_until_complete(reload(self.task.models, raw))
        reloaded = time.perf_counter()
        self.task.process(TaskRun("instances", raw))
        self.seconds["wall"].append(time.perf_counter() - wall)
        self.seconds["cpu"].append(time.process_time() - cpu)
        self.seconds["reload"].append(reloaded - wall)

    def begin(self) -> None:
        """Forget the measurements so far."""
        for seconds in self.seconds.values():
            seconds.clear()
        self._before = self._counts()

    def _counts(self) -> tuple[int, int, int]:
        return self.memory.hits, self.memory.misses, self.memory.written

    def report(self) -> dict[str, Any]:
        hits, misses, written = (
            now - before for now, before in zip(self._counts(), self._before, strict=True)
        )
        runs = len(self.seconds["wall"])
        micros = {
            name: round(statistics.median(seconds) / RUN * 1e6, 3) for name, seconds in self.seconds.items()
        }
        return {
            "share_percent": self.share,
            "in_memory": len(self.task.models.keys) - self.task.models.cache.n_evicted,
            "hit_rate": round(hits / (hits + misses), 4) if hits + misses else None,
            "misses_per_run": round(misses / runs, 1),
            "written_bytes_per_run": round(written / runs),
            "us_per_record": {"total": micros["wall"], "cpu": micros["cpu"], "reload": micros["reload"]},
        }


def main() -> int:
    options = arguments()
    directory = options.directory or Path(tempfile.gettempdir())
    loop = asyncio.new_event_loop()
    free = Measured(options, None, 0, directory)
    born = birth(options, options.models)
    for raw in born:
        free.process(raw, loop)
    size = sum(scale.nbytes for _, scale in free.task.models.scales())
    limited = [Measured(options, share, size, directory) for share in options.shares]
    for measured in limited:
        for raw in born:
            measured.process(raw, loop)
    warm_up = max(10, options.runs // 4)
    for number, raw in enumerate(instances(options, options.models, warm_up + options.runs, labelled=True)):
        if number == warm_up:
            for measured in (free, *limited):
                measured.begin()
        for measured in (free, *limited):
            measured.process(raw, loop)
    whole = free.report()
    reports = [measured.report() for measured in limited]
    for report in reports:
        for clock in ("total", "cpu"):
            ratio = whole["us_per_record"][clock] / report["us_per_record"][clock]
            report[f"throughput_to_all_in_memory_{clock}"] = round(ratio, 3)
    same = all(measured.task.digest() == free.task.digest() for measured in limited)
    body = {
        "models": options.models,
        "attributes": options.attributes,
        "zipf": ZIPF,
        "bytes": size,
        "all_in_memory": whole,
        "limited": reports,
        "same_state": same,
    }
    print(json.dumps(body, indent=1))
    loop.close()
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
