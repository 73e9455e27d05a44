"""Counters of the workers, over all their processes, including those that have ended.

The counters of a process are lost when it ends. So all processes are polled, and the last answer of each is
used: counts after that answer are missing, but nothing is counted twice.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from benchmarks.chaos.fleet import Worker

ASK_S: Final = 1.0

METRICS: Final = {
    "model_hits": "grove_model_hits_total",
    "model_reloads": "grove_model_misses_total",
    "model_evictions": "grove_model_evictions_total",
    "standby_parts_read": 'grove_changelog_records_total{role="standby"}',
    "active_parts_read": 'grove_changelog_records_total{role="active"}',
}
"""Counters of the workers by their name in the report."""


class Counts:
    """Polls the workers' counters in a thread while the block lasts."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._last: dict[int, Mapping[str, float]] = {}  # by process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counts", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Poll the running workers a last time."""
        self._ended.set()
        self._thread.join()
        if kind is None:
            self._ask()

    def report(self) -> dict[str, int]:
        return {name: int(sum(counts[name] for counts in self._last.values())) for name in METRICS}

    def _run(self) -> None:
        while not self._ended.wait(ASK_S):
            self._ask()

    def _ask(self) -> None:
        for worker in self._workers:
            pid = worker.pid
            if pid is None or worker.frozen or not worker.runs:
                continue
            page = worker.page("/metrics")
            if page is not None and worker.pid == pid:
                self._last[pid] = parse(page.decode())


def parse(page: str, metrics: Mapping[str, str] = METRICS) -> dict[str, float]:
    """Return some metrics of a metrics page, each summed over its labels; 0 for a missing metric."""
    lines = [line.rpartition(" ") for line in page.splitlines() if not line.startswith("#")]
    return {
        name: sum(
            float(value)
            for metric, _, value in lines
            if metric == metric_name or metric.startswith(metric_name + "{")
        )
        for name, metric_name in metrics.items()
    }
