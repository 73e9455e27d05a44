"""Samples: the figures of a worker that may grow, taken at equal intervals in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from benchmarks.chaos.counts import parse
from benchmarks.chaos.fleet import ChaosError, Worker
from benchmarks.chaos.installation import PARTITIONS
from benchmarks.soak.slopes import WARM_UP, Slope, slope_of
from topics.clients.cluster import Cluster
from topics.definitions import TopicNames
from topics.errors import TopicsError

MIB: Final = 1 << 20

TOLERANCES: Final[Mapping[str, float]] = {
    "rss_bytes": 4 * MIB,
    "descriptors": 1,
    "table_files": 8,
    "threads": 1,
    "models": 2,
    "pending_instances": 50,
    "label_requests_outstanding": 50,
    "early_labels": 10,
    "metrics_page_bytes": 4096,
    "producer_queue": 50,  # records of the commit under way at a sample: more on a busy machine
    "journal_records": 200,
    "journal_disk_bytes": 4 * MIB,
    "snapshots_disk_bytes": 4 * MIB,
    "state_disk_bytes": 4 * MIB,
}
"""Each figure, and the growth in an hour that counts as none."""

METRICS: Final = {
    "models": "grove_models_loaded",
    "pending_instances": "grove_pending_instances",
    "label_requests_outstanding": "grove_label_requests_outstanding",
    "early_labels": "grove_early_labels",
    "producer_queue": "grove_producer_queued_records",
}

TABLE_FILE: Final = ".sst"

REQUEST_S: Final = 2.0

AWAY: Final = (KafkaException, TopicsError, TimeoutError)


@dataclass(slots=True)
class Series:
    """The samples of a figure."""

    times: list[float] = field(default_factory=list)  # seconds since the start of the load
    values: list[float] = field(default_factory=list)


class Samples:
    """Takes samples of a worker while the block lasts; a figure that cannot be read has no sample then."""

    def __init__(
        self, worker: Worker, servers: str, names: TopicNames, broker_data: Path, interval_s: float
    ) -> None:
        self.series = {name: Series() for name in TOLERANCES}
        self._worker = worker
        self._names = names
        self._cluster = Cluster({"bootstrap.servers": servers}, timeout=REQUEST_S, patience_s=REQUEST_S)
        self._broker_data = broker_data
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take no more samples: what follows the load is not a part of the run."""
        self._ended.set()
        self._thread.join()
        if self._failure is not None:
            message = f"no more samples could be taken: {self._failure}"
            raise ChaosError(message) from self._failure

    def slopes(self) -> dict[str, Slope]:
        """Return the slope of each figure after the warm-up, if it has enough samples."""
        last = max((series.times[-1] for series in self.series.values() if series.times), default=0.0)
        slopes = {}
        for name, series in self.series.items():
            kept = [at for at, when in enumerate(series.times) if when >= WARM_UP * last]
            times, values = [series.times[at] for at in kept], [series.values[at] for at in kept]
            if (slope := slope_of(times, values, TOLERANCES[name])) is not None:
                slopes[name] = slope
        return slopes

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._interval_s):
                self._take()
        except Exception as failure:  # noqa: BLE001 - `stop` raises it
            self._failure = failure

    def _take(self) -> None:
        pid = self._worker.pid
        if pid is None or not self._worker.runs:
            message = f"the worker ended with {self._worker.returncode}: {self._worker.log[-2000:]}"
            raise ChaosError(message)
        now = time.monotonic() - self._began
        for name, value in {
            **process_figures(pid),
            **self._of_pages(),
            **self._of_journal(),
            "journal_disk_bytes": self._topic_bytes(self._names.journal),
            "snapshots_disk_bytes": self._topic_bytes(self._names.snapshots),
            "state_disk_bytes": folder_bytes(self._worker.state, lambda _: True),
        }.items():
            self.series[name].times.append(now)
            self.series[name].values.append(value)

    def _of_pages(self) -> dict[str, float]:
        page = self._worker.page("/metrics")
        if page is None:
            return {}
        return {**parse(page.decode(), METRICS), "metrics_page_bytes": len(page)}

    def _of_journal(self) -> dict[str, float]:
        """Return how many records the journal holds; nothing while the broker is away."""
        places = [TopicPartition(self._names.journal, number) for number in range(PARTITIONS)]
        try:
            first = self._cluster.offsets(places, OffsetSpec.earliest())
            end = self._cluster.offsets(places, OffsetSpec.latest())
        except AWAY:
            return {}
        return {"journal_records": float(sum(end.values()) - sum(first.values()))}

    def _topic_bytes(self, topic: str) -> float:
        return folder_bytes(
            self._broker_data, lambda file: file.parent.name.startswith(f"{topic}-") and file.suffix == ".log"
        )


def process_figures(pid: int) -> dict[str, float]:
    """Return resident memory, threads and open files of a process.

    Descriptors of the tables of RocksDB are counted apart: RocksDB writes and merges them, so that their
    number is never the same for long.
    """
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    files = [_opened(descriptor) for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    n_tables = sum(file.endswith(TABLE_FILE) for file in files)
    return {
        "rss_bytes": float(fields["VmRSS"].split()[0]) * 1024,
        "threads": float(fields["Threads"]),
        "descriptors": float(len(files) - n_tables),
        "table_files": float(n_tables),
    }


def _opened(descriptor: Path) -> str:
    """Return the file of a descriptor; empty if it is closed already."""
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""


def folder_bytes(folder: Path, counts: Callable[[Path], bool]) -> float:
    """Return the bytes of the files below a folder that count; a file that is deleted meanwhile has none."""
    total = 0
    for file in folder.rglob("*"):
        if counts(file):
            try:
                total += file.stat().st_size if file.is_file() else 0
            except FileNotFoundError:
                continue
    return float(total)
