"""The locked list of jars; `python -m streamapp.embedded.lock` resolves it again (`ENDPOINT`)."""

import hashlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# The `!` matters: without it, the versions that one POM manages would apply to the jars of both artifacts.
ENDPOINT = "org.apache.kafka:kafka_2.13:4.4.0!+org.apache.logging.log4j:log4j-slf4j-impl:2.24.3!"
LOCK_FILE = Path(__file__).with_name("jars.lock")
HEADER = (
    "# The jars of the embedded broker: group:artifact:version, SHA-256, bytes. Written by\n"
    "# `python -m streamapp.embedded.lock`; the class path is built from this list alone.\n"
)


@dataclass(frozen=True)
class Jar:
    """One locked file of a Maven repository, mostly a jar of the class path."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int
    classifier: str = ""
    extension: str = "jar"

    @property
    def stem(self) -> str:
        """File name without its extension."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier)))

    @property
    def name(self) -> str:
        """File name, as in a Maven repository."""
        return f"{self.stem}.{self.extension}"

    @property
    def path(self) -> str:
        """Path below the root of a Maven repository, with forward slashes."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"

    def matches(self, file: Path) -> bool:
        """Whether `file` exists and holds exactly the locked bytes."""
        if not file.is_file() or file.stat().st_size != self.size:
            return False
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == self.sha256


def read_lock(file: Path = LOCK_FILE) -> list[Jar]:
    """Jars of the lock file, in its order (the order of the class path)."""
    jars = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            coordinate, sha256, size = line.split()
            group, artifact, version, *rest = coordinate.split(":")
            jars.append(Jar(group, artifact, version, sha256, int(size), *rest))
    return jars


def write_lock(file: Path = LOCK_FILE, endpoint: str = ENDPOINT, header: str = HEADER) -> int:
    """Resolve `endpoint` with jgo into an empty repository and lock the result; return the number of jars."""
    from jgo.env import EnvironmentBuilder
    from jgo.maven import MavenContext, PythonResolver

    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "repository"
        builder = EnvironmentBuilder(
            context=MavenContext(resolver=PythonResolver(), repo_cache=root),
            cache_dir=Path(scratch) / "environments",
        )
        builder.from_endpoint(endpoint)
        lines = []
        for jar in sorted(root.rglob("*.jar")):
            *group, artifact, version, _ = jar.relative_to(root).parts
            digest = hashlib.sha256(jar.read_bytes()).hexdigest()
            lines.append(f"{'.'.join(group)}:{artifact}:{version} {digest} {jar.stat().st_size}\n")
    file.write_text(header + "".join(lines), encoding="utf-8")
    return len(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{write_lock()} jars locked in {LOCK_FILE.name}\n")
