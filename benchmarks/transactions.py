"""Commits of transactional producers, in sequence: milliseconds each, as JSON.

    python -m benchmarks.transactions [--producers own own-late librdkafka aiokafka --partitions 8
        --outputs 480 --commits 100 --intervals 100 50 0 --backoffs 100 5 --round-ms 10 --turns 3]

Commits what a worker commits with exactly-once, without a worker: `outputs` answers spread over the
partitions, a record of the journal for each partition, and the offsets of a group. `own` is the worker's
producer: one request to a broker for all partitions, as `aiokafka` sends it. `librdkafka` sends one for each.
Before each commit is a pause of `--round-ms`, for the round whose answers are committed; `own` opens the
transaction at its beginning, as a worker does, all others at the commit. With interval 0, the round begins
when the last transaction has ended.

`p50`, `p90`, `p99` and `mean` are of a whole commit, from the first record that is handed over. `offsets`,
`flush` and `end` are medians of the parts: offsets are added while outputs are sent, and the flush waits for
the outputs that are left. librdkafka is called through confluent-kafka, record by record.
`cpu_ms` is the CPU time of this process for a commit, with all its threads: the median of the turns.

`backoffs` are milliseconds before a refused request is sent again. Producers and backoffs take turns, after a
pass that does not count, in which the broker's Java machine compiles.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.rig.broker import PARTITIONS, broker
from benchmarks.rig.commits import PRODUCERS, Load, Parts
from topics.clients import admin
from topics.definitions import TopicNames

OUTPUTS = 480


@dataclass(frozen=True)
class Turn:
    """What the commits of a turn took."""

    parts: Parts
    cpu_ms: float  # of each commit


def turn(
    address: str,
    load: Load,
    producer: str,
    backoff_ms: int,
    interval_s: float,
    commits: int,
    round_s: float = 0.0,
) -> Turn:
    """Return how long each of `commits` commits took, each after a round of `round_s` seconds."""
    sender = PRODUCERS[producer](address, load, f"bench-{uuid.uuid4().hex[:6]}", backoff_ms)
    whole: list[float] = []
    due, cpu = time.monotonic(), time.process_time()
    for number in range(1, commits + 1):
        sender.expect()
        time.sleep(round_s)  # the round is a part of what is measured
        began = time.perf_counter()
        sender.commit(number)
        whole.append(1e3 * (time.perf_counter() - began))
        due = max(due + interval_s, time.monotonic() - interval_s)
        time.sleep(max(0.0, due - time.monotonic()))  # the pace of commits is a setting here
    cpu_ms = 1e3 * (time.process_time() - cpu) / commits
    sender.close()
    return Turn({**sender.parts, "all": whole}, cpu_ms)


def summary(turns: Sequence[Turn]) -> dict[str, float]:
    """Return percentiles of the commits of all turns, medians of their parts, and the median of the CPU."""
    took = [ms for turn in turns for ms in turn.parts["all"]]
    p50, p90, p99 = np.percentile(took, [50, 90, 99]).round(1).tolist()
    row = {"commits": len(took), "p50": p50, "p90": p90, "p99": p99, "mean": round(float(np.mean(took)), 1)}
    for name in ("offsets", "flush", "end"):
        row[name] = round(float(np.median([ms for turn in turns for ms in turn.parts[name]])), 1)
    return row | {"cpu_ms": round(float(np.median([turn.cpu_ms for turn in turns])), 2)}


def rows(address: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a summary for each interval, number of partitions, producer and backoff."""
    for partitions in options.partitions:
        names = TopicNames(f"bench-{uuid.uuid4().hex[:6]}.")
        admin.create({"bootstrap.servers": address}, names, partitions)
        load = Load(names, partitions, options.outputs)
        for producer in options.producers:
            turn(address, load, producer, min(options.backoffs), 0.0, 2 * options.commits)
        for interval in options.intervals:
            turns: dict[tuple[str, int], list[Turn]] = defaultdict(list)
            for _ in range(options.turns):
                for producer, backoff in product(options.producers, options.backoffs):
                    turns[producer, backoff].append(
                        turn(
                            address,
                            load,
                            producer,
                            backoff,
                            interval / 1e3,
                            options.commits,
                            options.round_ms / 1e3,
                        )
                    )
            for (producer, backoff), of_both in turns.items():
                case = {"producer": producer, "partitions": partitions, "interval_ms": interval}
                yield {**case, "retry_backoff_ms": backoff, **summary(of_both)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transactions", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--producers", nargs="+", choices=PRODUCERS, default=[*PRODUCERS])
    parser.add_argument("--partitions", type=int, nargs="+", default=[PARTITIONS])
    parser.add_argument("--outputs", type=int, default=OUTPUTS, help="answers in a commit")
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--intervals", type=float, nargs="+", default=[100, 50, 0], help="ms")
    parser.add_argument("--backoffs", type=int, nargs="+", default=[100, 5], help="ms")
    parser.add_argument("--round-ms", type=float, default=10.0, help="before each commit")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.ERROR)  # it warns of each batch that it sends again
    with broker() as address:
        for row in rows(address, options):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
