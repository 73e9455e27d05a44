"""Passes over a backlog: set up, watched, checked, torn down; and what remains of several of them."""

from __future__ import annotations

import statistics
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.rig.accuracy import peer_labels, read, score, worker_labels
from benchmarks.rig.backlog import Backlog
from benchmarks.rig.measure import AnswerTopic, Committed, Pass, Progress, watch
from benchmarks.rig.process import Child, python
from benchmarks.rig.systems import OURS, Options, System, peer_job, worker_command, worker_environment
from benchmarks.rig.visible import Cluster
from topics.admin import create
from topics.definitions import TopicNames


@dataclass(frozen=True)
class Result:
    """The median pass of one system (by rate), and how far the passes lay apart."""

    system: str
    format: str
    keys: int
    headers: str
    rows: int
    repeats: int
    records_per_second: float
    slowest: float
    fastest: float
    cpu_seconds_per_million: float
    peak_mib: float
    start_seconds: float
    accuracy: float | None
    threads: dict[str, float]  # CPU seconds per million rows by thread name

    def to_dict(self) -> dict[str, Any]:
        return {name: _rounded(value) for name, value in asdict(self).items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return round(value, 4 if abs(value) < 10 else 1) if isinstance(value, float) else value


class Bench:
    """One broker, the topics of one measurement, and the backlog that lies on them."""

    backlog: Backlog

    def __init__(self, cluster: Cluster, names: TopicNames, options: Options) -> None:
        self.cluster = cluster
        self.names = names
        self.options = options

    def once(self, system: System, *, committed: bool = False) -> tuple[Pass, float | None]:
        """Let `system` go over the backlog once; return what it cost and how often it was right.

        `committed`: follow what its group has committed, not the answers: the ends of their topic count the
        markers of transactions too.
        """
        group = f"bench-{uuid.uuid4().hex[:8]}"
        rows = min(self.backlog.rows, system.most_rows or self.backlog.rows)
        with tempfile.TemporaryDirectory(prefix="grove-bench-") as state:
            if system.module is None:
                answers = AnswerTopic(self.cluster, self.names.predictions, self.backlog.partitions)
                child = self.worker(group, Path(state))
            else:
                sink = f"{self.names.prefix}{group}"
                self.cluster.create(sink, partitions=self.backlog.partitions, config=BLOCKS)
                answers = AnswerTopic(self.cluster, sink, self.backlog.partitions)
                job = peer_job(self.options, self.backlog, sink, group)
                child = Child(python(*job.command(system.module)), Path(state) / "log")
            per_answer = system.rows_per_answer(self.backlog)
            progress: Progress = answers
            if committed:
                backlog = self.backlog
                progress = Committed(self.cluster, group, backlog.topic, backlog.partitions)
            with child:
                cost = watch(child, progress, -(-rows // per_answer), per_answer)
            return cost, self._accuracy(system, answers)

    def worker(self, group: str, place: Path, **settings: str) -> Child:
        """Return our worker, to be started as member of a new group without any models.

        `settings`: further variables.
        """
        partitions = self.backlog.partitions
        self.cluster.delete(self.names.journal, self.names.snapshots)  # of the pass before
        create({"bootstrap.servers": self.options.bootstrap}, self.names, partitions, 1)
        environment = worker_environment(self.options, self.names, partitions, group, place / "state")
        return Child(worker_command(), place / "log", environment | settings)

    def _accuracy(self, system: System, answers: AnswerTopic) -> float | None:
        if not system.learns:
            return None
        values = read(self.options.bootstrap, answers)
        labels = worker_labels if system.name == OURS else peer_labels
        return score(self.backlog, [labels(part) for part in values])


BLOCKS = {"max.message.bytes": str(8 * 1024 * 1024)}


def measure(
    bench: Bench, systems: list[System], repeats: int, keys: int, said: Callable[[str], None]
) -> list[Result]:
    """Return the median of `repeats` passes of each system; they take turns and meet the same noise."""
    passes: dict[str, list[tuple[Pass, float | None]]] = {system.name: [] for system in systems}
    for number in range(repeats):
        for system in systems:
            cost, accuracy = bench.once(system)
            passes[system.name].append((cost, accuracy))
            said(f"{system.name}, pass {number + 1} of {repeats}: {cost.rows_per_second:,.0f} rows/s")
    return [median(bench, name, keys, found) for name, found in passes.items()]


def median(bench: Bench, name: str, keys: int, passes: list[tuple[Pass, float | None]]) -> Result:
    rates = sorted(cost.rows_per_second for cost, _ in passes)
    middle = statistics.median_low(rates)
    cost, accuracy = next(found for found in passes if found[0].rows_per_second == middle)
    return Result(
        system=name,
        format=bench.backlog.format,
        keys=keys,
        headers=bench.options.headers,
        rows=cost.rows,
        repeats=len(passes),
        records_per_second=middle,
        slowest=rates[0],
        fastest=rates[-1],
        cpu_seconds_per_million=statistics.median(cost.cpu_per_million for cost, _ in passes),
        peak_mib=max(cost.peak_mib for cost, _ in passes),
        start_seconds=cost.start_seconds,
        accuracy=accuracy,
        threads={thread: seconds / cost.rows * 1e6 for thread, seconds in cost.threads.items()},
    )
