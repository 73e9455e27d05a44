"""Worker: one process; starts the Faust app, stops it on a signal, ends with an exit code.

SIGTERM and SIGINT end it and keep its membership, so that a restart within `session.timeout.ms` finds its
partitions; SIGUSR2 (`grove worker drain`) ends it and leaves the group, so that other workers take them at
once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import faust
from faust.exceptions import ConsistencyError

from streamapp.errors import ChangelogError, SettingsError, StreamappError
from streamapp.settings import Settings
from streamapp.settings.clients import known_schemas, librdkafka_properties, offset_reset
from streamapp.settings.loading import unknown_variables
from streamapp.settings.needs import install_line, missing
from streamapp.settings.properties import NOT_OF_A_WORKER
from streamapp.worker.app import add_parts, create_app, driver_of
from streamapp.worker.compile_ahead import tell_ready
from streamapp.worker.control import DRAIN
from streamapp.worker.driver.faust_app import App
from streamapp.worker.driver.thread_end import CANCELLED_S, cancel_within
from streamapp.worker.freed_memory import keep_giving_back, limit_arenas
from streamapp.worker.gauges import memory_counts, sender_gauges, snapshot_gauges, task_gauges, token_gauges
from streamapp.worker.group_check import check_group
from streamapp.worker.journal.log import JournalLog
from streamapp.worker.observability.cgroup_memory import MemoryLimit
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.logs import configure_logs
from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.outputs.record_sizes import OutputLimits
from streamapp.worker.outputs.schema_registration import registered_schemas
from streamapp.worker.outputs.senders import plain_producer, transactional_producer
from streamapp.worker.processing.driver import Driver
from streamapp.worker.processing.pipeline import Pipeline
from streamapp.worker.processing.task_manager import TaskManager
from streamapp.worker.processing.transactions import Transactions
from streamapp.worker.reserved_ports import check_free, free_port_at
from streamapp.worker.restore.noted_counts import noted_counts
from streamapp.worker.restore.rebuild import Restored, RestoreRequest
from streamapp.worker.restore.restorer import Restorer
from streamapp.worker.snapshots.schedule import SnapshotLimits
from streamapp.worker.snapshots.snapshot_table import SnapshotTable, add_table
from streamapp.worker.snapshots.snapshot_writer import SnapshotWriter
from streamapp.worker.state_directory import StateDirectory, default_instance
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.sources import source_topics
from streamapp.worker.task.task_config import TaskConfig
from streamapp.worker.telemetry.switches import read_switches
from topics.clients import admin
from topics.clients.cluster import Cluster
from topics.definitions import TopicNames
from topics.errors import TopicsError
from topics.producing.transactional_producer import TransactionalProducer
from topics.registry.known_schemas import KnownSchemas
from topics.tokens.sign_in import source_in

if TYPE_CHECKING:
    from streamapp.worker.telemetry.telemetry import Telemetry
    from streamapp.worker.telemetry.traces import Traces

logger = logging.getLogger(__name__)

# At Python's threshold of 700 objects, the collector would walk the objects of a large run again and again.
# Up to the first threshold, cycles stay in memory, with all that they hold. They come from asyncio, for
# example from each closed connection of the pages; runs make none (tests/topology/test_garbage.py).
GC_THRESHOLDS = (10_000, 10, 10)
EXIT_FORCED = 1
FATAL = ("missing", "denied", "partitions")  # differences of the topics that prevent a worker from starting


def run_worker(settings: Settings) -> int:
    """Run one worker until a signal ends it; return the exit code. Raises StreamappError before it starts."""
    limit_arenas()
    instance = settings.group_instance_id or default_instance(0)
    configure_logs(settings.log_level, settings.log_format, worker=instance)
    tell_unknown()
    with StateDirectory(settings.state_dir, instance) as directory:
        partitions, features = check_topics(settings)
        kafka, names = librdkafka_properties(settings), TopicNames(settings.topics_prefix, features)
        group = settings.application_id
        journalled = partial(noted_counts, kafka, group, names.journal, partitions)
        check_group(kafka, group, instance, names, partitions, journalled)
        limits = OutputLimits.of_cluster(kafka, names)
        schema_ids = registered_schemas(settings, names)
        settings = with_port(settings)
        tell_unused(settings)
        logger.info("pages at http://%s:%d", settings.web_host, settings.web_port)
        # Kernels are loaded only now, so that errors in settings or topics are reported at once.
        tell_ready(settings)
        metrics, health = Metrics(), Health()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        transactional = transactional_producer(settings, limits, instance, lambda: health.stopping)
        open_ahead(transactional)
        exactly_once = settings.processing_guarantee == "exactly_once"
        outputs = transactional if exactly_once else plain_producer(settings, limits, lambda: health.stopping)
        memory = ModelMemory(settings.models_max_bytes, directory.path)
        schemas = known_schemas(settings)
        app = create_app(settings, instance, features=features, partitions=partitions, schemas=schemas)
        snapshots = snapshot_writer(settings, app, names, metrics)
        telemetry = telemetry_of(settings, instance, metrics)
        traces = None if telemetry is None else telemetry.traces
        pipeline = pipeline_type(traces)(
            settings,
            outputs,
            metrics,
            partitions=partitions,
            limits=limits,
            memory=memory,
            tasks_lock=snapshots.tasks_lock,
            features=features,
            schema_ids=schema_ids,
        )
        restore = restorer(
            settings, lambda: memory.apart(partitions), features=features, schemas=schemas
        ).restore
        manager = create_manager(
            settings,
            driver_of(app),
            pipeline,
            transactional,
            restore,
            snapshots,
            metrics,
            health,
            features=features,
            partitions=partitions,
            traces=traces,
        )
        if (tokens := source_in(kafka)) is not None:
            health.token = lambda: tokens.status
            metrics.watch(lambda: token_gauges(tokens))
        metrics.watch(lambda: task_gauges(manager))
        metrics.watch(lambda: snapshot_gauges(snapshots))
        metrics.watch(lambda: memory_counts(memory))
        senders = {transactional, outputs}  # one and the same with exactly once
        metrics.watch(lambda: sender_gauges(senders))
        add_parts(app, settings, instance, manager=manager, metrics=metrics, health=health, traces=traces)
        health.disk = lambda: directory.failure() or snapshots.disk_failure
        health.snapshots = lambda: snapshots.broker_failure
        health.memory = MemoryLimit().failure
        gc.freeze()  # modules and kernels live as long as the process: the collector can skip them
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            return run_app(app, loop, health)
        finally:
            # Everything that counts is flushed by now; else a producer would wait for a broker that is away.
            outputs.close()
            transactional.close()
            if telemetry is not None:
                telemetry.close()
            if schemas is not None:
                schemas.close()


def open_ahead(producer: TransactionalProducer) -> None:
    """Open a producer in a thread, while the rest of the worker is made.

    The open transaction of a predecessor that was killed hides its offsets and its last journal records, and
    the broker needs a while to end it. An error is raised by the call before the first restore, which repeats
    a failed attempt.
    """

    def attempt() -> None:
        with contextlib.suppress(TopicsError):
            producer.open()

    threading.Thread(target=attempt, name="open-ahead", daemon=True).start()


def telemetry_of(settings: Settings, instance: str, metrics: Metrics) -> Telemetry | None:
    """Return the telemetry that `OTEL_*` variables switch on; None: nothing of OpenTelemetry is imported."""
    switches = read_switches(os.environ)
    for problem in switches.problems:
        logger.warning("%s", problem)
    if not switches.is_any:
        return None
    if absent := missing("otel"):
        logger.warning(
            "no spans or metrics are sent: OTEL_* variables switch them on, and %s is not installed; "
            "install with: %s",
            " and ".join(absent),
            install_line("otel"),
        )
        return None
    from streamapp.worker.telemetry.telemetry import start_telemetry

    return start_telemetry(switches, settings, instance, metrics, os.environ)


def pipeline_type(traces: Traces | None) -> Callable[..., Pipeline]:
    """Return the class of a worker's pipeline; without traces it has no code of them."""
    if traces is None:
        return Pipeline
    from streamapp.worker.processing.traced_pipeline import TracedPipeline

    return partial(TracedPipeline, traces=traces)


def create_manager(
    settings: Settings,
    driver: Driver,
    pipeline: Pipeline,
    producer: TransactionalProducer,
    restore: Callable[[RestoreRequest], Restored],
    snapshots: SnapshotWriter,
    metrics: Metrics,
    health: Health,
    *,
    features: bool = True,
    partitions: int | None = None,
    traces: Traces | None = None,
) -> TaskManager:
    """Return the task manager of a worker, with all objects that it commits through and restores from.

    `producer`: takes the journal; with exactly once, the outputs of `pipeline` too. `partitions`: of each
    topic, noted with committed offsets.
    """
    names = TopicNames(settings.topics_prefix, features)
    exactly_once = settings.processing_guarantee == "exactly_once"
    answers = {names.instances: names.predictions} if exactly_once else {}
    return TaskManager(
        driver,
        pipeline,
        Transactions(producer, names.journal, settings.application_id, partitions, answers),
        restore,
        snapshots,
        metrics,
        health,
        topics=source_topics(names),
        commit_interval=settings.commit_interval_ms / 1000,
        exactly_once=exactly_once,
        commit_start=offset_reset(settings) == "latest",
        traces=traces,
    )


def restorer(
    settings: Settings,
    memory: Callable[[], ModelMemory],
    *,
    features: bool = True,
    schemas: KnownSchemas | None = None,
) -> Restorer:
    """Return the restorer of partitions from snapshots and journal.

    `memory`: returns a limit for the models of each restore; `features`: the topics of feature acquisition
    exist; `schemas`: of the schema registry, if it is in use.
    """
    names = TopicNames(settings.topics_prefix, features)
    config = TaskConfig.from_settings(settings, features=features)
    return Restorer(librdkafka_properties(settings), settings.application_id, names, config, memory, schemas)


def snapshot_writer(settings: Settings, app: App, names: TopicNames, metrics: Metrics) -> SnapshotWriter:
    """Return the writer of a worker's snapshots, with their table, which becomes a part of `app`."""
    limits = SnapshotLimits(
        settings.snapshot_max_replay_ms / 1000,
        settings.snapshot_max_replay_bytes,
        settings.snapshot_interval_ms / 1000,
    )
    journal = JournalLog(librdkafka_properties(settings), names.journal)
    return SnapshotWriter(SnapshotTable(add_table(app, names.snapshots)), journal, metrics, limits)


ENDS_S: Final = 120.0
"""Time that a worker that has failed has to stop: nothing of it is committed any more."""


def run_app(app: App, loop: asyncio.AbstractEventLoop, health: Health) -> int:
    """Run the app until it ends; return the exit code. Raises an error that an operator can fix."""
    worker = Worker(app, loop=loop, health=health)
    watches = health.keep_beating(), health.keep_watching_disk(), health.keep_watching_memory()
    watching = [loop.create_task(watch) for watch in (*watches, keep_giving_back())]
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        reason = worker.crash_reason or worker.start_failure
        if isinstance(reason, ConsistencyError):  # it names partition and offsets
            raise ChangelogError(" ".join(str(reason).split()).rstrip("."), str(app.conf.datadir)) from None
        if isinstance(reason, (StreamappError, TopicsError)):
            raise reason from None
        return int(end.code or 0)
    finally:
        for task in watching:
            task.cancel()
        worker.has_stopped()


def end_within(seconds: float) -> threading.Timer:
    """End the process when the time is over, with a log line for each task and thread that has not stopped.

    A part that waits for another part that has failed would keep a partition from the next worker for ever.
    """

    def end() -> None:
        logger.critical("the worker has failed, and has not stopped for %g s: ending at once", seconds)
        tasks = [task for task in gc.get_objects() if isinstance(task, asyncio.Task)]  # of all loops
        for task in tasks:
            if not task.done():
                logger.critical("has not stopped: %s", " awaits ".join(_awaiting(task.get_coro())))
        frames = sys._current_frames()  # noqa: SLF001 - documented, the name warns of its use
        for thread in _lasting_threads():
            calls = traceback.extract_stack(frames.get(thread.ident or 0))
            chain = " calls ".join(f"{call.name} ({call.filename} line {call.lineno})" for call in calls)
            logger.critical("has not stopped: thread %s: %s", thread.name, chain)
        logging.shutdown()
        os._exit(EXIT_FORCED)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer


def _lasting_threads() -> list[threading.Thread]:
    """Return the threads without which a process does not end."""
    return [thread for thread in threading.enumerate() if not thread.daemon]


def _awaiting(coroutine: Any) -> Iterator[str]:
    """Yield name and line of a coroutine, of the one that it waits for, and so on."""
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        yield f"{coroutine.__qualname__} (line {frame.f_lineno})"
        coroutine = coroutine.cr_await


class Worker(faust.Worker):
    """Faust's worker with our logs; a second signal ends the process at once."""

    def __init__(self, app: App, *, loop: asyncio.AbstractEventLoop, health: Health) -> None:
        super().__init__(app, loop=loop, override_logging=False, redirect_stdouts=False, quiet=True)
        self.spinner = None
        self.start_failure: Exception | None = None
        self._health = health
        self._app = app
        self._ending: threading.Timer | None = None

    def _crash(self, reason: BaseException) -> None:
        super()._crash(reason)
        self._ending = self._ending or end_within(ENDS_S)

    def has_stopped(self) -> None:
        """Note that all parts have stopped, unless a thread is left that would keep the process."""
        if self._ending is not None and _lasting_threads() == [threading.current_thread()]:
            self._ending.cancel()

    async def start(self) -> None:
        """Start; keep an error that prevents the start, because Faust reduces it to an exit code."""
        try:
            await super().start()
        except Exception as error:
            self.start_failure = error
            raise

    def _install_signal_handlers_unix(self) -> None:
        # Not through the event loop: a second signal must work while a run holds it.
        for number in (signal.SIGTERM, signal.SIGINT, DRAIN):
            signal.signal(number, self._on_signal)
        self.loop.add_signal_handler(signal.SIGUSR1, self._on_sigusr1)  # dumps tracebacks

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._health.stopping and number == DRAIN:
            return
        if self._health.stopping:
            logger.warning("second signal (%s): ending at once, uncommitted work will be done again", name)
            logging.shutdown()
            os._exit(EXIT_FORCED)
        self._app.leaving = number == DRAIN
        leaving = ", leaving the group" if self._app.leaving else ""
        logger.info("%s: finishing the run, flushing, committing%s", name, leaving)
        self._health.stopping = True
        self._flag_as_shutdown_by_signal()
        self.loop.call_soon_threadsafe(self._schedule_shutdown, signal.Signals(number))

    def _gather_all(self) -> None:
        # Everything is stopped and committed. mode would wait a second for timers that run for ever, and
        # cancel them only then; the partitions wait meanwhile for the next process of this member.
        self.loop.run_until_complete(cancel_within(asyncio.all_tasks(self.loop), CANCELLED_S))

    async def _sentinel_task(self) -> None:
        """End at once: mode's waits a second, in which nothing happens."""


def check_topics(settings: Settings) -> tuple[int, bool]:
    """Return the partition count of the topics, and whether the topics of feature acquisition exist.

    Raise an error that describes topics that are missing or wrong. An older installation has no topics of
    feature acquisition: its worker warns and runs, and refuses models that would buy features. If only some
    of them exist, that is an error.
    """
    kafka, names = librdkafka_properties(settings), TopicNames(settings.topics_prefix)
    differences = admin.check(kafka, names)
    optional = {name for name, topic in names.all().items() if topic.optional}
    missing = {difference.topic for difference in differences if difference.what == "missing"}
    features = not optional <= missing
    spared = {name for name, topic in names.all().items() if topic.of_web} | (set() if features else optional)
    fatal = [
        difference.message
        for difference in differences
        if difference.what in FATAL and difference.topic not in spared
    ]
    if fatal:
        raise SettingsError("; ".join(fatal))
    unseen = [difference for difference in differences if difference.what == "settings"]
    not_ours = [
        difference for difference in differences if difference.what == "denied"
    ]  # denied, and owned by other systems
    for difference in differences:
        if difference not in (*unseen[1:], *not_ours):
            logger.warning("%s", difference.message)
    if len(unseen) > 1:
        logger.warning("the settings of %d more topics cannot be compared either", len(unseen) - 1)
    if not features and TaskConfig.from_settings(settings).default_spec().acquirer is not None:
        message = (
            f"model.spec={settings.model_spec!r} buys features and needs the topics "
            f"{' and '.join(sorted(optional))}, which are missing; create them with 'grove topics create'"
        )
        raise SettingsError(message)
    return Cluster(kafka).partition_count(names.instances), features


def tell_unused(settings: Settings) -> None:
    """Warn of properties that have no effect on a worker."""
    for name in sorted(NOT_OF_A_WORKER & settings.kafka.keys()):
        logger.warning(
            "%s has no effect on a worker: its consumer has no such property (docs/settings.md)", name
        )


def tell_unknown() -> None:
    """Warn of environment variables that look like settings but are not settings."""
    for sentence in unknown_variables():
        logger.warning("%s; it has no effect", sentence)


def with_port(settings: Settings) -> Settings:
    """Return the settings with the port of the pages, any free one for 0; raise an error if it is taken.

    A port that the settings do not name stays reserved while this process lives: its server starts later, and
    starts again.
    """
    try:
        port = settings.web_port or free_port_at(settings.web_host)
        check_free(port, settings.web_host)
    except OSError as error:
        message = (
            f"web.port={settings.web_port} must be free at web.host={settings.web_host}: "
            f"{error.strerror}; choose another port"
        )
        raise SettingsError(message) from error
    return settings.model_copy(update={"web_port": port})
