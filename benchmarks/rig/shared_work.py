"""Shared work: a backlog that several workers with equal shares of a core process, and its figures."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.restart import Trial
from benchmarks.rig.core_share import core_share
from benchmarks.rig.keyed_load import KeyedLoad
from benchmarks.rig.member import Member
from benchmarks.rig.process import cpu_of_machine, peak_mib
from benchmarks.rig.visible import Cluster
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.worker_load import backlog_rate, record_us
from topics.definitions import TopicNames

MEASURED: Final = 0.95
"""Share of a backlog that is measured: at the end, more and more workers have nothing left."""
WARM_UP: Final = 40_000  # records a worker before it: shapes of records are learned, trees have grown
HALVINGS: Final = 60
COMMITS: Final = "grove_commit_seconds_count"
RUNS: Final = "grove_predict_seconds_count"


@dataclass(frozen=True)
class WorkerFigures:
    """One worker during a measurement."""

    models: int
    records: int
    """Processed in the measured time."""
    loads: tuple[int, ...]
    """Records of the backlog in each of its partitions."""
    cpu_seconds: float
    commits: float
    runs: float
    peak_mib: float
    """Largest resident set since its start."""


@dataclass(frozen=True)
class SharedWork:
    """The figures of one backlog."""

    seconds: float
    record_bytes: float
    share: float
    workers: tuple[WorkerFigures, ...]
    hottest_share: float
    partition_skew: float
    """The busiest partition beside the mean."""
    others_cores: float
    load_average: float

    @property
    def records(self) -> int:
        return sum(worker.records for worker in self.workers)

    @property
    def rate(self) -> float:
        return self.records / self.seconds

    @property
    def worker_skew(self) -> float:
        """The busiest worker beside the mean, by records of the backlog."""
        loads = [sum(worker.loads) for worker in self.workers]
        return max(loads) / statistics.mean(loads)

    def predicted_rate(self, costs: Costs, commit_ms: float) -> float:
        """Return the rate that the costs of `grove plan` lead to, for the same partitions and shares."""
        phases = []
        for worker in self.workers:
            record_cost = record_us(costs, self.record_bytes, worker.models)
            rate_of = partial(
                backlog_rate,
                costs,
                self.share,
                cpu_us=record_cost,
                commit_ms=commit_ms,
                record_bytes=self.record_bytes,
            )
            phases.append(phases_of(worker.loads, rate_of))
        seconds = seconds_until(phases, MEASURED)
        return MEASURED * sum(sum(worker.loads) for worker in self.workers) / seconds

    def to_dict(self) -> dict[str, Any]:
        """Return the printed figures."""
        used = [worker.cpu_seconds / self.seconds / self.share for worker in self.workers]
        return {
            "seconds": round(self.seconds, 2),
            "records": self.records,
            "records_per_second": round(self.rate),
            "records_per_second_a_worker": round(self.rate / len(self.workers)),
            "cpu_us_per_record": round(
                sum(worker.cpu_seconds for worker in self.workers) / self.records * 1e6, 3
            ),
            "share_used": {"least": round(min(used), 3), "most": round(max(used), 3)},
            "commits_per_second_a_worker": round(
                statistics.mean(worker.commits for worker in self.workers) / self.seconds, 2
            ),
            "records_per_run": round(self.records / max(1.0, sum(worker.runs for worker in self.workers))),
            "partitions_a_worker": [len(worker.loads) for worker in self.workers],
            "peak_mib_a_worker": round(max(worker.peak_mib for worker in self.workers)),
            "worker_skew": round(self.worker_skew, 3),
            "partition_skew": round(self.partition_skew, 3),
            "hottest_share": round(self.hottest_share, 4),
            "record_bytes": round(self.record_bytes, 1),
            "others_cores": round(self.others_cores, 2),
            "load_average": round(self.load_average, 1),
        }


Phase = tuple[float, float]
"""Records, and the rate at which a worker processes them, in records per second."""


def phases_of(loads: Sequence[int], rate_of: Callable[[int], float]) -> list[Phase]:
    """Return the phases of a worker's backlog, which has so many records in each partition.

    Partitions take turns, so that the smallest is empty first; `rate_of` returns the rate with as many
    partitions as still have records.
    """
    phases: list[Phase] = []
    ended = 0
    ordered = sorted(load for load in loads if load)
    for number, load in enumerate(ordered):
        active = len(ordered) - number
        if load > ended:
            phases.append(((load - ended) * active, rate_of(active)))
            ended = load
    return phases


def processed_at(phases: Sequence[Phase], seconds: float) -> float:
    """Return the records that a worker has processed after some seconds."""
    processed = 0.0
    for records, rate in phases:
        if records >= rate * seconds:
            return processed + rate * seconds
        processed, seconds = processed + records, seconds - records / rate
    return processed


def seconds_until(workers: Sequence[Sequence[Phase]], share: float) -> float:
    """Return when workers have processed `share` of their records; infinite if some have a rate of 0."""
    phases = [phase for worker in workers for phase in worker]
    if any(rate <= 0 for _, rate in phases):
        return math.inf
    target = share * sum(records for records, _ in phases)
    least, most = 0.0, max(sum(records / rate for records, rate in worker) for worker in workers)
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        if sum(processed_at(worker, middle) for worker in workers) < target:
            least = middle
        else:
            most = middle
    return most


def work_together(
    trial: Trial, cluster: Cluster, names: TopicNames, load: KeyedLoad, share: float, form: str
) -> SharedWork:
    """Let the workers of a trial process a load, each held to a share of a core; all of them are ready.

    They first see each key, equally often, so that no model is created while the clock runs.
    """
    topic, partitions = names.instances, load.partitions
    load.each_key(-(-WARM_UP * len(trial.members) // len(load.keys))).publish(cluster.bootstrap, topic, form)
    _await(trial, cluster, topic, sum(cluster.ends(topic, partitions)) - partitions)  # without markers
    before = cluster.ends(topic, partitions)
    commits, runs = counts_of(trial.members, COMMITS), counts_of(trial.members, RUNS)
    with ExitStack() as stack:
        for member in trial.members:
            stack.enter_context(core_share(member.pid, share))
        size = load.publish(cluster.bootstrap, topic, form)
        began, cpu = time.monotonic(), [member.cpu_seconds() for member in trial.members]
        others = _others(trial.members)
        target = sum(before) + int(MEASURED * len(load.key))
        offsets = _await(trial, cluster, topic, target)
        seconds = time.monotonic() - began
        cpu = [member.cpu_seconds() - first for member, first in zip(trial.members, cpu, strict=True)]
        others = _others(trial.members) - others
    processed = np.maximum(np.array(offsets) - np.array(before), 0)
    commits = counts_of(trial.members, COMMITS) - commits
    runs = counts_of(trial.members, RUNS) - runs
    by_partition = load.by_partition
    figures = []
    for member, spent, committed, ran in zip(
        trial.members, cpu, commits.tolist(), runs.tolist(), strict=True
    ):
        owned = sorted(member.owned())
        figures.append(
            WorkerFigures(
                models=int(np.isin(load.places, owned).sum()),
                records=int(processed[owned].sum()),
                loads=tuple(by_partition[owned].tolist()),
                cpu_seconds=spent,
                commits=committed,
                runs=ran,
                peak_mib=peak_mib(member.pid),
            )
        )
    return SharedWork(
        seconds=seconds,
        record_bytes=size,
        share=share,
        workers=tuple(figures),
        hottest_share=load.hottest_share,
        partition_skew=float(by_partition.max() / by_partition.mean()),
        others_cores=others / seconds,
        load_average=os.getloadavg()[0],
    )


def counts_of(members: Sequence[Member], name: str) -> npt.NDArray[np.float64]:
    """float64[workers]: a counter of each worker."""
    return np.array([member.metric(name) for member in members])


def _await(trial: Trial, cluster: Cluster, topic: str, target: int) -> list[int]:
    """Return the committed offsets once their sum is at least `target`."""
    offsets: list[int] = []

    def is_over() -> bool:
        offsets[:] = cluster.committed_offsets(trial.group, topic, trial.partitions)
        for member in trial.members:
            member.check()
        return sum(offsets) >= target

    trial.members[0].wait(is_over, f"and the other workers did not commit {target:,} offsets of {topic}")
    return offsets


def _others(members: Sequence[Member]) -> float:
    """Return the CPU seconds of all processes but the workers: broker, this program and other programs."""
    return cpu_of_machine() - sum(member.cpu_seconds() for member in members)
