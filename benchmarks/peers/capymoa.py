"""Learners that only CapyMOA's build of MOA has: LAST, PLASTIC and the nodes of EFHAT.

The jar is a file of CapyMOA's wheel, of which nothing else is needed:

    pip install --no-deps capymoa==0.15.1
"""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Rows
from benchmarks.peers import moa
from benchmarks.peers.java import JavaError

DIGEST: Final = "e7d7c3d533a4800bf2581f820d2c1e9310d70ff40b52fc1a742793eceb89a660"
SOURCES: Final = (*moa.DRIVERS, *sorted((Path(__file__).parents[1] / "capymoa").glob("*.java")))
LEARNERS: Final = {
    "last": "trees.LAST",
    "last, eager": "trees.LAST -x (ADWINChangeDetector -a 0.5)",
    "last, hddm_a": "trees.LAST -x (HDDM_A_Test -d 0.05 -w 0.05)",
    "efhat": "Efhat",
    "plastic": "trees.PLASTIC",
}
"""Classifiers on MOA's command line."""


@cache
def build() -> moa.Build:
    """Return CapyMOA's build of MOA, from the wheel that is installed; raise JavaError if there is none."""
    spec = importlib.util.find_spec("capymoa")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise JavaError("capymoa must be installed: pip install --no-deps capymoa==0.15.1")
    jar = Path(folders[0]) / "jar" / "moa.jar"
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    if digest != DIGEST:
        raise JavaError(f"{jar} has SHA-256 {digest} and must have {DIGEST}: install capymoa 0.15.1")
    return moa.Build("capymoa", SOURCES, (jar,))


def predictions(rows: Rows, learner: str) -> npt.NDArray[np.int32]:
    """Return the answers of one of the learners, test then train."""
    return moa.evaluate(rows, LEARNERS[learner], build=build()).predictions


def timed(rows: Rows, learner: str, *, repeats: int = 3) -> tuple[list[float], float]:
    """Return the seconds of processor time of each repeat, and the accuracy."""
    seconds, accuracy, _ = moa.ensemble(rows, LEARNERS[learner], repeats=repeats, build=build())
    return seconds, accuracy
