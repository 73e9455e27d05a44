"""Commits of a transactional producer, in sequence: milliseconds each, as JSON.

    python -m benchmarks.transactions [--commits 100 --intervals 100 50 0 --backoffs 100 5 --turns 3]

Commits what a worker commits with exactly-once, with the same sender, without a worker: 480 outputs, eight
records of the journal and the offsets of eight partitions in each transaction. With interval 0, each
transaction begins when the last one has ended. `offsets`, `flush` and `end` are medians of the parts: offsets
are added while outputs are sent, and the flush waits for the outputs that are left.

`backoffs` are values of librdkafka's `retry.backoff.ms`, in turns, after a pass that does not count, in which
the broker's Java machine compiles.
"""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.rig.broker import PARTITIONS, broker
from streamapp.worker.outputs.senders import LINGER_MS
from streamapp.worker.processing.transactions import group_metadata
from streamapp.worker.transport.membership import Membership
from topics.clients import admin
from topics.clients.transactional_sender import TransactionalSender
from topics.definitions import TopicNames

OUTPUTS = 60  # outputs per partition
NOBODY = Membership(generation=-1, member="", instance=None)  # offsets of a group without members


Parts = dict[str, list[float]]
"""Milliseconds of each commit, by its part; "all" of the whole commit."""


def measured(call: Callable[..., Any], took: list[float]) -> Callable[..., Any]:
    """Return a function that notes how long each call takes, in ms."""

    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            took.append(1e3 * (time.perf_counter() - began))

    return timed


def commit(
    kafka: dict[str, str], names: TopicNames, backoff_ms: int, interval_s: float, commits: int
) -> Parts:
    """Return how long each of `commits` commits took."""
    name = f"bench-{uuid.uuid4().hex[:6]}"
    properties = {**kafka, "linger.ms": LINGER_MS, "retry.backoff.ms": backoff_ms}
    sender = TransactionalSender(properties, name, native=True)
    group = group_metadata(name, NOBODY)
    sender.open()
    parts: Parts = {"all": [], "offsets": [], "flush": [], "end": []}
    producer: Any = sender._producer
    producer.flush = measured(producer.flush, parts["flush"])
    add_offsets = producer.send_offsets_to_transaction
    producer.send_offsets_to_transaction = measured(add_offsets, parts["offsets"])
    producer.commit_transaction = measured(producer.commit_transaction, parts["end"])
    due = time.monotonic()
    for number in range(1, commits + 1):
        for partition in range(PARTITIONS):
            for topic, n in ((names.predictions, OUTPUTS), (names.journal, 1)):
                sender.send_run(topic, partition, [bytes(120)] * n, [None] * n, [0] * n)
        began = time.perf_counter()
        sender.commit({(names.instances, partition): number for partition in range(PARTITIONS)}, group)
        parts["all"].append(1e3 * (time.perf_counter() - began))
        due = max(due + interval_s, time.monotonic() - interval_s)
        time.sleep(max(0.0, due - time.monotonic()))  # the pace of commits is a setting here
    parts["end"] = [end - flush for end, flush in zip(parts["end"], parts["flush"], strict=True)]
    sender.close()
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transactions", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--intervals", type=float, nargs="+", default=[100, 50, 0], help="ms")
    parser.add_argument("--backoffs", type=int, nargs="+", default=[100, 5], help="ms")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    milliseconds: dict[tuple[float, int], list[Parts]] = defaultdict(list)
    with broker() as address:
        kafka = {"bootstrap.servers": address}
        names = TopicNames(f"bench-{uuid.uuid4().hex[:6]}.")
        admin.create(kafka, names, PARTITIONS)
        commit(kafka, names, min(options.backoffs), 0.0, 3 * options.commits)
        for interval in options.intervals:
            for _ in range(options.turns):
                for backoff in options.backoffs:
                    milliseconds[interval, backoff].append(
                        commit(kafka, names, backoff, interval / 1e3, options.commits)
                    )
    for (interval, backoff), turns in milliseconds.items():
        took = [ms for turn in turns for ms in turn["all"]]
        p50, p90, p99 = np.percentile(took, [50, 90, 99]).round(1).tolist()
        row = {"interval_ms": interval, "retry_backoff_ms": backoff, "commits": len(took)}
        row |= {"p50": p50, "p90": p90, "p99": p99, "mean": round(float(np.mean(took)), 1)}
        medians = {
            name: round(float(np.median([ms for turn in turns for ms in turn[name]])), 1)
            for name in ("offsets", "flush", "end")
        }
        print(json.dumps({**row, **medians}))


if __name__ == "__main__":
    main()
