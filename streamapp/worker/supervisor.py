"""Supervisor: several workers on one machine, one per core, under a parent that restarts them.

The parent compiles the kernels once, gives every worker its name (`<group.instance.id>-<n>`) and its port
(`web.port` + n), restarts a dead worker under its name, and answers `/readyz` for all. When all workers are
ready it prepares one more process, which becomes the next worker that is started: a dead worker is replaced
without the time for loading. On request it restarts all of them, one by one in this way; if no process can
be prepared for that, they run on as they are. When the settings of all workers are wrong (exit code 64 or
78), they would fail again: then the parent ends. If they are wrong for one worker only, such as its directory
or port, the others run on, and that worker is started again until somebody has removed the cause. The number
of workers can be changed while it runs (`streamapp.worker.control`): surplus workers leave the group.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

from streamapp.errors import SettingsError
from streamapp.settings import Settings, to_environment
from streamapp.worker.child_process import GuardedProcess
from streamapp.worker.compile_ahead import tell_ready
from streamapp.worker.control import (
    DRAIN,
    RefusedError,
    begin_restart,
    end_restart,
    fulfil,
    parent_name,
    refuse,
    refuse_restart,
    wanted_workers,
)
from streamapp.worker.observability.logs import configure_logs
from streamapp.worker.observability.pages.parent import ParentPages, ready
from streamapp.worker.prepared_worker import PreparedWorker
from streamapp.worker.state_directory import StateDirectory, default_instance
from streamapp.worker.worker import check_topics, tell_unknown, with_port

logger = logging.getLogger(__name__)

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
WRONG: Final = (64, 78)  # exit codes of wrong settings: a restart would end the same way
# The exit code of a worker that a signal ended before the worker's signal handlers were installed.
UNBEGUN: Final = (128 + signal.SIGTERM, 128 + DRAIN)
FIRST_PAUSE: Final = 0.5  # seconds before a worker that died again is restarted; doubled each time
LONGEST_PAUSE: Final = 30.0
LAST_PORT: Final = 65_535
SETTLED: Final = 60.0  # a worker that ran this long is restarted at once again
LOOK_AGAIN: Final = 0.2  # seconds between looks at the pages of workers, which send no events


def run_workers(settings: Settings, n: int, *, spare: bool = True) -> int:
    """Run `n` workers until a signal ends them; return the exit code.

    `spare`: keep a prepared process that replaces a dead worker.
    """
    any_port = settings.web_port == 0
    if not any_port:
        check_ports(settings, n)
    configure_logs(settings.log_level, settings.log_format, worker="parent")
    tell_unknown()
    with StateDirectory(settings.state_dir, parent_name(settings)) as directory:
        fulfil(directory.path)  # requests to an earlier parent are void
        end_restart(directory.path)
        check_topics(settings)
        settings = with_port(settings)
        tell_ready(settings)
        return Parent(settings, n, any_port, directory.path, spare).run()


def check_ports(settings: Settings, n: int) -> None:
    """Raise SettingsError if the ports that follow the parent's do not suffice for the workers."""
    if settings.web_port + n > LAST_PORT:
        message = (
            f"workers={n} must be at most {LAST_PORT - settings.web_port} with web.port={settings.web_port}: "
            "each has one of the ports that follow it; run fewer workers, or choose a lower port"
        )
        raise SettingsError(message)


def worker_settings(settings: Settings, number: int, *, any_port: bool = False) -> Settings:
    """Return the settings of worker `number` (from 1 on); `any_port`: `web.port` was 0."""
    base_name = settings.group_instance_id
    name = default_instance(number) if base_name is None else f"{base_name}-{number}"
    port = 0 if any_port else settings.web_port + number
    named = settings.model_copy(update={"group_instance_id": name, "web_port": port})
    return with_port(named) if any_port else named  # the parent has to use the same port


def environment_of(settings: Settings) -> dict[str, str]:
    """Return all variables of a child process with these settings."""
    environment = {name: value for name, value in os.environ.items() if name != "GROVE_CONFIG"}
    return environment | to_environment(settings)


@dataclass(slots=True)
class Child:
    """One worker: its current process, and how often it was restarted."""

    settings: Settings
    process: GuardedProcess | None = None
    started: float = 0.0  # time.monotonic() of the last start
    restarts: int = 0
    pause: float = 0.0
    drained: bool = False  # it leaves the group when it ends
    restarting: bool = False  # it was asked to end, and is to run again
    is_wrong: bool = False  # its settings were wrong when its last process ended
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        """The worker's name."""
        return str(self.settings.group_instance_id)

    @property
    def has_started(self) -> bool:
        """Whether it is ready, or runs for long: a partition that is stopped keeps it from ready."""
        process = self.process
        return (
            process is not None
            and process.status is None
            and (time.monotonic() - self.started > SETTLED or ready(self).ok)
        )

    def start(self, prepared: PreparedWorker | None = None) -> GuardedProcess:
        """Start the process, with settings from the environment and with the parent's output streams.

        `prepared`: the process that becomes the worker, if it still lives.
        """
        environment = environment_of(self.settings)
        if prepared is not None and prepared.become(environment):
            self.process = prepared.process
        else:
            self.process = GuardedProcess(
                [sys.executable, "-m", "streamapp", "worker"], None, environment=environment
            )
        return self.process

    def restart(self) -> None:
        """Let the process end in order; its thread starts it again at once."""
        self.restarting = True
        if self.process is not None:
            self.process.ask_to_stop()

    def end(self, *, drain: bool = False, kill: bool = False) -> None:
        """End the worker for good."""
        self.drained = self.drained or drain
        self.ending.set()
        if self.process is not None:
            self.process.ask_to_stop(kill, drain=self.drained)


@dataclass(slots=True)
class Parent:
    """Starts, watches and stops the workers; one thread for each."""

    settings: Settings
    n: int
    any_port: bool
    directory: Path  # where it finds requests (`streamapp.worker.control`)
    spare: bool = True  # keep a prepared process
    children: list[Child] = field(default_factory=list)  # that shall run, by their number
    code: int = EXIT_OK
    _running: dict[int, tuple[Child, threading.Thread]] = field(default_factory=dict)  # leaving too
    # Messages to the main thread: a worker that has ended for good, or None: the signal for a new number.
    _news: queue.SimpleQueue[Child | None] = field(default_factory=queue.SimpleQueue)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _prepared: PreparedWorker | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)  # of `_prepared`
    _is_prepared: threading.Event = field(default_factory=threading.Event)
    _not_prepared: int = 0  # processes that have ended before they were prepared, or became no worker

    def run(self) -> int:
        """Return the exit code when all have ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(DRAIN, lambda *_: self._news.put(None))
        with ParentPages(self.settings, self.children):
            self.scale(self.n)
            if self.spare:
                threading.Thread(target=self._keep_prepared, name="prepared", daemon=True).start()
            while self._running:
                child = self._news.get()
                if child is None:
                    self._obey()
                else:
                    self._running.pop(id(child))[1].join()
                    self._report()
            self._stopping.set()
            if (prepared := self._take_prepared()) is not None:
                prepared.stop()
        return self.code

    def scale(self, n: int) -> None:
        """Run `n` workers; those with the highest numbers leave the group and end.

        Raises SettingsError, and changes nothing, if a new worker could not have its port.
        """
        if self._stopping.is_set():
            return
        if not self.any_port:
            check_ports(self.settings, n)
        numbers = range(len(self.children) + 1, n + 1)
        new = [Child(worker_settings(self.settings, number, any_port=self.any_port)) for number in numbers]
        leaving = {child.name for child, _ in self._running.values() if child.ending.is_set()}
        for child in new:
            if child.name not in leaving:  # whose port is free when it has left
                with_port(child.settings)
        for child in self.children[n:]:
            logger.info("worker %s: leaving the group", child.name)
            child.end(drain=True)
        del self.children[n:]
        self.children += new
        for child in new:
            before = [thread for other, thread in self._running.values() if other.name == child.name]
            thread = threading.Thread(target=self._keep_running, args=(child, before))
            self._running[id(child)] = child, thread
            thread.start()

    def _obey(self) -> None:
        """Do what a file requests: restart all, or run a number of workers. Without a file let all leave."""
        if begin_restart(self.directory):
            logger.info("restarting %d workers, one by one", len(self.children))
            threading.Thread(target=self._restart_all, name="restarting", daemon=True).start()
            return
        n = wanted_workers(self.directory)
        logger.info("%d workers requested, there are %d", n, len(self.children))
        try:
            self.scale(n)
        except SettingsError as error:
            logger.error("cannot have %d workers: %s", n, error)
            refuse(self.directory, error)
        else:
            self._report()

    def _report(self) -> None:
        """Report to the requesting process that the number of workers is reached."""
        if len(self._running) == len(self.children):
            fulfil(self.directory)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        kill = self._stopping.is_set()
        logger.info("%s: %s all workers", signal.Signals(number).name, "killing" if kill else "stopping")
        self.stop(kill=kill)

    def stop(self, *, kill: bool = False) -> None:
        """Let all workers end."""
        self._stopping.set()
        for child, _ in list(self._running.values()):
            child.end(kill=kill)

    def _keep_running(self, child: Child, before: list[threading.Thread]) -> None:
        """Run a worker, and restart it when it dies, until it is to end; wait for `before` first."""
        for thread in before:
            thread.join()
        if self._stopping.is_set():  # a signal came before this worker counted as running
            child.ending.set()
        try:
            while not child.ending.is_set():
                self._run_once(child)
        finally:
            self._news.put(child)

    def _run_once(self, child: Child) -> None:
        """Run a worker until it ends; decide what follows."""
        child.started = time.monotonic()
        prepared = None if child.is_wrong else self._take_prepared()  # it would be lost for the others
        try:
            process = child.start(prepared)
        except OSError as error:  # no memory, processes or descriptors are left for it at the moment
            self._pause(child, f"cannot be started ({error.strerror})")
            return
        if child.ending.is_set():  # a signal came between the check and the start
            process.ask_to_stop(drain=child.drained)
        if prepared is not None and prepared.process is process:
            prepared.wait_until_read()
        status = process.wait()
        assert status is not None
        if prepared is not None:
            prepared.close()
        child.is_wrong = status in WRONG
        if child.ending.is_set():
            self.code = self.code or (EXIT_OK if status in (0, *UNBEGUN) else EXIT_FAILED)
            return
        if child.is_wrong and not any(self._can_run(other) for other in list(self.children)):
            logger.error("worker %s ended with %s: the settings are wrong, stopping all", child.name, status)
            self.code = status
            self.stop()
            return
        as_requested, child.restarting = child.restarting, False
        if as_requested and status in (EXIT_OK, *UNBEGUN):
            return
        if time.monotonic() - child.started > SETTLED:
            child.pause = 0.0
        child.restarts += 1
        because = " because its settings are wrong (all others run on)" if child.is_wrong else ""
        self._pause(child, f"ended with {status}{because}")

    @staticmethod
    def _can_run(child: Child) -> bool:
        """Whether a worker is not known to have wrong settings; one that has started had them corrected."""
        return not child.is_wrong or child.has_started

    def _pause(self, child: Child, why: str) -> None:
        """Wait before a worker is started again, unless it is to end; the next pause is twice as long."""
        logger.warning("worker %s %s, starting it again in %.1f s", child.name, why, child.pause)
        child.ending.wait(child.pause)
        child.pause = min(max(2 * child.pause, FIRST_PAUSE), LONGEST_PAUSE)

    # -- the prepared process, and restarts with it ---------------------------------------------------------

    def _take_prepared(self) -> PreparedWorker | None:
        """Return the process that becomes a worker next, if there is one; it is no longer kept."""
        with self._lock:
            prepared, self._prepared = self._prepared, None
            self._is_prepared.clear()
            return prepared

    def _keep_prepared(self) -> None:
        """Prepare a process when there is none and all workers have started, which it would slow down."""
        pause = LOOK_AGAIN
        while not self._stopping.wait(pause):
            pause = LOOK_AGAIN
            prepared = self._prepared
            if prepared is None:
                if not self._all_have_started():
                    continue
                try:
                    prepared = PreparedWorker(environment_of(self.settings))
                except OSError as error:
                    logger.warning("a prepared process cannot be started (%s)", error.strerror)
                    pause = LONGEST_PAUSE
                    continue
                with self._lock:
                    self._prepared = prepared
                is_there = prepared.wait_until_prepared()
            else:
                is_there = prepared.process.status is None
            if not self._note_prepared(prepared, is_there):
                prepared.close()
                logger.warning("a prepared process ended with %s", prepared.process.wait())
                self._not_prepared += 1
                pause = LONGEST_PAUSE

    def _note_prepared(self, prepared: PreparedWorker, is_there: bool) -> bool:
        """Note that a process is prepared; return False if it has ended instead, and is forgotten."""
        with self._lock:
            if self._prepared is not prepared:
                return True  # it is a worker by now
            if not is_there:
                self._prepared = None
                self._is_prepared.clear()
                return False
            if not self._is_prepared.is_set():
                self._is_prepared.set()
                logger.info("a process is prepared for the next start of a worker")
            return True

    def _all_have_started(self) -> bool:
        """Whether each worker has started, except those whose settings are wrong."""
        children = list(self.children)
        return bool(children) and all(child.is_wrong or child.has_started for child in children)

    def _restart_all(self) -> None:
        """Restart the workers one by one; note at the end that this is done, or why it is not."""
        refused = None
        try:
            refused = self._restart_each()
        finally:
            # While the file is there, further restarts are refused.
            is_told = refuse_restart(self.directory, refused) if refused else end_restart(self.directory)
            if not is_told:
                self._wait_for(lambda: end_restart(self.directory, tell=False))

    def _restart_each(self) -> RefusedError | None:
        """Restart the workers; each waits for a prepared process, and for the worker before it.

        Return an error if no process can be prepared, as after the installation of a broken release.
        """
        failures = self._not_prepared
        for child in list(self.children):
            if not self._may_restart():
                logger.info("worker %s: it is restarted when a process is prepared for it", child.name)
            if not self._wait_for(lambda: self._may_restart() or self._not_prepared > failures):
                return None
            if self._not_prepared > failures and not self._may_restart():
                error = RefusedError(
                    f"worker {child.name} and the workers after it are not restarted and run on: no process "
                    "could be prepared for it; its last lines in the log name the cause"
                )
                logger.error("%s", error)
                return error
            process = child.process
            if child.ending.is_set():
                continue
            if not self._can_run(child):
                logger.info("worker %s: its settings are wrong, and it is started again anyway", child.name)
                continue
            logger.info("worker %s: restarting; the next one follows when it is ready", child.name)
            child.restart()
            if not self._wait_for(
                lambda child=child, process=process: (  # type: ignore[misc]
                    child.ending.is_set() or (child.process is not process and ready(child).ok)
                )
            ):
                return None
        logger.info("all workers are restarted")
        return None

    def _may_restart(self) -> bool:
        return self._is_prepared.is_set() if self.spare else self._all_have_started()

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        """Return True when the condition holds, False when the workers are to end."""
        while not condition():
            if self._stopping.wait(LOOK_AGAIN):
                return False
        return True
