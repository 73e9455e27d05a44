"""Metric export: the metrics of `/metrics`, with the same names and labels, sent at an interval.

They are read from the registry of the page, so both always agree. Sums are cumulative, from the start of the
worker, as the page has them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http import metric_exporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.samples import Sample

from streamapp.worker.telemetry.collector_watch import CollectorWatch
from streamapp.worker.telemetry.switches import endpoint_of, without_credentials

logger = logging.getLogger(__name__)

INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
DEFAULT_INTERVAL_MS: Final = "60000"
UNITS: Final = {"seconds": "s", "bytes": "By"}
"""Last word of a metric's name → its unit (UCUM)."""

Labels = tuple[tuple[str, str], ...]


class MetricExport:
    """Sends the metrics of a registry from a thread."""

    def __init__(
        self,
        registry: CollectorRegistry,
        resource: Resource,
        scope: InstrumentationScope,
        environment: Mapping[str, str],
    ) -> None:
        """Start the thread that sends. ValueError: the interval is no number of milliseconds above 0."""
        self._registry, self._resource, self._scope = registry, resource, scope
        self.interval = _interval(environment)
        """Seconds between two exports."""
        endpoint = endpoint_of(environment, "METRICS")
        self.endpoint = without_credentials(endpoint)
        """The URL to which metrics are sent."""
        self._watch = CollectorWatch(metric_exporter.__name__, "metrics", self.endpoint, environment)
        self._exporter = metric_exporter.OTLPMetricExporter(endpoint, session=self._watch.session)
        self._started = time.time_ns()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metric-export", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(self.interval):
            self._send()
        self._send()

    def _send(self) -> None:
        try:
            metrics = list(as_metrics(self._registry.collect(), self._started, time.time_ns()))
            scoped = ScopeMetrics(self._scope, metrics, "")
            data = MetricsData([ResourceMetrics(self._resource, [scoped], "")])
            result = self._exporter.export(data)
        except Exception:
            logger.exception("the metrics of this interval are not sent")
            return
        if result is MetricExportResult.SUCCESS:
            self._watch.succeeded()
        else:
            self._watch.failed()

    def shutdown(self) -> None:
        """Send the last metrics; the caller limits the time."""
        self._ending.set()
        self._thread.join()

    def abandon(self) -> None:
        """End the attempts to send."""
        self._exporter.shutdown()


def _interval(environment: Mapping[str, str]) -> float:
    text = environment.get(INTERVAL) or DEFAULT_INTERVAL_MS
    try:
        seconds = float(text) / 1000
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        message = f"{INTERVAL}={text} must be a number of milliseconds above 0"
        raise ValueError(message)
    return seconds


def as_metrics(families: Iterable[Family], started: int, now: int) -> Iterator[Metric]:
    """Yield the metrics of a registry as OTLP has them; `started`, `now`: ns since the epoch."""
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        data: Sum | Gauge | Histogram
        if family.type == "histogram":
            data = Histogram(list(_histograms(family, started, now)), AggregationTemporality.CUMULATIVE)
        elif family.type == "counter":
            points = [_point(s, started, now) for s in family.samples if s.name == name]
            data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        else:
            if family.type == "info":
                name = f"{family.name}_info"
            data = Gauge([_point(sample, 0, now) for sample in family.samples])
        if data.data_points:
            unit = UNITS.get(family.name.rpartition("_")[2], "")
            yield Metric(name, family.documentation, unit, data)


def _point(sample: Sample, started: int, now: int) -> NumberDataPoint:
    return NumberDataPoint(dict(sample.labels), started, now, float(sample.value))


def _histograms(family: Family, started: int, now: int) -> Iterator[HistogramDataPoint]:
    """Yield a point for each list of labels.

    A bucket of `/metrics` includes all smaller ones, a bucket of OTLP does not.
    """
    buckets: defaultdict[Labels, list[tuple[float, float]]] = defaultdict(list)
    sums: dict[Labels, float] = {}
    for sample in family.samples:
        labels = tuple((name, value) for name, value in sorted(sample.labels.items()) if name != "le")
        if sample.name.endswith("_bucket"):
            buckets[labels].append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    unknown: Any = None  # smallest and largest value: the page does not have them
    for labels, upto in buckets.items():
        totals = [0, *(int(n) for _, n in upto)]
        counts = [after - before for before, after in pairwise(totals)]
        bounds = [bound for bound, _ in upto[:-1]]  # the last one is infinity
        yield HistogramDataPoint(
            dict(labels), started, now, totals[-1], sums[labels], counts, bounds, unknown, unknown
        )
