"""Installed releases: the wheel of a commit, or of the working tree, in a separate environment.

A release uses the dependencies of the environment that runs the program, by a path file: nothing is
downloaded. So both releases run with the same dependencies, as after an upgrade of streamgrove alone.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
WARM: Final = """import sys
from core.spec import Spec
from streamapp.worker.compile_ahead import warm_kernels
warm_kernels(*map(Spec.parse, sys.argv[1:]))
"""
# The commits of releases, for repositories that were copied without their tags. The newest one is last.
RELEASES: Final = {"v0.1.0": "a19dd28431e9ed0f60a54725e845910891c95bb3"}
SOURCES: Final = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "core", "topics", "streamapp")


class NoReleaseError(Exception):
    """The repository lacks the release, or there is no git to read it with."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One release, installed from its wheel."""

    name: str
    directory: Path  # the environment

    @property
    def grove(self) -> Path:
        """The command of the release."""
        return self.directory / "bin" / "grove"

    @property
    def packages(self) -> Path:
        """The directory that has the packages of the release."""
        return self.directory / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"

    def warm(self, *specs: Mapping[str, object]) -> None:
        """Compile the kernels that models of these specs need, before workers start side by side."""
        _run(self.directory / "bin" / "python", "-c", WARM, *map(json.dumps, specs), cwd=self.directory)


def newest_release() -> str:
    """Return the name of the newest release; NoReleaseError if the repository lacks its sources."""
    name = [*RELEASES][-1]
    revision(name)
    return name


def revision(release: str) -> str:
    """Return the commit of a tag or a name in RELEASES; NoReleaseError if the repository lacks it."""
    for name in filter(None, (f"refs/tags/{release}", RELEASES.get(release))):
        command = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
        try:
            answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        except OSError as error:
            message = f"{release} cannot be read: git is not installed"
            raise NoReleaseError(message) from error
        if not answer.returncode:
            return answer.stdout.strip()
    message = f"{release} is not in this repository: fetch its whole history (git fetch --unshallow --tags)"
    raise NoReleaseError(message)


def of_release(release: str, directory: Path) -> Installed:
    """Return a release, given by a tag or a name in RELEASES."""
    sources = directory / f"sources-{release}"
    command = ["git", "archive", "--format=tar", revision(release), *SOURCES]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(sources, filter="data")
    return _installed(release, sources, directory)


def of_this_tree(directory: Path) -> Installed:
    """Return the release that the working tree would make."""
    sources = directory / "sources-tree"
    sources.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, sources / name)
    return _installed("tree", sources, directory)


def _installed(name: str, sources: Path, directory: Path) -> Installed:
    """Build the wheel of sources, and install it."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = directory / f"wheel-{name}"
    _run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, sources, cwd=directory)
    (wheel,) = wheels.glob("*.whl")
    release = Installed(name, directory / f"release-{name}")
    _run(sys.executable, "-m", "venv", "--without-pip", release.directory, cwd=directory)
    python = release.directory / "bin" / "python"
    _run(*pip, "--python", python, "install", "--no-deps", wheel, cwd=directory)
    # Python reads path files of site directories alone: an editable installation there does not count.
    (release.packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return release


def _run(*command: str | Path, cwd: Path) -> None:
    finished = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    if finished.returncode:
        output = finished.stdout + finished.stderr
        message = f"{' '.join(map(str, command))} ended with {finished.returncode}: {output}"
        raise RuntimeError(message)
