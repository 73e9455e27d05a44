"""Web application: a reader, a writer and the pages, in one process with one store."""

from __future__ import annotations

import logging
import socket
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from nicegui import app as nicegui_app
from nicegui import ui

from streamapp.errors import StreamappError, UsageError
from streamapp.people.pauses import PauseRule
from streamapp.people.people_store import PeopleStore
from streamapp.web.annotation_terms import Terms
from streamapp.web.audit_log import AuditLog
from streamapp.web.certificate import server_tls
from streamapp.web.clock import now_ms
from streamapp.web.guard import LOOPBACK, Entry, Guard
from streamapp.web.layout.hints import WORDS_PAGE
from streamapp.web.layout.theme import serve_assets
from streamapp.web.page_frame import Person
from streamapp.web.pages.label_page import LabelPage
from streamapp.web.pages.review.review_page import ReviewPage
from streamapp.web.pages.start_page import StartPage
from streamapp.web.pages.sure_page import SurePage
from streamapp.web.pages.surroundings import Surroundings
from streamapp.web.pages.watch_pages import add_watch_pages
from streamapp.web.pages.words_page import words_page
from streamapp.web.people.audit_reader import AuditReader
from streamapp.web.people.people_figures import PeopleFigures
from streamapp.web.people.people_page import add_people_pages
from streamapp.web.proxy import Proxy
from streamapp.web.pseudonyms import Pseudonyms
from streamapp.web.queue.answer_writer import Writer
from streamapp.web.queue.cards import Counts
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.queue.quality.gold_file import GoldRecord
from streamapp.web.queue.request_reader import Reader
from streamapp.web.store import Store
from streamapp.web.users import RESERVED, Sessions, Users
from streamapp.web.watch.inspector import Inspector
from streamapp.web.watch.watch_reader import WatchReader
from streamapp.web.watch.watched import Watched
from streamapp.web.watch.watching import Watching
from topics.clients.admin import existing
from topics.clients.cluster import Cluster
from topics.codecs.avro.output_reader import AS_WRITTEN, OutputReader
from topics.definitions import TopicNames

logger = logging.getLogger(__name__)

JOIN_S: Final = 15.0
COUNTS_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class WebPlan:
    """Where the application listens, who may sign in, and how long leases, sessions and undo windows last."""

    store: Path
    names: TopicNames
    host: str = "127.0.0.1"
    port: int = 8080
    since_ms: int | None = None
    users: Path | None = None
    annotator: str = "web"  # the annotator's name without users
    certificate: Path | None = None
    private_key: Path | None = None
    hide_guess: bool = True
    terms: Terms = field(default_factory=Terms)
    proxy: Proxy | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    experiments: Path = Path("experiments")
    environment: Mapping[str, str] = field(default_factory=dict)  # of the process that inspects models
    docs: str = ""  # address of the documentation site
    outputs: Callable[[], OutputReader] = lambda: AS_WRITTEN  # makes the reader of requests and evaluations
    gold: Sequence[GoldRecord] = ()
    pause_rule: PauseRule | None = None  # it names people who get no cards for now
    leaderboard: bool = False  # annotators see the number of everybody's answers
    pseudonyms: Path | None = None  # file of the key that makes names into pseudonyms

    def __post_init__(self) -> None:
        """Refuse an address without authentication, or with two kinds of it, and options that cannot be."""
        if self.docs and not self.docs.startswith(("http://", "https://")):
            message = f"--docs {self.docs} must begin with https:// or http://; name the documentation site"
            raise UsageError(message)
        if self.host not in LOOPBACK and self.users is None and self.proxy is None:
            message = (
                f"--host {self.host} must be a loopback address unless --users names who may sign in; make "
                "the file with 'grove web --users FILE --add-user NAME', or name --proxy-header"
            )
            raise UsageError(message)
        if self.users is not None and self.proxy is not None:
            message = (
                "--users and --proxy-header must not be given together: each of them decides who comes in"
            )
            raise UsageError(message)
        if self.annotator in RESERVED:
            message = (
                f"--annotator {self.annotator} must not be the user of entries of the application; choose "
                "another name"
            )
            raise UsageError(message)
        server_tls(self.certificate, self.private_key)


class _Part(threading.Thread):
    """A thread of the application. When it ends, the application ends."""

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
    """Serve until interrupted; `started` gets the address. Raises the error of the reader or the writer."""
    users = Users(plan.users) if plan.users is not None else None
    with _place(plan) as place:
        _run(plan, kafka, started, users, place)


def _run(
    plan: WebPlan,
    kafka: Mapping[str, Any],
    started: Callable[[str], None],
    users: Users | None,
    place: socket.socket,
) -> None:
    store = Store(plan.store)
    watched = Watched(plan.store.with_name(f"{plan.store.stem}-watched.sqlite"))
    people = PeopleStore(plan.store.with_name(f"{plan.store.stem}-people.sqlite"))
    inspector = Inspector(plan.environment)
    try:
        audit = AuditLog(store)
        figures = PeopleFigures(people, audit, plan.leaderboard, plan.pause_rule is not None)
        queue = LabelQueue(store, plan.terms, figures.why_paused)
        queue.topics.keep_gold(plan.gold)
        counted = _Counted(queue)
        names = existing(Cluster(kafka), plan.names)
        reader = Reader(kafka, names, queue, plan.since_ms, plan.outputs())
        watch_reader = WatchReader(kafka, names, watched, plan.since_ms, plan.outputs())
        audit_reader = AuditReader(kafka, names, people, audit, plan.pause_rule)
        writer = Writer(kafka, names, queue, audit)
        here = plan.host in LOOPBACK and plan.proxy is None
        alias = str if plan.pseudonyms is None else Pseudonyms(plan.pseudonyms)
        entry = Entry(Sessions(store), users, plan.annotator, here, audit, plan.proxy, alias)
        around = Surroundings(
            queue,
            counted.counts,
            lambda: writer.trouble,
            plan.hide_guess,
            users is not None,
            plan.units,
            lambda: len(figures.paused()),
        )

        def noted(user: str, action: str, detail: str) -> None:
            audit.note(user, action, now_ms(), detail=detail)

        watching = Watching(
            watched, inspector, plan.experiments, noted, users is not None, waiting=queue.overview.waiting
        )
        server = _server(plan, around, entry, started, watching, figures)

        def end() -> None:
            server.should_exit = True

        parts = [
            _Part("counts", counted.run, end),
            _Part("reader", reader.run, end),
            _Part("watch reader", watch_reader.run, end),
            _Part("audit reader", audit_reader.run, end),
            _Part("writer", writer.run, end),
        ]
        for part in parts:
            part.start()
        try:
            server.run([place])
        finally:
            for running in (counted, reader, watch_reader, audit_reader, writer):
                running.stop()
            for part in parts:
                part.join(JOIN_S)
        for part in parts:
            if part.error is not None:
                raise part.error
    except sqlite3.DatabaseError as error:
        message = (
            f"--state {plan.store} or a file beside it: {error}; make room there, or name another file (what "
            "is lost is read from the topics)"
        )
        raise StreamappError(message) from error
    finally:
        inspector.close()
        people.close()
        watched.close()
        store.close()


def _place(plan: WebPlan) -> socket.socket:
    """Return the address to listen on, bound before any thread is started."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            plan.host, plan.port, type=socket.SOCK_STREAM
        )[0]
        place = socket.socket(family, kind, protocol)
        try:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            place.bind(address)
        except OSError:
            place.close()
            raise
    except OSError as error:
        where = f"--host {plan.host} --port {plan.port}"
        message = f"{where} cannot be listened on: {error.strerror}; name another port (0 takes a free one)"
        raise UsageError(message) from None
    return place


class _Server(uvicorn.Server):  # type: ignore[misc] # its types are not looked at
    """A server that reports when it listens."""

    said: Callable[[], None]

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.said()


def _server(
    plan: WebPlan,
    around: Surroundings,
    entry: Entry,
    started: Callable[[str], None],
    watching: Watching | None = None,
    figures: PeopleFigures | None = None,
) -> _Server:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    def person(request: Request) -> Person:
        scope = request.scope
        return Person(scope["annotator"], scope["signed_in"], scope["role"])

    def start(request: Request) -> None:
        StartPage(around, watching, person(request))

    def label(request: Request) -> None:
        LabelPage(around, person(request))

    def sure(request: Request) -> None:
        SurePage(around, person(request))

    def words(request: Request) -> None:
        words_page(person(request), plan.docs, has_users=around.has_users)

    serve_assets()

    def review(request: Request) -> None:
        ReviewPage(around, person(request))

    ui.page("/", title="grove: start")(start)
    ui.page("/label", title="grove: label")(label)
    ui.page("/sure", title="grove: confirm several")(sure)
    ui.page(WORDS_PAGE, title="grove: words")(words)
    ui.page("/review", title="grove: review")(review)
    if watching is not None:
        add_watch_pages(watching, person)
    if figures is not None:
        add_people_pages(figures, person, has_users=around.has_users)
    # Quasar's bar for requests under way is a progress bar without a name, which is an error for screen
    # readers.
    nicegui_app.config.quasar_config["loadingBar"]["skipHijack"] = True
    ui.run_with(app, title="grove", language="en-US", dark=None, tailwind=False, show_welcome_message=False)
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


class _Counted:
    """Counts of the queue, read once a second in a separate thread, however many pages show them."""

    def __init__(self, queue: LabelQueue) -> None:
        self._queue, self._counts, self._stop = queue, queue.counts(now_ms()), threading.Event()

    def counts(self) -> Counts:
        """Return counts that are at most about a second old."""
        return self._counts

    def run(self) -> None:
        """Count until stopped."""
        while not self._stop.wait(COUNTS_S):
            self._counts = self._queue.counts(now_ms())

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()
