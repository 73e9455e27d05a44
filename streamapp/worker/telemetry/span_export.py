"""Span export: ended spans wait in a queue of fixed length for the collector; dropped ones are counted.

Neither a full queue nor a collector that is away, slow or refuses has an effect on the worker: a thread
sends, and a span for which the queue has no room is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from prometheus_client.core import CounterMetricFamily, Metric

from streamapp.worker.observability.metrics import count
from streamapp.worker.telemetry.collector_watch import CollectorWatch
from streamapp.worker.telemetry.switches import endpoint_of, without_credentials

QUEUE_SIZE: Final = "OTEL_BSP_MAX_QUEUE_SIZE"
DEFAULT_QUEUE_SIZE: Final = "2048"


class SpanExport(SpanProcessor):
    """Sends the sampled spans of a worker to a collector."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start the thread that sends; ValueError if a variable `OTEL_BSP_…` has a value of no use."""
        endpoint = endpoint_of(environment, "TRACES")
        self.endpoint = without_credentials(endpoint)
        """The URL to which spans are sent."""
        watch = CollectorWatch(trace_exporter.__name__, "spans", self.endpoint, environment)
        self._max_waiting = int(environment.get(QUEUE_SIZE) or DEFAULT_QUEUE_SIZE)
        self._exporter = _CountingExporter(
            trace_exporter.OTLPSpanExporter(endpoint, session=watch.session), watch
        )
        self._batches = BatchSpanProcessor(self._exporter, max_queue_size=self._max_waiting)
        self._queued = 0  # spans given to the queue; only the event loop writes it
        self._queue_full = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing."""

    def on_end(self, span: ReadableSpan) -> None:
        """Put a span into the queue, or drop it if the queue is full."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if self._queued - self._exporter.taken >= self._max_waiting:
            self._queue_full += 1
            return
        self._queued += 1
        self._batches.on_end(span)

    def shutdown(self) -> None:
        """Send the spans that wait; the caller limits the time."""
        self._batches.shutdown()  # type: ignore[no-untyped-call] # it has no annotations

    def abandon(self) -> None:
        """End the attempts to send."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int | None = 30_000) -> bool:
        """Send the spans that wait."""
        return self._batches.force_flush(timeout_millis)

    @property
    def unsent(self) -> int:
        """The number of spans that the collector did not get, or not yet."""
        return self._queue_full + self._queued - self._exporter.sent

    def metrics(self) -> Iterator[Metric]:
        """Yield the counters of spans."""
        yield count("grove_spans_sent_total", "Spans that the collector took (process).", self._exporter.sent)
        family = CounterMetricFamily(
            "grove_spans_dropped_total",
            "Spans dropped, by reason: queue-full, or not-sent: the collector is away or refuses (process).",
            labels=("reason",),
        )
        family.add_metric(("queue-full",), self._queue_full)
        family.add_metric(("not-sent",), self._exporter.failed)
        yield family


class _CountingExporter(SpanExporter):
    """An exporter that counts the spans; only one thread at a time exports."""

    def __init__(self, exporter: SpanExporter, watch: CollectorWatch) -> None:
        self._exporter = exporter
        self._watch = watch
        self.taken = self.sent = self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is SpanExportResult.SUCCESS:
                self.sent += len(spans)
                self._watch.succeeded()
            else:
                self.failed += len(spans)
                self._watch.failed()
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
