"""The processes: broker, workers, oracles. Each worker keeps its name over restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from streamapp.worker.reserved_ports import free_ports

READY_S = 240.0  # without any change in the state that workers report for their partitions
READY_MOST_S = 1800.0  # a busy machine replays slowly; a group that never settles changes for ever
LOOK_S = 0.1
TELL_S = 10.0  # between two lines of a wait
LINE = 300  # most characters of such a line
TERM_S = 600.0  # a worker that ends has its own limits; this one ends a worker that hangs


class ChaosError(RuntimeError):
    """The installation failed in a way that no fault explains."""


class Worker:
    """One worker under its name."""

    def __init__(self, name: str, environment: Mapping[str, str], directory: Path) -> None:
        self.name = name
        self.command: Sequence[str | Path] = [sys.executable, "-m", "streamapp", "worker"]
        """The command of the next start: another release's, for a worker that changes it."""
        self.port = free_ports()
        self.state = directory / name
        self.frozen = False
        self._log = directory / f"{name}.log"
        self._environment = {
            **environment,
            "GROVE_KAFKA_GROUP_INSTANCE_ID": name,
            "GROVE_STATE_DIR": str(self.state),
            "GROVE_WEB_PORT": str(self.port),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.ended_by_itself: list[int] = []
        self._told_to_end = False
        self._marks: list[
            tuple[int, int]
        ] = []  # places and times in its log at which it was started or frozen

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Process id of the last start."""
        return None if self._process is None else self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, if it has ended."""
        return None if self._process is None else self._process.poll()

    def start(self, more: Mapping[str, str] | None = None) -> None:
        """Start the worker if it does not run; `more` holds variables for this start only."""
        if self.runs:
            return
        self.note_end()
        self._told_to_end = False
        self._mark()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                env={**os.environ, **self._environment, **(more or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.frozen = False

    def signal(self, number: int) -> None:
        """Send a signal to the process, if there is one."""
        if self._process is not None and self.runs:
            self._told_to_end |= number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGKILL)
            self._process.send_signal(number)

    def freeze(self, frozen: bool) -> None:
        """Stop the process, or let it continue."""
        self.signal(signal.SIGSTOP if frozen else signal.SIGCONT)
        self.frozen = frozen
        if frozen:
            self._mark()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self.frozen = False

    def terminate(self) -> int | None:
        """End the worker in order; return its exit code."""
        if self._process is None:
            return None
        if self.frozen:
            self.freeze(False)
        self.signal(signal.SIGTERM)
        return self._process.wait(TERM_S)

    def note_end(self) -> None:
        """Note that it ended without a request (it was fenced, for example)."""
        if self._process is not None and not self.runs and not self._told_to_end:
            self.ended_by_itself.append(self._process.returncode)

    def page(self, path: str, refused: bool = False) -> bytes | None:
        """Return a page, None if there is no answer; with `refused` also the body of an error."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as page:
                return bytes(page.read())
        except urllib.error.HTTPError as error:
            return bytes(error.read()) if refused else None
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def is_ready(self) -> bool:
        return self.page("/readyz") is not None

    def readiness(self) -> str:
        """Return the state of its partitions with the progress of restores; empty if there is no answer."""
        return (self.page("/readyz?verbose", refused=True) or b"").decode()

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    @property
    def log_size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def said_from(self, start: int) -> tuple[str, int | None]:
        """Return its log from a byte up to the next start or freeze, and the time of that in ms since 1970,
        or None.
        """
        end, when = next((mark for mark in self._marks if mark[0] > start), (None, None))
        return self._log.read_bytes()[start:end].decode("utf-8", "replace"), when

    def _mark(self) -> None:
        self._marks.append((self.log_size, time.time_ns() // 10**6))


class Fleet:
    """All workers, and the oracles."""

    def __init__(
        self,
        environment: Mapping[str, str],
        directory: Path,
        workers: int,
        oracles: Sequence[Sequence[str]],
    ) -> None:
        """`oracles` holds the options of each oracle."""
        self.workers = [Worker(f"chaos-{number}", environment, directory) for number in range(workers)]
        self._oracle_log = directory / "oracle.log"
        self._commands = [[sys.executable, "-m", "streamapp", "oracle", *options] for options in oracles]
        self._environment = environment
        self._oracles: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        with self._oracle_log.open("ab") as log:
            self._oracles = [
                subprocess.Popen(
                    command, env={**os.environ, **self._environment}, stdout=log, stderr=subprocess.STDOUT
                )
                for command in self._commands
            ]
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.kill()
        for oracle in self._oracles:
            oracle.kill()
            oracle.wait()

    def stop_oracles(self) -> None:
        """End the oracles in order: every answer that is due is written."""
        for oracle in self._oracles:
            oracle.send_signal(signal.SIGTERM)
        wait_until(
            lambda: all(oracle.poll() is not None for oracle in self._oracles),
            TERM_S,
            lambda: "an oracle does not end",
        )
        for oracle in self._oracles:
            if (code := oracle.returncode) != 0:
                raise ChaosError(f"an oracle ended with {code}: {self._oracle_log.read_text()[-2000:]}")

    def _unready(self) -> str:
        """Return which workers are not ready, and how many of their partitions are not live."""
        states = ((worker.name, worker.readiness()) for worker in self.workers if not worker.is_ready())
        return ", ".join(
            f"{name} is not ready, " + (f"{text.count('[-]')} of its checks fail" if text else "no page yet")
            for name, text in states
        )

    def wait_until_ready(self) -> None:
        """Return when every worker has all its partitions live; none may be frozen.

        The time of a restore depends on the records to replay and on the machine, so this waits as long as
        restores make progress.
        """

        def ready() -> bool:
            for worker in self.workers:
                worker.start()  # a worker that got a signal while it started may have ended only now
            return all(worker.is_ready() for worker in self.workers)

        wait = Wait()
        began = moved = wait.began
        last: list[str] = []
        while not ready():
            wait.tell(self._unready)
            now, readiness = time.monotonic(), [worker.readiness() for worker in self.workers]
            if readiness != last:
                last, moved = readiness, now
            if now - moved > READY_S or now - began > READY_MOST_S:
                logs = "".join(worker.log[-2000:] for worker in self.workers)
                stood = f"{now - moved:.0f} s without a change"
                message = f"not ready after {now - began:.0f} s, {stood}: {last} {logs}"
                raise ChaosError(message)
            time.sleep(LOOK_S)


class Wait:
    """A wait that prints to standard error, every TELL_S seconds, what it waits for."""

    def __init__(self) -> None:
        self.began = self._told = time.monotonic()

    def tell(self, in_words: Callable[[], str]) -> None:
        """Print the first line of a text, if the last print is long enough ago."""
        now = time.monotonic()
        if now - self._told >= TELL_S:
            self._told = now
            line = in_words().partition("\n")[0][:LINE]
            print(f"waiting for {now - self.began:.0f} s: {line}", file=sys.stderr, flush=True)


def wait_while_it_falls(value: Callable[[], int], seconds: float, in_words: Callable[[], str]) -> float:
    """Wait until a value is 0, up to `seconds` after its last new minimum; return the seconds it took."""
    wait = Wait()
    began = lowered = wait.began
    least = now = value()

    def still() -> str:
        return f"{in_words()} ({now})"

    while least > 0:
        wait.tell(still)
        time.sleep(LOOK_S)
        now = value()
        if now < least:
            least, lowered = now, time.monotonic()
        elif time.monotonic() - lowered > seconds:
            raise ChaosError(f"{now} for {seconds:.0f} s: {in_words()}")
    return time.monotonic() - began


def wait_until(is_over: Callable[[], bool], seconds: float, in_words: Callable[[], str]) -> float:
    """Wait until a condition holds; return how many seconds it took."""
    wait = Wait()
    while not is_over():
        wait.tell(in_words)
        if time.monotonic() - wait.began > seconds:
            raise ChaosError(f"not within {seconds:.0f} s: {in_words()}")
        time.sleep(LOOK_S)
    return time.monotonic() - wait.began
