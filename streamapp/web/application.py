"""Web application: a reader, a writer and the pages, in one process with one store."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from nicegui import ui

from streamapp.errors import UsageError
from streamapp.web.cards import Counts
from streamapp.web.clock import now_ms
from streamapp.web.guard import LOOPBACK, Entry, Guard
from streamapp.web.label_page import LabelPage, Person, Surroundings
from streamapp.web.label_queue import LabelQueue, Terms
from streamapp.web.reader import Reader
from streamapp.web.store import Store
from streamapp.web.users import Sessions, Users
from streamapp.web.writer import Writer
from topics.definitions import TopicNames

logger = logging.getLogger(__name__)

JOIN_S: Final = 15.0
COUNTS_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class WebPlan:
    """Where the application listens, who may come in, and how long things last."""

    store: Path
    names: TopicNames
    host: str = "127.0.0.1"
    port: int = 8080
    since_ms: int | None = None
    users: Path | None = None
    annotator: str = "web"  # without users
    certificate: Path | None = None
    private_key: Path | None = None
    hide_guess: bool = True
    terms: Terms = field(default_factory=Terms)

    def __post_init__(self) -> None:
        """Refuse doors without a lock."""
        if self.host not in LOOPBACK and self.users is None:
            message = (
                f"--host {self.host} must be a loopback address unless --users names who may sign in; make "
                "the file with 'grove web --users FILE --add-user NAME'"
            )
            raise UsageError(message)
        if (self.certificate is None) != (self.private_key is None):
            message = "--certificate and --private-key must be given together"
            raise UsageError(message)


class _Part(threading.Thread):
    """A thread of the application; its end is the end of all."""

    def __init__(self, name: str, work: Callable[[], None], ended: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._work, self._ended = work, ended
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            self.error = error
        self._ended()


def run_web(plan: WebPlan, kafka: Mapping[str, Any], started: Callable[[str], None]) -> None:
    """Serve until interrupted; `started` gets the address. Raises what ended the reader or the writer."""
    users = Users(plan.users) if plan.users is not None else None
    store = Store(plan.store)
    try:
        queue = LabelQueue(store, plan.terms)
        reader = Reader(kafka, plan.names, queue, plan.since_ms)
        writer = Writer(kafka, plan.names, queue)
        entry = Entry(Sessions(store), users, plan.annotator, plan.host in LOOPBACK)
        around = Surroundings(
            queue, _Cached(queue).counts, lambda: writer.trouble, plan.hide_guess, users is not None
        )
        server = _server(plan, around, entry, started)

        def end() -> None:
            server.should_exit = True

        parts = [_Part("reader", reader.run, end), _Part("writer", writer.run, end)]
        for part in parts:
            part.start()
        try:
            server.run()
        finally:
            for running in (reader, writer):
                running.stop()
            for part in parts:
                part.join(JOIN_S)
        for part in parts:
            if part.error is not None:
                raise part.error
    finally:
        store.close()


class _Server(uvicorn.Server):  # type: ignore[misc] # its types are not looked at
    """Says when it listens."""

    said: Callable[[], None]

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.said()


def _server(plan: WebPlan, around: Surroundings, entry: Entry, started: Callable[[str], None]) -> _Server:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    def page(request: Request) -> None:
        LabelPage(around, Person(request.scope["annotator"], request.scope["signed_in"]))

    ui.page("/", title="grove: label")(page)
    ui.run_with(app, title="grove", language="en-US", tailwind=False, show_welcome_message=False)
    config = uvicorn.Config(
        Guard(app, entry),
        host=plan.host,
        port=plan.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=1 << 20,
        timeout_graceful_shutdown=3,
        ssl_certfile=plan.certificate,
        ssl_keyfile=plan.private_key,
    )
    server = _Server(config)

    def listening() -> None:
        port = server.servers[0].sockets[0].getsockname()[1]
        scheme = "https" if plan.certificate else "http"
        host = f"[{plan.host}]" if ":" in plan.host else plan.host
        started(f"{scheme}://{host}:{port}/")

    server.said = listening
    return server


class _Cached:
    """Counts of the queue, asked for once a second, however many pages show them."""

    def __init__(self, queue: LabelQueue) -> None:
        self._queue, self._counts, self._at = queue, queue.counts(now_ms()), time.monotonic()

    def counts(self) -> Counts:
        if time.monotonic() - self._at >= COUNTS_S:
            self._counts, self._at = self._queue.counts(now_ms()), time.monotonic()
        return self._counts
