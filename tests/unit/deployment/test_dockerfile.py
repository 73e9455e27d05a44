"""The Dockerfile: hadolint has nothing to say, and it keeps what it promises."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tests.unit.deployment.manifests import ROOT

TEXT = (ROOT / "Dockerfile").read_text()
JOINED = re.sub(r"\\\n\s*", " ", TEXT)
INSTRUCTIONS = [line.split(maxsplit=1) for line in JOINED.splitlines() if line and not line.startswith("#")]


def of(word: str) -> list[str]:
    return [arguments for instruction, arguments in INSTRUCTIONS if instruction == word]


def hadolint(text: str) -> list[str]:
    """The rules that hadolint finds broken in a Dockerfile."""
    program = Path(sysconfig.get_path("scripts")) / "hadolint"
    done = subprocess.run(
        [program, "--format", "json", "--no-fail", "-"],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not done.stderr
    return [finding["code"] for finding in json.loads(done.stdout)]


def test_hadolint_finds_nothing():
    assert hadolint(TEXT) == []


def test_hadolint_would_find_something():
    assert "DL3007" in hadolint("FROM python:latest\n")


def test_bases_are_pinned():
    stages = set()
    for arguments in of("FROM"):
        image, _, stage = arguments.partition(" AS ")
        assert image in stages or re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", image)
        stages.add(stage)
    assert len(stages) > 1, "what is needed to build stays in a stage of its own"


def test_the_last_user_is_a_number_and_not_root():
    """A name could not be checked against runAsNonRoot."""
    user, group = of("USER")[-1].split(":")
    assert int(user) >= 10_000
    assert int(group) >= 10_000
    assert f"useradd --uid {user} " in JOINED


def test_commands_are_in_exec_form():
    assert json.loads(of("ENTRYPOINT")[-1]) == ["grove"]
    assert json.loads(of("CMD")[-1]) == ["worker"]
    (check,) = of("HEALTHCHECK")
    program = json.loads(check.partition(" CMD ")[2])
    assert program[:2] == ["python", "-c"]
    compile(program[2], "HEALTHCHECK", "exec")


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path from the builder: the last pattern that matches decides."""
    verdict = False
    parents = [path, *(parent.as_posix() for parent in Path(path).parents)]
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!").removeprefix("**/")
        names = [Path(p).name for p in parents] if "**/" in line else parents
        if any(fnmatch.fnmatchcase(name, pattern) for name in names):
            verdict = not line.startswith("!")
    return verdict


@pytest.mark.parametrize("arguments", [a for a in of("COPY") if not a.startswith("--from")])
def test_what_is_copied_is_there_and_not_ignored(arguments):
    *sources, _ = shlex.split(arguments)
    for source in sources:
        assert (ROOT / source).exists()
        assert not ignored(source)


@pytest.mark.parametrize(
    "path", [".venv/bin/python", ".git/config", "tests/conftest.py", "core/x.pyc", "core/__pycache__/x"]
)
def test_what_does_not_belong_into_the_image_is_ignored(path):
    assert ignored(path)


def test_packages_of_the_project_are_all_copied():
    copied = {source for arguments in of("COPY") for source in shlex.split(arguments)[:-1]}
    assert {"core", "topics", "streamapp"} <= copied


def test_what_is_installed_is_what_was_tested():
    """Every installation that looks for dependencies is held to the pins, and they are there by then."""
    installs = [
        shlex.split(command)
        for run in of("RUN")
        for command in re.split(r"&&|;", run)
        if re.match(r"\s*pip install ", command)
    ]
    assert any("--no-deps" not in words for words in installs)
    for words in installs:
        if "--no-deps" not in words:
            assert words[words.index("--constraint") + 1] == "constraints.txt"
    steps = [(word, arguments.split()) for word, arguments in INSTRUCTIONS]
    copied = next(n for n, (word, names) in enumerate(steps) if word == "COPY" and "constraints.txt" in names)
    assert copied < next(n for n, (_, words) in enumerate(steps) if {"pip", "install"} <= set(words))


def test_every_command_finds_its_extra_in_the_image():
    """Extras are for commands and settings; those of developers and of papers' charts are left out."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (installed,) = re.findall(r"'\.\[(.*?)\]'", JOINED)
    assert set(installed.split(",")) == set(extras) - {"dev", "bench", "docs", "supply", "experiments"}


def test_sources_have_whole_seconds_before_kernels_are_compiled():
    """numba compares modification times to the nanosecond, image layers keep seconds."""
    (step,) = [run for run in of("RUN") if "grove warm" in run]
    assert step.index("touch --date=@") < step.index("compileall") < step.index("grove warm")


def test_kernels_are_compiled_for_a_named_processor():
    environment = " ".join(of("ENV"))
    assert "NUMBA_CPU_NAME=${KERNEL_CPU}" in environment
    assert 'NUMBA_CPU_FEATURES=""' in environment
    assert of("ARG")[0].startswith("KERNEL_CPU=")


def test_kernels_reach_the_last_stage_as_the_workers_own():
    assert "--from=build --chown=grove:grove /var/cache/streamgrove /var/cache/streamgrove" in of("COPY")


def test_the_state_is_a_volume():
    assert json.loads(of("VOLUME")[-1]) == ["/var/lib/streamgrove"]
