"""Several workers on one machine, one per core, under a parent that keeps them running.

The parent compiles the kernels once, gives every worker its name (`<group.instance.id>-<n>`) and its port
(`web.port` + n), starts a dead one anew under its name, and answers `/readyz` for all. A worker whose
settings are wrong (exit code 64 or 78) would fail again: then all of them are stopped.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

from streamapp.guarded import GuardedProcess
from streamapp.logs import configure_logs
from streamapp.pages.parent import ParentPages
from streamapp.settings import Settings, to_environment
from streamapp.state_directory import default_instance
from streamapp.warming import warm_kernels
from streamapp.worker import check_topics, with_port

logger = logging.getLogger(__name__)

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
HOPELESS: Final = (64, 78)  # exit codes after which a new start would end the same way
FIRST_PAUSE: Final = 0.5  # seconds before a dead worker is started anew; doubled each time
LONGEST_PAUSE: Final = 30.0
SETTLED: Final = 60.0  # a worker that lived so long has earned the first pause again


def run_workers(settings: Settings, n: int) -> int:
    """Run `n` workers until a signal ends them; return the exit code."""
    any_port = settings.web_port == 0
    configure_logs(settings.log_level, settings.log_format, worker="parent")
    check_topics(settings)
    settings = with_port(settings)
    logger.info("kernels are ready after %.1f s", warm_kernels())
    return Parent(settings, n, any_port).run()


def worker_settings(settings: Settings, number: int, *, any_port: bool = False) -> Settings:
    """Return the settings of worker `number` (from 1 on); `any_port`: `web.port` was 0."""
    given = settings.group_instance_id
    name = default_instance(number) if given is None else f"{given}-{number}"
    port = 0 if any_port else settings.web_port + number
    named = settings.model_copy(update={"group_instance_id": name, "web_port": port})
    return with_port(named) if any_port else named  # the parent has to know it


@dataclass(slots=True)
class Child:
    """One worker: its process now, and how often it was started anew."""

    settings: Settings
    process: GuardedProcess | None = None
    restarts: int = 0
    pause: float = FIRST_PAUSE

    @property
    def name(self) -> str:
        """The worker's name."""
        return str(self.settings.group_instance_id)

    def start(self) -> GuardedProcess:
        """Start the process; it reads its settings from the environment and writes to our streams."""
        environment = {name: value for name, value in os.environ.items() if name != "GROVE_CONFIG"}
        environment |= to_environment(self.settings)
        self.process = GuardedProcess(
            [sys.executable, "-m", "streamapp", "worker"], None, environment=environment
        )
        return self.process


@dataclass(slots=True)
class Parent:
    """Starts, watches and stops the workers; one thread for each."""

    settings: Settings
    n: int
    any_port: bool = False
    children: list[Child] = field(init=False)
    code: int = EXIT_OK
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Name the workers."""
        self.children = [
            Child(worker_settings(self.settings, number, any_port=self.any_port))
            for number in range(1, self.n + 1)
        ]

    def run(self) -> int:
        """Return the exit code when all have ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        threads = [threading.Thread(target=self._keep_running, args=(child,)) for child in self.children]
        with ParentPages(self.settings, self.children):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return self.code

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        kill = self._stopping.is_set()
        logger.info("%s: %s all workers", signal.Signals(number).name, "killing" if kill else "stopping")
        self.stop(kill=kill)

    def stop(self, *, kill: bool = False) -> None:
        """Let all workers end."""
        self._stopping.set()
        for child in self.children:
            if child.process is not None:
                child.process.ask_to_stop(kill)

    def _keep_running(self, child: Child) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            status = self._run_once(child)
            if self._stopping.is_set():
                self.code = self.code or (EXIT_FAILED if status else EXIT_OK)
                return
            if status in HOPELESS:
                logger.error(
                    "worker %s ended with %s: its settings are wrong, stopping all", child.name, status
                )
                self.code = status
                self.stop()
                return
            if time.monotonic() - started > SETTLED:
                child.pause = FIRST_PAUSE
            logger.warning(
                "worker %s ended with %s, starting it anew in %.1f s", child.name, status, child.pause
            )
            child.restarts += 1
            self._stopping.wait(child.pause)
            child.pause = min(2 * child.pause, LONGEST_PAUSE)

    def _run_once(self, child: Child) -> int:
        process = child.start()
        if self._stopping.is_set():  # the signal came between the check and the start
            process.ask_to_stop()
        status = process.wait()
        assert status is not None
        return status
