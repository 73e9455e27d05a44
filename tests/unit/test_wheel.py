"""What is released: the wheel, in a clean environment outside the repository, under the Pythons here."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "core", "topics", "streamapp")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Those that `requires-python` admits and that were released when this was."""

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the sources: building leaves files beside them."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        copy / "dist",
        copy,
        cwd=copy,
    )
    (built,) = (copy / "dist").glob("*.whl")
    return built


def test_the_wheel_has_all_that_is_no_module(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("core/py.typed", "topics/py.typed", "streamapp/py.typed", "streamapp/embedded/jars.lock"):
        assert name in names
    assert {Path(name).name for name in names if ".dist-info/licenses/" in name} == {"LICENSE", "NOTICE"}
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"core", "topics", "streamapp"}


def interpreter(version: str) -> Path | None:
    """A Python of this version that runs: on the path, or of pyenv, whose names there may lead nowhere."""
    named = shutil.which(f"python{version}")
    places = [Path(sys.executable), *([Path(named)] if named else [])]
    for place in (*places, *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")):
        said = subprocess.run([place, "--version"], capture_output=True, text=True, check=False)
        if said.returncode == 0 and said.stdout.startswith(f"Python {version}."):
            return place
    return None


@pytest.mark.parametrize("version", PYTHONS)
def test_it_learns_where_it_is_installed(wheel: Path, tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"python{version} is not here")
    run(python, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    bin_ = tmp_path / "venv" / "bin"
    install: list[str | Path] = [bin_ / "python", "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    run(*install, "--constraint", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    told = run(
        bin_ / "python",
        *("-W", "error", "-c"),
        "import core, sys, topics, streamapp\n"
        "from streamapp.embedded.lock import read_lock\n"
        "print(core.__file__, len(read_lock()), sys.version)",
        cwd=tmp_path,
    )
    assert told.startswith(str(tmp_path / "venv"))
    assert f" {version}." in told
    data = ROOT / "examples" / "data" / "a9a.t.gz"
    report = json.loads(run(bin_ / "grove", "prequential", "--data", data, "--json", cwd=tmp_path))
    assert report["labels"] == 16_281
    assert report["accuracy"] > 0.77


def test_the_line_that_a_command_shows_installs_what_it_needs(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    constraint = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", constraint, wheel, cwd=tmp_path)
    command = [str(tmp_path / "venv" / "bin" / "grove"), "web", "-b", "127.0.0.1:1", "--state", "web.sqlite"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    _, _, line = said.strip().partition("install with: ")
    subprocess.run(
        line,
        shell=True,
        cwd=tmp_path,
        env={**os.environ, "PIP_CONSTRAINT": str(constraint), "PIP_QUIET": "1"},
        check=True,
    )
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    assert "bootstrap.servers=127.0.0.1:1 did not answer" in said
