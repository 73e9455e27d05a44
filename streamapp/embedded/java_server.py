"""Server in Java as a child process on loopback ports: its start, its end and its errors."""

from __future__ import annotations

import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self

from streamapp.embedded.jars import Program
from streamapp.errors import StreamappError
from streamapp.worker.child_process import GuardedProcess
from streamapp.worker.reserved_ports import HOST, ReservedPorts, check_free, reserved_ports
from topics.patience import Patience

POLL_SECONDS: Final = 0.2
QUICK: Final = ("-XX:TieredStopAtLevel=1",)  # Java's second compiler does not pay within seconds
ADDRESS_IN_USE: Final = ("already in use", "already bound", "in use by another process")
ATTEMPTS: Final = 3  # each on other ports, if another process takes them while Java starts


class StartedServer(ABC):
    """A server that starts with a `with` block and is closed at its end, also after a failed start."""

    @abstractmethod
    def start(self) -> None:
        """Start the server and return when it answers."""

    @abstractmethod
    def close(self) -> None:
        """Stop the server, and remove what is temporary."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class JavaServer(StartedServer):
    """A server whose data lie in `directory`. `stop()` and `start()` keep data and ports."""

    program: ClassVar[Program]
    error: ClassVar[type[StreamappError]]
    log_name: ClassVar[str]
    n_ports: ClassVar[int] = 1

    def __init__(
        self,
        directory: Path,
        port: int | None,
        *,
        temporary: bool,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`port`: the first one, None: any; `temporary`: close() removes the directory.

        `tell`: a function that gets a line every few seconds while the server starts.
        """
        self.directory = directory
        self._given = port
        self._temporary = temporary
        self._tell = tell
        self._reserved: ReservedPorts | None = None
        self._served = False
        self._process: GuardedProcess | None = None

    @property
    def log_file(self) -> Path:
        return self.directory / self.log_name

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.status is None

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports, known after the first start and the same after every further start."""
        if self._reserved is None:
            message = (
                f"{self.program.name} has no address before its first start(); call start() or use it with "
                "`with`"
            )
            raise self.error(message)
        first = self._reserved.first
        return (self._given or first, *range(first + 1, first + self.n_ports))

    def start(self) -> None:
        """Start the process and return when the server answers requests."""
        if self.running:
            return
        try:
            files = self._fetch()
            self._check_given_port()
            for attempt in range(1, ATTEMPTS + 1):
                mark = self._log_size()
                self._reserved = self._reserved or reserved_ports(self.n_ports)
                self._process = self._launch(files)
                if self._becomes_ready():
                    break
                self._refuse_to_start(mark, last=attempt == ATTEMPTS)
                self._reserved.release()
                self._reserved = None
            self._served = True
        except BaseException:
            self.stop(kill=True)
            raise

    def stop(self, kill: bool = False) -> None:
        """End the process: in order, or at once like a crash; the data stay for the next start()."""
        process, self._process = self._process, None
        if process is not None:
            process.stop(kill)

    def close(self) -> None:
        """Stop, release the ports, and remove the data if they lie in a temporary directory."""
        try:
            self.stop(kill=self._temporary)
        finally:
            if self._reserved is not None:
                self._reserved.release()
            if self._temporary:
                shutil.rmtree(self.directory, ignore_errors=True)

    def wait(self) -> int:
        """Block until the process ends; returns its exit status."""
        status = None if self._process is None else self._process.wait()
        return 0 if status is None else status

    def last_words(self) -> str:
        """The last error line of the log, for messages: a temporary log is deleted with the server."""
        lines = self._log().splitlines()
        errors = [line.strip() for line in lines if "ERROR" in line or "Exception" in line or "Error" in line]
        return (errors or lines or ["its log is empty"])[-1][:400]

    @abstractmethod
    def _fetch(self) -> list[Path]:
        """Return the files of the program; those that are missing are downloaded."""

    @abstractmethod
    def _launch(self, files: list[Path]) -> GuardedProcess:
        """Start the process, which listens on `ports`."""

    @abstractmethod
    def _question(self) -> Callable[[], bool]:
        """Return a function that waits for a moment and returns whether the server answers."""

    def _check_given_port(self) -> None:
        if self._given is None:
            return
        try:
            check_free(self._given)
        except OSError as error:
            message = (
                f"{self.program.name} cannot listen on port {self._given} of {HOST} ({error.strerror}); name "
                "another one by --port, or 0"
            )
            raise self.error(message) from None

    def _becomes_ready(self) -> bool:
        """Return when the server answers, or with False when it has ended."""
        process = self._process  # another thread may end it, and forget it
        if process is None:
            return False
        answers = self._question()
        patience = Patience(math.inf, self._tell)  # the end of the process is noticed at once
        while process.status is None:
            if answers():
                return True
            patience.note(f"{self.program.name} starts; its log is {self.log_file}")
        process.wait()
        return False

    def _refuse_to_start(self, mark: int, *, last: bool) -> None:
        """Raise an error, unless the process ended because of a port that nobody named or knows yet."""
        address_in_use = any(words in self._log(mark) for words in ADDRESS_IN_USE)
        if not address_in_use or last or self._served or self._given is not None:
            message = f"{self.program.name} ended while starting: {self.last_words()}"
            raise self.error(message)

    def _log(self, mark: int = 0) -> str:
        """Return the log from a byte on."""
        if not self.log_file.exists():
            return ""
        return self.log_file.read_bytes()[mark:].decode("utf-8", errors="replace")

    def _log_size(self) -> int:
        return self.log_file.stat().st_size if self.log_file.exists() else 0
