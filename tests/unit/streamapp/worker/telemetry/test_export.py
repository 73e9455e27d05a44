"""What reaches a collector over HTTP, and what happens when it is away, refuses, or does not answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamapp.settings import Settings
from streamapp.worker.observability.metrics import DelayHistogram, Metrics
from streamapp.worker.reserved_ports import free_ports
from streamapp.worker.telemetry.switches import read_switches
from streamapp.worker.telemetry.telemetry import Telemetry, start_telemetry
from streamapp.worker.transport.runs import Run
from tests.collector import Collector
from topics.columns.records import RawRecords
from topics.columns.spans import RecordSpans

PATIENT = 60.0
"""Seconds for an end that should not be cut short on a busy machine."""


@contextmanager
def telemetry(
    metrics: Metrics, endpoint: str, end_s: float = PATIENT, **variables: str
) -> Iterator[Telemetry]:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **variables}
    started = start_telemetry(read_switches(environment), Settings(), "w-1", metrics, environment)
    try:
        yield started
    finally:
        started.close(end_s)


def record(telemetry: Telemetry, n: int) -> None:
    """Make and end the spans of n runs."""
    assert telemetry.traces is not None
    for at in range(n):
        raw = RawRecords.over("grove.instances", 0, RecordSpans.of([at], [0], [b"k"], [b"{}"], [()]))
        group = telemetry.traces.begin([Run(raw.topic, raw, at + 1)])
        assert group is not None
        telemetry.traces.failed(group, ValueError("ended"))


def dropped(metrics: Metrics) -> dict[str, float | None]:
    name = "grove_spans_dropped_total"
    reasons = ("queue-full", "not-sent")
    return {reason: metrics.registry.get_sample_value(name, {"reason": reason}) for reason in reasons}


def sent(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("grove_spans_sent_total")


def test_spans_and_metrics_that_wait_at_the_end_are_sent() -> None:
    metrics = Metrics()
    metrics.records.labels("instances", "answered").inc(3)
    metrics.commit_seconds.observe(0.03)
    with Collector() as collector:
        with telemetry(metrics, collector.url) as started:
            record(started, 3)
        assert len(collector.spans) == 3
        assert (sent(metrics), dropped(metrics)) == (3, {"queue-full": 0, "not-sent": 0})
        sums = collector.metrics
        assert sums["grove_records_total", (("outcome", "answered"), ("topic", "instances"))] == 3
        upto, count, total = sums["grove_commit_seconds", ()]
        assert (upto[:4], upto[-1], count, total) == ((0, 0, 0, 1), 1, 1, 0.03)
        assert sums["grove_tree_splits_total", (("reason", "gap"),)] == 0
        (info,) = [labels for name, labels in sums if name == "grove_build_info"]
        assert "version" in dict(info)
        names = {"service.name": "streamgrove", "service.instance.id": "w-1"}
        assert collector.resource.items() >= names.items()
        assert collector.spans[0].resource.items() >= names.items()


def test_names_of_the_service_come_from_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    monkeypatch.setenv(
        "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.instance.id=pod-1"
    )
    with Collector() as collector:
        with telemetry(Metrics(), collector.url) as started:
            record(started, 1)
        expected = {
            "service.name": "mine",
            "service.instance.id": "pod-1",
            "deployment.environment.name": "test",
        }
        assert collector.spans[0].resource.items() >= expected.items()
        assert collector.resource.items() >= expected.items()


@pytest.mark.parametrize("status", [None, 400, 503])
def test_spans_that_a_collector_does_not_take_are_counted_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int | None
) -> None:
    """None: nobody listens there."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    metrics = Metrics()
    with caplog.at_level(logging.INFO), Collector(status or 200) as collector:
        url = f"http://user:secret@127.0.0.1:{free_ports()}" if status is None else collector.url
        with telemetry(metrics, url, OTEL_METRICS_EXPORTER="none") as started:
            record(started, 12)
        assert (sent(metrics), dropped(metrics)) == (0, {"queue-full": 0, "not-sent": 12})
    cause = {None: "Connection refused", 400: "400 Bad Request", 503: "503 Service Unavailable"}[status]
    shown = url.replace("user:secret@", "")
    lines = [line.getMessage() for line in caplog.records]
    assert lines == [
        f"spans are sent to {shown}/v1/traces",
        f"spans are not sent to {shown}/v1/traces: {cause}; they are dropped until the collector takes them",
        "12 spans of this worker were dropped",
    ]


def test_a_queue_of_fixed_length_takes_no_more_while_a_collector_does_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    with Collector(status=None) as collector:
        with telemetry(
            metrics,
            collector.url,
            end_s=0.0,
            OTEL_BSP_MAX_QUEUE_SIZE="600",
            OTEL_METRICS_EXPORTER="none",
        ) as started:
            record(started, 512)
            collector.wait_for(lambda: collector.requests["/v1/traces"])  # these are under way
            record(started, 1000)
            assert dropped(metrics) == {"queue-full": 400, "not-sent": 0}
        assert not collector.release.is_set(), "the end did not wait for the answer"
    assert "spans of this worker were dropped" in caplog.text


def test_requests_may_be_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with Collector() as collector:
        with telemetry(Metrics(), collector.url) as started:
            record(started, 1)
        assert len(collector.spans) == 1
        assert collector.encodings == {"gzip"}


def test_a_metric_that_cannot_be_read_costs_one_export(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    calls = []

    def gauges() -> Iterator[DelayHistogram]:
        calls.append(1)
        if len(calls) == 2:  # the first call is that of the registration
            raise RuntimeError("dictionary changed size during iteration")
        yield from ()

    metrics.watch(gauges)  # type: ignore[arg-type] # it yields nothing
    with Collector() as collector:
        with telemetry(metrics, collector.url, OTEL_METRIC_EXPORT_INTERVAL="10", OTEL_TRACES_EXPORTER="none"):
            collector.wait_for(lambda: collector.metrics)
        assert caplog.text.count("the metrics of this interval are not sent") == 1
