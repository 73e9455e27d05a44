"""The files of docs/extending.md are complete: put in their places, the contract tests take them in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
PARTS = ("core", "topics", "streamapp", "benchmarks", "tests", "pyproject.toml")
NEW = {"nearest_mean": "learners", "margin": "queries", "two_averages": "drift"}

RUN = """
import numpy as np
from core.model.model import Model
from core.model_table import ON_REQUEST, ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec

spec = {"learner": "nearest-mean", "query": "margin", "drift": "two_averages", "budget": {"limit": 0.5}}
schema = Schema.of([Attribute("a"), Attribute("b")], classes_open=True).with_class("no").with_class("yes")
draw = np.random.default_rng(1)
x = draw.normal(size=(2000, 2))
y = (x[:, 0] + x[:, 1] > 0.0).astype(np.int32)
y[1000:] ^= 1
table = ModelTable()
table.add(Model.create(Spec.parse(spec), schema))
for part in (slice(0, 700), slice(700, 2000)):
    n = len(y[part])
    answers = table.answer(np.zeros(n, dtype=np.int64), x[part], y[part], np.ones(n), ON_REQUEST)
    model = Model.restore(table.model(0).snapshot())
    assert model.snapshot() == table.model(0).snapshot()
right = answers.prediction == y[700:]
found = table.model(0)
print(right[:300].mean() > 0.9, right[-300:].mean() > 0.9, found.summary().rebuilds > 0, answers.asked.mean())
"""


def files() -> dict[str, str]:
    """Return the files of the page by their paths, which their first lines name."""
    blocks = re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return {path: f"# {path}\n{text}" for path, text in blocks}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with the files of the page in their places."""
    target = tmp_path_factory.mktemp("extended")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / part)
    for path, text in files().items():
        assert not (ROOT / path).exists()
        (target / path).write_text(text, encoding="utf-8")
    return target


def run(place: Path, *arguments: str, compiled: bool = False) -> str:
    environment = dict(os.environ) | {"PYTHONPATH": str(place), "NUMBA_CACHE_DIR": str(place / "cache")}
    environment["NUMBA_DISABLE_JIT"] = "0" if compiled else "1"
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_page_has_a_learner_a_strategy_and_a_detector() -> None:
    assert {Path(path).stem for path in files()} == set(NEW)


def test_the_contract_tests_take_them_in(place: Path) -> None:
    said = run(
        place,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_core_plugins.py"),
        *("-k", " or ".join(NEW)),
    )
    assert int(re.findall(r"(\d+) passed", said)[0]) >= 10


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_they_go_together(place: Path, compiled: bool) -> None:
    """It learns, asks below its margin, notices a drift, and goes on from a snapshot."""
    first, last, rebuilt, share = run(place, "-c", RUN, compiled=compiled).split()
    assert (first, last, rebuilt) == ("True", "True", "True")
    assert 0.0 < float(share) <= 0.5


def test_words_of_others_are_refused(place: Path) -> None:
    """What an array declares is what a snapshot must keep to."""
    program = (
        RUN
        + """
from core.errors import SnapshotError
from tests.fuzz.mutate import words_of, wrapped
words = words_of(found)
words[-6] = np.float64(-1.0).view(np.int64)  # of counts, behind which four means lie
try:
    Model.restore(wrapped(found, words))
except SnapshotError as error:
    print(error)
"""
    )
    assert "counts must be at least 0" in run(place, "-c", program)
