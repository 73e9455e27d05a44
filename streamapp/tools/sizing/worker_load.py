"""Load of a worker: CPU for records, rounds and commits, and the records for which a core is enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamapp.tools.sizing.measured_costs import Costs

SECOND_US = 1_000_000.0
SECOND_MS = 1_000.0
FETCH_BYTES = 1 << 20
"""Bytes of a partition in one fetch (`max.partition.fetch.bytes`)."""
RUN_MS = 12.0
"""CPU of a run in a backlog: below 8 ms runs grow, above 16 they shrink (`worker.transport.run_size`)."""
PAUSE_MS = 100.0
"""Longest pause of fetches before a commit (streamapp/worker/driver/pace.py)."""


@dataclass(frozen=True)
class WorkerLoad:
    """CPU of one worker in µs a second, by cause."""

    record_us: float
    """CPU of one record in µs."""
    records: float
    rounds: float
    commits: float
    snapshots: float
    idle: float
    rounds_per_second: float
    runs_per_round: float
    commits_per_second: float
    partitions_per_commit: float
    most_rounds_per_second: float
    """With CPU to spare: at least once more than `rounds_per_second`, up to `Costs.fetch_cores`."""
    runs_per_short_round: float
    """Of each of so many rounds."""

    @property
    def cores(self) -> float:
        return self.us_per_second / SECOND_US

    @property
    def us_per_second(self) -> float:
        return self.records + self.fixed

    @property
    def fixed(self) -> float:
        """CPU in µs a second besides the records."""
        return self.rounds + self.commits + self.snapshots + self.idle


MANY_MODELS = 10_000.0
"""Models from which on nearly each record finds its model outside the caches of the processor."""


def record_us(costs: Costs, record_bytes: float, models: float) -> float:
    """Return the CPU of a record in µs on a worker with so many models."""
    many = costs.many_models_us * min(1.0, models / MANY_MODELS)
    return costs.record_us + costs.byte_ns * record_bytes / 1_000.0 + many


def load_of(
    costs: Costs,
    rate: float,
    partitions: float,
    models: float,
    cpu_us: float,
    guarantee: str,
    commit_ms: float,
) -> WorkerLoad:
    """Return the load of a worker that gets `rate` records a second, of `cpu_us` each, in so many partitions.

    `models` are those of the worker: each model that learns is in the next snapshot.

    Exactly once, a round comes before each commit, and after `PAUSE_MS` at the latest. At least once, the
    load is that of the fewest rounds, to which a busy worker comes back: one with CPU to spare has more of
    them, up to `Costs.fetch_cores`. A partition without new records takes no part in a round or commit.
    """
    commits = min(rate, SECOND_MS / commit_ms)
    paced = costs.pace_ms if guarantee == "at_least_once" else min(commit_ms, PAUSE_MS)
    rounds = min(rate, SECOND_MS / paced)
    runs, parts = min(partitions, rate / rounds), min(partitions, rate / commits)
    load = WorkerLoad(
        record_us=cpu_us,
        records=rate * cpu_us,
        rounds=rounds * (costs.round_us + costs.run_us * runs),
        commits=commits * (costs.commit_us + costs.commit_partition_us * parts),
        snapshots=changed_models(costs, rate, models)
        * (costs.model_bytes / 1e6)
        * costs.snapshot_us_per_mb
        / costs.snapshot_seconds,
        idle=costs.idle_us,
        rounds_per_second=rounds,
        runs_per_round=runs,
        commits_per_second=commits,
        partitions_per_commit=parts,
        most_rounds_per_second=rounds,
        runs_per_short_round=runs,
    )
    if guarantee == "exactly_once":
        return load
    most = _most_rounds(costs, load, rate, partitions)
    return replace(load, most_rounds_per_second=most, runs_per_short_round=min(partitions, rate / most))


def _most_rounds(costs: Costs, load: WorkerLoad, rate: float, partitions: float) -> float:
    """Return the rounds a second for which the CPU up to `Costs.fetch_cores` is enough.

    A round has a run of each partition, or of each record if it has fewer records than partitions.
    """
    remaining_us = costs.fetch_cores * SECOND_US - load.us_per_second + load.rounds
    with_all = remaining_us / (costs.short_round_us + costs.run_us * partitions)
    with_few = (remaining_us - costs.run_us * rate) / costs.short_round_us
    return min(rate, max(load.rounds_per_second, with_all, with_few))


def changed_models(costs: Costs, rate: float, models: float) -> float:
    """Return how many of a worker's models learn between two snapshots, if all are equally frequent."""
    return min(models, rate * costs.snapshot_seconds)


def records_per_run(record_bytes: float, cpu_us: float) -> float:
    """Return the records of a partition in a round of a backlog, each of which takes `cpu_us`."""
    return max(1.0, min(RUN_MS * 1_000.0 / cpu_us, FETCH_BYTES / record_bytes))


def backlog_rate(
    costs: Costs, cores: float, partitions: float, cpu_us: float, commit_ms: float, record_bytes: float
) -> float:
    """Return the records per second, of `cpu_us` each, of a worker that spends `cores` on a backlog.

    `partitions` are those that have records. A round has one run of each, so that a single hot partition pays
    for a round with each of its runs. A commit interval is at least twice the last commit, so commits take
    half of the time at most.
    """
    commit_us = costs.commit_us + costs.commit_partition_us * partitions
    interval_us = max(commit_ms * 1_000.0, 2.0 * commit_us / cores)
    remaining_us = cores * SECOND_US - costs.idle_us - commit_us * SECOND_US / interval_us
    round_us = costs.round_us + costs.run_us * partitions
    records = partitions * records_per_run(record_bytes, cpu_us)
    return max(0.0, remaining_us / (cpu_us + round_us / records))
