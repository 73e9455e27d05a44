"""Gauges of `/metrics`, read at a scrape: lag, models and pending instances of a worker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from core.schema import shared
from streamapp.worker.observability.health import READINESS, Health, Stage
from streamapp.worker.observability.metrics import count, gauge
from streamapp.worker.processing.task_manager import TaskManager
from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.transport.schema_gate import SchemaGate
from topics.producing.batch_producer import BatchProducer
from topics.registry.known_schemas import KnownSchemas
from topics.tokens.token_source import TokenSource

if TYPE_CHECKING:
    from core.model.model import Scale
    from core.spec import Spec


def manager_gauges(manager: TaskManager, health: Health, group: str) -> Iterator[Metric]:
    """Yield the gauges of the driver and of the task manager."""
    lags = [((group, tp.topic, str(tp.partition)), float(lag)) for tp, lag in manager.progress.lags().items()]
    yield gauge(
        "kafka_consumergroup_lag",
        "Offsets of a live partition that are not committed, up to the last stable one (process).",
        lags,
        "consumergroup",
        "topic",
        "partition",
    )
    restoring = [
        ((str(number),), progress) for number, progress in list(manager.assignments.restoring.items())
    ]
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
    stages = [status.stage for status in health.statuses().values()]
    yield gauge(
        "grove_partitions",
        "Assigned partitions by state (process).",
        [((stage.value,), float(stages.count(stage))) for stage in Stage],
        "state",
    )


def readiness_gauges(health: Health) -> Iterator[Metric]:
    """Yield the gauge of the checks of `/readyz`."""
    red = health.red_checks()
    yield gauge(
        "grove_not_ready",
        "1 while the check of /readyz is red, else 0; partitions: at least one is not live (process).",
        [((name,), float(name in red)) for name in READINESS],
        "check",
    )


def token_gauges(tokens: TokenSource) -> Iterator[Metric]:
    """Yield the gauge of the token with which this worker's clients sign in, once there is one."""
    seconds_left = tokens.status.seconds_left
    yield gauge(
        "grove_token_expires_seconds",
        "Seconds until the token of the sign-in ends; below 0 after its end (process).",
        [] if seconds_left is None else [((), seconds_left)],
    )


def schema_gauges(gate: SchemaGate, schemas: KnownSchemas) -> Iterator[Metric]:
    """Yield the figures of a worker that reads records by the schemas of a registry."""
    yield gauge(
        "grove_schema_waiting_partitions",
        "Live partitions that wait for a schema of the registry (process).",
        [((), float(len(gate.waiting())))],
    )
    yield count(
        "grove_schema_lookup_failures_total",
        "Look-ups of a schema that failed and are repeated (process).",
        schemas.status.failures,
    )


def snapshot_gauges(snapshots: SnapshotWriter) -> Iterator[Metric]:
    """Yield how much time of learning the newest snapshots lack."""
    yield gauge(
        "grove_snapshot_age_seconds",
        "Seconds since the first change of a live partition that its newest complete snapshot lacks, 0 if it "
        "lacks none (process).",
        [((str(number),), age) for number, age in sorted(snapshots.ages(time.monotonic()).items())],
        "partition",
    )


def task_gauges(manager: TaskManager) -> Iterator[Metric]:
    """Yield the gauges of the state that tasks hold."""
    tasks = [state.task for state in list(manager.partitions.values())]
    sums = (
        (
            "grove_models_loaded",
            "Models that live here (model state).",
            sum(len(t.models.keys) for t in tasks),
        ),
        (
            "grove_models_resident",
            "Models that are in memory; all other models are evicted (process).",
            sum(len(t.models.keys) - t.models.cache.n_evicted for t in tasks),
        ),
        (
            "grove_models_evicted_bytes",
            "Bytes of the models that are evicted (process).",
            sum(t.models.cache.evicted_bytes for t in tasks),
        ),
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
        (
            "grove_open_episodes",
            "Instances that wait for features (model state).",
            sum(t.open_episodes for t in tasks),
        ),
    )
    for name, meaning, value in sums:
        yield gauge(name, meaning, [((), float(value))])
    yield from model_gauges(scale for task in tasks for scale in task.models.scales())


def sender_gauges(senders: Iterable[BatchProducer]) -> Iterator[Metric]:
    """Yield how much waits in the queues of the worker's producers."""
    yield gauge(
        "grove_producer_queued_records",
        "Records and reports that wait in the queues of the producers (process).",
        [((), float(sum(sender.n_queued for sender in senders)))],
    )


def memory_counts(memory: ModelMemory) -> Iterator[Metric]:
    """Yield how often models were in memory when a run needed them, and how often models were evicted."""
    counts = (
        (
            "grove_model_hits_total",
            "Models that runs needed and that were in memory, once a run",
            memory.hits,
        ),
        (
            "grove_model_misses_total",
            "Models that runs needed and that were evicted, once a run",
            memory.misses,
        ),
        ("grove_model_evictions_total", "Models taken out of memory for models.max.bytes", memory.evictions),
        (
            "grove_model_eviction_bytes_total",
            "Bytes of evicted models written to state.dir; unchanged models lie there already",
            memory.written,
        ),
    )
    for name, meaning, value in counts:
        yield count(name, f"{meaning} (process).", value)
    yield gauge(
        "grove_shared_bytes",
        "Bytes of schemas and their tables, each once however many models share it (process).",
        [((), float(shared.TALLY.bytes))],
    )


def model_gauges(models: Iterable[tuple[Spec, Scale]]) -> Iterator[Metric]:
    """Yield the gauges of the sizes and label requests of models, summed up over all of them."""
    nodes = size = records = asked = 0
    granted = 0.0
    for spec, scale in models:
        nodes += scale.nodes
        size += scale.nbytes
        records += scale.records
        asked += scale.requests
        granted += spec.budget.limit * scale.records
    yield gauge("grove_tree_nodes", "Nodes of the trees that answer (model state).", [((), float(nodes))])
    yield gauge(
        "grove_model_bytes",
        "Bytes of the models' state, evicted too (model state).",
        [((), float(size))],
    )
    yield gauge(
        "grove_label_budget_ratio",
        "Share of the records answered whose label the budgets grant (nominal) and whose label was requested "
        "(spent), once there is a record (model state).",
        [(("nominal",), granted / records), (("spent",), asked / records)] if records else [],
        "kind",
    )
