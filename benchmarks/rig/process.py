"""A watched process: CPU time and memory as the kernel counts them, and a reliable end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
TERM_SECONDS = 30.0
LOOK_SECONDS = 0.1


class ChildFailed(RuntimeError):
    """A process under measurement ended early or with an error; the message ends with its log."""


class Child:
    """One system under measurement, started for a `with` block and ended with SIGTERM at its end."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = list(command)
        self._log = log
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._environment
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._running
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(TERM_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                if kind is None:
                    raise self.failed(f"was still running {TERM_SECONDS:.0f} s after SIGTERM") from None
        if kind is None and process.returncode not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):  # Java's
            raise self.failed(f"ended with exit code {process.returncode}")

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            message = "the process is started by entering the with block"
            raise RuntimeError(message)
        return self._process

    @property
    def pid(self) -> int:
        return self._running.pid

    def check(self) -> None:
        """Raise if the process has ended unexpectedly."""
        code = self._running.poll()
        if code is not None:
            raise self.failed(f"ended without a command, with exit code {code}")

    def failed(self, what: str) -> ChildFailed:
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])
        return ChildFailed(f"{' '.join(self._command)} {what}\n{tail}")

    def cpu_seconds(self) -> float:
        """Return user and system time of the process and its children, including ended children."""
        return cpu_of_tree(self.pid)

    def cpu_by_thread(self) -> dict[str, float]:
        """Return CPU seconds of the living threads, summed by thread name."""
        return threads_of(self.pid)

    def peak_mib(self) -> float:
        """Return the largest resident set so far, in MiB."""
        return peak_mib(self.pid)


def await_while_running(is_done: Callable[[], bool], *children: Child) -> None:
    """Return once `is_done` returns True; ChildFailed if one of the processes ends before."""
    while not is_done():
        for child in children:
            child.check()
        time.sleep(LOOK_SECONDS)


def peak_mib(pid: int) -> float:
    """Return the largest resident set of a process so far, in MiB. Raises ChildFailed if it has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    message = f"the process {pid} does not have its memory any more"
    raise ChildFailed(message)


def cpu_of(pid: int) -> float:
    """Return user and system time of all threads of a process, including ended threads."""
    return _cpu(Path(f"/proc/{pid}/stat").read_text())


def threads_of(pid: int, names: Mapping[int, str] | None = None) -> dict[str, float]:
    """Return CPU seconds of the living threads of a process, summed by thread name.

    `names`: by number of the thread; the kernel names all threads of Python alike.
    """
    seconds: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            stat = (task / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended after the folder was listed
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        name = "main" if task.name == str(pid) else (names or {}).get(int(task.name), name)
        seconds[name] = seconds.get(name, 0.0) + _cpu(stat)
    return seconds


def cpu_of_tree(pid: int) -> float:
    """Return user and system time of a process and its descendants, including ended processes."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended after the folder was listed
        fields = text[text.rindex(")") + 2 :].split()
        number = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(number)
        seconds[number] = sum(map(int, fields[11:15])) * TICK  # its own time, and its ended children's
    total, waiting = 0.0, [pid]
    while waiting:
        number = waiting.pop()
        total += seconds.get(number, 0.0)
        waiting += children.get(number, [])
    return total


def cpu_of_machine() -> float:
    """Return the busy time of the machine's processors, including time that the host took."""
    user, nice, system, _, _, *others = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(others)) * TICK


def _cpu(stat: str) -> float:
    """Return utime + stime of a line of /proc: fields 14 and 15, counted after the name in brackets."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) * TICK


def python(*words: str) -> list[str]:
    return [sys.executable, *words]
