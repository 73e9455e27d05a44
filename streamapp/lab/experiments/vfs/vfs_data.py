"""The real data sets of VFS (Speeding up VFDT, Table 1) that a folder has: parts of two of the three.

The whole of KDD99 has 4.9 million records; its ten per cent have other shares of classes. MNIST8M consists
of MNIST's 60,000 images, deformed many times. Covertype was not available.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.schema.schema import Attribute, Schema
from core.streams.base import Batch
from streamapp.lab.datasets import FollowingSchema
from streamapp.lab.experiments.cdt.cdt_data import Records
from streamapp.lab.experiments.trace import in_memory

MAX_CLASSES = 64


@dataclass(frozen=True, slots=True)
class Share:
    """The available part of a set of Table 1."""

    records: int
    """Records of the part."""
    published: int
    sample: int
    """Records between two samples of the windowed accuracy."""
    files: tuple[str, ...]
    read: Callable[[list[Path]], Records]


def _kdd99(files: list[Path]) -> Records:
    """Read the records, and declare all values: shadows of the split delay do not grow."""
    from topics.readers import open_dataset

    dataset = open_dataset(files, "csv", header=False, nominal=[1, 2, 3, 6, 11, 20, 21])
    following = FollowingSchema(dataset, MAX_CLASSES)
    xs, ys = [], []
    for x, y in dataset.batches(65_536):
        following.follow((x, y))
        xs.append(x)
        ys.append(y)
    schema = following.current
    declared = [
        Attribute(attribute.name, attribute.kind, attribute.values) for attribute in schema.attributes
    ]
    return Records(Schema.of(declared, schema.classes), np.concatenate(xs), np.concatenate(ys))


def _mnist(files: list[Path]) -> Records:
    from topics.readers.idx import read_idx

    pixels, digits = (read_idx(path) for path in files)
    x = pixels.reshape(len(pixels), -1).astype(np.float64)
    schema = Schema.of([Attribute(f"pixel{i}") for i in range(x.shape[1])], tuple("0123456789"))
    return Records(schema, x, digits.astype(np.int32))


SHARES = {
    "KDD99": Share(494_021, 4_898_431, 10_000, ("kddcup.data_10_percent.gz",), _kdd99),
    "MNIST8M": Share(
        60_000, 8_100_000, 1_000, ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"), _mnist
    ),
}


def found(data: Path | None) -> list[str]:
    """Return the sets of which a folder has a part."""
    return [
        name
        for name, share in SHARES.items()
        if data is not None and all((data / file).is_file() for file in share.files)
    ]


@functools.lru_cache(maxsize=1)
def load(name: str, data: Path) -> Records:
    """Return the part of a set that a folder has, with all values declared."""
    share = SHARES[name]
    return share.read([data / file for file in share.files])


def batches(name: str, data: Path, records: int) -> tuple[Schema, list[Batch]]:
    part = load(name, data).first(records)
    return part.schema, list(in_memory(part.x, part.y))
