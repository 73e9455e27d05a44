"""Sizing plan: the fewest workers that process a workload in time, and the steps that lead to this number."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from streamapp.errors import StreamappError
from streamapp.settings.settings_model import Settings
from streamapp.tools.sizing.broker_load import BrokerLoad, broker_load
from streamapp.tools.sizing.busiest_worker import BusiestWorker, busiest_worker, least_load_of_hottest
from streamapp.tools.sizing.calculation_steps import number as n
from streamapp.tools.sizing.calculation_steps import step
from streamapp.tools.sizing.delays import Delay, delay_of
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.worker_load import SECOND_US
from streamapp.tools.sizing.workload import Workload
from streamapp.worker.observability.cgroup_memory import CALM

MB: Final = 1_000_000.0
MOST_WORKERS: Final = 100_000
MOST_ZIPF_WORKERS: Final = 2_000
"""With keys by Zipf's law, each number of workers takes milliseconds; further workers hardly help by then."""

DEFAULT_MOST_MODELS: Final[int] = Settings.model_fields["models_max_count"].default


class HotModelError(StreamappError):
    """One model gets more records than a core can process."""


@dataclass(frozen=True)
class SizingPlan:
    """The result of `grove plan`; cores and memory are those of all workers together, without the brokers."""

    workers: int
    cores: float
    memory_mb: int
    partitions: int
    commit_interval_ms: float
    cores_per_worker: float
    memory_mb_per_worker: int
    """MB (10^6 bytes) that a worker uses."""
    memory_limit_mb_per_worker: int
    """The least memory limit of a worker's container with which `/readyz` is green at that use."""
    models_max_count: int
    """A value of `models.max.count` with which a worker accepts its models and those of another worker."""
    utilisation: float
    """Cores that the busiest worker uses."""
    utilisation_limit: float
    """Cores that a worker may use for the demanded p99."""
    busiest_records_per_s: float
    broker: BrokerLoad
    derivation: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {name: _rounded(value) for name, value in asdict(self).items()}


def plan_of(workload: Workload, costs: Costs) -> SizingPlan:
    """Return the plan with the fewest workers.

    Raises LatencyError if the demanded p99 cannot be met, and HotModelError if one model needs more than the
    core of a worker.
    """
    delay = delay_of(costs, workload)
    busiest = _fewest(costs, workload, delay)
    workers, load = busiest.workers, busiest.load
    is_sooner = workload.guarantee == "at_least_once" and load.cores / delay.use < costs.fetch_cores
    reserved = costs.fetch_cores if is_sooner else load.cores / delay.use
    cores_each = math.ceil(reserved * 10.0 - 1e-9) / 10.0
    models_mb = busiest.models * costs.model_bytes / MB
    memory_each = math.ceil(costs.process_mb + busiest.held * costs.partition_mb + models_mb)
    memory_limit = math.ceil(memory_each / CALM)
    models_max_count, models_step = _models_max_count(busiest, workload)
    broker, broker_steps = broker_load(costs, workload, workers, load)
    reservation_steps = [
        step(
            "cores to reserve for a worker, rounded up to a tenth",
            f"{n(load.cores)} ÷ {n(delay.use)}",
            load.cores / delay.use,
            f"→ {n(cores_each)}" + (" (fetch.max.cpu.percent)" if is_sooner else ""),
        ),
        step("cores of all workers", f"{workers} × {n(cores_each)}", workers * cores_each, "cores"),
        step(
            "memory of a worker: process, partitions, models, rounded up",
            f"{n(costs.process_mb)} + {busiest.held} × {n(costs.partition_mb)} + {n(busiest.models)} × "
            f"{n(costs.model_bytes)} ÷ 1,000,000",
            memory_each,
            "MB",
        ),
        step(
            f"memory limit of a worker, so that it uses at most {CALM:g} of it, rounded up",
            f"{n(memory_each)} ÷ {CALM:g}",
            memory_limit,
            "MB",
        ),
        step("memory of all workers", f"{workers} × {n(memory_each)}", workers * memory_each, "MB"),
        models_step,
    ]
    return SizingPlan(
        workers=workers,
        cores=round(workers * cores_each, 1),
        memory_mb=workers * memory_each,
        partitions=busiest.partitions,
        commit_interval_ms=delay.commit_ms,
        cores_per_worker=cores_each,
        memory_mb_per_worker=memory_each,
        memory_limit_mb_per_worker=memory_limit,
        models_max_count=models_max_count,
        utilisation=load.cores,
        utilisation_limit=delay.use,
        busiest_records_per_s=busiest.rate,
        broker=broker,
        derivation=(*delay.steps, *busiest.steps(costs, workload), *reservation_steps, *broker_steps),
    )


def _models_max_count(busiest: BusiestWorker, workload: Workload) -> tuple[int, str]:
    """Return a value of `models.max.count`, at least its default, and the step that leads to it.

    It has room for the models of a second worker, whose partitions a worker may take over.
    """
    all_models = 2 * busiest.models >= workload.models
    needed = workload.models if all_models else math.ceil(2 * busiest.models)
    most = max(DEFAULT_MOST_MODELS, needed)
    label = "models of a worker and of another one that it takes over, rounded up"
    expression = f"{workload.models:,}" if all_models else f"2 × {n(busiest.models)}"
    return most, step(label, expression, needed, f"models → models.max.count {most:,}")


def _fewest(costs: Costs, workload: Workload, delay: Delay) -> BusiestWorker:
    """Return the busiest of the fewest workers that are enough."""
    _check_hottest(costs, workload, delay)
    most = MOST_WORKERS if workload.zipf is None else MOST_ZIPF_WORKERS
    for workers in range(1, most + 1):
        busiest = busiest_worker(costs, workload, workers, delay.commit_ms)
        if busiest.load.cores <= delay.use:
            return busiest
    message = f"--rate {workload.rate:g} needs more than {most:,} workers: check the number"
    raise StreamappError(message)


def _check_hottest(costs: Costs, workload: Workload, delay: Delay) -> None:
    """Raise HotModelError if the busiest model alone needs more than a worker may use."""
    record_cost, load = least_load_of_hottest(costs, workload, delay.commit_ms)
    if load.cores <= delay.use:
        return
    if load.snapshots > delay.use * SECOND_US:
        message = (
            f"the snapshots of one model of {costs.model_bytes:g} bytes take "
            f"{load.snapshots / SECOND_US:.3g} cores: --model-bytes must be smaller, or snapshot_seconds of "
            f"--costs longer than "
            f"{costs.snapshot_seconds:g} (snapshot.interval.ms)"
        )
        raise HotModelError(message)
    hottest = workload.rate * workload.hottest_share
    most = max(0.0, (delay.use * SECOND_US - load.fixed) / record_cost)
    message = (
        f"the busiest model gets {hottest:,.0f} records/s ({workload.hottest_share:.3g} of --rate "
        f"{workload.rate:,.0f}), and one core processes {most:,.0f}: a model is on one worker, so more "
        "workers do not help. Spread its records over several keys, send packed records or Arrow blocks, or "
        "answer a part of them by copies of the model (docs/scale.md)"
    )
    raise HotModelError(message)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value
