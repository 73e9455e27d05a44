"""Telemetry: spans and metrics of a worker for an OpenTelemetry collector, on by `OTEL_*` variables."""
