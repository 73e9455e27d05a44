"""The project's own files: pins, the CI command, the Makefile."""

import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().split()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+-]+", line) for line in lines)
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def test_what_a_release_may_be_used_with_includes_what_it_was_tested_with() -> None:
    pinned = constraints()
    extras = project()["optional-dependencies"]
    of_people = extras.keys() - {"dev", "bench", "docs", "supply"}
    used = (*project()["dependencies"], *(text for extra in of_people for text in extras[extra]))
    for requirement in map(Requirement, used):
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier
        operators = {each.operator for each in requirement.specifier}
        assert operators in ({"=="}, {">=", "<"}), f"{requirement} is open to what nobody has seen"


def test_what_relies_on_the_inside_of_others_asks_for_one_version_of_them() -> None:
    exact = {r.name for r in map(Requirement, project()["dependencies"]) if "==" in str(r.specifier)}
    assert exact == {"faust-streaming", "aiokafka", "mode-streaming"}


def test_the_tools_are_those_that_constraints_pin() -> None:
    pinned = constraints()
    extras = project()["optional-dependencies"]
    for text in (*extras["dev"], *extras["bench"], *extras["docs"], *extras["supply"]):
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


def test_ci_installs_a_browser_where_it_may_and_calls_the_developers_test_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands[-1] == "exec make test"
    before = commands[:-1]
    assert before[0].startswith("if [ ! -x /usr/bin/chromium ]")
    assert before[-1] == "fi"
    assert not any(word in line for line in before for word in ("pytest", "pip ", "make "))


def commands_of(target: str, **variables: str) -> list[str]:
    given = (f"{name}={value}" for name, value in ({"ARGS": ""} | variables).items())
    words = ["make", "--no-print-directory", "-n", target, *given]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_test_command_ends_with_the_gate_and_everything_else_is_asked_for() -> None:
    *before, last = commands_of("test")
    assert "pytest -n 4 " in last
    assert "--tier" not in last
    checks = {Path(line.split()[0]).name for line in before if line}
    assert {"mypy", "ruff", "lint-imports", "deptry"} <= checks
    assert commands_of("test", TEST_PROCESSES="2", ARGS="-k topics")[-1].endswith(" -k topics")
    assert " --tier all" in commands_of("test-all")[-1]


def test_a_part_of_a_night_is_the_tests_of_that_part_without_the_coverage_of_all() -> None:
    part = commands_of("test-all", ARGS="-m 'nightly and not broker'")
    assert part[-1].endswith(" --tier all -m 'nightly and not broker'")
    assert not [line for line in part if " --cov" in line]


def test_what_a_night_needs_is_said_where_contributors_look() -> None:
    """Its extras and data sets: who lacks one gets skips, or a failure that does not tell why."""
    said = (ROOT / "CONTRIBUTING.md").read_text()
    (install,) = [line for line in commands_of("test-all") if "bench]" in line]
    for extra in re.findall(r"\[(.*)\]", install)[0].split(","):
        assert f"`{extra}`" in said
    experiments = ROOT / "streamapp" / "lab" / "experiments"
    sources = [ROOT / "benchmarks" / "datasets.py", *experiments.rglob("*_data.py")]
    needed = {name for file in sources for name in re.findall(r'"([\w.-]+\.gz)"', file.read_text())}
    missing = {name for name in needed if not name.startswith("a9a") and f"`{name}`" not in said}
    assert len(needed) > 5
    assert missing == set()


def test_the_gate_runs_a_sample_of_the_kernels_without_compiler_and_the_night_holds_their_coverage() -> None:
    plain = next(line for line in commands_of("test") if line.startswith("NUMBA_DISABLE_JIT=1 "))
    assert re.search(r" --share 0\.\d+ @tests/kernels.txt$", plain)
    whole = [line for line in commands_of("test-all") if line.startswith("NUMBA_DISABLE_JIT=1 ")]
    assert any(" --cov " in line and line.endswith(" @tests/kernels.txt") for line in whole)
    report = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["report"]
    assert report["fail_under"] >= 85
    for line in (ROOT / "tests" / "kernels.txt").read_text().split():
        assert (ROOT / line.removeprefix("--deselect=").partition("::")[0]).exists(), line


def test_the_demo_installs_the_pinned_package_without_tools_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    lines = commands_of("demo", VENV=str(tmp_path / "clean"))
    (install,) = [line for line in lines if " pip install " in line]
    assert install.split("pip install ")[1] == "--quiet --constraint constraints.txt --editable '.[web]'"
    assert lines[lines.index(install) - 1].startswith('echo "installing streamgrove')


def test_the_bill_of_materials_has_all_that_a_release_can_have() -> None:
    (install,) = [line for line in commands_of("sbom") if "--constraint constraints.txt '." in line]
    extras = set(project()["optional-dependencies"]) - {"dev", "bench", "docs", "supply"}
    assert set(re.findall(r"\.\[(.*)\]", install)[0].split(",")) == extras


def test_an_audit_that_looks_nothing_up_fails() -> None:
    (audit,) = [line for line in commands_of("pip-audit") if "/pip-audit " in line]
    assert " --strict " in audit
    assert "--requirement constraints.txt" in audit


def test_help_describes_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0]
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make ([\w-]+) +\S", shown, re.MULTILINE)) == set(phony.split())


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
