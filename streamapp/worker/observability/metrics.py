"""Prometheus metrics of a worker process.

Names follow Kafka's and Prometheus' conventions: prefix `grove_`, base units, no label whose values grow with
the instances. Each help text ends with what it counts: `process` (starts at 0 with the worker, a replay adds
nothing) or `model state` (counts that models keep).
"""

from __future__ import annotations

import platform
import time
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from typing import Final

import numpy as np
import numpy.typing as npt
import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, Info
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from streamapp.worker.observability.model_figures import CHALLENGE_ENDS, ModelFigures
from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects, Happened
from streamapp.worker.task.sources import SOURCES
from topics.columns.records import RawRecords

_RUN_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
_RELOAD_BUCKETS: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2)
_COMMIT_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_DELAY_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60, 600, 3600)

SPLIT_REASONS: Final = (
    "gap",
    "tie",
    "only",
)  # core.learners.hoeffding.decision.Reason, without loading kernels


def _metric_name(counter: str) -> str | None:
    """Return the metric of a task's counter; None for counters that share one by labels: outcomes, splits."""
    if counter == counters.SPLITS or counter.partition(".")[0] in SOURCES:
        return None
    return "grove_" + counter.replace(".", "_").replace("-", "_")


class Metrics:
    """All metrics of a worker, in a separate registry."""

    def __init__(self) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._build_info()
        self._records()
        self._driver()
        self._outcomes: dict[str, Counter] = {}  # children of `records`, by a task's name for the outcome

    def _build_info(self) -> None:
        info = Info("grove_build", "Version of the running code (process).", registry=self.registry)
        packages = {name: metadata.version(name) for name in ("faust-streaming", "aiokafka", "numba")}
        info.info(
            {
                "version": metadata.version("streamgrove"),
                "python": platform.python_version(),
                **{name.replace("-", "_"): version for name, version in packages.items()},
            }
        )

    def _records(self) -> None:
        self.records = self._counter(
            "grove_records", "Rows of records by outcome, see docs/outcomes.md (process).", "topic", "outcome"
        )
        self.counted = {
            name: self._counter(metric, f"{meaning[0].upper()}{meaning[1:]} (process).")
            for name, meaning in counters.MEANING.items()
            if (metric := _metric_name(name)) is not None
        }
        self.dead_letters = self._counter("grove_dlq_records", "Dead letters (process).", "reason")
        self.label_requests = self._counter(
            "grove_label_requests",
            "Label requests by state: sent, and at the end once answered, declined or expired, "
            "which is counted up to pending.ttl.ms / 16 later (process).",
            "strategy",
            "outcome",
        )
        self.drift_alerts = self._counter(
            "grove_drift_alerts", "Drift alerts sent (process).", "detector", "level"
        )
        self.feature_cost = self._counter(
            "grove_feature_cost", "Cost of the features that came, in the units of the schemas (process)."
        )
        self.splits = self._counter(
            "grove_tree_splits",
            "Splits installed by reason: the best test led (gap), a tie, or it was the only one (process).",
            "reason",
        )
        for reason in SPLIT_REASONS:
            self.splits.labels(reason)  # shown from the start, at 0
        self.challenges_ended = self._counter(
            "grove_challenges_ended",
            "Challenges that ended, by outcome: promoted, dropped or undecided (process).",
            "outcome",
        )
        for outcome in CHALLENGE_ENDS:
            self.challenges_ended.labels(outcome)
        self.misplaced_keys = self._counter(
            "grove_misplaced_keys", "Model keys met in a partition that is not murmur2's (process).", "topic"
        )
        self.figures = ModelFigures()
        self.registry.register(self.figures)
        self.label_delay_seconds = self._delays(
            "grove_label_delay_seconds",
            "Event time from the answer to its label, of labels learned in time (process).",
            _DELAY_BUCKETS,
        )
        self.learn_seconds = self._delays(
            "grove_learn_seconds", "Decoding and learning a run of labels (process).", _RUN_BUCKETS
        )
        self.predict_seconds = self._delays(
            "grove_predict_seconds",
            "Decoding and answering a run of instances, learning those that carry their label (process).",
            _RUN_BUCKETS,
        )
        self.model_reload_seconds = self._seconds(
            "grove_model_reload_seconds",
            "How long a run waited for evicted models, if it needed any (process).",
            _RELOAD_BUCKETS,
        )
        self.end_to_end_seconds = self._delays(
            "grove_end_to_end_seconds",
            "From the newest record of a run (its timestamp) to its outputs at the producer (process).",
            _DELAY_BUCKETS,
        )

    def _driver(self) -> None:
        self.commit_seconds = self._seconds(
            "grove_commit_seconds",
            "Committing outputs, journal and offsets (process).",
            _COMMIT_BUCKETS,
        )
        self.rebalance_seconds = self._seconds(
            "grove_rebalance_seconds",
            "From losing partitions to all of them live (process).",
            _COMMIT_BUCKETS,
        )
        self.transactions_aborted = self._counter(
            "grove_transactions_aborted", "Transactions aborted; their records are processed again (process)."
        )
        self.partitions_stopped = self._counter(
            "grove_partitions_stopped", "Partitions stopped by an unexpected error (process)."
        )
        self.restore_seconds = self._seconds(
            "grove_restore_seconds", "Restoring the state of a partition (process).", _COMMIT_BUCKETS
        )
        self.restores = self._counter(
            "grove_restores",
            "Partitions restored, by the beginning of their replay: snapshot, older-snapshot (the newest is "
            "not whole), reset, or journal (its beginning) (process).",
            "beginning",
        )
        self.snapshots = self._counter("grove_snapshots", "Snapshots completed (process).")
        self.snapshot_bytes = self._counter(
            "grove_snapshot_bytes",
            "Compressed bytes that the snapshots completed here consist of, with shared parts (process).",
        )
        self.snapshot_seconds = self._seconds(
            "grove_snapshot_seconds", "From the cut to the complete snapshot (process).", _COMMIT_BUCKETS
        )
        self.changelog_records = self._counter(
            "grove_changelog_records",
            "Parts of snapshots read from their topic: for partitions to be processed here (active), and "
            "to keep other workers' partitions warm (standby) (process).",
            "role",
        )
        self.changelog_bytes = self._counter(
            "grove_changelog_bytes", "Bytes of these parts (process).", "role"
        )
        self.replayed_records = self._counter(
            "grove_replayed_records", "Records replayed to restore partitions (process)."
        )
        self.sought_back = self._counter(
            "grove_sought_back", "Fetch positions that had to be corrected (process)."
        )
        self.records_lost = self._counter(
            "grove_records_lost",
            "Offsets that retention deleted before they were processed (process).",
            "topic",
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _seconds(self, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, meaning, buckets=buckets, registry=self.registry)

    def _delays(self, name: str, meaning: str, buckets: tuple[float, ...]) -> DelayHistogram:
        histogram = DelayHistogram(name, meaning, buckets)
        self.registry.register(histogram)
        return histogram

    def snapshot(self, units: int, size: int, seconds: float) -> None:
        self.snapshots.inc()
        self.snapshot_bytes.inc(size)
        self.snapshot_seconds.observe(seconds)

    def read_changelog(self, role: str, records: int, size: int) -> None:
        """Count parts of snapshots that were read."""
        self.changelog_records.labels(role).inc(records)
        self.changelog_bytes.labels(role).inc(size)

    def restored(self, beginning: str, records: int, seconds: float) -> None:
        """Count a restored partition, by the start of its replay (restore_progress.py)."""
        self.restores.labels(beginning).inc()
        self.replayed_records.inc(records)
        self.restore_seconds.observe(seconds)

    # -- counts of a run ------------------------------------------------------------------------------------

    def computed(self, source: str, seconds: float, runs: int = 1) -> None:
        """Note the seconds that the tasks took for each of some runs."""
        histogram = self.learn_seconds if source == "labels" else self.predict_seconds
        histogram.add(seconds, runs)

    def sent(self, raw: RawRecords, effects: Effects) -> None:
        """Count the effects of a run."""
        for name, n in effects.counts.items():
            if name in self.counted:
                self.counted[name].inc(n)
            elif name != counters.SPLITS:
                self._outcome(name).inc(n)
        if effects.dead_letters:
            for reason, n in Tally(str(letter.reason) for letter in effects.dead_letters).items():
                self.dead_letters.labels(reason).inc(n)
        for requests in effects.requests:
            for strategy, n in Tally(requests.requests.strategies).items():
                self.label_requests.labels(strategy, "sent").inc(n)
        for (strategy, outcome), n in effects.closed.items():
            self.label_requests.labels(strategy, outcome).inc(n)
        for reason, n in effects.splits.items():
            self.splits.labels(reason).inc(n)
        for delays in effects.label_delays:
            self.label_delay_seconds.observe(delays / 1000)
        if effects.cost:
            self.feature_cost.inc(effects.cost)
        for _, alert, _ in effects.alerts:
            self.drift_alerts.labels(alert.detector, alert.level).inc()
        self._challenges(effects.happened)
        if effects.evaluations or effects.happened:
            self.figures.take(raw, effects)
        self.end_to_end_seconds.add(max(0.0, time.time() - raw.timestamps[-1] / 1000))

    def sent_answers(self, answered: int, labelled: int, newest: npt.NDArray[np.int64]) -> None:
        """Count runs that led to nothing but answers; newest: the timestamp of the last record of each."""
        self._outcome(counters.ANSWERED).inc(answered)
        if labelled:
            self._outcome(counters.LABELLED).inc(labelled)
        self.end_to_end_seconds.observe(np.maximum(time.time() - newest / 1000, 0.0))

    def _challenges(self, happened: Iterable[Happened]) -> None:
        """Count the ends of challenges among the events of a run."""
        for _, event, _ in happened:
            if event.event in CHALLENGE_ENDS:
                self.challenges_ended.labels(event.event).inc()

    def _outcome(self, name: str) -> Counter:
        """Return the counter of a topic's outcome, cached: a look-up by labels costs more than counting."""
        if (counter := self._outcomes.get(name)) is None:
            counter = self._outcomes[name] = self.records.labels(*name.split(".", 1))
        return counter

    def watch(self, gauges: Callable[[], Iterable[Metric]]) -> None:
        """Add gauges that are read at each scrape."""
        self.registry.register(_Watched(gauges))


class DelayHistogram(prometheus_client.registry.Collector):
    """A histogram that takes an array at once: prometheus-client's costs 2 µs a value."""

    def __init__(self, name: str, meaning: str, buckets: Sequence[float]) -> None:
        self._name, self._meaning = name, meaning
        self._buckets = list(buckets)
        self._bounds = np.array(buckets)
        self._counts = np.zeros(len(buckets) + 1, dtype=np.int64)
        self._sum = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        """Add a value, which occurred so many times."""
        self._counts[bisect_left(self._buckets, seconds)] += times  # a bucket holds its bound
        self._sum += times * seconds

    def observe(self, seconds: npt.NDArray[np.float64]) -> None:
        """Add values (float64[m])."""
        at = np.searchsorted(self._bounds, seconds, side="left")
        self._counts += np.bincount(at, minlength=len(self._counts))
        self._sum += float(seconds.sum())

    def collect(self) -> Iterator[Metric]:
        bounds = (*self._bounds.tolist(), float("inf"))
        names = [floatToGoString(bound) for bound in bounds]  # type: ignore[no-untyped-call]
        totals = [float(n) for n in np.cumsum(self._counts)]
        yield HistogramMetricFamily(
            self._name, self._meaning, buckets=list(zip(names, totals, strict=True)), sum_value=self._sum
        )


class _Watched(prometheus_client.registry.Collector):
    def __init__(self, gauges: Callable[[], Iterable[Metric]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges()


def count(name: str, meaning: str, value: float) -> Metric:
    """Return a counter whose value is kept elsewhere."""
    family = CounterMetricFamily(name, meaning)
    family.add_metric((), value)
    return family


def gauge(name: str, meaning: str, values: Iterable[tuple[tuple[str, ...], float]], *labels: str) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family
