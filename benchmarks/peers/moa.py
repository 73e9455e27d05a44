"""MOA's HoeffdingTree on rows in memory, by the programs of benchmarks/moa."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Rows
from benchmarks.peers.java import Artifact, class_path, fetch_jar, run_java
from benchmarks.peers.result import Result, Task

DRIVERS = sorted((Path(__file__).parents[1] / "moa").glob("*.java"))
JARS: tuple[Artifact, ...] = (
    (
        "nz.ac.waikato.cms.moa",
        "moa",
        "2024.07.0",
        "e836320714ad3bb0fde77bf9c798f770ce4f2c1d3e9cd7579ed2ac6f63ce4434",
    ),
    (
        "nz.ac.waikato.cms.weka",
        "weka-dev",
        "3.9.6",
        "fddae1352375e1518d02ab6e6267e4ab1c9eb04ebc4c3072ea5e9ddd8092d870",
    ),
    (
        "com.github.fracpete",
        "sizeofag",
        "1.1.0",
        "70bab195f8380a92e5e274a1c364a01ed61056f6c24597a7fabab319f5ed4c74",
    ),
)

# MOA frees memory by deactivating leaves; here it never does, so that both systems do the same work.
NO_MEMORY_LIMIT = "-m 2000000000 -e 2147483647"

WARM_UP = 2


@dataclass(frozen=True)
class Build:
    """A build of MOA, and the programs that run its classifiers."""

    name: str
    """Folder of the compiled programs in the cache."""
    sources: Sequence[Path]
    jars: Sequence[Path]


@dataclass(frozen=True)
class MoaRun:
    """The result of a run of MOA; ``seconds`` of every repeat, ``splits`` as (record, attribute, test,
    weight).
    """

    records: int
    accuracy: float
    leaves: int
    splits: int
    depth: int
    seconds: list[float]
    predictions: npt.NDArray[np.int32] | None = None
    installed: list[tuple[int, int, str, float]] | None = None


def options(task: Task) -> str:
    """Return the options of moa.classifiers.trees.HoeffdingTree for a task."""
    leaf = {"mc": "MC", "nb": "NB", "nba": "NBAdaptive"}[task.leaf_model]
    measure = {"info_gain": "InfoGainSplitCriterion", "gini": "GiniSplitCriterion"}[task.criterion]
    numbers = f"-g {task.grace_period} -c {task.delta} -t {task.tau}"
    return f"-l {leaf} {numbers} -s {measure} {NO_MEMORY_LIMIT}"


def run(rows: Rows, task: Task, *, repeats: int = 5) -> Result:
    """Run MOA's own task EvaluatePrequential over the rows, with its defaults.

    All in one Java process; two passes warm its compiler up and do not count.
    """
    return _timed("moa", rows, task, repeats, "task")


def run_efdt(rows: Rows, task: Task, *, repeats: int = 5) -> Result:
    """Run MOA's task with its EFDT instead."""
    return _timed("moa-efdt", rows, task, repeats, "task", learner="EFDT")


def run_loop(rows: Rows, task: Task, *, repeats: int = 5) -> Result:
    """Run only the core of that task: predict, evaluate, train."""
    return _timed("moa-loop", rows, task, repeats, "evaluated")


def run_bare(rows: Rows, task: Task, *, repeats: int = 5) -> Result:
    """Run the learner alone: correct predictions are counted, nothing is evaluated."""
    return _timed("moa-bare", rows, task, repeats, "bare")


def _timed(
    system: str, rows: Rows, task: Task, repeats: int, how: str, learner: str = "HoeffdingTree"
) -> Result:
    driven = drive(rows, options(task), repeats=repeats + WARM_UP, how=how, learner=learner)
    return Result(
        system,
        driven.seconds[WARM_UP:],
        driven.records,
        driven.accuracy,
        driven.leaves,
        driven.splits,
        driven.depth,
    )


def drive(
    rows: Rows,
    settings: str,
    *,
    repeats: int = 0,
    trace: bool = False,
    how: str = "bare",
    learner: str = "HoeffdingTree",
    weight: Any = None,
) -> MoaRun:
    """Run MOA over the rows: ``repeats`` times for timing, and once more for the trace."""
    with tempfile.TemporaryDirectory(prefix="grove-moa-") as name:
        place = Path(name)
        weights = np.ones(len(rows.y)) if weight is None else weight
        columns = np.column_stack([rows.x, rows.y, weights]).astype("<f8")
        columns.tofile(place / "columns")
        kinds = ",".join("n" if values is None else str(values) for values in rows.attributes)
        job = {
            "columns": place / "columns",
            "records": len(rows.y),
            "attributes": kinds,
            "classes": rows.classes,
            "learner": learner,
            "options": settings,
            "repeats": repeats,
            "how": how,
        }
        if trace:
            job |= {"predictions": place / "predictions", "splits": place / "splits"}
        (place / "job.properties").write_text("".join(f"{key}={value}\n" for key, value in job.items()))
        answer = _java(["Prequential", str(place / "job.properties")])
        report = json.loads(answer.strip().splitlines()[-1])
        predictions = np.fromfile(place / "predictions", "<i4") if trace else None
        installed = _installed(place / "splits") if trace else None
    accuracy = report["correct"] / report["records"]
    return MoaRun(
        report["records"],
        accuracy,
        report["leaves"],
        report["splits"],
        report["depth"],
        report["seconds"],
        predictions,
        installed,
    )


@dataclass(frozen=True)
class Evaluated:
    """The answers of a classifier of MOA, and the measures of MOA's evaluators."""

    predictions: npt.NDArray[np.int32]
    votes: npt.NDArray[np.float64]
    """float64[record, class], not normalised."""
    measures: npt.NDArray[np.float64]
    """[point, 9]: record; accuracy, kappa, kappa temporal, kappa M over all records, then over the window."""


def evaluate(
    rows: Rows, learner: str, *, window: int = 1000, every: int = 1000, build: Build | None = None
) -> Evaluated:
    """Let a classifier, named as on MOA's command line, predict and learn the rows, and evaluate it."""
    with tempfile.TemporaryDirectory(prefix="grove-moa-") as name:
        place = Path(name)
        np.column_stack([rows.x, rows.y]).astype("<f8").tofile(place / "columns")
        job = {
            "columns": place / "columns",
            "records": len(rows.y),
            "attributes": ",".join("n" if values is None else str(values) for values in rows.attributes),
            "classes": rows.classes,
            "learner": learner,
            "window": window,
            "every": every,
            **{file: place / file for file in ("predictions", "votes", "measures")},
        }
        (place / "job").write_text(
            "".join(f"{key}={value}\n" for key, value in job.items()), encoding="utf-8"
        )
        _java(["Baselines", str(place / "job")], build)
        return Evaluated(
            np.fromfile(place / "predictions", "<i4"),
            np.fromfile(place / "votes", "<f8").reshape(len(rows.y), rows.classes),
            np.loadtxt(place / "measures", ndmin=2),
        )


def ensemble(
    rows: Rows, learner: str, *, repeats: int = 1, seed: int | None = None, build: Build | None = None
) -> tuple[list[float], float, int]:
    """Return the seconds of each repeat, the accuracy, and the bytes of a classifier of MOA over the rows.

    Seconds are processor time. `learner` is as on MOA's command line; `seed` is the seed of its random
    numbers, None: MOA's default. The learner runs alone: it predicts and learns, and correct predictions are
    counted.
    """
    often = {"repeats": repeats} if seed is None else {"seeds": ",".join([str(seed)] * repeats)}
    report = _ensemble(rows, learner, often, build)
    return report["seconds"], report["correct"] / len(rows.y), report["bytes"]


def ensemble_accuracies(rows: Rows, learner: str, seeds: Sequence[int]) -> list[float]:
    """Return the accuracy of a classifier of MOA over the rows for each seed."""
    report = _ensemble(rows, learner, {"seeds": ",".join(map(str, seeds))})
    return [hits / len(rows.y) for hits in report["hits"]]


def _ensemble(rows: Rows, learner: str, often: dict[str, Any], build: Build | None = None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="grove-moa-") as name:
        place = Path(name)
        np.column_stack([rows.x, rows.y, np.ones(len(rows.y))]).astype("<f8").tofile(place / "columns")
        job = {
            "columns": place / "columns",
            "records": len(rows.y),
            "attributes": ",".join("n" if values is None else str(values) for values in rows.attributes),
            "classes": rows.classes,
            "learner": learner,
            **often,
        }
        (place / "job").write_text(
            "".join(f"{key}={value}\n" for key, value in job.items()), encoding="utf-8"
        )
        report: dict[str, Any] = json.loads(_java(["Ensembles", str(place / "job")], build).splitlines()[-1])
    return report


def records(stream: str, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return the first n records (x float64[n, d], y int32[n]) of a stream named as on MOA's command line."""
    with tempfile.TemporaryDirectory(prefix="grove-moa-") as name:
        path = Path(name) / "records"
        _java(["Records", stream, str(n), str(path)])
        columns = np.fromfile(path, "<f8").reshape(n, -1)
    return np.ascontiguousarray(columns[:, :-1]), columns[:, -1].astype(np.int32)


def levels(detector: str, inputs: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return the level of a drift detector, named as on MOA's command line, after each input.

    `inputs` is int8[n], 1 for a wrong prediction. The levels are int8[n]: 0 in control, 1 warning, 2 drift.
    """
    with tempfile.TemporaryDirectory(prefix="grove-moa-") as name:
        place = Path(name)
        (place / "inputs").write_bytes(inputs.astype(np.int8).tobytes())
        _java(["Detectors", detector, str(place / "inputs"), str(place / "levels")])
        return np.fromfile(place / "levels", np.int8)


def _installed(path: Path) -> list[tuple[int, int, str, float]]:
    splits = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record, attribute, rest = line.split(" ", 2)
        test, weight = rest.rsplit(" ", 1)
        splits.append((int(record), int(attribute), test, float(weight)))
    return splits


def jars() -> list[Path]:
    """Return the jars of MOA and its dependencies."""
    return [fetch_jar(*jar) for jar in JARS]


def _java(arguments: list[str], build: Build | None = None) -> str:
    build = build or Build("moa", DRIVERS, tuple(jars()))
    return run_java(["-cp", class_path(build.name, build.sources, build.jars), *arguments])
