"""A worker that keeps its name and its disk over kills and restarts, and its timed log."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.rig.process import cpu_of
from benchmarks.rig.systems import Options, worker_command, worker_environment
from streamapp.worker.reserved_ports import free_ports
from topics.definitions import TopicNames

PATIENCE_SECONDS = 300.0
LOOK_SECONDS = 0.05
ASSIGNED = re.compile(r"assigned partitions \[(.*)\]")
LIVE = re.compile(r"partition (\d+) is live")
RESTORED = re.compile(r"partition (\d+) is restored: (\d+) records replayed in ([\d.]+) s")


class MemberFailed(RuntimeError):
    """A worker did not reach a state that a measurement waits for."""


@dataclass(frozen=True)
class Start:
    """The times of one start of a worker, in seconds since the process was started."""

    assigned: float  # first assignment by the group: interpreter, imports, kernels, joining
    live: float  # the last of its partitions was live
    replayed: int  # records
    restoring: float  # sum over partitions: snapshots read and journal replayed


class Member:
    """One worker; it is ended with the `with` block, if it still runs."""

    def __init__(
        self,
        name: str,
        options: Options,
        names: TopicNames,
        partitions: int,
        group: str,
        place: Path,
        *words: str,
    ) -> None:
        """`words`: further words of the command."""
        self.name = name
        self._command = [*worker_command(), *words]
        self.state = place / f"{name}-state"
        self.started = 0.0  # seconds since the epoch, as in the log
        self._log = place / f"{name}.log"
        self._mark = 0  # place in the log where this start begins
        self._environment = worker_environment(options, names, partitions, group, self.state) | {
            "GROVE_KAFKA_GROUP_INSTANCE_ID": name,
            "GROVE_LOG_FORMAT": "json",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._port = self._environment["GROVE_WEB_PORT"]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def start(self, more: Mapping[str, str] | None = None) -> None:
        """Start the worker; `more` holds further variables."""
        self._mark = self._log.stat().st_size if self._log.exists() else 0
        port = {"GROVE_WEB_PORT": str(free_ports())}
        self._port = port["GROVE_WEB_PORT"]
        with self._log.open("ab") as log:
            self.started = time.time()
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._environment, **port, **(more or {})},
            )

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int) -> int:
        """End the worker with a signal; return its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(PATIENCE_SECONDS)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def wipe(self) -> None:
        """Delete its disk."""
        shutil.rmtree(self.state)

    def check(self) -> None:
        """Raise if the process has ended unexpectedly."""
        assert self._process is not None
        if (code := self._process.poll()) is not None:
            raise self._failed(f"ended without a command, with exit code {code}")

    def _failed(self, what: str) -> MemberFailed:
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        return MemberFailed(f"{self.name} {what}\n{tail}")

    def cpu_seconds(self) -> float:
        """Return user and system time of all its threads since its start."""
        assert self._process is not None
        return cpu_of(self._process.pid)

    def page(self, path: str) -> str | None:
        """Return a page; None if there is no answer, or a status other than 200."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=20) as page:
                text: str = page.read().decode()
                return text
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def metric(self, name: str, labels: str = "") -> float:
        """Return the sum of a metric over its labels; a page that does not come does not count as zero.

        `labels` is the beginning of the labels that count, such as `role="active"`; the sum is 0 if there are
        none yet.
        """
        page = self.page("/metrics")
        if page is None:
            raise self._failed("gave no metrics")
        prefixes = (f"{name}{{{labels}",) if labels else (f"{name} ", f"{name}{{")
        return sum(float(at.rpartition(" ")[2]) for at in page.splitlines() if at.startswith(prefixes))

    def wait_until_ready(self) -> None:
        self.wait(lambda: self.page("/readyz") is not None, "was not ready")

    def wait(
        self, is_over: Callable[[], bool], otherwise: str, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Return when a condition holds; it is polled, because a worker sends no event."""
        deadline = time.monotonic() + patience_seconds
        while not is_over():
            self.check()
            if time.monotonic() > deadline:
                raise self._failed(f"{otherwise} after {patience_seconds:.0f} s")
            time.sleep(LOOK_SECONDS)

    # -- log -------------------------------------------------------------------------------------------------

    def said(self, worker: str = "") -> list[tuple[float, str]]:
        """Return (seconds since the epoch, text) of its log lines since its start; `worker`: whose lines."""
        with self._log.open("rb") as file:
            file.seek(self._mark)
            lines = file.read().decode(errors="replace").splitlines()
        lines_said = []
        for line in lines:
            if line.startswith('{"time"') and line.endswith("}"):
                entry = json.loads(line)
                if worker and entry.get("worker") != worker:
                    continue
                lines_said.append((datetime.fromisoformat(entry["time"]).timestamp(), entry["message"]))
        return lines_said

    def owned(self, worker: str = "") -> set[int]:
        """Return the partitions of its newest assignment; `worker`: one of several under a parent."""
        assignments = [match for _, text in self.said(worker) if (match := ASSIGNED.fullmatch(text))]
        return {int(part) for part in assignments[-1][1].split(",") if part.strip()} if assignments else set()

    def began(self) -> Start:
        """Return the times of its start; the worker is ready."""
        lines = self.said()
        assigned = next(at for at, text in lines if ASSIGNED.fullmatch(text))
        live = max(at for at, text in lines if LIVE.fullmatch(text))
        restored = [match for _, text in lines if (match := RESTORED.fullmatch(text))]
        return Start(
            assigned - self.started,
            live - self.started,
            sum(int(match[2]) for match in restored),
            sum(float(match[3]) for match in restored),
        )
