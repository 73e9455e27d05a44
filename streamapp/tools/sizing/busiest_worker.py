"""Busiest worker: its share of records, models and partitions, and the load that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from streamapp.tools.sizing.calculation_steps import number as n
from streamapp.tools.sizing.calculation_steps import step
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.worker_load import (
    MANY_MODELS,
    WorkerLoad,
    changed_models,
    load_of,
    record_us,
)
from streamapp.tools.sizing.workload import Workload
from streamapp.tools.sizing.zipf_shares import PLACEMENTS, largest_zipf_share

LEAST_PARTITIONS: Final = 8
PARTITIONS_PER_WORKER: Final = 4
"""Partitions of a worker at least, so that the number of workers can be doubled twice without a migration."""


@dataclass(frozen=True)
class BusiestWorker:
    """The worker with the largest share of all records."""

    workers: int
    partitions: int
    """Partitions of each topic."""
    held: int
    """Partitions of this worker."""
    models: float
    share: float
    rate: float
    """Records per second."""
    load: WorkerLoad

    def steps(self, costs: Costs, workload: Workload) -> list[str]:
        """Return the derivation of its load."""
        load, workers = self.load, self.workers
        return [
            step(
                "partitions: the power of two from 4 a worker and 8 on",
                f"{self.partitions}",
                self.partitions,
                "partitions",
            ),
            step(
                "partitions of a worker, rounded up",
                f"{self.partitions} ÷ {workers}",
                self.partitions / workers,
                f"→ {self.held}",
            ),
            self._records_step(workload),
            step(
                "records of the busiest worker",
                f"{n(workload.rate)} × {n(self.share)}",
                self.rate,
                "records/s",
            ),
            _share_step("largest share of models on a worker", workload, workers, 0.0),
            step(
                "models of that worker",
                f"{workload.models:,} × {n(self.models / workload.models)}",
                self.models,
                "models",
            ),
            step(
                "CPU of a record: fixed, by bytes, by models (at most 10,000)",
                f"{n(costs.record_us)} + {n(costs.byte_ns)} × {n(workload.record_bytes)} ÷ 1,000 + "
                f"{n(costs.many_models_us)} × {n(min(self.models, MANY_MODELS))} ÷ {n(MANY_MODELS)}",
                load.record_us,
                "µs",
            ),
            step("CPU of the records", f"{n(self.rate)} × {n(load.record_us)}", load.records, "µs/s"),
            step(
                f"CPU of {n(load.rounds_per_second)} rounds a second of {n(load.runs_per_round)} runs",
                f"{n(load.rounds_per_second)} × ({n(costs.round_us)} + {n(costs.run_us)} × "
                f"{n(load.runs_per_round)})",
                load.rounds,
                "µs/s",
            ),
            step(
                f"CPU of {n(load.commits_per_second)} commits a second of {n(load.partitions_per_commit)} "
                "partitions",
                f"{n(load.commits_per_second)} × ({n(costs.commit_us)} + {n(costs.commit_partition_us)} × "
                f"{n(load.partitions_per_commit)})",
                load.commits,
                "µs/s",
            ),
            step(
                f"CPU of a snapshot every {n(costs.snapshot_seconds)} s, of the models that learned since",
                f"{n(changed_models(costs, self.rate, self.models))} × {n(costs.model_bytes)} ÷ 1,000,000 × "
                f"{n(costs.snapshot_us_per_mb)} ÷ {n(costs.snapshot_seconds)}",
                load.snapshots,
                "µs/s",
            ),
            step(
                "cores of the busiest worker",
                f"({n(load.records)} + {n(load.rounds)} + {n(load.commits)} + {n(load.snapshots)} + "
                f"{n(load.idle)}) ÷ 1,000,000",
                load.cores,
                "cores",
            ),
        ]

    def _records_step(self, workload: Workload) -> str:
        label = "share of records of the busiest worker"
        if workload.zipf is None or self.workers == 1:
            return _share_step(label, workload, self.workers, workload.hottest_share)
        hottest = workload.hottest_share
        return step(
            f"{label}, mean of {PLACEMENTS} drawn placements of keys by Zipf's law: hottest and others",
            f"{n(hottest)} + {n(self.share - hottest)}",
            self.share,
            "of all",
        )


def busiest_worker(costs: Costs, workload: Workload, workers: int, commit_ms: float) -> BusiestWorker:
    """Return the busiest of so many workers."""
    partitions = partitions_for(workers)
    partitions_held = -(-partitions // workers)
    if workload.zipf is None:
        share = largest_share(workers, workload.models, workload.hottest_share)
    else:
        share = largest_zipf_share(workers, workload.models, workload.zipf)
    models = workload.models * largest_share(workers, workload.models, 0.0)
    rate = workload.rate * share
    load = load_of(
        costs,
        rate,
        min(partitions_held, workload.models),
        models,
        record_us(costs, workload.record_bytes, models),
        workload.guarantee,
        commit_ms,
    )
    return BusiestWorker(workers, partitions, partitions_held, models, share, rate, load)


def least_load_of_hottest(costs: Costs, workload: Workload, commit_ms: float) -> tuple[float, WorkerLoad]:
    """Return the CPU of a record in µs, and the load of a worker with only the records of the hottest model.

    Rounds and commits of the further partitions count, which any worker has.
    """
    record_cost = record_us(costs, workload.record_bytes, 1)
    partitions_held = min(PARTITIONS_PER_WORKER * 2, workload.models)
    hottest = workload.rate * workload.hottest_share
    return record_cost, load_of(
        costs, hottest, partitions_held, 1, record_cost, workload.guarantee, commit_ms
    )


def partitions_for(workers: int) -> int:
    """Return the partitions to create for so many workers."""
    return max(LEAST_PARTITIONS, 1 << (PARTITIONS_PER_WORKER * workers - 1).bit_length())


def largest_share(workers: int, models: int, hottest: float) -> float:
    """Return the largest share that one of some workers has.

    It has the hottest model, and of all other models its part of the mean and the excess that is expected of
    the largest of `workers` Poisson numbers: sqrt(2 · ln workers / (workers · models)).
    """
    if workers == 1:
        return 1.0
    excess = math.sqrt(2.0 * math.log(workers) / (workers * models))
    return min(1.0, hottest + (1.0 - hottest) * (1.0 / workers + excess))


def _share_step(label: str, workload: Workload, workers: int, hottest: float) -> str:
    share = largest_share(workers, workload.models, hottest)
    if workers == 1:
        return step(label, "1", share, "of all")
    spread = f"1 ÷ {workers} + √(2 × ln {workers} ÷ ({workers} × {workload.models}))"
    if hottest:
        spread = f"{n(hottest)} + (1 - {n(hottest)}) × ({spread})"
    return step(f"{label}, at most 1", spread, share, "of all")
