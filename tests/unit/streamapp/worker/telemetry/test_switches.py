"""The standard OTEL_* variables: which signals they turn on, and sentences about values of no use."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from streamapp.settings import Settings
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.telemetry.switches import Switches, endpoint_of, read_switches
from streamapp.worker.worker import telemetry_of

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
BOTH, NEITHER = Switches(traces=True, metrics=True), Switches()
TRACES, METRICS = Switches(traces=True), Switches(metrics=True)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, NEITHER),
        ({"OTEL_SERVICE_NAME": "mine", "OTEL_TRACES_SAMPLER": "always_on"}, NEITHER),
        (ENDPOINT, BOTH),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, NEITHER),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, TRACES),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://collector:4318/v1/metrics"}, METRICS),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, TRACES),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "none"}, TRACES),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, METRICS),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "prometheus"}, TRACES),
        ({"OTEL_METRICS_EXPORTER": "prometheus, OTLP"}, METRICS),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "True", "OTEL_TRACES_EXPORTER": "zipkin"}, NEITHER),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "1"}, BOTH),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, BOTH),
    ],
)
def test_signals_are_on_as_the_variables_have_it(variables: dict[str, str], expected: Switches) -> None:
    assert read_switches(variables) == expected


@pytest.mark.parametrize(
    ("variables", "on", "sentences"),
    [
        (
            ENDPOINT | {"OTEL_TRACES_EXPORTER": "zipkin"},
            METRICS,
            ["OTEL_TRACES_EXPORTER=zipkin must be otlp or none; it has no effect on spans"],
        ),
        (
            ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            NEITHER,
            [
                "OTEL_EXPORTER_OTLP_PROTOCOL=grpc must be http/protobuf, so no spans are sent; "
                "a collector usually receives http/protobuf on port 4318",
                "OTEL_EXPORTER_OTLP_PROTOCOL=grpc must be http/protobuf, so no metrics are sent; "
                "a collector usually receives http/protobuf on port 4318",
            ],
        ),
        (
            ENDPOINT
            | {
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
                "OTEL_METRICS_EXPORTER": "none",
            },
            TRACES,
            [],
        ),
        (
            ENDPOINT | {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"},
            BOTH,
            [
                "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta has no effect: "
                "sums are cumulative, as on /metrics"
            ],
        ),
    ],
)
def test_a_value_of_no_use_has_a_sentence(
    variables: dict[str, str], on: Switches, sentences: list[str]
) -> None:
    switches = read_switches(variables)
    assert (switches.traces, switches.metrics) == (on.traces, on.metrics)
    assert list(switches.problems) == sentences


def test_an_endpoint_of_a_signal_is_used_as_it_is() -> None:
    own = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://other/spans"}
    assert endpoint_of(ENDPOINT | own, "TRACES") == "http://other/spans"
    assert endpoint_of(ENDPOINT | own, "METRICS") == "http://collector:4318/v1/metrics"
    assert endpoint_of({}, "TRACES") == "http://localhost:4318/v1/traces"


def test_a_worker_without_telemetry_imports_nothing_of_opentelemetry() -> None:
    program = (
        "import sys, streamapp.worker.worker, streamapp.worker.supervisor\n"
        "print(*[name for name in sys.modules if name.partition('.')[0] == 'opentelemetry'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_without_the_extra_a_worker_goes_on_with_a_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(*next(iter(ENDPOINT.items())))
    real = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, package=None: None if name.startswith("opentelemetry") else real(name, package),
    )
    with caplog.at_level(logging.WARNING):
        assert telemetry_of(Settings(), "w", Metrics()) is None
    assert "no spans or metrics are sent: OTEL_* variables switch them on" in caplog.text
    assert "opentelemetry.sdk" in caplog.text
    assert "[otel]" in caplog.text.partition("install with: ")[2]


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many", "no spans are sent: "),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "no spans are sent: "),
        (
            "OTEL_METRIC_EXPORT_INTERVAL",
            "often",
            "no metrics are sent: OTEL_METRIC_EXPORT_INTERVAL=often must be a number of milliseconds above 0",
        ),
    ],
)
def test_a_limit_of_no_use_turns_its_signal_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: str, line: str
) -> None:
    signal = "TRACES" if "spans" in line else "METRICS"
    monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "otlp")
    monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        telemetry = telemetry_of(Settings(), "w", Metrics())
    assert telemetry is not None
    telemetry.close()
    assert line in caplog.text
    assert (telemetry.spans, telemetry.metrics, telemetry.traces) == (None, None, None)
