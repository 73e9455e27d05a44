"""Load of the brokers: bytes written and read, and requests, by producers, workers and one reader."""

from __future__ import annotations

from dataclasses import dataclass

from streamapp.tools.sizing.calculation_steps import number as n
from streamapp.tools.sizing.calculation_steps import step
from streamapp.tools.sizing.measured_costs import Costs
from streamapp.tools.sizing.worker_load import WorkerLoad, changed_models
from streamapp.tools.sizing.workload import Workload

MB = 1_000_000.0
REQUESTS_OF_A_COMMIT = 5
"""Partitions added twice (outputs, journal), offsets added, offsets committed, the transaction ended."""


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
    """Return the load of the brokers, and its derivation; `load` is the load of the busiest worker."""
    rate, size = workload.rate, workload.record_bytes
    commits = workers * load.commits_per_second
    journal = commits * load.partitions_per_commit * costs.journal_bytes
    changed = changed_models(costs, rate, workload.models)
    snapshots = changed * costs.model_bytes / costs.snapshot_seconds
    written = (rate * (size + costs.answer_bytes) + journal + snapshots) / MB
    read = rate * (size + costs.answer_bytes) / MB
    replicated = written * (workload.replicas - 1)
    if workload.guarantee == "exactly_once":
        requests = load.rounds_per_second + load.commits_per_second * (
            2 * load.partitions_per_commit + REQUESTS_OF_A_COMMIT
        )
        words = (
            f"{workers} × ({n(load.rounds_per_second)} + {n(load.commits_per_second)} × "
            f"(2 × {n(load.partitions_per_commit)} + {REQUESTS_OF_A_COMMIT}))"
        )
    else:
        requests = load.rounds_per_second * (1 + load.runs_per_round) + load.commits_per_second * (
            load.partitions_per_commit + 1
        )
        words = (
            f"{workers} × ({n(load.rounds_per_second)} × (1 + {n(load.runs_per_round)}) + "
            f"{n(load.commits_per_second)} × ({n(load.partitions_per_commit)} + 1))"
        )
    steps = [
        step(
            "written: records, answers, journal, snapshots of the models that learned since",
            f"({n(rate)} × ({n(size)} + {n(costs.answer_bytes)}) + {n(commits)} × "
            f"{n(load.partitions_per_commit)} × {n(costs.journal_bytes)} + {n(changed)} × "
            f"{n(costs.model_bytes)} ÷ {n(costs.snapshot_seconds)}) ÷ 1,000,000",
            written,
            "MB/s",
        ),
        step("replicated", f"{n(written)} × ({workload.replicas} - 1)", replicated, "MB/s"),
        step(
            "read: records by workers, answers by one reader",
            f"{n(rate)} × ({n(size)} + {n(costs.answer_bytes)}) ÷ 1,000,000",
            read,
            "MB/s",
        ),
        step("requests of the workers: fetches, produces, commits", words, workers * requests, "requests/s"),
    ]
    return BrokerLoad(written, replicated, read, workers * requests), steps
