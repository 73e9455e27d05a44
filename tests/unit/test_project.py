"""The project's own files: pins, the CI command, the Makefile."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().split()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+-]+", line) for line in lines)
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_what_pyproject_asks_for_is_what_constraints_pin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["optional-dependencies"].values()
    pinned = constraints()
    for text in [*project["dependencies"], *(requirement for group in groups for requirement in group)]:
        name, equals, version = text.partition("==")
        assert equals, f"{text} must be pinned as name==version"
        assert pinned[canonicalize_name(name)] == version


def test_every_transitive_dependency_is_pinned() -> None:
    pinned = constraints()
    todo, seen = [("streamgrove", "dev")], set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            assert canonicalize_name(requirement.name) in pinned, f"{requirement.name}, wanted by {name}"
            todo += [(requirement.name, inner) for inner in (*requirement.extras, "")]


def test_ci_calls_the_developers_test_command_and_nothing_else() -> None:
    commands = [
        line
        for line in (ROOT / ".ci" / "run").read_text().splitlines()
        if line and not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["exec make test"]


def test_the_test_command_runs_the_kernels_without_compiler_and_holds_their_coverage() -> None:
    done = subprocess.run(
        ["make", "-n", "test", "ARGS="], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    (run,) = [line for line in done.splitlines() if line.startswith("NUMBA_DISABLE_JIT=1 ")]
    assert " --cov " in run
    assert run.endswith(" @tests/kernels.txt")
    report = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["report"]
    assert report["fail_under"] >= 50
    for line in (ROOT / "tests" / "kernels.txt").read_text().split():
        assert (ROOT / line.removeprefix("--deselect=").partition("::")[0]).exists(), line


def test_the_demo_installs_the_pinned_package_without_tools_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    command = ["make", "-n", "demo", "ARGS=", f"VENV={tmp_path / 'clean'}"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    (install,) = [line for line in lines if " pip install " in line]
    assert install.split("pip install ")[1] == "--quiet --constraint constraints.txt --editable ."
    assert lines[lines.index(install) - 1].startswith('echo "installing streamgrove')


def test_help_describes_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make (\w+) +\S", shown, re.MULTILINE)) == set(phony.split())


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_of_the_readme_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"(?:^ *|/|`)grove ([a-z]+)(?: ([a-z]+))?((?: +--?[a-z-]+)*)", readme, re.MULTILINE)
    assert {"demo", "prequential", "topics", "worker"} <= {command for command, _, _ in commands}
    for command, word, _ in commands:
        path = [command, word] if command in ("topics", "config") else [command]
        subprocess.run([sys.executable, "-m", "streamapp", *path, "--help"], check=True, capture_output=True)
