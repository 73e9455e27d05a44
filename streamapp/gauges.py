"""What is read when somebody asks for `/metrics`: lag, models and pending instances of a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from streamapp.health import Health
from streamapp.metrics import gauge
from streamapp.task_manager import TaskManager

if TYPE_CHECKING:
    from core.model import Model
    from streamapp.task.task import Task  # compiled kernels: not for who only looks


def manager_gauges(manager: TaskManager, health: Health, group: str) -> Iterator[Metric]:
    """Yield the gauges of the driver and of the task manager."""
    lags = [((group, tp.topic, str(tp.partition)), float(lag)) for tp, lag in manager.lags().items()]
    yield gauge(
        "kafka_consumergroup_lag",
        "Offsets of a live partition that are not committed, up to the last stable one (process).",
        lags,
        "consumergroup",
        "topic",
        "partition",
    )
    restoring = [((str(number),), progress) for number, progress in list(manager.restoring.items())]
    yield gauge(
        "grove_restore_replayed_records",
        "Offsets replayed so far of a partition that is being restored (process).",
        [(label, float(progress.done)) for label, progress in restoring],
        "partition",
    )
    yield gauge(
        "grove_restore_remaining_records",
        "Offsets that are still to be replayed before a partition is live (process).",
        [(label, float(progress.left)) for label, progress in restoring],
        "partition",
    )
    states = [state.partition(":")[0] for state in list(health.partitions.values())]
    yield gauge(
        "grove_partitions",
        "Assigned partitions by state (process).",
        [((state,), float(states.count(state))) for state in ("live", "restoring", "stopped")],
        "state",
    )


def task_gauges(manager: TaskManager) -> Iterator[Metric]:
    """Yield the gauges of what the tasks hold."""
    tasks: list[Task] = [state.task for state in list(manager.partitions.values())]
    sums = (
        ("grove_models_loaded", "Models that live here (model state).", sum(len(t.models) for t in tasks)),
        (
            "grove_pending_instances",
            "Instances that wait for their label (model state).",
            sum(t.pending.waiting for t in tasks),
        ),
        (
            "grove_label_requests_outstanding",
            "Label requests that are open (model state).",
            sum(t.pending.outstanding for t in tasks),
        ),
        (
            "grove_early_labels",
            "Labels that wait for their instance (model state).",
            sum(t.early_labels for t in tasks),
        ),
    )
    for name, meaning, value in sums:
        yield gauge(name, meaning, [((), float(value))])
    yield from model_gauges(model for task in tasks for model in task.models.loaded())


def model_gauges(models: Iterable[Model]) -> Iterator[Metric]:
    """Yield the gauges of what the models are and ask for, summed up over all of them."""
    nodes = size = records = asked = 0
    granted = 0.0
    for model in models:
        scale = model.scale()
        nodes += scale.nodes
        size += scale.nbytes
        records += scale.records
        asked += scale.requests
        granted += model.spec.budget.limit * scale.records
    yield gauge("grove_tree_nodes", "Nodes of the trees that answer (model state).", [((), float(nodes))])
    yield gauge(
        "grove_model_bytes", "Bytes of the models' state in memory (model state).", [((), float(size))]
    )
    yield gauge(
        "grove_label_budget_ratio",
        "Share of the records answered whose label the budgets grant (nominal) and whose label was asked for "
        "(spent), once there is a record (model state).",
        [(("nominal",), granted / records), (("spent",), asked / records)] if records else [],
        "kind",
    )
