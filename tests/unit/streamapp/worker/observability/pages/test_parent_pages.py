"""What a parent of several workers shows of them: real pages of real servers, one of which is gone."""

import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streamapp.settings import Settings
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.observability.pages.parent import ParentPages, readiness
from streamapp.worker.reserved_ports import free_ports


@dataclass
class Running:
    status: int | None = None


@dataclass
class Child:
    settings: Settings
    process: Running
    restarts: int = 0

    @property
    def name(self) -> str:
        return str(self.settings.group_instance_id)


@contextmanager
def child(name: str, answered: int) -> Iterator[Child]:
    """A worker's `/metrics`, as its own registry makes them."""
    metrics = Metrics()
    metrics.records.labels("instances", "answered").inc(answered)
    metrics.label_delay_seconds.observe(np.array([0.5] * answered))

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(generate_latest(metrics.registry))

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Child(Settings(group_instance_id=name, web_port=server.server_address[1]), Running())
        server.shutdown()


@pytest.fixture
def children() -> Iterator[list[Child]]:
    with ExitStack() as stack:
        running = [stack.enter_context(child(f"w-{n}", n)) for n in (1, 2)]
        yield [*running, Child(Settings(group_instance_id="w-3", web_port=free_ports()), Running(9), 4)]


def test_a_scrape_of_the_parent_has_the_metrics_of_every_worker_that_answers(children: list[Child]) -> None:
    settings = Settings(web_port=0)
    with (
        ParentPages(settings, children) as pages,
        urllib.request.urlopen(f"http://127.0.0.1:{pages.port}/metrics", timeout=60) as page,
    ):
        text = page.read().decode()
    found = {
        (sample.name, sample.labels["worker"], sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert [found["grove_records_total", f"w-{n}", None] for n in (1, 2)] == [1, 2]
    assert [found["grove_label_delay_seconds_bucket", f"w-{n}", "0.5"] for n in (1, 2)] == [1, 2]
    assert [found["grove_worker_up", f"w-{n}", None] for n in (1, 2, 3)] == [1, 1, 0]
    assert found["grove_worker_restarts", "w-3", None] == 4
    assert text.count("# TYPE grove_records_total counter") == 1, "one family, whoever measures it"


def test_a_parent_without_a_worker_is_not_ready() -> None:
    with (
        ParentPages(Settings(web_port=0), []) as pages,
        pytest.raises(urllib.error.HTTPError) as refused,
        urllib.request.urlopen(f"http://127.0.0.1:{pages.port}/readyz", timeout=60),
    ):
        pass
    with refused.value as page:
        assert (page.status, page.read()) == (
            503,
            b"[-]workers failed: none is started yet, or all are to leave\nreadyz check failed\n",
        )


def test_workers_are_looked_at_side_by_side() -> None:
    """One after another, twenty workers that do not answer would take longer than a probe waits."""
    n = 3
    together = threading.Barrier(n)

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            together.wait(60)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings = Settings(web_port=server.server_address[1])
        workers = [
            Child(settings.model_copy(update={"group_instance_id": f"w-{number}"}), Running())
            for number in range(n)
        ]
        checks = readiness(workers)
        server.shutdown()
    assert [(check.name, check.ok) for check in checks] == [("w-0", True), ("w-1", True), ("w-2", True)]


def test_a_client_that_sends_nothing_keeps_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.worker.observability.pages.parent._Handler.timeout", 0.01)
    with (
        ParentPages(Settings(web_port=0), []) as pages,
        socket.create_connection(("127.0.0.1", pages.port), timeout=60) as client,
    ):
        assert client.recv(1) == b"", "the parent has closed the connection"
