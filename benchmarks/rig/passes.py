"""Passes over a backlog: set-up, measurement, check, tear-down, and the summary of several passes."""

from __future__ import annotations

import statistics
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.rig.accuracy import peer_labels, read, score, worker_labels
from benchmarks.rig.backlog import Backlog
from benchmarks.rig.measure import AnswerTopic, Committed, Pass, Progress, watch
from benchmarks.rig.process import Child
from benchmarks.rig.systems import Options, System, peer_job, worker_command, worker_environment
from benchmarks.rig.visible import Cluster
from topics.clients.admin import create
from topics.definitions import TopicNames


@dataclass(frozen=True)
class Result:
    """The median pass of one system (by rate), and the spread of the passes."""

    system: str
    format: str
    keys: int
    headers: str
    rows: int
    repeats: int
    guarantee: str
    records_per_second: float
    slowest: float
    fastest: float
    last_quarter_records_per_second: float | None
    """Over the rows after the first three quarters, when everything is warm. None: too few rows."""
    cpu_seconds_per_million: float
    last_quarter_cpu_seconds_per_million: float | None
    peak_mib: float
    start_seconds: float
    accuracy: float | None
    threads: dict[str, float]  # CPU seconds per million rows by thread name
    passes: list[dict[str, float | None]]
    """Each single pass, with the use of the machine by other programs during it."""

    def to_dict(self) -> dict[str, Any]:
        return {name: _rounded(value) for name, value in asdict(self).items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 4 if abs(value) < 10 else 1) if isinstance(value, float) else value


@dataclass(frozen=True)
class Running:
    """A system that processes the backlog, and its progress in two measures."""

    child: Child
    answers: AnswerTopic
    committed: Committed


class Bench:
    """One broker, the topics of one measurement, and the backlog that lies on them."""

    backlog: Backlog

    def __init__(self, cluster: Cluster, names: TopicNames, options: Options) -> None:
        self.cluster = cluster
        self.names = names
        self.options = options

    def once(self, system: System, *, committed: bool = False) -> tuple[Pass, float | None]:
        """Let `system` process the backlog once; return the cost and the accuracy.

        With `committed`, progress is what the group has committed, not the answers, because the ends of their
        topic include markers of transactions.
        """
        rows = min(self.backlog.rows, system.most_rows or self.backlog.rows)
        per_answer = system.rows_per_answer(self.backlog)
        with self.start(system) as running:
            progress: Progress = running.committed if committed else running.answers
            cost = watch(running.child, progress, -(-rows // per_answer), per_answer)
        return cost, self._accuracy(system, running.answers)

    @contextmanager
    def start(self, system: System) -> Iterator[Running]:
        """Start `system` over the backlog, as a new group; it ends with the `with` block."""
        group = f"bench-{uuid.uuid4().hex[:8]}"
        backlog = self.backlog
        with tempfile.TemporaryDirectory(prefix="grove-bench-") as name:
            place = Path(name)
            sink = self.names.predictions
            if system.command is None:
                child = self.worker(group, place)
            else:
                sink = f"{self.names.prefix}{group}"
                self.cluster.create(sink, partitions=backlog.partitions, config=BLOCKS)
                job = peer_job(self.options, backlog, sink, group)
                child = Child(system.command(job, place / "state"), place / "log")
            answers = AnswerTopic(self.cluster, sink, backlog.partitions)
            committed = Committed(self.cluster, group, backlog.topic, backlog.partitions)
            with child:
                yield Running(child, answers, committed)

    def worker(self, group: str, place: Path, **settings: str) -> Child:
        """Return our worker, to be started as a member of a new group without any models.

        `settings` are further variables.
        """
        partitions = self.backlog.partitions
        self.cluster.delete(self.names.journal, self.names.snapshots)  # left by the previous pass
        create({"bootstrap.servers": self.options.bootstrap}, self.names, partitions, 1)
        environment = worker_environment(self.options, self.names, partitions, group, place / "state")
        return Child(worker_command(), place / "log", environment | settings)

    def _accuracy(self, system: System, answers: AnswerTopic) -> float | None:
        if not system.learns:
            return None
        values = read(self.options.bootstrap, answers)
        labels = peer_labels if system.own_answers else worker_labels
        return score(self.backlog, [labels(part) for part in values])


BLOCKS = {"max.message.bytes": str(8 * 1024 * 1024)}


def measure(
    benches: list[Bench], systems: list[System], repeats: int, keys: int, progress: Callable[[str], None]
) -> list[Result]:
    """Return the median of `repeats` passes of each system over each backlog.

    Systems and backlogs take turns, so that they meet the same noise.
    """
    pairs = [(bench, system) for bench in benches for system in systems]
    passes: list[list[tuple[Pass, float | None]]] = [[] for _ in pairs]
    for number in range(repeats):
        for (bench, system), passes_of in zip(pairs, passes, strict=True):
            cost, accuracy = bench.once(system)
            passes_of.append((cost, accuracy))
            progress(
                f"{system.name}, {bench.backlog.format}, pass {number + 1} of {repeats}: {in_words(cost)}"
            )
    return [
        median(bench, system.name, keys, passes_of)
        for (bench, system), passes_of in zip(pairs, passes, strict=True)
    ]


def in_words(cost: Pass) -> str:
    """Return the progress line of a pass."""
    text = f"{cost.rows_per_second:,.0f} rows/s, {cost.cpu_per_million:.2f} CPU s per million"
    if cost.last_quarter is not None:
        last = cost.last_quarter
        text += f", last quarter {last.rows_per_second:,.0f} and {last.cpu_per_million:.2f}"
    return f"{text}; others used {cost.others_cores:.2f} cores, load {cost.load_average:.1f}"


def by_itself(cost: Pass) -> dict[str, float | None]:
    """Return the printed figures of one pass."""
    last = cost.last_quarter
    return {
        "records_per_second": cost.rows_per_second,
        "last_quarter_records_per_second": None if last is None else last.rows_per_second,
        "cpu_seconds_per_million": cost.cpu_per_million,
        "last_quarter_cpu_seconds_per_million": None if last is None else last.cpu_per_million,
        "others_cores": cost.others_cores,
        "load_average": cost.load_average,
    }


def median(bench: Bench, name: str, keys: int, passes: list[tuple[Pass, float | None]]) -> Result:
    rates = sorted(cost.rows_per_second for cost, _ in passes)
    middle = statistics.median_low(rates)
    cost, accuracy = next(one_pass for one_pass in passes if one_pass[0].rows_per_second == middle)
    last = [one_pass.last_quarter for one_pass, _ in passes if one_pass.last_quarter is not None]
    return Result(
        system=name,
        format=bench.backlog.format,
        keys=keys,
        headers=bench.options.headers,
        rows=cost.rows,
        repeats=len(passes),
        guarantee=bench.options.guarantee,
        records_per_second=middle,
        slowest=rates[0],
        fastest=rates[-1],
        last_quarter_records_per_second=statistics.median(c.rows_per_second for c in last) if last else None,
        cpu_seconds_per_million=statistics.median(cost.cpu_per_million for cost, _ in passes),
        last_quarter_cpu_seconds_per_million=(
            statistics.median(c.cpu_per_million for c in last) if last else None
        ),
        peak_mib=max(cost.peak_mib for cost, _ in passes),
        start_seconds=cost.start_seconds,
        accuracy=accuracy,
        threads={thread: seconds / cost.rows * 1e6 for thread, seconds in cost.threads.items()},
        passes=[by_itself(cost) for cost, _ in passes],
    )
