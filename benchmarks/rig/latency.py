"""Time from handing over a record until a consumer sees its answer: a system's and a bare echo's at once.

Both read the same topic while one process produces and this one consumes both outputs: what disturbs the one
disturbs the other. The clock is the machine's monotonic one, the same in all processes. Each system (our
worker, a peer) has a pass, topics and an echo of its own: two of them at once would be each other's load.
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

from benchmarks.peers.job import LINGER_MS
from benchmarks.rig.measure import STALL_SECONDS, START_SECONDS
from benchmarks.rig.process import Child, python
from benchmarks.rig.systems import (
    PEERS,
    Options,
    System,
    job_of,
    worker_command,
    worker_environment,
)
from benchmarks.rig.visible import Cluster
from topics.definitions import TopicNames

ECHO = PEERS["echo"][0]
WARM_SECONDS = 8.0  # not counted


@dataclass(frozen=True)
class Latency:
    """Percentiles in milliseconds over all answers after the warm-up."""

    system: str
    guarantee: str  # of the system, or of the one that the echo ran beside
    commit_ms: int  # the same
    answers: int
    p50: float
    p99: float
    p999: float
    most: float
    cpu_seconds_per_million: float
    p99_beyond_echo: float


@dataclass(frozen=True)
class Pace:
    """What is produced while latencies are taken."""

    keys: int
    rate: int  # records per second
    seconds: float  # after the warm-up
    linger_ms: float = LINGER_MS  # of the producer, the echo and the peers; ours has its own

    @property
    def all_seconds(self) -> float:
        return self.seconds + WARM_SECONDS

    @property
    def records(self) -> int:
        return int(self.rate * self.all_seconds)

    def command(self, bootstrap: str, topic: str, partitions: int) -> list[str]:
        words = {
            "bootstrap": bootstrap,
            "topic": topic,
            "rate": self.rate,
            "seconds": self.all_seconds,
            "keys": self.keys,
            "partitions": partitions,
            "linger-ms": self.linger_ms,
        }
        given = [word for name, value in words.items() for word in (f"--{name}", str(value))]
        return python("-m", "benchmarks.rig.paced", *given)


def measure_latency(
    cluster: Cluster, names: TopicNames, options: Options, system: System, partitions: int, pace: Pace
) -> list[Latency]:
    """Return the latencies of a system and of the echo that ran beside it, on new topics."""
    groups = {system.name: f"bench-{uuid.uuid4().hex[:8]}", ECHO.name: f"bench-{uuid.uuid4().hex[:8]}"}
    sinks = {system.name: names.predictions, ECHO.name: f"{names.prefix}echo"}
    cluster.create(sinks[ECHO.name], partitions=partitions)
    with TemporaryDirectory(prefix="grove-bench-") as place:
        log = Path(place)

        def start(which: System) -> Child:
            group, sink = groups[which.name], sinks[which.name]
            job = job_of(
                options, names.instances, sink, group, "json", low_latency=True, linger_ms=pace.linger_ms
            )
            if which.command is not None:
                return Child(which.command(job, log), log / f"{group}.log")
            environment = worker_environment(options, names, partitions, group, log / "state")
            return Child(worker_command(), log / f"{group}.log", environment)

        with start(system) as ours, start(ECHO) as echo:
            children = {system.name: ours, ECHO.name: echo}
            consumer = open_outputs(options.bootstrap, list(sinks.values()), partitions)
            await_groups(cluster, children, groups)
            before = {name: child.cpu_seconds() for name, child in children.items()}
            topics = {sink: name for name, sink in sinks.items()}
            with Child(pace.command(options.bootstrap, names.instances, partitions), log / "paced"):
                seen = _observe(consumer, topics, pace.records, children)
            spent = {name: child.cpu_seconds() - before[name] for name, child in children.items()}
    ms = {name: _milliseconds(times) for name, times in seen.items()}
    p99_of_echo = _percentile(ms[ECHO.name], 99)
    return [
        Latency(
            name,
            options.guarantee,
            options.commit_ms,
            len(found),
            p50=_percentile(found, 50),
            p99=_percentile(found, 99),
            p999=_percentile(found, 99.9),
            most=float(found.max()),
            cpu_seconds_per_million=spent[name] / pace.records * 1e6,
            p99_beyond_echo=_percentile(found, 99) - p99_of_echo,
        )
        for name, found in ms.items()
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


def _milliseconds(times: list[tuple[int, int]]) -> np.ndarray:
    """Return how long each answer took that was asked for after the warm-up."""
    pairs = np.array(times)
    counted = pairs[pairs[:, 0] >= pairs[:, 0].min() + int(WARM_SECONDS * 1e9)]
    return np.asarray((counted[:, 1] - counted[:, 0]) / 1e6)


def _percentile(found: np.ndarray, percent: float) -> float:
    return float(np.percentile(found, percent))
