"""Load of a broker by a worker, its producer and a reader, beside the load that `grove plan` calculates.

    python -m benchmarks.broker_load --json
    python -m benchmarks.broker_load --json --rates 5000 --partitions 8 64 --guarantees exactly_once

All connections to the broker lead through a proxy, which reads the header of each request. The names of the
clients distinguish the worker, a producer with a steady rate and a reader of the answers. The bytes are those
of the connections: records, their frames, requests and answers. No snapshot falls into the counted time, and
the plan is calculated without them. docs/scale.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka import TopicPartition

from benchmarks.bounded_numbers import number_within
from benchmarks.chaos.network import Network
from benchmarks.peers.job import COMMIT_MS
from benchmarks.restore import NO_SNAPSHOTS
from benchmarks.rig.broker import HEAP_MB, topics
from benchmarks.rig.client_requests import Counts, RequestCounter
from benchmarks.rig.latency import (
    READER,
    WARM_SECONDS,
    Pace,
    await_groups,
    new_group,
    open_outputs,
    start_of,
)
from benchmarks.rig.process import Child
from benchmarks.rig.systems import GUARANTEES, OURS, Options, spec, worker_command, worker_environment
from benchmarks.rig.visible import Cluster
from streamapp.embedded.broker_cluster import EmbeddedCluster
from streamapp.tools.sizing.broker_load import MB, broker_load
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.worker_load import load_of, record_us
from streamapp.tools.sizing.workload import Workload
from streamapp.worker.compile_ahead import warm_kernels
from streamapp.worker.task.task_config import TaskConfig
from topics.definitions import TopicNames

PRODUCER: Final = ""
"""The producer with a steady rate gives no name."""

SAMPLE: Final = 100
"""Records whose mean size is that of all."""

MOST_P99_MS: Final = 1_000.0
"""Of the planned workload; the load of brokers does not depend on it."""


@contextmanager
def counted_broker() -> Iterator[tuple[str, RequestCounter]]:
    """Yield the address of a proxy in front of a new broker, and what counts its requests."""
    counter = RequestCounter()
    with (
        Network(lambda _: None, counter) as network,
        EmbeddedCluster(1, heap_mb=HEAP_MB, through=network.through) as cluster,
    ):
        yield cluster.bootstrap_servers, counter


@dataclass(frozen=True)
class Measured:
    """What passed in the counted time, and the mean bytes of a value."""

    counts: Counts
    seconds: float
    record_bytes: float
    answer_bytes: float


def measure(bootstrap: str, counter: RequestCounter, guarantee: str, partitions: int, pace: Pace) -> Measured:
    """Run a worker, a producer and a reader on new topics; return what they sent after the warm-up."""
    cluster = Cluster(bootstrap)
    with topics(bootstrap, cluster, partitions) as names, TemporaryDirectory(prefix="grove-bench-") as place:
        log, group = Path(place), new_group()
        settings = {**NO_SNAPSHOTS, "GROVE_KAFKA_CLIENT_ID": OURS}
        options = Options(bootstrap, guarantee=guarantee, settings=settings)
        environment = worker_environment(options, names, partitions, group, log / "state")
        with Child(worker_command(), log / "worker", environment) as worker:
            await_groups(cluster, {OURS: worker}, {OURS: group})
            command = pace.command(bootstrap, names.instances, partitions)
            with Child(command, log / "steady") as steady:
                return _read(counter, names, partitions, pace, start_of(steady, log / "steady"), bootstrap)


def _read(
    counter: RequestCounter, names: TopicNames, partitions: int, pace: Pace, start: float, bootstrap: str
) -> Measured:
    """Read all answers; `start` is the time of `time.monotonic` at which the first record is due."""
    consumer = open_outputs(bootstrap, [names.predictions], partitions)

    def sizes_until(moment: float) -> list[int]:
        sizes: list[int] = []
        while (seconds_left := moment - time.monotonic()) > 0:
            sizes += [
                len(message.value() or b"") for message in consumer.consume(10_000, min(seconds_left, 0.1))
            ]
        return sizes

    try:
        sizes_until(start + pace.warm_seconds)
        began, before = time.monotonic(), counter.counts.copy()
        answers = sizes_until(start + pace.warm_seconds + pace.seconds)
        seconds, after = time.monotonic() - began, counter.counts.copy()
        consumer.assign([TopicPartition(names.instances, number, 0) for number in range(partitions)])
        records: list[int] = []
        while len(records) < SAMPLE:
            records += sizes_until(time.monotonic() + 1.0)
    finally:
        consumer.close()
    return Measured(after - before, seconds, statistics.mean(records), statistics.mean(answers))


def line_of(measured: Measured, guarantee: str, partitions: int, pace: Pace) -> dict[str, Any]:
    """Return the figures of a measurement, beside those of the plan."""
    counts, seconds = measured.counts, measured.seconds
    requests = {
        kind: round(number / seconds, 2)
        for (client, kind), number in sorted(counts.requests.items())
        if client == OURS
    }
    costs = replace(Costs(), model_bytes=0.0)  # no snapshots
    workload = Workload(pace.rate, pace.keys, measured.record_bytes, MOST_P99_MS, guarantee, replicas=1)
    record_cost = record_us(costs, measured.record_bytes, pace.keys)
    load = load_of(costs, pace.rate, partitions, pace.keys, record_cost, guarantee, COMMIT_MS)
    planned, _ = broker_load(costs, workload, 1, load)
    written = sum(counts.sent[client, "Produce"] for client in (PRODUCER, OURS))
    figures = {
        "written_mb_per_s": written / seconds / MB,
        "read_mb_per_s": (counts.received[OURS] + counts.received[READER]) / seconds / MB,
        "requests_per_s": sum(requests.values()),
    }
    return {
        "guarantee": guarantee,
        "records_per_s": pace.rate,
        "partitions": partitions,
        **{name: round(figure, 3) for name, figure in figures.items()},
        "planned": {name: round(getattr(planned, name), 3) for name in figures},
        "measured_to_planned": {
            name: round(figure / getattr(planned, name), 3) for name, figure in figures.items()
        },
        "requests": requests,
        "record_bytes": round(measured.record_bytes, 1),
        "answer_bytes": round(measured.answer_bytes, 1),
        "bytes_produced_per_record": {
            client or "producer": round(counts.sent[client, "Produce"] / seconds / pace.rate, 1)
            for client in (PRODUCER, OURS)
        },
        "seconds": round(seconds, 2),
        "load_average": round(os.getloadavg()[0], 1),
    }


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line (default: sys.argv)."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.broker_load", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--rates",
        type=number_within(int, 1),
        nargs="+",
        default=[500, 5_000, 20_000],
        help="records a second",
    )
    parser.add_argument("--partitions", type=number_within(int, 1), nargs="+", default=[8, 64])
    parser.add_argument("--guarantees", choices=GUARANTEES, nargs="+", default=list(GUARANTEES))
    parser.add_argument("--keys", type=number_within(int, 1), default=64)
    parser.add_argument("--seconds", type=number_within(float, 1.0), default=15.0, help="after the warm-up")
    parser.add_argument("--warm", type=number_within(float, 1.0), default=WARM_SECONDS, help="seconds before")
    parser.add_argument("--json", action="store_true", help="one line for each, as it is known")
    return parser.parse_args(words)


def main() -> int:
    flags = arguments()
    warm_kernels(TaskConfig(model_spec=spec("nba")).default_spec())
    with counted_broker() as (bootstrap, counter):
        for guarantee in flags.guarantees:
            for partitions in flags.partitions:
                for rate in flags.rates:
                    pace = Pace(flags.keys, rate, flags.seconds, warm_seconds=flags.warm)
                    measured = measure(bootstrap, counter, guarantee, partitions, pace)
                    line = line_of(measured, guarantee, partitions, pace)
                    print(json.dumps(line, indent=None if flags.json else 2), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
