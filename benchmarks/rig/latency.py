"""Latency: time from when a record is due until a consumer sees its answer, for a system and a bare echo.

One process produces by a schedule (steady.py). The echo answers one partition of the same topic: it shows
common disturbances and adds little load itself. This process consumes both outputs, whole fetches at a time.
The clock is the machine's monotonic one, the same in all processes. Each system (our worker, a peer) has its
own pass, topics and echo, because two systems at once would be each other's load. The output also has, for
the same seconds, the load of each process, of other programs and of the host, and on request the time of a
record in each part of our worker (traced.py).
"""

from __future__ import annotations

import gc
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import orjson
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.peers.job import LINGER_MS, Job
from benchmarks.rig.load import Look, Machine, broker_process, load_between, threads_between
from benchmarks.rig.measure import STALL_SECONDS, START_SECONDS
from benchmarks.rig.process import Child, python
from benchmarks.rig.stream import model_keys
from benchmarks.rig.systems import PEERS, Options, System, job_of, worker_command, worker_environment
from benchmarks.rig.traced import means
from benchmarks.rig.visible import Cluster
from topics.clients.partitioner import partition_of
from topics.definitions import TopicNames

ECHO = PEERS["echo"][0]
WARM_SECONDS = 30.0  # not counted: a new broker compiles its own code during this time
ASIDE_SECONDS = 1.0  # a check stops reading for some milliseconds, so it is made while no answers count
READ_MOST = 10_000
READER = "reader"
"""Name of the client that reads the outputs."""


@dataclass(frozen=True)
class Latency:
    """Percentiles in milliseconds over the counted answers, and figures that explain them."""

    system: str
    guarantee: str  # guarantee of the system, or of the system beside the echo
    commit_ms: int  # commit interval of the system, or of the system beside the echo
    answers: int
    p50: float
    p99: float
    p999: float
    most: float
    mean: float
    cpu_seconds_per_million: float  # records of its input
    p99_beyond_echo: float = 0.0
    load: dict[str, float] = field(default_factory=dict)
    """Shares of a core by process, of other programs, stolen and idle; the load average of a minute."""
    threads: dict[str, float] = field(default_factory=dict)
    """Shares of a core by thread of the system."""
    ages: dict[str, float] = field(default_factory=dict)
    """Mean ms since its timestamp, by the station of a record in our worker."""
    spent: dict[str, dict[str, float]] = field(default_factory=dict)
    """Calls per second and mean ms, by the activity in our worker."""


@dataclass(frozen=True)
class Pace:
    """The load while latencies are measured."""

    keys: int
    rate: int  # records per second
    seconds: float  # after the warm-up
    linger_ms: float = LINGER_MS  # of the producer, the echo and the peers; our worker has its own
    warm_seconds: float = WARM_SECONDS

    @property
    def all_seconds(self) -> float:
        """Seconds of the warm-up, of the measurement, and of a rest for its last answers."""
        return self.warm_seconds + self.seconds + ASIDE_SECONDS

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
        arguments = [word for name, value in words.items() for word in (f"--{name}", str(value))]
        return python("-m", "benchmarks.rig.steady", *arguments)


def measure_latency(
    cluster: Cluster,
    names: TopicNames,
    options: Options,
    system: System,
    partitions: int,
    pace: Pace,
    *,
    trace: bool = False,
) -> list[Latency]:
    """Return the latencies of a system and of the echo that ran beside it, on new topics.

    With `trace` our worker measures times inside, which costs it a little.
    """
    sink, echoed = names.predictions, f"{names.prefix}echo"
    cluster.create(echoed, partitions=partitions)
    heard = partition_of(model_keys(pace.keys, partitions)[0].encode(), partitions)
    with TemporaryDirectory(prefix="grove-bench-") as place:
        log = Path(place)
        traced = log / "trace" if trace and system.command is None else None
        job = job_of(
            options, names.instances, sink, new_group(), "json", low_latency=True, linger_ms=pace.linger_ms
        )
        ours = Child(*_command(system, job, options, names, partitions, log, traced))
        assert ECHO.command is not None
        of_echo = replace(job, sink=echoed, group=new_group(), partition=heard)
        with ours, Child(ECHO.command(of_echo, log), log / "echo.log") as echo:
            children = {system.name: ours, ECHO.name: echo}
            await_groups(cluster, children, {system.name: job.group})
            consumer = open_outputs(options.bootstrap, [sink, echoed], partitions)
            reader = Reader(consumer, {sink: system.name, echoed: ECHO.name}, children)
            with Child(
                pace.command(options.bootstrap, names.instances, partitions), log / "steady"
            ) as steady:
                start = start_of(steady, log / "steady")
                machine = Machine(broker_process(options.bootstrap))
                pids = {"system": ours.pid, "echo": echo.pid, "producer": steady.pid}
                reader.until(start + pace.warm_seconds - ASIDE_SECONDS)
                first = machine.look(pids, ours.pid)
                reader.until(start + pace.all_seconds)
                last = machine.look(pids, ours.pid)
                reader.read({system.name: pace.records})
            reader.read({ECHO.name: cluster.ends(names.instances, partitions)[heard]})
            consumer.close()
        warm = start + pace.warm_seconds
        counted = warm, warm + pace.seconds
        ages, spent = means(traced.read_text(), *counted) if traced is not None else ({}, {})
    ms = {name: _milliseconds(answers, *counted, start) for name, answers in reader.seen.items()}
    records = pace.rate * (last.at - first.at)
    latencies = [
        _summary(system.name, options, ms[system.name], first, last, "system", records),
        _summary(ECHO.name, options, ms[ECHO.name], first, last, "echo", records * _share(ms, system.name)),
    ]
    load, threads = load_between(first, last), threads_between(first, last)
    load["load average"] = round(os.getloadavg()[0], 1)
    latencies[0] = replace(latencies[0], load=load, threads=threads, ages=ages, spent=spent)
    return [replace(latency, p99_beyond_echo=latency.p99 - latencies[1].p99) for latency in latencies]


def new_group() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"


def _command(
    system: System,
    job: Job,
    options: Options,
    names: TopicNames,
    partitions: int,
    log: Path,
    traced: Path | None,
) -> tuple[list[str], Path, dict[str, str]]:
    """Return the command, log and environment that start a system."""
    file = log / "system.log"
    if system.command is not None:
        return system.command(job, log), file, {}
    command = worker_command()
    if traced is not None:
        command = python("-m", "benchmarks.rig.traced", str(traced), names.instances, "worker")
    return command, file, worker_environment(options, names, partitions, job.group, log / "state")


def _share(ms: dict[str, np.ndarray], system: str) -> float:
    """Return the echo's share of the records that the system reads."""
    return len(ms[ECHO.name]) / len(ms[system])


def _summary(
    name: str, options: Options, ms: np.ndarray, first: Look, last: Look, process: str, records: float
) -> Latency:
    """`records` is the number of input records between both checks."""
    return Latency(
        name,
        options.guarantee,
        options.commit_ms,
        len(ms),
        p50=_percentile(ms, 50),
        p99=_percentile(ms, 99),
        p999=_percentile(ms, 99.9),
        most=float(ms.max()),
        mean=float(ms.mean()),
        cpu_seconds_per_million=(last.processes[process] - first.processes[process]) / records * 1e6,
    )


def open_outputs(bootstrap: str, topics: list[str], partitions: int) -> Consumer:
    """Return a consumer of all of these topics, from their beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "client.id": READER,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for topic in topics for p in range(partitions)])
    return consumer


def await_groups(cluster: Cluster, children: dict[str, Child], groups: dict[str, str]) -> None:
    """Return when all groups have a member with partitions, so that the start does not count as latency."""
    deadline = time.monotonic() + START_SECONDS
    for system, group in groups.items():
        while not cluster.has_assignment(group):
            children[system].check()
            if time.monotonic() > deadline:
                raise children[system].failed(f"had no partitions after {START_SECONDS:.0f} s")
            time.sleep(0.1)


class Reader:
    """Receives answers with as little work as possible: their content is decoded later."""

    def __init__(self, consumer: Consumer, systems: dict[str, str], children: dict[str, Child]) -> None:
        """`systems` maps output topics to systems, `children` systems to processes."""
        self._consumer = consumer
        self._systems = systems
        self._children = children
        self._last = time.monotonic()
        self.seen: dict[str, list[tuple[bytes, int]]] = {name: [] for name in systems.values()}
        """For each answer its value, and when it was seen, in ns."""
        gc.freeze()  # imported objects are not searched for garbage while answers come

    def until(self, moment: float) -> None:
        """Read up to a moment of the monotonic clock."""
        while (seconds_left := moment - time.monotonic()) > 0:
            self._read(min(seconds_left, 1.0))

    def read(self, counts: Mapping[str, int]) -> None:
        """Read until each system has this many answers."""
        while any(len(self.seen[name]) < n for name, n in counts.items()):
            self._read(1.0)
            if time.monotonic() - self._last > STALL_SECONDS:
                name = min(counts, key=lambda name: len(self.seen[name]) - counts[name])
                raise self._children[name].failed(
                    f"answered {len(self.seen[name])} of {counts[name]} records"
                )

    def _read(self, wait_s: float) -> None:
        """Wait for an answer, and take all that have come with it."""
        message = self._consumer.poll(wait_s)
        if message is None:
            for child in self._children.values():
                child.check()
            return
        messages = [message, *self._consumer.consume(READ_MOST, 0)]
        now = time.monotonic_ns()
        for answer in messages:
            if (error := answer.error()) is not None:
                raise KafkaException(error)
            topic, value = answer.topic(), answer.value()
            assert topic is not None and value is not None
            self.seen[self._systems[topic]].append((value, now))
        self._last = time.monotonic()


def start_of(producer: Child, start_file: Path) -> float:
    """Return when the first record is due, once the producer has written it."""
    deadline = time.monotonic() + START_SECONDS
    while not (text := start_file.read_text()).endswith("\n"):
        producer.check()
        if time.monotonic() > deadline:
            raise producer.failed(f"had not begun after {START_SECONDS:.0f} s")
        time.sleep(0.05)  # there is no event for a written file
    return int(text) / 1e9


def _milliseconds(answers: list[tuple[bytes, int]], first: float, end: float, start: float) -> np.ndarray:
    """Return the latency of each answer whose record was due from `first` to before `end`.

    All three times are in seconds of the monotonic clock.
    """
    due = np.array([int(orjson.loads(value)["id"]) for value, _ in answers])
    took = np.array([seen for _, seen in answers]) - due - round(start * 1e9)
    counts = (due >= round((first - start) * 1e9)) & (due < round((end - start) * 1e9))
    return np.asarray(took[counts] / 1e6)


def _percentile(milliseconds: np.ndarray, percent: float) -> float:
    return float(np.percentile(milliseconds, percent))
