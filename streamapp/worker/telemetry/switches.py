"""Switches: which signals the standard `OTEL_*` variables turn on, read without OpenTelemetry's packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

Signal = Literal["TRACES", "METRICS"]

CONTENT: Final[dict[Signal, str]] = {"TRACES": "spans", "METRICS": "metrics"}
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
HTTP: Final = "http/protobuf"
DEFAULT_ENDPOINT: Final = "http://localhost:4318"
TEMPORALITY: Final = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"


@dataclass(frozen=True, slots=True)
class Switches:
    """The signals that are on, and a sentence for each value that turns one off by mistake."""

    traces: bool = False
    metrics: bool = False
    problems: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether a signal is on."""
        return self.traces or self.metrics


def read_switches(environment: Mapping[str, str]) -> Switches:
    """Return the switches that an environment has.

    A signal is on if its exporter is `otlp`, or if an endpoint is set and the exporter is not.
    """
    variables = {name: value.strip() for name, value in environment.items() if name.startswith("OTEL_")}
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Switches()
    has_exporter = {signal: _has_exporter(variables, signal) for signal in CONTENT}
    problems = {signal: list(_problems(variables, signal, has_exporter[signal])) for signal in CONTENT}
    is_on = {signal: has_exporter[signal] and not _protocol_problem(variables, signal) for signal in CONTENT}
    sentences = tuple(sentence for signal in CONTENT for sentence in problems[signal])
    return Switches(is_on["TRACES"], is_on["METRICS"], sentences)


def _exporters(variables: Mapping[str, str], signal: Signal) -> list[str]:
    """Return the exporters of a signal, in lower case; the variable may list several."""
    return [
        name
        for part in variables.get(f"OTEL_{signal}_EXPORTER", "").split(",")
        if (name := part.strip().lower())
    ]


def _has_exporter(variables: Mapping[str, str], signal: Signal) -> bool:
    exporters = _exporters(variables, signal)
    endpoints = (ENDPOINT, f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return "otlp" in exporters if exporters else any(variables.get(name) for name in endpoints)


def _problems(variables: Mapping[str, str], signal: Signal, has_exporter: bool) -> Iterator[str]:
    content = CONTENT[signal]
    possible = {"otlp", "none"} | (
        {"prometheus"} if signal == "METRICS" else set()
    )  # /metrics is always there
    for exporter in _exporters(variables, signal):
        if exporter not in possible:
            yield f"OTEL_{signal}_EXPORTER={exporter} must be otlp or none; it has no effect on {content}"
    if has_exporter and (problem := _protocol_problem(variables, signal)):
        yield problem
    if signal == "METRICS" and variables.get(TEMPORALITY, "cumulative").lower() != "cumulative":
        yield f"{TEMPORALITY}={variables[TEMPORALITY]} has no effect: sums are cumulative, as on /metrics"


def _protocol_problem(variables: Mapping[str, str], signal: Signal) -> str:
    """Return a sentence if the protocol of a signal is another one than ours, else an empty text."""
    name = next((n for n in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", PROTOCOL) if variables.get(n)), None)
    if name is None or variables[name].lower() == HTTP:
        return ""
    return (
        f"{name}={variables[name]} must be {HTTP}, so no {CONTENT[signal]} are sent; a collector usually "
        f"receives {HTTP} on port 4318"
    )


def endpoint_of(environment: Mapping[str, str], signal: Signal) -> str:
    """Return the URL to which a signal is sent."""
    own = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "").strip()
    base = environment.get(ENDPOINT, "").strip() or DEFAULT_ENDPOINT
    return own or f"{base.removesuffix('/')}/v1/{signal.lower()}"


def without_credentials(url: str) -> str:
    """Return a URL without user, password and query, for a log.

    >>> without_credentials("https://me:secret@collector:4318/v1/traces?key=secret")
    'https://collector:4318/v1/traces'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
