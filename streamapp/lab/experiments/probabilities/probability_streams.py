"""The streams of the experiment on calibration: generators, files, and digits by their main components.

They are those of docs/active-learning.md, and one with an abrupt change for which a detector starts a new
tree.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.schema.schema import Attribute, Schema
from core.spec import Spec
from core.streams.base import SCHEME
from streamapp.lab.datasets import FollowingSchema, open_data

STREAMS: Final = {
    "rbf": "gen:rbf?seed={seed}&model_seed={seed}",
    "random-tree": "gen:random_tree?seed={seed}&model_seed={seed}",
    "agrawal-2": "gen:agrawal?function=2&seed={seed}",
    "waveform": "gen:waveform?seed={seed}",
    "led": "gen:led?seed={seed}",
    "sea-drift": "gen:drift?before=(sea?seed={seed})&after=(sea?function=3&seed={seed})&position={middle}",
    "agrawal-drift": (
        "gen:drift?before=(agrawal?function=1&seed={seed})&after=(agrawal?function=3&seed={seed})"
        "&position={middle}&width=1000"
    ),
    "rbf-drift": "gen:rbf_drift?seed={seed}&model_seed={seed}&speed=0.0005",
    "stagger-drift": (
        "gen:drift?before=(stagger?function=1&seed={seed})&after=(stagger?function=2&seed={seed})"
        "&position={middle}"
    ),
}
"""Stream → address of its generator."""

DETECTORS: Final = {"stagger-drift": {"name": "hddm-a", "reaction": "reset"}}
"""Stream → the drift detector of its model; models of the other streams have none."""

LATE: Final = 1000
LATER: Final = {"stagger-drift": 2000}
"""Stream → records that are answered before a late label comes; LATE for the other streams."""

DIGITS: Final = "mnist20"
FILES: Final = {
    "elec": ("elecNormNew.arff.gz",),
    "weather": ("weather.csv.gz",),
    "airlines": ("airlines.csv.gz",),
    "a9a": ("a9a.gz", "a9a.t.gz"),
    "kdd99": ("kddcup.data_10_percent.gz",),
    DIGITS: ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
}
"""Stream → its files, of which the first records are read."""

COMPONENTS: Final = 20
BATCH_ROWS: Final = 500

Batch = tuple[Schema, npt.NDArray[np.float64], npt.NDArray[np.int32]]
"""Schema with the values and classes so far, x float64[m, d], y int32[m]."""


def found(data: Path) -> dict[str, str]:
    """Return the addresses of the streams whose files are all in a folder."""
    paths = {name: [data / file for file in files] for name, files in FILES.items()}
    return {
        name: ",".join(map(str, files))
        for name, files in paths.items()
        if all(file.is_file() for file in files)
    }


def batches(cell: dict[str, Any], seed: int, spec: Spec) -> Iterator[Batch]:
    """Yield the records of a cell's stream, BATCH_ROWS at a time."""
    records: int = cell["records"]
    if cell["stream"] == DIGITS:
        schema = Schema.of([Attribute(f"component{i}") for i in range(COMPONENTS)], tuple("0123456789"))
        x, y = digits(cell["address"])
        for start in range(0, min(len(y), records), BATCH_ROWS):
            stop = min(start + BATCH_ROWS, records)
            yield schema, x[start:stop], y[start:stop]
        return
    address = cell["address"]
    if address.startswith(SCHEME):
        address = address.format(seed=seed, middle=records // 2)
    dataset = open_data(address, records)
    following = FollowingSchema(dataset, spec.max_classes, learner=spec.learner)
    for batch in dataset.batches(BATCH_ROWS):
        x, y = batch[0][:records], batch[1][:records]
        records -= len(y)
        yield following.follow((x, y)), x, y
        if not records:
            return


@functools.lru_cache(maxsize=1)
def digits(files: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return the images (float64[n, COMPONENTS]) and labels of two IDX files with a comma between them."""
    from topics.readers.idx import read_idx

    pixels, labels = (read_idx(Path(file)) for file in files.split(","))
    return main_components(pixels.reshape(len(pixels), -1)), labels.astype(np.int32)


def main_components(pixels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return images of bytes [n, pixel] by the COMPONENTS principal components of most variance over them."""
    x = pixels.astype(np.float32) / np.float32(255.0)
    x -= x.mean(axis=0)
    directions = np.linalg.eigh(x.T @ x / len(x))[1][:, : -COMPONENTS - 1 : -1]
    return np.ascontiguousarray(x @ directions, np.float64)
