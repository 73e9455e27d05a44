"""An OTLP collector for tests: it receives spans and metrics over HTTP, and answers as it is told."""

from __future__ import annotations

import gzip
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATIENCE = 150

Context = tuple[str, str]
"""Trace id and span id, in hexadecimal digits."""

Series = dict[tuple[str, tuple[tuple[str, str], ...]], Any]
"""By name and labels: a number, or of a histogram the counts up to each bound, the count and the sum."""


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as the collector got it."""

    name: str
    context: Context
    parent: str  # span id; "": none
    kind: int
    start: int  # ns
    end: int
    attributes: dict[str, Any]
    links: dict[Context, dict[str, Any]]
    failed: bool
    resource: dict[str, Any] = field(repr=False)


class Collector(ThreadingHTTPServer):
    """Use as a context. `status` is its answer; None: it holds requests until `release` is set."""

    daemon_threads = True

    def __init__(self, status: int | None = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.release = threading.Event()
        self.changed = threading.Condition()
        self.requests: defaultdict[str, int] = defaultdict(int)  # by path, refused ones too
        self.encodings: set[str | None] = set()
        self.spans: list[ReceivedSpan] = []
        self.metrics: Series = {}
        self.resource: dict[str, Any] = {}  # of the metrics

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait_for(self, done: Callable[[], Any]) -> Any:
        """Return the first result that is true; it is looked for at each request."""
        with self.changed:
            result = self.changed.wait_for(done, PATIENCE)
            assert result, (dict(self.requests), len(self.spans))
            return result

    def children(self, span: ReceivedSpan) -> dict[str, list[ReceivedSpan]]:
        """The spans below a span, by name."""
        below: defaultdict[str, list[ReceivedSpan]] = defaultdict(list)
        for one in list(self.spans):
            if (one.context[0], one.parent) == span.context:
                below[one.name].append(one)
        return dict(below)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """A client that gave up is no error of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.encodings.add(self.headers.get("Content-Encoding"))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        with self.server.changed:
            self.server.requests[self.path] += 1
            status = self.server.status
            if status == 200:
                self._take(body)
            self.server.changed.notify_all()
        if status is None:
            self.server.release.wait(PATIENCE)
            status = 200
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _take(self, body: bytes) -> None:
        if self.path == "/v1/traces":
            self.server.spans += spans_of(ExportTraceServiceRequest.FromString(body))
        elif self.path == "/v1/metrics":
            request = ExportMetricsServiceRequest.FromString(body)
            self.server.metrics = dict(series_of(request))
            self.server.resource = _attributes(request.resource_metrics[0].resource.attributes)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def spans_of(request: Any) -> Iterator[ReceivedSpan]:
    for resource_spans in request.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield ReceivedSpan(
                    span.name,
                    (span.trace_id.hex(), span.span_id.hex()),
                    span.parent_span_id.hex(),
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _attributes(span.attributes),
                    {
                        (link.trace_id.hex(), link.span_id.hex()): _attributes(link.attributes)
                        for link in span.links
                    },
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    resource,
                )


def series_of(request: Any) -> Iterator[tuple[tuple[str, tuple[tuple[str, str], ...]], Any]]:
    for resource_metrics in request.resource_metrics:
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                for point in data.data_points:
                    labels = tuple(sorted(_attributes(point.attributes).items()))
                    if metric.HasField("histogram"):
                        upto, n = [], 0
                        for count in point.bucket_counts:
                            n += count
                            upto.append(n)
                        value: Any = (tuple(upto), point.count, point.sum)
                    else:
                        value = point.as_double
                    yield (metric.name, labels), value


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
