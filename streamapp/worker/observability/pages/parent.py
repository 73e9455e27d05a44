"""Pages of a parent of several workers: health of all, their metrics, and their models.

`/livez` is of the parent itself, `/readyz` and `/metrics` of all workers, and `/models/KEY` of the worker
that has the model.

Its `/metrics` are the metrics of every worker that answers, each with a label `worker`, and the parent's
counts of their processes: a scrape of the parent has everything, so the workers must not be scraped too.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from streamapp.settings import Settings
from streamapp.worker.observability.health import Check
from streamapp.worker.observability.pages.checks import answer
from streamapp.worker.observability.pages.snapshot_page import SECONDS, SNAPSHOT

WORKER_SECONDS = 2.0  # a worker's page is waited for
CLIENT_SECONDS = 30.0  # a client may be silent: else each one that is cut off would keep a thread for ever
NOBODY = Check("workers", False, "none is started yet, or all are to leave")


class ChildWorker(Protocol):
    """A child of the parent, as far as the pages show it."""

    settings: Settings
    process: Any
    restarts: int

    @property
    def name(self) -> str:
        """The worker's name."""


class ParentPages:
    """A server with separate threads, which runs while the block lasts."""

    def __init__(self, settings: Settings, workers: Sequence[ChildWorker]) -> None:
        self._server = ThreadingHTTPServer((settings.web_host, settings.web_port), _Handler)
        self._server.daemon_threads = True
        self._server.workers = workers  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, name="pages", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    timeout = CLIENT_SECONDS

    def do_GET(self) -> None:
        workers: Sequence[ChildWorker] = self.server.workers  # type: ignore[attr-defined]
        asked = urlsplit(self.path)
        verbose = "verbose" in asked.query
        if asked.path == "/livez":
            status, text = answer("livez", [Check("parent", True, "")], verbose=verbose)
        elif asked.path == "/readyz":
            status, text = answer("readyz", readiness(workers), verbose=verbose)
        elif asked.path == "/metrics":
            self._reply(200, generate_latest(metrics(workers)), CONTENT_TYPE_LATEST)
            return
        elif asked.path.startswith("/models/"):
            self._reply(*model(workers, asked.path))
            return
        else:
            status, text = 404, "not found; there are /livez, /readyz, /metrics and /models/KEY\n"
        self._reply(status, text.encode(), "text/plain; charset=utf-8")

    def _reply(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


def address(worker: ChildWorker) -> str:
    host = f"[{worker.settings.web_host}]" if ":" in worker.settings.web_host else worker.settings.web_host
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - where it listens, not us
    return f"http://{host}:{worker.settings.web_port}"


def model(workers: Sequence[ChildWorker], path: str) -> tuple[int, bytes, str]:
    """Return status, body and type of the first worker's answer that has the model."""
    silent = []
    for worker in workers:
        try:
            with urllib.request.urlopen(address(worker) + path, timeout=SECONDS) as page:  # noqa: S310 - ours
                return 200, page.read(), SNAPSHOT
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:  # it has the model, and does not serve it now, or not at all
                    return error.code, error.read(), "text/plain; charset=utf-8"
        except OSError as error:
            silent.append(f"{worker.name} does not answer ({error})")
    reasons = "; ".join(["no model with this key in the partitions of the workers", *silent])
    return 404, f"{reasons}\n".encode(), "text/plain; charset=utf-8"


def _page(worker: ChildWorker, path: str) -> str:
    """Return a page of a worker; raises OSError if it does not answer or refuses."""
    url = address(worker) + path
    with urllib.request.urlopen(url, timeout=WORKER_SECONDS) as page:  # noqa: S310 - a URL of our own
        return str(page.read().decode("utf-8", "replace"))


def ready(worker: ChildWorker) -> Check:
    try:
        _page(worker, "/readyz")
    except urllib.error.HTTPError as error:
        failed = [
            line for line in error.read().decode("utf-8", "replace").splitlines() if line.startswith("[-]")
        ]
        return Check(worker.name, False, "; ".join(failed))
    except OSError as error:
        return Check(worker.name, False, f"does not answer ({error})")
    return Check(worker.name, True, "")


def readiness(workers: Sequence[ChildWorker]) -> list[Check]:
    """Return the checks of all workers, which are requested at the same time: a probe waits a few seconds."""
    asked = list(workers)
    with ThreadPoolExecutor(max(1, len(asked))) as asking:
        return list(asking.map(ready, asked)) or [NOBODY]


def metrics(workers: Sequence[ChildWorker]) -> CollectorRegistry:
    """Return the metrics of all workers, which workers run and how often they were restarted."""
    registry = CollectorRegistry()
    up = Gauge(
        "grove_worker_up", "Whether the worker's process runs (process).", ["worker"], registry=registry
    )
    restarts = Gauge(
        "grove_worker_restarts",
        "Number of restarts by the parent (process).",
        ["worker"],
        registry=registry,
    )
    for worker in list(workers):
        up.labels(worker.name).set(worker.process is not None and worker.process.status is None)
        restarts.labels(worker.name).set(worker.restarts)
    registry.register(_Merged(list(workers)))
    return registry


class _Merged(Collector):
    """The metrics of several workers as one set, family by family."""

    def __init__(self, workers: Sequence[ChildWorker]) -> None:
        self._workers = workers

    def describe(self) -> list[Metric]:
        """Return no names: a registry would have to scrape every worker for them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the workers that answer; a worker that does not is left out."""
        families: dict[str, Metric] = {}
        with ThreadPoolExecutor(max(1, len(self._workers))) as asking:
            texts = asking.map(_metrics_of, self._workers)
            for worker, text in zip(self._workers, texts, strict=True):
                for family in text_string_to_metric_families(text):
                    merged = families.setdefault(
                        family.name, Metric(family.name, family.documentation, family.type)
                    )
                    merged.samples += [
                        sample._replace(labels={**sample.labels, "worker": worker.name})
                        for sample in family.samples
                    ]
        yield from families.values()


def _metrics_of(worker: ChildWorker) -> str:
    try:
        return _page(worker, "/metrics")
    except OSError:
        return ""
