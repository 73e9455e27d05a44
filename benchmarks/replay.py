"""Replay as fast as possible beside a bare produce of the same bytes.

    python -m benchmarks.replay
    python -m benchmarks.replay --format packed --rows 1000000 --labels apart

Prints one JSON object for each format: rows per second of both (median of the repeats, taken in turn on one
broker), their ratio, and the goal. The bare produce has all records ready in memory, the same client
properties, and does nothing but `produce` and `poll`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import uuid
from collections.abc import Iterator

import numpy as np
from confluent_kafka import Producer

from benchmarks.rig.broker import PARTITIONS, broker
from topics.clients.admin import create
from topics.clients.cluster import Cluster
from topics.clients.sender import DEFAULTS
from topics.columns.records import Format
from topics.definitions import TopicNames
from topics.delay import Delay
from topics.readers.dataset import Batch, Kind, rebatched
from topics.replay import Replay, ReplayPlan
from topics.replay.arrow_blocks import BlockEmitter
from topics.replay.emission import Outgoing, RowEmitter, Rows
from topics.replay.owed import OwedLabels
from topics.replay.replay_plan import LabelMode
from topics.replay.row_keys import KeyRing
from topics.replay.timeline import Timeline

GOAL = 0.5
FEATURES = 10
CHUNK_ROWS = 2000
ROWS: dict[Format, int] = {"json": 500_000, "packed": 500_000, "arrow": 2_000_000}
KEYS = tuple(f"model-{n}" for n in range(64))


class Numbers:
    """Random numbers as a data set: ten numeric attributes, two classes."""

    def __init__(self, rows: int) -> None:
        random = np.random.default_rng(1)
        self._x = random.normal(size=(rows, FEATURES))
        self._y = (self._x.sum(axis=1) > 0).astype(np.int32)
        self.names = tuple(f"f{j}" for j in range(FEATURES))
        self.kinds: tuple[Kind, ...] = tuple("numeric" for _ in range(FEATURES))
        self.values: tuple[tuple[str, ...], ...] = ((),) * FEATURES
        self.open = (False,) * FEATURES
        self.classes = ("0", "1")
        self.classes_open = False
        self.rows = rows

    def batches(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Batch]:
        return rebatched([(self._x, self._y)], size, start)


def prepared(dataset: Numbers, plan: ReplayPlan) -> list[Outgoing]:
    emitter = (BlockEmitter if plan.format == "arrow" else RowEmitter)(
        plan, dataset, KeyRing(plan, PARTITIONS)
    )
    timeline, owed, batches, first = Timeline(plan), OwedLabels(), [], 0
    for x, y in dataset.batches(8 * CHUNK_ROWS if plan.format == "arrow" else CHUNK_ROWS):
        numbers = np.arange(first, first + len(y))
        first += len(y)
        apart = plan.labels == "apart"
        if apart:
            owed.add(timeline.labels(numbers, y, 0.0))
        codes = np.full_like(y, -1) if apart else y
        rows = Rows(numbers, x, codes, timeline.places(numbers, 0.0), timeline.timestamps(numbers))
        batches.append(emitter.emit(rows, owed.take(rows.place[-1])))
    batches.append(emitter.emit(Rows.none(FEATURES), owed.take(np.inf)))
    batches.append(emitter.rest())
    return batches


def bare_seconds(kafka: dict[str, str], records: list[Outgoing]) -> float:
    producer = Producer({**DEFAULTS, **kafka, "delivery.report.only.error": True})
    produce = producer.produce
    started = time.perf_counter()
    for outgoing in records:
        for topic, value, key, partition in zip(
            outgoing.topics, outgoing.values, outgoing.keys, outgoing.partitions, strict=True
        ):
            while True:
                try:
                    produce(topic, value, key, partition)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.poll(0)
    while producer.flush(10):
        pass
    return time.perf_counter() - started


def replay_seconds(kafka: dict[str, str], dataset: Numbers, plan: ReplayPlan) -> float:
    replay = Replay(dataset, plan, kafka)
    started = time.perf_counter()
    replay.run()
    return time.perf_counter() - started


def measure(
    kafka: dict[str, str], form: Format, rows: int, labels: LabelMode, repeats: int
) -> dict[str, object]:
    names = TopicNames(f"bench-{uuid.uuid4().hex[:6]}.")
    create(kafka, names, PARTITIONS, tell=lambda line: print(line, file=sys.stderr))
    delay = Delay(100) if labels == "apart" else Delay()
    plan = ReplayPlan(
        names=names, keys=KEYS, spread="round-robin", labels=labels, label_delay=delay, format=form
    )
    dataset = Numbers(rows)
    records = prepared(dataset, plan)
    bare, ours = [], []
    for _ in range(repeats):
        bare.append(bare_seconds(kafka, records))
        ours.append(replay_seconds(kafka, dataset, plan))
    client = Cluster(kafka).client
    for future in client.delete_topics(list(names.all())).values():
        future.result()
    bare_rate, rate = rows / statistics.median(bare), rows / statistics.median(ours)
    return {
        "system": "replay",
        "format": form,
        "labels": labels,
        "rows": rows,
        "records": sum(map(len, records)),
        "bytes": sum(len(value) for outgoing in records for value in outgoing.values),
        "replay_rows_per_second": round(rate),
        "bare_rows_per_second": round(bare_rate),
        "ratio": round(rate / bare_rate, 3),
        "goal": GOAL,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=tuple(ROWS), action="append", help="default: all")
    parser.add_argument("--rows", type=int, help="default: half a million, with arrow two")
    parser.add_argument("--labels", choices=("with", "apart"), default="with")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with broker() as address:
        kafka = {"bootstrap.servers": address}
        for form in options.format or tuple(ROWS):
            rows = options.rows or ROWS[form]
            print(json.dumps(measure(kafka, form, rows, options.labels, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
