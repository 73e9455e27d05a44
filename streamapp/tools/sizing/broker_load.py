"""Load of the brokers: bytes written and read, and requests, by producers, workers and one reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamapp.tools.sizing.calculation_steps import number as n
from streamapp.tools.sizing.calculation_steps import step
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.worker_load import WorkerLoad, changed_models
from streamapp.tools.sizing.workload import Workload

MB: Final = 1_000_000.0
COORDINATOR_REQUESTS: Final = 4
"""Of a commit: partitions added, offsets added, offsets committed, the transaction ended."""
MARKER_BYTES: Final = 78
"""Bytes of the end of a transaction in a partition: a batch of one record without a value."""


@dataclass(frozen=True)
class BrokerLoad:
    """Load of all brokers together."""

    written_mb_per_s: float
    """By clients, before replication."""
    replicated_mb_per_s: float
    """Between brokers."""
    read_mb_per_s: float
    """By the workers and by one reader of the answers."""
    requests_per_s: float
    """By the workers."""


def broker_load(
    costs: Costs, workload: Workload, workers: int, load: WorkerLoad
) -> tuple[BrokerLoad, list[str]]:
    """Return the load of the brokers, and its derivation; `load` is the load of the busiest worker.

    Partitions have leaders on as many brokers as there are replicas, or on more: a worker sends each broker
    one request for all partitions that it leads.
    """
    rate, size, brokers = workload.rate, workload.record_bytes, workload.replicas
    is_exact = workload.guarantee == "exactly_once"
    commits, parts = load.commits_per_second, load.partitions_per_commit
    rounds, runs = load.most_rounds_per_second, load.runs_per_short_round
    batches = workers * (commits * parts if is_exact else rounds * runs)
    changed = changed_models(costs, rate, workload.models)
    record, marker = size + costs.frame_bytes, MARKER_BYTES if is_exact else 0
    journal = workers * commits * parts * costs.journal_bytes
    snapshots = changed * costs.model_bytes / costs.snapshot_seconds
    answers = rate * costs.answer_bytes + batches * costs.batch_bytes
    written = (rate * record + answers + journal + snapshots) / MB
    read = (rate * record + answers + batches * marker) / MB
    replicated = written * (brokers - 1)
    fetches_and_answers = rounds * (1 if is_exact else 2)
    requests = workers * (fetches_and_answers * brokers + commits * (brokers + COORDINATOR_REQUESTS))
    each_record = f"{n(rate)} × ({n(size)} + {n(costs.frame_bytes)} + {n(costs.answer_bytes)})"
    steps = [
        step(
            "batches of answers: one for each partition with records in a "
            + ("commit" if is_exact else "round, at most"),
            f"{workers} × {n(commits if is_exact else rounds)} × {n(parts if is_exact else runs)}",
            batches,
            "batches/s",
        ),
        step(
            "written: records with their frames and answers, batches, journal, snapshots of the models that "
            "learned since",
            f"({each_record} + {n(batches)} × {n(costs.batch_bytes)} + {workers} × {n(commits)} × "
            f"{n(parts)} × {n(costs.journal_bytes)} + {n(changed)} × {n(costs.model_bytes)} ÷ "
            f"{n(costs.snapshot_seconds)}) ÷ 1,000,000",
            written,
            "MB/s",
        ),
        step("replicated", f"{n(written)} × ({brokers} - 1)", replicated, "MB/s"),
        step(
            "read: records by workers, answers by one reader, with the ends of transactions",
            f"({each_record} + {n(batches)} × ({n(costs.batch_bytes)} + {marker})) ÷ 1,000,000",
            read,
            "MB/s",
        ),
        step(
            "requests of the workers: fetches, answers and journal of each of the brokers that lead, commits",
            f"{workers} × ({n(fetches_and_answers)} × {brokers} + {n(commits)} × ({brokers} + "
            f"{COORDINATOR_REQUESTS}))",
            requests,
            "requests/s",
        ),
    ]
    return BrokerLoad(written, replicated, read, requests), steps
