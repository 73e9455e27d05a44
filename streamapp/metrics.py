"""Prometheus metrics of a worker process.

Names follow KAFKA.md: prefix `grove_`, base units, no label that grows with the instances. The help text of each
says whether it counts for this process only, or belongs to the models' state.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

RUN_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
COMMIT_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """Everything a worker measures, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.run_seconds = Histogram(
            "grove_run_seconds",
            "Time from a fetched run to its outputs handed to the producer (this process).",
            buckets=RUN_BUCKETS,
            registry=registry,
        )
        self.partitions_stopped = Counter(
            "grove_partitions_stopped",
            "Partitions stopped by an unexpected error (this process).",
            registry=registry,
        )
        self.commits_refused = Counter(
            "grove_commits_refused",
            "Commits refused because the group moved on (this process).",
            registry=registry,
        )
        self.commit_seconds = Histogram(
            "grove_commit_seconds",
            "Duration of a commit: flush of the outputs and offsets (this process).",
            buckets=COMMIT_BUCKETS,
            registry=registry,
        )
        self.state_lost = Counter(
            "grove_state_lost",
            "Partitions that started with new models although records were processed before (this process).",
            registry=registry,
        )
        self.sought_back = Counter(
            "grove_sought_back", "Fetch positions that had to be corrected (this process).", registry=registry
        )
        self.records_lost = Counter(
            "grove_records_lost",
            "Offsets deleted by retention before they were processed (this process).",
            ["topic"],
            registry=registry,
        )
