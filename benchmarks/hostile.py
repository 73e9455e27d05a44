"""Cost of the worst records within `record.max.bytes` for a worker, beside plain records, as JSON.

    python -m benchmarks.hostile
    python -m benchmarks.hostile --bytes 1048576 --only arrow

Each record of `benchmarks.worst_records` goes through decode, task and encoding, on a new partition. `ms` is
CPU time of the thread, the median of `--times` runs after one that is not counted. `stall` is the longest
time between two turns of the event loop while the worker's pipeline has the record (a thread computes it if
it is large), in ms on the clock, the least of `--times` runs. `held` is the memory that is still allocated
when the record's effects are gone (models, waiting instances, early labels, imports), `peak` the largest
amount, both by tracemalloc in a separate pass. The goals are a stall of 100 ms, and 10 times the record's
bytes plus a constant, because a row of a byte may request a model, and a block of bits a million values.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import time
import tracemalloc
from typing import Any, Final

from benchmarks.worst_records import KEY, WorstRecord, worst_records
from streamapp.settings import Settings
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.results import Results
from streamapp.worker.task.error_isolation import process_isolated
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.transport.runs import Run
from topics.codecs import Limits
from topics.columns.records import Headers, RawRecords
from topics.definitions import TopicNames

GOAL_MS: Final = 100.0  # goal for the longest stall of the event loop
TURN_S: Final = 0.001  # between two turns of an idle loop
GOAL_TIMES: Final = 10
GOAL_CONSTANT: Final = 16 << 20


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hostile", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--bytes", type=int, default=8 << 20, help="record.max.bytes")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="", help="inputs, formats or names that hold this text")
    return parser.parse_args()


class Partition:
    """A task with its codecs, whose outputs are discarded."""

    def __init__(self, max_bytes: int, worst: WorstRecord) -> None:
        self.task = Task(0, TaskConfig(limits=Limits(record_max_bytes=max_bytes)))
        self.encoder = Encoder(TopicNames())
        self._offset = 0
        if worst.before is not None:
            self.feed("instances", worst.before, ())

    def feed(self, source: SourceName, value: bytes, headers: Headers) -> list[str]:
        """Process a record; return the reasons of its dead letters."""
        raw = RawRecords(source, 0, [self._offset], [1_700_000_000_000], [KEY], [value], [headers])
        self._offset += 1
        (outcome,) = process_isolated([(self.task, TaskRun(source, raw))], self.encoder.encode_runs)
        if isinstance(outcome, Exception):
            raise outcome
        return [letter.reason for letter in outcome[0].dead_letters]


async def stall(max_bytes: int, worst: WorstRecord) -> float:
    """Return the longest gap between turns of the event loop while a worker processes a record, in ms."""
    names, nowhere = TopicNames("grove."), Nowhere()
    pipeline = Pipeline(
        Settings(record_max_bytes=max_bytes),
        nowhere,  # type: ignore[arg-type]
        Metrics(),
        partitions=1,
        limits=OutputLimits.of_catalogue(names),
    )
    task, longest, ended = pipeline.new_task(0), 0.0, asyncio.Event()

    async def process(offset: int, source: SourceName, value: bytes, headers: Headers) -> None:
        topic = f"grove.{source}"
        raw = RawRecords(topic, 0, [offset], [1_700_000_000_000], [KEY], [value], [headers])
        (results,) = await pipeline.process([(task, Run(topic, raw, offset + 1))], lambda _: True)
        assert isinstance(results, Results)
        pipeline.send([results])

    async def turn() -> None:
        nonlocal longest
        before = time.perf_counter()
        while not ended.is_set():
            await asyncio.sleep(TURN_S)
            now = time.perf_counter()
            longest, before = max(longest, now - before - TURN_S), now

    if worst.before is not None:
        await process(0, "instances", worst.before, ())
    turning = asyncio.ensure_future(turn())
    await asyncio.sleep(0)
    await process(1, worst.source, worst.value, worst.headers)
    await asyncio.sleep(0)
    ended.set()
    await turning
    task.close()
    return longest * 1e3


class Nowhere:
    """A sender that discards all outputs."""

    def offer_run(self, *columns: object) -> None:
        """Discard the outputs."""


def milliseconds(max_bytes: int, worst: WorstRecord) -> tuple[float, list[str]]:
    partition = Partition(max_bytes, worst)
    started = time.thread_time()
    reasons = partition.feed(worst.source, worst.value, worst.headers)
    took = (time.thread_time() - started) * 1e3
    partition.task.close()
    return took, reasons


def memory(max_bytes: int, worst: WorstRecord) -> tuple[int, int]:
    """Return the bytes held after a record, and the peak."""
    partition = Partition(max_bytes, worst)
    gc.collect()
    tracemalloc.start()
    value = bytes(bytearray(worst.value))  # a copy, since an early label may keep it
    partition.feed(worst.source, value, worst.headers)
    del value
    _, peak = tracemalloc.get_traced_memory()
    gc.collect()
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    partition.task.close()
    return held_bytes, peak


def measure(options: argparse.Namespace, worst: WorstRecord) -> dict[str, Any]:
    times = [milliseconds(options.bytes, worst) for _ in range(options.times + 1)][1:]
    ms, size = statistics.median(ms_of_run for ms_of_run, _ in times), len(worst.value)
    size += sum(len(name) + len(value or b"") for name, value in worst.headers)
    stood = min(asyncio.run(stall(options.bytes, worst)) for _ in range(options.times))
    held_bytes, peak = memory(options.bytes, worst)
    reasons = times[0][1]
    return {
        "input": worst.source,
        "format": worst.form,
        "record": worst.name,
        "plain": worst.plain,
        "bytes": size,
        "ms": round(ms, 1),
        "stall": round(stood, 1),
        "outcome": reasons[0] if reasons else "taken",
        "held": held_bytes,
        "peak": peak,
        "held_times": round(held_bytes / size, 2),
        "peak_times": round(peak / size, 2),
        "within_ms": stood <= GOAL_MS,
        "within_bytes": held_bytes <= GOAL_TIMES * size + GOAL_CONSTANT,
    }


def main() -> None:
    options = arguments()
    results = [
        measure(options, worst)
        for worst in worst_records(options.bytes)
        if any(options.only in text for text in (worst.source, worst.form, worst.name))
    ]
    goals = {"ms": GOAL_MS, "times": GOAL_TIMES, "constant": GOAL_CONSTANT}
    missed = [
        f"{result['input']} {result['format']}: {result['record']}"
        for result in results
        if not (result["within_ms"] and result["within_bytes"])
    ]
    print(
        json.dumps(
            {"record.max.bytes": options.bytes, "goals": goals, "records": results, "missed": missed},
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
