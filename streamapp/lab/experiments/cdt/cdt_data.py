"""The real data sets of CDT (Confidence Decision Trees, Table 1) that a folder has."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.schema.schema import Schema
from streamapp.errors import UsageError
from streamapp.lab.datasets import FollowingSchema

MAX_CLASSES = 2  # in all sets: two of the trees are defined for two classes only


@dataclass(frozen=True, slots=True)
class Published:
    """A line of Table 1."""

    attributes: int
    records: int
    positive: int
    negative: int
    uses_f1: bool = False
    """Starred in the paper: the measure is the F-measure instead of accuracy."""


PUBLISHED = {
    "a9a": Published(123, 48_842, 11_687, 37_155, uses_f1=True),
    "airlines": Published(7, 539_383, 240_264, 299_119),
    "cod-rna": Published(8, 488_565, 162_855, 325_710, uses_f1=True),
    "covertype": Published(54, 581_012, 283_301, 297_711),
    "electricity": Published(8, 45_312, 26_075, 19_237),
}

FILES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "a9a": (("a9a.gz", "a9a.t.gz"), {"features": 123}),
    "airlines": (
        ("airlines.csv.gz",),
        {
            "nominal": ["Airline", "AirportFrom", "AirportTo", "DayOfWeek"],
            "target": "Delay",
            "classes": ["0", "1"],
        },
    ),
    "electricity": (("elecNormNew.arff.gz",), {}),
}
"""Files of a set, and how they are read. The other two sets are not part of the seed data."""


@dataclass(frozen=True)
class Records:
    """A data set in memory: x float64[n, d], y int32[n]."""

    schema: Schema
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.int32]

    def permuted(self, seed: int) -> Records:
        """Return the records in a random order."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return Records(self.schema, self.x[order], self.y[order])

    def first(self, n: int) -> Records:
        return Records(self.schema, self.x[:n], self.y[:n])


def found(data: Path | None) -> list[str]:
    """Return the sets whose files are in a folder; UsageError if there are none."""
    here = [
        name
        for name, (files, _) in FILES.items()
        if data is not None and all((data / file).is_file() for file in files)
    ]
    if not here:
        file_names = ", ".join(file for files, _ in FILES.values() for file in files)
        message = (
            f"--datasets {data} must be a folder with some of {file_names} (GROVE_DATASETS names it too)"
        )
        raise UsageError(message)
    return here


@functools.lru_cache(maxsize=2)
def load(name: str, data: Path, limit: int | None = None) -> Records:
    """Return a data set, or the first ``limit`` records of it."""
    from topics.readers import open_dataset

    files, options = FILES[name]
    dataset = open_dataset([data / file for file in files], **options)
    if not dataset.names:
        message = f"{data / files[0]} must be the data set {name}; it has no attribute but the class"
        raise UsageError(message)
    following = FollowingSchema(dataset, MAX_CLASSES)
    xs, ys, n = [], [], 0
    for x, y in dataset.batches(65_536):
        following.follow((x, y))
        xs.append(x)
        ys.append(y)
        n += len(y)
        if limit is not None and n >= limit:
            break
    return Records(following.current, np.concatenate(xs)[:limit], np.concatenate(ys)[:limit])
