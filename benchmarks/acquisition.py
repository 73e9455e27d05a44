"""Feature acquisition: memory of open episodes, cost of a purchase, latency on a broker; as JSON.

    python -m benchmarks.acquisition memory          # 10,000 open episodes, four kinds of models
    python -m benchmarks.acquisition task            # microseconds of a record, half of them buying one
    python -m benchmarks.acquisition latency --rate 500                            # beside bare echoes
    python -m benchmarks.acquisition latency --rate 100000 --share 0.5             # as fast as it goes

`memory`: the growth of the process, and the bytes that the table of episodes counts. `task`: CPU time of one
thread; the kinds of records take turns, so that other load on the machine slows all of them down. The
requested values of a run of instances come in the next run. `latency`: benchmarks/rig/purchases.py.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Final

import numpy as np

from benchmarks.memory import resident
from benchmarks.rig.broker import broker, topics
from benchmarks.rig.purchases import PARTITIONS, measure_purchases
from benchmarks.rig.visible import Cluster
from benchmarks.task import as_run
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.task.episodes.episode_table import MAX_BYTES, MAX_COUNT
from streamapp.worker.task.task import Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.codecs import encode_controls, encode_feature_values, encode_instances
from topics.columns.records import Features, RawRecords

RUN: Final = 500
TREE: Final = {"name": "h-tree", "grace_period": 100}
PATIENT: Final = {"timeout_ms": 600_000}
ALL: Final = {"name": "random", "share": 1.0, **PATIENT}
"""Requests every missing feature at once."""
UFODT: Final = {"name": "ufodt", "hypotheses": 100}
ASKS: Final = {"name": "utility", **PATIENT}

MEMORY: Final = (
    # name, learner, acquirer, attributes
    ("h-tree, 10 numbers", TREE, ALL, 10),
    ("h-tree, 123 numbers", TREE, ALL, 123),
    ("ufodt, 12 bits", UFODT, ASKS, -12),
    ("ufodt, 12 numbers", UFODT, ASKS, 12),
)
FIRST: Final = 500  # opened before measuring


def model(learner: Any, acquire: Any, attributes: int, most: int = MAX_COUNT) -> tuple[Task, tuple[str, ...]]:
    """Return a task with one model, and its attributes' names.

    A negative number of attributes makes bits instead of numbers. `most` is the largest number of open
    episodes.
    """
    names = tuple(f"x{i}" for i in range(abs(attributes)))
    kind: dict[str, Any] = {"range": [0, 10]}
    if attributes < 0:
        kind = {"kind": "nominal", "values": ["0", "1"]}
    schema = {"attributes": [{"name": name, **kind} for name in names], "classes": ["a", "b"]}
    spec = {"learner": learner, "query": "never", **({"acquire": acquire} if acquire else {})}
    task = Task(0, TaskConfig(episodes_max_count=most))
    values = encode_controls([("create", {"spec": spec, "schema": schema})])
    effects = task.process(TaskRun("controls", as_run("controls", 0, [b"m"], values)))
    assert not effects.dead_letters, effects.dead_letters
    return task, names


def empty(start: int, n: int) -> RawRecords:
    """Return instances without any feature; their ids are as long as UUIDs."""
    values = [b'{"id":"%036d","features":{"x0":null}}' % number for number in range(start, start + n)]
    return as_run("instances", start, [b"m"] * n, values)


def memory(name: str, learner: Any, acquire: Any, attributes: int, most: int = MAX_COUNT) -> dict[str, Any]:
    """Open the largest number of episodes that a partition may have, and one more."""
    task, _ = model(learner, acquire, attributes, most)

    def open_some(start: int, n: int) -> Any:
        return task.process(TaskRun("instances", empty(start, n))).counts

    open_some(0, FIRST)
    gc.collect()
    episodes, before = task._state.episodes, resident()
    counted = episodes.bytes
    for start in range(FIRST, most, RUN):
        open_some(start, RUN)
    gc.collect()
    grown, n = resident() - before, len(episodes) - FIRST
    over = open_some(most, 1)
    return {
        "model": name,
        "open": len(episodes),
        "counted_bytes": round((episodes.bytes - counted) / n) * len(episodes),
        "measured_bytes": round(grown / n) * len(episodes),
        "bound_bytes": MAX_BYTES,
        "counted_per_episode": round((episodes.bytes - counted) / n),
        "measured_per_episode": round(grown / n),
        "answered_for_room": over["episodes.room"],
    }


def rows(names: tuple[str, ...], runs: int) -> Iterator[tuple[int, Any, list[str]]]:
    """Yield the number of each run, its values, float64[RUN, d], and its classes."""
    rng = np.random.default_rng(1)
    for number in range(runs):
        x = np.round(rng.random((RUN, len(names))) * 10, 4)
        yield number, x, np.where(x[:, 0] + x[:, 1] <= 9, "a", "b").tolist()


def task_cost(runs: int) -> dict[str, Any]:
    """Return CPU microseconds per record if none, half or all of the records buy a feature."""
    kinds: dict[str, tuple[Task, float]] = {}
    for name, acquire, share in (
        ("buys nothing", None, 0.0),
        ("may buy, nothing missing", ALL, 0.0),
        ("half buy one", ALL, 0.5),
        ("all buy one", ALL, 1.0),
    ):
        task, names = model(TREE, acquire, 10)
        kinds[name] = task, share
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    for number, x, labels in rows(names, runs):
        for name, (task, share) in kinds.items():
            lacking = np.arange(RUN) < share * RUN
            brought = x.copy()
            brought[lacking, -1] = np.nan
            ids = [f"{number}-{row}" for row in range(RUN)]
            values = encode_instances(Features.of(names, brought), ids=ids, labels=labels)
            few = [row for row in range(RUN) if lacking[row]]
            late = encode_feature_values(
                [ids[row] for row in few], [{names[-1]: float(x[row, -1])} for row in few]
            )
            instances = as_run("instances", number * RUN, [b"m"] * RUN, values)
            came = as_run("feature-values", number * RUN, [b"m"] * len(late), late)
            began = time.thread_time()
            answers = len(task.process(TaskRun("instances", instances)).answers)
            if late:
                answers += len(task.process(TaskRun("feature_values", came)).answers)
            spent[name].append(time.thread_time() - began)
            assert task.open_episodes == 0 and answers, (name, answers)
    micros = {
        name: statistics.median(run_seconds[runs // 4 :]) / RUN * 1e6 for name, run_seconds in spent.items()
    }
    return {
        "attributes": 10,
        "us_per_record": {name: round(value, 2) for name, value in micros.items()},
        "records_per_cpu_second": {name: round(1e6 / value) for name, value in micros.items()},
        "times_of_who_buys_nothing": {
            name: round(value / micros["buys nothing"], 1) for name, value in micros.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("memory", "task", "latency"))
    parser.add_argument("--runs", type=int, default=40, help=f"task: runs of {RUN} records")
    parser.add_argument("--rate", type=int, default=500, help="latency: records a second")
    parser.add_argument("--records", type=int, default=10_000, help="latency: how many")
    parser.add_argument("--share", type=float, default=1.0, help="latency: of the records lack a feature")
    parser.add_argument("--ufodt", action="store_true", help="latency: UFODT instead of a tree")
    parser.add_argument("--guarantee", choices=("at_least_once", "exactly_once"), default="at_least_once")
    options = parser.parse_args()
    warm_kernels()
    if options.what == "memory":
        # One process for each: a process would first reuse memory that it has freed.
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
            for measured in processes.map(memory, *zip(*MEMORY, strict=True)):
                print(json.dumps(measured), flush=True)
    elif options.what == "task":
        print(json.dumps(task_cost(options.runs)))
    else:
        spec = {"learner": UFODT if options.ufodt else TREE, "query": "never", "acquire": ALL}
        with broker() as bootstrap:
            cluster = Cluster(bootstrap)
            with topics(bootstrap, cluster, PARTITIONS) as names:
                figures = measure_purchases(
                    cluster,
                    names,
                    bootstrap,
                    spec,
                    options.rate,
                    options.records,
                    options.share,
                    options.guarantee,
                )
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
