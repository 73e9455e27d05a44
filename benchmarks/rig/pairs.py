"""Instances and labels on separate topics: every answer is given before its label arrives."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from benchmarks.rig.accuracy import read, score, worker_labels
from benchmarks.rig.backlog import Backlog, truth
from benchmarks.rig.measure import STALL_SECONDS, AnswerTopic, Pass, watch
from benchmarks.rig.passes import Bench, Result, median
from benchmarks.rig.process import Child
from benchmarks.rig.producing import Backfill
from benchmarks.rig.stream import NAMES, Rows
from benchmarks.rig.systems import OURS
from benchmarks.rig.visible import Cluster
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames

RATE = 60_000  # pairs per second of event time
DELAY_MS = 100  # from an instance to its label
SETTINGS = {"GROVE_PENDING_KEEP": "all"}


def load_pairs(bootstrap: str, names: TopicNames, rows: Rows, partitions: int) -> Backlog:
    """Produce each row twice: as an instance without label and, `DELAY_MS` later, as a label with its id."""
    keys = [key.encode() for key in rows.keys]
    places = [partition_of(key, partitions) for key in keys]
    start = time.time_ns() // 1_000_000 - len(rows) * 1000 // RATE - DELAY_MS
    size = 0
    with Backfill(bootstrap) as instances, Backfill(bootstrap) as labels:
        for number, (x, y, key) in enumerate(
            zip(rows.x.tolist(), rows.y.tolist(), rows.key.tolist(), strict=True)
        ):
            identity, at = f"r{number}", start + number * 1000 // RATE
            value = orjson.dumps({"id": identity, "features": dict(zip(NAMES, x, strict=True))})
            instances.send(names.instances, value, keys[key], places[key], at)
            value = orjson.dumps({"id": identity, "label": str(y)})
            labels.send(names.labels, value, keys[key], places[key], at + DELAY_MS)
        size = instances.bytes + labels.bytes
    n = len(rows)
    return Backlog(names.instances, "json", partitions, n, n, size, truth(rows, partitions))


def measure_pairs(
    bench: Bench, rows: Rows, partitions: int, repeats: int, keys: int, progress: Callable[[str], None]
) -> Result:
    """Return the median of `repeats` passes of our worker over both topics."""
    bench.backlog = load_pairs(bench.options.bootstrap, bench.names, rows, partitions)
    passes: list[tuple[Pass, float | None]] = []
    for number in range(repeats):
        passes.append(once(bench))
        progress(f"pairs, pass {number + 1} of {repeats}: {passes[-1][0].rows_per_second:,.0f} pairs/s")
    return median(bench, OURS, keys, passes)


def once(bench: Bench) -> tuple[Pass, float]:
    """Let our worker process both topics; return the cost and the accuracy of the answers."""
    group = f"bench-{uuid.uuid4().hex[:8]}"
    answers = AnswerTopic(bench.cluster, bench.names.predictions, bench.backlog.partitions)
    with (
        TemporaryDirectory(prefix="grove-bench-") as place,
        bench.worker(group, Path(place), **SETTINGS) as child,
    ):
        cost = watch(child, answers, bench.backlog.rows, 1)
        _await_labels(bench.cluster, child, group, bench.names.labels, bench.backlog)
    values = read(bench.options.bootstrap, answers)
    return cost, score(bench.backlog, [worker_labels(part) for part in values])


def _await_labels(cluster: Cluster, child: Child, group: str, topic: str, backlog: Backlog) -> None:
    """Return when the worker has committed every label; the last come `DELAY_MS` after the instances."""
    deadline = time.monotonic() + STALL_SECONDS
    while (committed := cluster.committed(group, topic, backlog.partitions)) < backlog.rows:
        child.check()
        if time.monotonic() > deadline:
            raise child.failed(f"left {backlog.rows - committed} labels unread")
        time.sleep(0.05)
