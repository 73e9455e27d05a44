"""Time from handing over a record until a consumer sees its answer: ours and a bare echo's at once.

Both read the same topic while one process produces and this one consumes both outputs: what disturbs the one
disturbs the other. The clock is the machine's monotonic one, the same in all processes.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import orjson
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.peers.job import Job
from benchmarks.rig.measure import STALL_SECONDS, START_SECONDS
from benchmarks.rig.process import Child, python
from benchmarks.rig.systems import OURS, Options, worker_command, worker_environment
from benchmarks.rig.visible import Cluster
from topics.definitions import TopicNames

ECHO = "echo confluent-kafka"
WARM_SECONDS = 8.0  # not counted


@dataclass(frozen=True)
class Latency:
    """Percentiles in milliseconds over all answers after the warm-up; `guarantee`: of our worker."""

    system: str
    guarantee: str
    answers: int
    p50: float
    p99: float
    p999: float
    most: float
    cpu_seconds_per_million: float


def measure_latency(
    cluster: Cluster,
    names: TopicNames,
    options: Options,
    partitions: int,
    keys: int,
    rate: int,
    seconds: float,
) -> list[Latency]:
    """Return the latencies of our worker and of the echo at `rate` records per second."""
    group = f"bench-{uuid.uuid4().hex[:8]}"
    sink = f"{names.prefix}echo"
    cluster.create(sink, partitions=partitions)
    job = Job(
        options.bootstrap, names.instances, sink, f"{group}-echo", "json", options.leaf, low_latency=True
    )
    topics = {names.predictions: OURS, sink: ECHO}
    n = int(rate * (seconds + WARM_SECONDS))
    with TemporaryDirectory(prefix="grove-bench-") as place:
        log = Path(place)
        environment = worker_environment(options, names, partitions, group, log / "state")
        with (
            Child(worker_command(), log / "worker", environment) as worker,
            Child(python(*job.command("benchmarks.peers.echo_confluent")), log / "echo") as echo,
        ):
            children = {OURS: worker, ECHO: echo}
            consumer = open_outputs(options.bootstrap, list(topics), partitions)
            await_groups(cluster, children, {OURS: group, ECHO: f"{group}-echo"})
            before = {system: child.cpu_seconds() for system, child in children.items()}
            words = ["--bootstrap", options.bootstrap, "--topic", names.instances, "--rate", str(rate)]
            words += [
                "--seconds",
                str(seconds + WARM_SECONDS),
                "--keys",
                str(keys),
                "--partitions",
                str(partitions),
            ]
            with Child(python("-m", "benchmarks.rig.paced", *words), log / "paced"):
                seen = _observe(consumer, topics, n, children)
            spent = {system: child.cpu_seconds() - before[system] for system, child in children.items()}
    return [
        _percentiles(system, options.guarantee, times, spent[system] / n * 1e6)
        for system, times in seen.items()
    ]


def open_outputs(bootstrap: str, topics: list[str], partitions: int) -> Consumer:
    """Return a consumer of all of these topics, from their beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for topic in topics for p in range(partitions)])
    return consumer


def await_groups(cluster: Cluster, children: dict[str, Child], groups: dict[str, str]) -> None:
    """Return when both groups have a member with partitions: a start is not a latency."""
    deadline = time.monotonic() + START_SECONDS
    for system, group in groups.items():
        while not cluster.has_assignment(group):
            children[system].check()
            if time.monotonic() > deadline:
                raise children[system].failed(f"had no partitions after {START_SECONDS:.0f} s")
            time.sleep(0.1)


def _observe(
    consumer: Consumer, topics: dict[str, str], n: int, children: dict[str, Child]
) -> dict[str, list[tuple[int, int]]]:
    """Return (handed over, seen) in ns of every answer, by system, once both have answered n records."""
    seen: dict[str, list[tuple[int, int]]] = {system: [] for system in topics.values()}
    last = time.monotonic()
    while min(map(len, seen.values())) < n:
        message = consumer.poll(1.0)
        now = time.monotonic_ns()
        if message is None:
            for child in children.values():
                child.check()
            if time.monotonic() - last > STALL_SECONDS:
                silent = min(seen, key=lambda system: len(seen[system]))
                raise children[silent].failed(f"answered {len(seen[silent])} of {n} records")
            continue
        if message.error() is not None:
            raise KafkaException(message.error())
        topic, value = message.topic(), message.value()
        assert topic is not None and value is not None
        seen[topics[topic]].append((int(orjson.loads(value)["id"]), now))
        last = time.monotonic()
    consumer.close()
    return seen


def _percentiles(system: str, guarantee: str, times: list[tuple[int, int]], cpu: float) -> Latency:
    pairs = np.array(times)
    counted = pairs[pairs[:, 0] >= pairs[:, 0].min() + int(WARM_SECONDS * 1e9)]
    ms = (counted[:, 1] - counted[:, 0]) / 1e6
    p50, p99, p999 = np.percentile(ms, (50, 99, 99.9)).tolist()
    return Latency(system, guarantee, len(ms), p50, p99, p999, float(ms.max()), cpu)
