"""The data sets of AFA that a folder has: streams and holdouts in the shares of the authors.

Features, shares and measures come from the notebook and the results in the history of the authors'
repository (rahbararman/ODT-continuous, commit 369f739). Zoo has 15 bits, because ``legs`` is left out. The
stream is 70 % of Zoo and Heart, in a random order that does not depend on the classes. Fico's bits and a
fold of Compas are files of that history, which a folder may have. Without them, Compas is read from the
file of GOSDT, and Fico is left out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.layout.model import Floats
from core.schema.schema import Attribute, Schema
from streamapp.errors import UsageError
from streamapp.lab.experiments.afa.afa_runs import Measure, accuracy, f1_of_class_1, weighted_f1

THRESHOLDS: Final = tuple(j / 10.0 for j in range(1, 10))
"""Thresholds of numbers that are scaled to lie from 0 to 1."""


@dataclass(frozen=True, slots=True)
class AfaSet:
    """A data set as the paper uses it."""

    files: tuple[str, ...]
    hypotheses: int
    stream: float
    """Share of the records that are the stream; the rest are the holdout."""
    measure: Measure = accuracy
    by_class: bool = True
    """True: each class has its share in both parts [D64]; False: the order alone decides."""
    parts: tuple[str, str] | None = None
    """Files of the stream and of the holdout, used as they are if the folder has them."""
    bundled: bool = False
    """True: scikit-learn has the set, which is used if the folder lacks the file."""
    delimiter: str | None = None
    """Delimiter of the authors' files: of the parts, if the set has parts."""
    nominal: tuple[str, ...] = ()
    """Columns whose numbers stand for names."""
    ignore: tuple[str, ...] = ()
    target: str | None = None


SETS: Final = {
    "LED": AfaSet(("led7.csv.gz",), 95, 0.8),
    "Zoo": AfaSet(
        ("zoo.arff.gz",), 161, 0.7, weighted_f1, by_class=False, ignore=("animal", "legs"), target="type"
    ),
    "Heart": AfaSet(
        ("spect.train.arff.gz", "spect.test.arff.gz"),
        34,
        0.7,
        f1_of_class_1,
        by_class=False,
        target="OVERALL_DIAGNOSIS",
    ),
    "Compas": AfaSet(
        ("compas_gosdt_binned.csv.gz",),
        500,
        0.8,
        parts=("compas-binary.csv.train5.csv", "compas-binary.csv.test5.csv"),
        delimiter=";",
    ),
    "Fico": AfaSet(("fico_binary.csv.train2.csv",), 50, 0.9, by_class=False, delimiter=";"),
    "Diabetes": AfaSet(("diabetes.arff.gz",), 120, 0.8, weighted_f1),
    "Breast Cancer": AfaSet(
        ("breast-cancer.csv",), 500, 0.8, weighted_f1, bundled=True, ignore=("id",), target="diagnosis"
    ),
    "Fetal Health": AfaSet(("fetal_health.csv.gz",), 500, 0.6, weighted_f1),
}
BITS: Final = ("LED", "Zoo", "Heart", "Compas", "Fico")
NUMBERS: Final = ("Diabetes", "Breast Cancer", "Fetal Health")


@dataclass(frozen=True)
class Split:
    """A stream and a holdout: x float64[n, d], y int32[n] each."""

    schema: Schema
    x: Floats
    y: Any
    test_x: Floats
    test_y: Any


def found(names: tuple[str, ...], data: Path | None) -> list[str]:
    """Return the sets among `names` whose files exist; UsageError if there are none."""
    here = [name for name in names if is_here(name, data)]
    if not here:
        files = ", ".join(file for name in names for file in SETS[name].files)
        message = f"--datasets {data} must be a folder with some of {files} (GROVE_DATASETS names it too)"
        raise UsageError(message)
    return here


def left_out(names: tuple[str, ...], here: set[str]) -> list[dict[str, str]]:
    """Return the sets that were not run, each with its missing files."""
    lines = []
    for name in names:
        if name not in here:
            bundled = "; scikit-learn has it, too" if SETS[name].bundled else ""
            why = f"{', '.join(SETS[name].files)} must be in the folder of --datasets{bundled}"
            lines.append({"set": name, "why it was not run": why})
    return lines


def is_here(name: str, data: Path | None) -> bool:
    """Return whether a set can be run."""
    afa_set = SETS[name]
    if _has(data, afa_set.files) or (afa_set.parts is not None and _has(data, afa_set.parts)):
        return True
    return afa_set.bundled and find_spec("sklearn") is not None


def _has(data: Path | None, files: tuple[str, ...]) -> bool:
    return data is not None and all((data / file).is_file() for file in files)


def split(name: str, data: Path | None, seed: int) -> Split:
    """Return a set in a random order, split by classes, by the order, or by the files of its parts."""
    afa_set = SETS[name]
    schema, x, y = _load(name, data)
    order = np.random.default_rng(seed).permutation(len(y))
    is_stream = np.zeros(len(y), dtype=bool)
    if afa_set.parts is not None and _has(data, afa_set.parts):
        assert data is not None
        is_stream[: len(_read(data / afa_set.parts[0], afa_set)[1])] = True
    elif afa_set.by_class:
        for c in range(schema.n_classes):
            of_class = order[y[order] == c]
            is_stream[of_class[: round(afa_set.stream * len(of_class))]] = True
    else:
        is_stream[order[: round(afa_set.stream * len(order))]] = True
    first, rest = order[is_stream[order]], order[~is_stream[order]]
    return Split(schema, x[first], y[first], x[rest], y[rest])


@functools.lru_cache(maxsize=2)
def _load(name: str, data: Path | None) -> tuple[Schema, Floats, Any]:
    afa_set = SETS[name]
    if afa_set.bundled and not _has(data, afa_set.files):
        import importlib

        bunch = importlib.import_module("sklearn.datasets").load_breast_cancer()
        return _numbers(bunch.data, bunch.target.astype(np.int32), 2)
    assert data is not None
    files = afa_set.parts if afa_set.parts is not None and _has(data, afa_set.parts) else afa_set.files
    first = _read(data / files[0], afa_set)
    classes = first[2]
    tables = [first, *(_read(data / file, afa_set, classes) for file in files[1:])]
    x, y = np.concatenate([table[0] for table in tables]), np.concatenate([table[1] for table in tables])
    return (_numbers if name in NUMBERS else _bits)(x, y, len(classes))


def _read(
    path: Path, afa_set: AfaSet, classes: tuple[str, ...] | None = None
) -> tuple[Floats, Any, tuple[str, ...]]:
    """Return x, y and the classes of a file; classes: classes of an earlier file, by code."""
    from topics.readers import open_dataset

    dataset = open_dataset(
        [path],
        target=afa_set.target,
        ignore=list(afa_set.ignore),
        delimiter=afa_set.delimiter if afa_set.parts is None or path.name in afa_set.parts else None,
        classes=None if _is_arff(path) else classes,
    )
    batches = list(dataset.batches(65_536))
    x = np.concatenate([batch[0] for batch in batches])
    y = np.concatenate([batch[1] for batch in batches])
    return x, y, tuple(dataset.classes)


def _is_arff(path: Path) -> bool:
    """Return whether a file declares its classes."""
    return ".arff" in path.suffixes


def _bits(x: Floats, y: Any, classes: int) -> tuple[Schema, Floats, Any]:
    """Return columns of two values unchanged, and each other column as one bit for each value."""
    columns = []
    for column in x.T:
        values = np.unique(column)
        bits = [column == values[-1]] if len(values) <= 2 else [column == value for value in values]
        columns += [bit.astype(np.float64) for bit in bits]
    attributes = [Attribute(f"x{i}", "nominal", ("0", "1")) for i in range(len(columns))]
    return Schema.of(attributes, tuple(map(str, range(classes)))), np.column_stack(columns), y


def _numbers(x: Floats, y: Any, classes: int) -> tuple[Schema, Floats, Any]:
    """Return numbers scaled by the minimum and maximum of all records, as in the authors' code."""
    low, high = x.min(axis=0), x.max(axis=0)
    attributes = [Attribute(f"x{i}", range=(0.0, 1.0), thresholds=THRESHOLDS) for i in range(x.shape[1])]
    scaled = (x - low) / np.where(high > low, high - low, 1.0)
    return Schema.of(attributes, tuple(map(str, range(classes)))), np.ascontiguousarray(scaled), y
