"""Kernels as plain Python: the very tests that judge the compiled ones, and what both compute, bit by bit."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.jit import DISABLED
from core.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from tests.naive.rows import mixed

ROOT = Path(__file__).parents[3]

# Every kernel family in a few seconds: random numbers, special functions, ranking, the run with its splits,
# drift, strategies, late labels and cuts against the naive twins, generators against published bytes.
SELECTION = (
    "tests/unit/core/test_jit.py",
    "tests/unit/core/test_rng.py",
    "tests/unit/core/test_special.py",
    "tests/unit/core/test_ranking.py",
    "tests/unit/core/test_model_table.py",
    "tests/unit/core/streams/test_sea.py",
    "tests/contract/test_twins_learner.py::test_the_learner_and_its_twin[mixed-nba-None]",
    "tests/contract/test_twins_learner.py::test_the_learner_and_its_twin[mixed-gini-moa]",
    "tests/contract/test_twins_model.py::test_drift_detection_and_rebuilding[drift0-None]",
    "tests/contract/test_twins_model.py::test_active_learning[variable_uncertainty-0.3]",
    "tests/contract/test_twins_model.py::test_labels_that_come_later[None]",
    "tests/contract/test_twins_model.py::test_the_cut_of_runs_changes_nothing[7]",
)
AT_LEAST = 60  # tests in the selection

SPEC = {
    "learner": {"name": "h-tree", "grace_period": 40, "delta": 0.01, "tau": 0.1, "leaf_model": "nba"},
    "drift": {"name": "ddm"},
}


def without_compiler(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(DISABLED, reason="this is the run without compiler")
def test_the_kernels_pass_their_tests_as_plain_python() -> None:
    done = without_compiler("-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", *SELECTION)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    summary = done.stdout.strip().splitlines()[-1]
    counts = {kind: int(number) for number, kind in re.findall(r"(\d+) (\w+)", summary)}
    assert counts["passed"] >= AT_LEAST, said
    assert counts.keys() <= {"passed", "skipped"}, said
    assert counts.get("skipped", 0) <= 3, "only what is about the compiler itself may be skipped"


def digest() -> str:
    """Return a hash of all that a stream with a bit of everything leads to."""
    stream = mixed(1500)
    table = ModelTable()
    index = table.add(Model.create(Spec.parse(SPEC), stream.schema()))
    answers = table.answer(np.full(len(stream.y), index), stream.x, stream.y, stream.weight)
    assert table.model(index).summary().splits > 0
    parts = (answers.prediction.tobytes(), answers.version.tobytes(), repr(answers.events).encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()


PROGRAM = """
from core.jit import DISABLED
from tests.unit.core.test_without_compiler import digest
print(DISABLED, digest())
"""


@pytest.mark.skipif(DISABLED, reason="this is the run without compiler")
def test_plain_and_compiled_kernels_say_the_same() -> None:
    done = without_compiler("-c", PROGRAM)
    assert done.stdout.split() == ["True", digest()], done.stderr
