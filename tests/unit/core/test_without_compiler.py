"""Kernels as plain Python and compiled: what both compute, bit by bit.

The tests that judge the compiled ones run on plain Python too: `make coverage`, tests/kernels.txt.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.kernels.jit import DISABLED
from core.model.model import Model
from core.model_table import ModelTable
from core.spec import Spec
from tests.naive.rows import mixed

ROOT = Path(__file__).parents[3]

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
from core.kernels.jit import DISABLED
from tests.unit.core.test_without_compiler import digest
print(DISABLED, digest())
"""


@pytest.mark.skipif(DISABLED, reason="this is the run without compiler")
def test_plain_and_compiled_kernels_say_the_same() -> None:
    done = without_compiler("-c", PROGRAM)
    assert done.stdout.split() == ["True", digest()], done.stderr
