"""A task alone, without Kafka: microseconds per record of decode, process and encode, as JSON.

    python -m benchmarks.task
    python -m benchmarks.task --attributes 10 --runs 200 --handler dead-letter

Each scenario is a backlog of JSON instances in runs of 2,000. `kernel` is the time inside core's table and
`task` the time of `Task.process` around it (models, columns, labels, effects). Times are medians after
warm-up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from streamapp.worker.outputs.encoder import Encoder
from streamapp.worker.task.task import CODE, Task, TaskRun
from streamapp.worker.task.task_config import TaskConfig
from topics.codecs import encode_instances, encode_labels
from topics.columns.records import Features, RawRecords
from topics.definitions import TopicNames

RUN = 2_000
NOW = 1_700_000_000_000
ZIPF = 1.1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.task", description=__doc__.splitlines()[0])
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=100, help="measured runs of each scenario")
    parser.add_argument("--leaf", choices=("mc", "nb", "nba"), default="nba")
    parser.add_argument("--handler", choices=("stop-partition", "dead-letter"), default="stop-partition")
    return parser.parse_args()


def keys_of(n_keys: int, n: int, rng: np.random.Generator) -> list[bytes]:
    """Return the model keys of n records: one key, evenly spread keys, or (for many) keys by Zipf's law."""
    if n_keys <= 64:
        return [b"model-%d" % (i % n_keys) for i in range(n)]
    weight = 1.0 / np.arange(1, n_keys + 1) ** ZIPF
    return [b"model-%d" % key for key in rng.choice(n_keys, size=n, p=weight / weight.sum())]


def instances(options: argparse.Namespace, n_keys: int, runs: int, *, labelled: bool) -> list[RawRecords]:
    """Return runs of instances whose class depends on two of their features."""
    rng = np.random.default_rng(1)
    names = tuple(f"x{i}" for i in range(options.attributes))
    runs_made = []
    for number in range(runs):
        x = np.round(rng.random((RUN, options.attributes)) * 10, 4)
        label = np.where(x[:, 0] + x[:, 1 % options.attributes] <= 9, "a", "b").tolist() if labelled else None
        values = encode_instances(Features.of(names, x), labels=label)
        runs_made.append(as_run("instances", number * RUN, keys_of(n_keys, RUN, rng), values))
    return runs_made


def birth(options: argparse.Namespace, n_keys: int) -> list[RawRecords]:
    """Return runs that create every model and have both classes for it."""
    values = [
        b'{"features":{%s},"label":"%s"}'
        % (b",".join(b'"x%d":1.5' % i for i in range(options.attributes)), label)
        for label in (b"a", b"b")
    ]
    keys = [b"model-%d" % key for key in range(n_keys) for _ in values]
    runs_made = []
    for start in range(0, len(keys), RUN):
        keys_of_run = keys[start : start + RUN]
        runs_made.append(as_run("instances", start, keys_of_run, values * (len(keys_of_run) // 2)))
    return runs_made


def as_run(topic: str, start: int, keys: list[bytes], values: list[bytes]) -> RawRecords:
    n = len(values)
    offsets = list(range(start, start + n))
    return RawRecords(topic, 0, offsets, [NOW + offset for offset in offsets], [*keys], [*values], [()] * n)


class Stopwatch:
    """CPU seconds per stage, run by run (independent of other load on the machine)."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = time.thread_time()
        yield
        self.seconds.setdefault(stage, []).append(time.thread_time() - started)

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            with self(stage):
                return function(*arguments)

        return timed

    def microseconds(self, stage: str, records: int) -> float:
        return statistics.median(self.seconds[stage]) / records * 1e6


def config(options: argparse.Namespace, **spec: Any) -> TaskConfig:
    body = {"learner": {"name": "h-tree", "leaf_model": options.leaf}, **spec}
    return TaskConfig(model_spec=json.dumps(body), processing_exception_handler=options.handler)


def measure(options: argparse.Namespace, n_keys: int, *, labelled: bool, **spec: Any) -> dict[str, Any]:
    task, encoder, watch = Task(0, config(options, **spec)), Encoder(TopicNames()), Stopwatch()
    warm_up = max(10, options.runs // 4)
    with watch("birth"):
        for raw in birth(options, n_keys):
            task.process(TaskRun("instances", raw))
    birth_us = watch.seconds["birth"][0] / n_keys * 1e6
    backlog = instances(options, n_keys, warm_up + options.runs, labelled=labelled)
    table = task.models.table
    table.answer = watch.wrap("kernel", table.answer)  # type: ignore[method-assign]
    requested = 0
    for number, raw in enumerate(backlog):
        if number == warm_up:
            watch.seconds.clear()
        with watch("decode"):
            (batch,) = CODE["instances"].decode([raw], task.config.limits)
        with watch("process"):
            effects = task.process(TaskRun("instances", raw, batch))
        with watch("encode"):
            encoder.encode(raw, effects)
        requested += effects.counts["instances.requested"]
    stages = {stage: watch.microseconds(stage, RUN) for stage in ("decode", "process", "kernel", "encode")}
    stages["task"] = stages["process"] - stages["kernel"]
    return {
        "keys": n_keys,
        "labelled": labelled,
        "models": len(task.models.keys),
        "us_per_new_model": round(birth_us, 1) if n_keys >= 64 else None,
        "asked_share": round(requested / (len(backlog) * RUN), 3),
        "us_per_record": {stage: round(value, 3) for stage, value in stages.items()},
    }


def measure_labels(options: argparse.Namespace, n_keys: int) -> dict[str, Any]:
    """Return the cost of a label whose instance is pending."""
    task, watch = (
        Task(0, config(options, query="always", budget={"name": "count", "limit": 1.0})),
        Stopwatch(),
    )
    runs = max(10, options.runs // 2)
    for number, raw in enumerate(instances(options, n_keys, runs, labelled=False)):
        effects = task.process(TaskRun("instances", raw))
        ids = effects.requests[0].requests.instance_ids
        values = encode_labels(ids, ["a" if i % 3 else "b" for i in range(RUN)])
        labels = as_run("labels", number * RUN, raw.keys, values)  # type: ignore[arg-type]
        with watch("decode"):
            (batch,) = CODE["labels"].decode([labels], task.config.limits)
        with watch("process"):
            learned = task.process(TaskRun("labels", labels, batch)).counts["labels.learned"]
        assert learned == RUN, learned
    stages = {stage: round(watch.microseconds(stage, RUN), 3) for stage in ("decode", "process")}
    return {"keys": n_keys, "labels": True, "us_per_record": stages}


def main() -> int:
    options = arguments()
    random_query = {"query": "variable_uncertainty", "budget": {"name": "count", "limit": 0.1}}
    one_key = measure(options, 1, labelled=True)
    many = measure(options, 10_000, labelled=True)
    report = {
        "attributes": options.attributes,
        "handler": options.handler,
        "labelled": [one_key, measure(options, 64, labelled=True), many],
        "unlabelled": [measure(options, keys, labelled=False, **random_query) for keys in (1, 64, 10_000)],
        "labels": [measure_labels(options, keys) for keys in (1, 64)],
        "many_to_one": round(one_key["us_per_record"]["process"] / many["us_per_record"]["process"], 3),
    }
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
