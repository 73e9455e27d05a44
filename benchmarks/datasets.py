"""The streams of the benchmarks as arrays in memory: real data sets, generators, any file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import GroveError
from core.schema.schema import Attribute, Schema
from core.streams import open_generator, parse_address
from topics.readers import Dataset, open_dataset
from topics.readers.idx import read_idx

FOLDER_VARIABLE = "GROVE_DATASETS"
COMMITTED = Path(__file__).parents[1] / "examples" / "data"

GENERATED = {
    "sea": ("sea", {"function": 1}),
    "agrawal": ("agrawal", {"function": 1}),
    "led": ("led", {}),
    "rbf": ("rbf", {"attributes": 50, "classes": 5}),
}
"""Generators as MOA makes them (java flavour, seed 1); "rbf" is RBF 50×5."""


class MissingDatasetError(Exception):
    """A data set is not on this machine."""


@dataclass(frozen=True)
class Rows:
    """Records in memory: x float64[n, d] (codes for nominal values), y int32[n].

    ``attributes`` holds None for a numeric attribute, otherwise the number of its values.
    """

    name: str
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.int32]
    attributes: tuple[int | None, ...]
    classes: int

    def first(self, records: int | None) -> Rows:
        return Rows(self.name, self.x[:records], self.y[:records], self.attributes, self.classes)

    @property
    def schema(self) -> Schema:
        """The meaning of columns and codes; all is declared except the ranges of numbers."""
        return self._schema([None] * len(self.attributes))

    @property
    def schema_with_ranges(self) -> Schema:
        """The same schema with the ranges of numbers in the rows, for learners that require ranges."""
        limits = zip(np.nanmin(self.x, axis=0).tolist(), np.nanmax(self.x, axis=0).tolist(), strict=True)
        return self._schema([(low, high if high > low else low + 1.0) for low, high in limits])

    def _schema(self, ranges: list[tuple[float, float]] | list[None]) -> Schema:
        attributes = [
            Attribute(f"a{i}", range=ranges[i])
            if values is None
            else Attribute(f"a{i}", "nominal", tuple(map(str, range(values))))
            for i, values in enumerate(self.attributes)
        ]
        return Schema.of(attributes, tuple(map(str, range(self.classes))))


def folder() -> Path:
    """Return the folder of the data sets: GROVE_DATASETS, else ../shared/datasets beside the project."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path(__file__).parents[2] / "shared" / "datasets"


def _files(*names: str) -> list[Path]:
    """Return the paths of files; files of the demo are in the repository."""
    paths = [path if (path := COMMITTED / name).is_file() else folder() / name for name in names]
    for path in paths:
        if not path.is_file():
            msg = f"{path} is not there; set {FOLDER_VARIABLE} to the folder that holds it"
            raise MissingDatasetError(msg)
    return paths


def _electricity() -> Dataset:
    return open_dataset(_files("elecNormNew.arff.gz"))


def _weather() -> Dataset:
    return open_dataset(_files("weather.csv.gz"), target="target", classes=["0", "1"])


def _airlines() -> Dataset:
    nominal = ["Airline", "AirportFrom", "AirportTo", "DayOfWeek"]
    return open_dataset(_files("airlines.csv.gz"), nominal=nominal, target="Delay", classes=["0", "1"])


def _kdd99() -> Dataset:
    return open_dataset(
        _files("kddcup.data_10_percent.gz"), "csv", header=False, nominal=[1, 2, 3, 6, 11, 20, 21]
    )


def _a9a() -> Dataset:
    return open_dataset(_files("a9a.gz", "a9a.t.gz"), features=123)


def _mnist() -> Rows:
    """Return the 60,000 training images: bytes of 28·28 pixels, read from the IDX files."""
    images, labels = _files("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
    pixels, digits = read_idx(images), read_idx(labels)
    x = pixels.reshape(len(pixels), -1).astype(np.float64)
    return Rows("mnist", x, digits.astype(np.int32), (None,) * x.shape[1], 10)


REAL: dict[str, Callable[[], Dataset]] = {
    "electricity": _electricity,
    "airlines": _airlines,
    "kdd99": _kdd99,
    "a9a": _a9a,
}
OTHERS: dict[str, Callable[[], Dataset]] = {"weather": _weather}
"""Data sets without a comparison of equal work."""
MNIST = "mnist"
"""Electricity 45,312 rows; airlines 539,383; KDD99 10 % 494,021; a9a with a9a.t 48,842."""


def load(name: str, records: int | None = None) -> Rows:
    """Return a stream by name, generator address (gen:sea?…) or file; ``records`` cuts it."""
    if name in GENERATED:
        generator, options = GENERATED[name]
        return generated(name, generator, options, 1_000_000 if records is None else records)
    if name.startswith("gen:"):
        source, n = parse_address(name)
        limit = n if records is None else records
        if limit is None:
            msg = f"{name} needs a number of records: add n=1000000 or --records"
            raise GroveError(msg)
        x, y = source.take(limit)
        return Rows(name, x, y, _attributes(source.schema), source.schema.n_classes)
    if name == MNIST:
        return _mnist().first(records)
    readers = REAL | OTHERS
    dataset = readers[name]() if name in readers else open_dataset(name)
    return _read(name, dataset).first(records)


def generated(name: str, generator: str, options: dict[str, Any], records: int) -> Rows:
    """Return records of a generator in MOA's flavour."""
    source = open_generator(generator, rng="java", **options)
    x, y = source.take(records)
    return Rows(name, x, y, _attributes(source.schema), source.schema.n_classes)


def _attributes(schema: Schema) -> tuple[int | None, ...]:
    return tuple(None if a.kind == "numeric" else len(a.values) for a in schema.attributes)


def _read(name: str, dataset: Dataset) -> Rows:
    batches = list(dataset.batches(65_536))
    x = np.concatenate([x for x, _ in batches])
    y = np.concatenate([y for _, y in batches])
    kinds = zip(dataset.kinds, dataset.values, strict=True)
    attributes = tuple(None if kind == "numeric" else len(values) for kind, values in kinds)
    return Rows(name, x, y, attributes, len(dataset.classes))
