"""What the fuzzer has found stays mended (tests/fuzz, `make fuzz`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *arguments],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_find_leads_outside_any_more() -> None:
    done = fuzz("--replay")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        len(done.stdout.splitlines()) == len((ROOT / "tests/fuzz/corpus.jsonl").read_text().splitlines()) > 0
    )


def test_without_the_check_they_do() -> None:
    """Else the corpus, or the guarded words, would prove nothing."""
    done = fuzz("--replay", "--unchecked")
    assert done.returncode > 0, done.stderr
    assert "still there: Hole" in done.stdout


@pytest.mark.parametrize(
    ("only", "combinations"), [("boct", 4), ("arf", 2), pytest.param("", 10, marks=pytest.mark.nightly)]
)
def test_it_begins_with_models_that_can_be_used(only: str, combinations: int) -> None:
    """Before it mutates them it uses each as a worker would: with records the learner takes."""
    done = fuzz("--seconds", "0", "--only", only)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split(" combinations")[0]) >= combinations
