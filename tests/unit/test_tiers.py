"""The runner itself: what is left out, what may be skipped, and a broker that was asked for in vain."""

import re
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import container_broker, tiers
from tests.tiers import pairwise

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from hypothesis import settings

def test_in_all_tiers():
    print("examples", settings.default.max_examples)

@pytest.mark.nightly
def test_at_night():
    print("night")

@pytest.mark.broker
def test_with_a_broker():
    print("broker")
"""


def run(tmp_path: Path, tests: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run tests of a file with the project's settings and `tests/conftest.py`."""
    file = tmp_path / "test_these.py"
    file.write_text(tests)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(ROOT),
            "-c",
            str(ROOT / "pyproject.toml"),
            "-q",
            "-s",
            str(file),
            *words,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("", "2 passed, 1 deselected"),
        ("-m nightly", "3 deselected"),
        ("-m nightly --tier all", "1 passed, 2 deselected"),
        ("--tier quick", "1 passed, 2 deselected"),
        ("--tier all", "3 passed"),
    ],
)
def test_nothing_but_the_tier_starts_what_is_nightly(tmp_path: Path, words: str, outcome: str) -> None:
    done = run(tmp_path, TESTS, *words.split())
    assert f"\n{outcome} in " in done.stdout


def test_the_tier_says_how_many_examples_are_made(tmp_path: Path) -> None:
    assert "examples 10\n" in run(tmp_path, TESTS, "--tier", "quick").stdout
    assert "examples 1000\n" in run(tmp_path, TESTS, "--tier", "all", "-k", "tiers").stdout


PROPERTIES = """
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

def limit(request):
    return [mark.args[0] for mark in request.node.iter_markers("timeout")]

@given(st.none())
def test_a_property(request, none):
    print("property", limit(request))

@pytest.mark.timeout(7)
@given(st.none())
def test_one_with_a_limit(request, none):
    print("own", limit(request))

def test_an_example(request):
    print("example", limit(request))

class Machine(RuleBasedStateMachine):
    @rule()
    def step(self):
        pass

@pytest.fixture(autouse=True)
def of_the_machine(request):
    if "Machine" in request.node.nodeid:
        print("machine", limit(request))

TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=1, stateful_step_count=1)
"""


def test_who_has_ten_times_the_examples_has_ten_times_the_time(tmp_path: Path) -> None:
    """Otherwise a property that takes more than a minute in the gate is ended at night, and fails."""
    words = ("-W", "ignore")
    night = run(tmp_path, PROPERTIES, "--tier", "all", *words).stdout
    for said in ("property [6000.0]", "own [7]", "example []", "machine [6000.0]"):
        assert said in night, night
    day = run(tmp_path, PROPERTIES, *words).stdout
    for said in ("property []", "own [7]", "example []", "machine []"):
        assert said in day, day


def test_a_skip_that_nobody_expects_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, 'import pytest\n\ndef test_this():\n    pytest.skip("no time")\n')
    assert done.returncode == 1
    assert "FAILED: 'no time' is no reason to skip a test" in done.stdout
    done = run(tmp_path, 'import pytest\n\ndef test_this():\n    pytest.skip("rendering needs kubectl")\n')
    assert done.returncode == 0
    assert "1 rendering needs kubectl" in done.stdout


def test_a_container_that_was_asked_for_in_vain_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'nobody'}")
    monkeypatch.delenv("GROVE_KAFKA_BOOTSTRAP_SERVERS", raising=False)
    done = run(tmp_path, TESTS, "--broker", "container")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--broker container needs a Docker engine that answers" in done.stderr
    assert "leave --broker out for an embedded broker" in done.stderr


def test_in_the_container_transactions_can_begin() -> None:
    environment = container_broker.environment(20_000)
    for name in ("REPLICATION_FACTOR", "MIN_ISR", "NUM_PARTITIONS"):
        assert int(environment[f"KAFKA_TRANSACTION_STATE_LOG_{name}"]) >= 1
    assert environment["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://127.0.0.1:20000"


def test_the_gate_of_a_product_has_every_pair() -> None:
    cases = list(product("abcd", range(3), (False, True)))
    kept = [parameter for parameter in pairwise(cases) if not parameter.marks]
    assert [parameter.values for parameter in pairwise(cases)] == cases
    assert len(kept) < len(cases) * 0.7
    for one, other in combinations(range(3), 2):
        pairs = {(case[one], case[other]) for case in cases}
        assert {(p.values[one], p.values[other]) for p in kept} == pairs


MANY = """
import pytest

@pytest.mark.parametrize("n", range(200))
def test_number(n):
    assert n != 7, "seven is not liked"
    if n == 9:
        pytest.skip("no folder of data sets")
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_run_into_a_file_shows_what_failed_and_ten_lines_of_how_far_it_is(
    tmp_path: Path, processes: str
) -> None:
    done = run(tmp_path, MANY, "-n", processes, "--capture", "fd")
    before, _, failures = done.stdout.partition("FAILURES")
    lines = [line for line in before.splitlines() if "tests after" in line]
    assert [line.partition(" tests")[0] for line in lines] == [f"{n} of 200" for n in range(20, 201, 20)]
    assert lines[-1].endswith(" s, 1 failed")
    assert before.count(".") < 20, "no letter for each test that passed"
    assert "seven is not liked" in failures
    assert "1 failed, 198 passed, 1 skipped in " in done.stdout.splitlines()[-1]


def test_a_line_of_each_test_is_to_be_had(tmp_path: Path) -> None:
    done = run(tmp_path, MANY, "-vv", "-k", "number")
    assert done.stdout.count("PASSED") == 198
    assert "tests after" not in done.stdout


GRID = """
import pytest

@pytest.mark.parametrize("case", range(40))
def test_case(case):
    print(f"case {case}.")
"""


def cases_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: str, *words: str) -> set[str]:
    monkeypatch.setenv(tiers.SEED_VARIABLE, seed)
    return set(re.findall(r"case (\d+)\.", run(tmp_path, GRID, *words).stdout))


def test_a_share_of_the_tests_is_drawn_by_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = cases_of(tmp_path, monkeypatch, "2026-01-01", "--share", "0.25")
    assert 3 <= len(one) <= 20
    assert one == cases_of(tmp_path, monkeypatch, "2026-01-01", "--share", "0.25")
    assert one != cases_of(tmp_path, monkeypatch, "2026-01-02", "--share", "0.25")


class Case:
    """A collected test, as far as samples look at it."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def sampled(tier: str, *args: str) -> tuple[list[str], list[str]]:
    """Return the cases that a tier keeps of a listed test with forty cases, and those it deselects."""
    name, kept = next(iter(tiers.grids().items()))
    items: Any = [Case(f"{name}[{i}]") for i in range(40 + kept)] + [Case("tests/unit/test_other.py::test")]
    deselected: list[str] = []
    config: Any = SimpleNamespace(
        args=list(args),
        getoption=lambda option: tier,
        hook=SimpleNamespace(pytest_deselected=lambda items: deselected.extend(i.nodeid for i in items)),
    )
    tiers.sample_grids(config, items)
    return [item.nodeid for item in items], deselected


def test_a_grid_is_sampled_in_the_gate_and_whole_at_night() -> None:
    kept = next(iter(tiers.grids().values()))
    left, deselected = sampled("gate")
    assert len(left) == kept + 1
    assert len(deselected) == 40
    assert "tests/unit/test_other.py::test" in left
    assert sampled("all") == (sampled("all")[0], [])
    assert sampled("gate", "tests/x.py::test[3]")[1] == []


def test_every_listed_grid_is_a_test_with_more_cases() -> None:
    for name, kept in tiers.grids().items():
        file, _, function = name.partition("::")
        assert kept > 0, name
        assert (ROOT / file).read_text().count(f"def {function or 'test_'}") > (0 if function else kept), name


def test_a_listed_file_is_sampled_over_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        tiers, "grids", lambda: {"tests/broker/test_a.py": 2, "tests/broker/test_b.py::test": 1}
    )
    items: Any = [Case(f"tests/broker/test_{file}.py::test[{n}]") for file in "ab" for n in range(4)]
    config: Any = SimpleNamespace(
        args=[],
        getoption=lambda option: "gate",
        hook=SimpleNamespace(pytest_deselected=lambda items: None),
    )
    tiers.sample_grids(config, items)
    assert [item.nodeid.partition("::")[0][-4] for item in items] == ["a", "a", "b"]
