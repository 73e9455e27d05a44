"""The data sets of AFA, as far as a folder has them: streams and holdouts (Table 1, section 6.1)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.schema.schema import Attribute, Schema
from core.tree.layout import Floats
from streamapp.errors import UsageError
from streamapp.experiments.afa_runs import Measure, accuracy, weighted_f1

THRESHOLDS: Final = tuple(j / 10.0 for j in range(1, 10))
"""Of numbers that are scaled to lie from 0 to 1."""


@dataclass(frozen=True, slots=True)
class AfaSet:
    """A data set as the paper uses it."""

    files: tuple[str, ...]
    """Empty: scikit-learn brings it."""
    hypotheses: int
    stream: float
    """Share of the records that are the stream; the others are the holdout."""
    measure: Measure = accuracy
    nominal: tuple[str, ...] = ()
    """Columns whose numbers are names."""
    ignore: tuple[str, ...] = ()
    target: str | None = None


SETS: Final = {
    "LED": AfaSet(("led7.csv.gz",), 95, 0.8),
    "Zoo": AfaSet(("zoo.arff.gz",), 161, 0.8, ignore=("animal",), target="type"),
    "Heart": AfaSet(
        ("spect.train.arff.gz", "spect.test.arff.gz"), 34, 0.8, weighted_f1, target="OVERALL_DIAGNOSIS"
    ),
    "Compas": AfaSet(("compas_gosdt_binned.csv.gz",), 500, 0.8),
    "Diabetes": AfaSet(("diabetes.arff.gz",), 120, 0.8),
    "Breast Cancer": AfaSet((), 500, 0.8),
    "Fetal Health": AfaSet(("fetal_health.csv.gz",), 500, 0.6),
}
"""Fico was not at hand."""
BITS: Final = ("LED", "Zoo", "Heart", "Compas")
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
    """Return those of some sets that there are; UsageError without any."""
    here = [name for name in names if _is_here(SETS[name], data)]
    if not here:
        wanted = ", ".join(file for name in names for file in SETS[name].files)
        message = f"--datasets {data} must be a folder with some of {wanted} (GROVE_DATASETS names it too)"
        raise UsageError(message)
    return here


def _is_here(wanted: AfaSet, data: Path | None) -> bool:
    if not wanted.files:
        return find_spec("sklearn") is not None
    return data is not None and all((data / file).is_file() for file in wanted.files)


def split(name: str, data: Path | None, seed: int) -> Split:
    """Return a set in a random order, cut by classes [D64], so that both parts have each one's share."""
    schema, x, y = _load(name, data)
    order = np.random.default_rng(seed).permutation(len(y))
    is_stream = np.zeros(len(y), dtype=bool)
    for c in range(schema.n_classes):
        of_class = order[y[order] == c]
        is_stream[of_class[: round(SETS[name].stream * len(of_class))]] = True
    first, rest = order[is_stream[order]], order[~is_stream[order]]
    return Split(schema, x[first], y[first], x[rest], y[rest])


@functools.lru_cache(maxsize=2)
def _load(name: str, data: Path | None) -> tuple[Schema, Floats, Any]:
    if name == "Breast Cancer":
        import importlib

        bunch = importlib.import_module("sklearn.datasets").load_breast_cancer()
        return _numbers(bunch.data, bunch.target.astype(np.int32), 2)
    assert data is not None
    tables = [_read(data / file, SETS[name]) for file in SETS[name].files]
    x, y = np.concatenate([table[0] for table in tables]), np.concatenate([table[1] for table in tables])
    classes = tables[0][2]
    return (_numbers if name in NUMBERS else _bits)(x, y, classes)


def _read(path: Path, wanted: AfaSet) -> tuple[Floats, Any, int]:
    """Return x, y and the number of classes of a file."""
    from topics.readers import open_dataset

    dataset = open_dataset([path], target=wanted.target, ignore=list(wanted.ignore))
    batches = list(dataset.batches(65_536))
    x = np.concatenate([batch[0] for batch in batches])
    y = np.concatenate([batch[1] for batch in batches])
    return x, y, len(dataset.classes)


def _bits(x: Floats, y: Any, classes: int) -> tuple[Schema, Floats, Any]:
    """Return every column of two values as it is, of more as a bit for each."""
    columns = []
    for column in x.T:
        values = np.unique(column)
        found = [column == values[-1]] if len(values) <= 2 else [column == value for value in values]
        columns += [bit.astype(np.float64) for bit in found]
    attributes = [Attribute(f"x{i}", "nominal", ("0", "1")) for i in range(len(columns))]
    return Schema.of(attributes, tuple(map(str, range(classes)))), np.column_stack(columns), y


def _numbers(x: Floats, y: Any, classes: int) -> tuple[Schema, Floats, Any]:
    """Return numbers scaled by the smallest and largest of all records, as the authors' code does."""
    low, high = x.min(axis=0), x.max(axis=0)
    attributes = [Attribute(f"x{i}", range=(0.0, 1.0), thresholds=THRESHOLDS) for i in range(x.shape[1])]
    scaled = (x - low) / np.where(high > low, high - low, 1.0)
    return Schema.of(attributes, tuple(map(str, range(classes)))), np.ascontiguousarray(scaled), y
