"""Telemetry of a worker: its spans and metrics, from the start to an end of bounded length."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Final, TypeVar

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from streamapp.settings import Settings
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.telemetry.metric_export import MetricExport
from streamapp.worker.telemetry.span_export import SpanExport
from streamapp.worker.telemetry.switches import Switches
from streamapp.worker.telemetry.traces import Traces

logger = logging.getLogger(__name__)

T = TypeVar("T")

SCOPE: Final = "streamgrove"
END_S: Final = 5.0
"""Seconds that the end of a worker waits for the collector."""
ABANDON_S: Final = 1.0
"""Seconds for a thread to end its attempts; a thread that waits for an answer is left behind."""


@dataclass(slots=True, eq=False)
class Telemetry:
    """The signals that are on."""

    traces: Traces | None = None
    spans: SpanExport | None = None
    metrics: MetricExport | None = None

    def close(self, seconds: float = END_S) -> None:
        """Send what waits, for a limited time; what is left is dropped."""
        if self.traces is not None:
            self.traces.close()
        exports = [export for export in (self.spans, self.metrics) if export is not None]
        ends = [threading.Thread(target=export.shutdown, daemon=True) for export in exports]
        deadline = time.monotonic() + seconds
        for end in ends:
            end.start()
        for end in ends:
            end.join(max(0.0, deadline - time.monotonic()))
        if any(end.is_alive() for end in ends):
            for export in exports:
                export.abandon()
            for end in ends:
                end.join(ABANDON_S)
        if self.spans is not None and self.spans.unsent:
            logger.warning("%d spans of this worker were dropped", self.spans.unsent)


def start_telemetry(
    switches: Switches, settings: Settings, instance: str, metrics: Metrics, environment: Mapping[str, str]
) -> Telemetry:
    """Start the signals that are on; a variable with a value of no use turns its signal off, with a line."""
    version = metadata.version("streamgrove")
    # The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace our names.
    resource = Resource.create(
        {
            "service.name": settings.application_id,
            "service.instance.id": instance,
            "service.version": version,
        }
    ).merge(OTELResourceDetector().detect())
    scope = InstrumentationScope(SCOPE, version)
    telemetry = Telemetry()
    if switches.traces:
        telemetry.spans = _started("spans", lambda: SpanExport(environment))
    if telemetry.spans is not None:
        limits = SpanLimits()
        provider = TracerProvider(resource=resource, shutdown_on_exit=False, span_limits=limits)
        provider.add_span_processor(telemetry.spans)
        telemetry.traces = Traces(
            provider.get_tracer(SCOPE, version),
            group=settings.application_id,
            instance=instance,
            keep_all=settings.pending_keep == "all",
            max_links=limits.max_links or 0,
        )
        metrics.watch(telemetry.spans.metrics)
        logger.info("spans are sent to %s", telemetry.spans.endpoint)
    if switches.metrics:
        telemetry.metrics = _started(
            "metrics", lambda: MetricExport(metrics.registry, resource, scope, environment)
        )
        if telemetry.metrics is not None:
            logger.info(
                "metrics are sent to %s every %g s", telemetry.metrics.endpoint, telemetry.metrics.interval
            )
    return telemetry


def _started(content: str, start: Callable[[], T]) -> T | None:
    """Return what `start` returns; None, with a line, if a variable has a value that cannot be used."""
    try:
        return start()
    except ValueError as error:
        logger.warning("no %s are sent: %s", content, error)
        return None
