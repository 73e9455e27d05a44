"""Jars in a cache per user: downloaded once, checked, safe for concurrent starts."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamapp.embedded import maven
from streamapp.embedded.lock import LOCK_FILE, Jar, read_lock
from streamapp.errors import DownloadError

if TYPE_CHECKING:
    from requests import Session

N_CONNECTIONS = 4
ATTEMPTS = 3
BUSY = (429, 500, 502, 503, 504)  # HTTP statuses that are worth another attempt
CHUNK_BYTES = 1 << 16
CONNECT_SECONDS, READ_SECONDS = 10, 60

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Program:
    """A program in Java, for messages: its name, and another way to get it."""

    name: str
    instead: str


KAFKA: Final = Program("Apache Kafka", "name a broker: GROVE_KAFKA_BOOTSTRAP_SERVERS")


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/streamgrove/kafka`, by default below `~/.cache`."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "streamgrove" / "kafka"


def fetch_jars(directory: Path | None = None, lock: Path = LOCK_FILE, program: Program = KAFKA) -> list[Path]:
    """Return the files of the class path, checked against the lock file; missing files are downloaded."""
    directory = directory or cache_directory()
    jars = read_lock(lock)
    with exclusive(directory):
        missing = [jar for jar in jars if not jar.matches(directory / jar.name)]
        if missing:
            _fetch(missing, directory, program)
    return [directory / jar.name for jar in jars]


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold the cache's lock, so that the second of two concurrent starts waits and then finds the jars."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as error:
        message = f"cannot write the cache {directory} ({error.strerror}); set XDG_CACHE_HOME elsewhere"
        raise DownloadError(message) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(jars: list[Jar], directory: Path, program: Program) -> None:
    settings = maven.read_maven_settings()
    remaining = [jar for jar in jars if not _copy_from_local(jar, directory, settings)]
    if not remaining:
        return
    sources = maven.sources(settings)
    size = sum(jar.size for jar in remaining)
    with _progress(program, size) as advance, ThreadPoolExecutor(N_CONNECTIONS) as pool:
        where = directory, sources, settings, program, advance
        downloads = [pool.submit(_download, jar, *where) for jar in remaining]
        try:
            for download in downloads:
                download.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _copy_from_local(jar: Jar, directory: Path, settings: maven.MavenSettings) -> bool:
    for repository in maven.local_repositories(settings):
        file = repository / jar.path
        if jar.matches(file):
            with _replacing(directory / jar.name) as scratch:
                shutil.copyfile(file, scratch)
            return True
    return False


def _download(
    jar: Jar,
    directory: Path,
    sources: list[maven.Repository],
    settings: maven.MavenSettings,
    program: Program,
    advance: Advance,
) -> None:
    from requests import Session
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    retry = Retry(ATTEMPTS, backoff_factor=0.5, status_forcelist=BUSY, raise_on_status=False)
    problems = []
    with Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=retry))
        session.mount("https://", HTTPAdapter(max_retries=retry))
        for source in sources:
            session.auth = source.auth
            session.proxies = maven.proxies_for(f"{source.url}/{jar.path}", settings)
            problem = _download_from(source, session, jar, directory / jar.name, advance)
            if problem is None:
                return
            problems.append(f"{source.url}: {problem}")
    message = (
        f"cannot fetch {jar.name} of {program.name} ({'; '.join(problems)}); check the network, a proxy "
        f"(HTTPS_PROXY) or a mirror (~/.m2/settings.xml), or {program.instead}"
    )
    raise DownloadError(message)


def _download_from(
    source: maven.Repository, session: "Session", jar: Jar, target: Path, advance: Advance
) -> str | None:
    """Download a jar; return None when `target` holds it, else the reason why not."""
    from requests import RequestException, codes

    received = 0
    try:
        timeout = (CONNECT_SECONDS, READ_SECONDS)
        with session.get(f"{source.url}/{jar.path}", timeout=timeout, stream=True) as response:
            if response.status_code != codes.ok:
                return f"answered {response.status_code} {response.reason}"
            with _replacing(target) as scratch:
                with scratch.open("wb") as file:
                    for chunk in response.iter_content(CHUNK_BYTES):
                        file.write(chunk)
                        received += len(chunk)
                        advance(len(chunk))
                if not jar.matches(scratch):
                    message = f"{response.url}: the bytes differ from the locked file (in SHA-256 or size)"
                    raise DownloadError(message)
    except RequestException as error:
        advance(-received)
        return _reason(error)
    return None


def _reason(error: Exception) -> str:
    """Return the innermost cause in a few words (the outer exceptions repeat URL and pool)."""
    cause: BaseException = error
    while True:
        inner = getattr(cause, "reason", None) or (cause.args[0] if cause.args else None)
        if not isinstance(inner, BaseException):
            break
        cause = inner
    words = str(cause).rpartition(": ")[2].rstrip(")'\"")
    return f"{type(cause).__name__}: {words or cause}"


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Yield a scratch file that replaces the target atomically if the block succeeds, else is removed."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def _progress(program: Program, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{program.name} (once)", total=total)
        yield lambda n: progress.advance(task, n)
