"""Random radial basis functions: Gaussian blobs around random centres, each of one class."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

# Draws of a record in the counter flavour: 0 the blob, 2 and 3 the distance, from 4 on the direction.
_DISTANCE: Final = 2
_DIRECTION: Final = 4
# Draws of a blob there: class, spread and weight, from 3 on the centre.
CENTRE: Final = 3


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Blobs with uniform centre, class, spread and weight; records lie around the centre of their blob.

    ``seed`` draws the records, ``model_seed`` the blobs. 50 attributes and 5 classes are the usual hard
    setting ("RBF 50×5"), 10 and 2 MOA's default.
    """

    model_seed: int = count(1, at_most=2**63 - 1)
    attributes: int = count(10, at_least=1, at_most=10_000)
    classes: int = count(2, at_least=1, at_most=1000)
    centroids: int = count(50, at_least=1, at_most=100_000)

    @property
    def schema(self) -> Schema:
        return _schema(self.attributes, self.classes)

    def blobs(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64], Any]:
        """Return the blobs' centre float64[c, a], class int64[c], spread and weight float64[c]."""
        centre = np.empty((self.centroids, self.attributes))
        label = np.empty(self.centroids, np.int64)
        spread, weight = np.empty(self.centroids), np.empty(self.centroids)
        if self.rng == "java":
            _draw_blobs(_java.seeded(self.model_seed), self.classes, centre, label, spread, weight)
        else:
            _count_blobs(
                rng.stream_key(self.model_seed, rng.GENERATOR_MODEL),
                self.classes,
                centre,
                label,
                spread,
                weight,
            )
        return centre, label, spread, weight

    def writer(self) -> Writer:
        centre, label, spread, weight = self.blobs()
        # MOA subtracts the weights from a random share of their sum one by one; a running sum would round
        # differently.
        if self.rng == "java":
            random = _java.seeded(self.seed)
            return lambda _first, x, y: _draw(random, centre, label, spread, weight, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        until = np.cumsum(weight)
        return lambda first, x, y: _count(key, centre, label, spread, until, first, x, y)


@functools.cache
def _schema(attributes: int, classes: int) -> Schema:
    names = tuple(f"class{i + 1}" for i in range(classes))
    return Schema.of(
        [Attribute(f"att{i + 1}") for i in range(attributes)], names, max_classes=max(64, classes)
    )


@kernel("void(uint64, int64, float64[:, ::1], int64[::1], float64[::1], float64[::1])")
def _count_blobs(
    key,
    classes: int,
    centre: npt.NDArray[np.float64],
    label: npt.NDArray[np.int64],
    spread: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
) -> None:
    """Fill the blobs: draws 0, 1, 2 are class, spread and weight, the centre comes after."""
    for i in range(label.size):
        draw = i << rng.DRAW_BITS
        label[i] = rng.integer(key, draw, classes)
        spread[i] = rng.uniform(key, draw + 1)
        weight[i] = rng.uniform(key, draw + 2)
        for j in range(centre.shape[1]):
            centre[i, j] = rng.uniform(key, draw + CENTRE + j)


@kernel("void(int64[::1], int64, float64[:, ::1], int64[::1], float64[::1], float64[::1])")
def _draw_blobs(
    random: npt.NDArray[np.int64],
    classes: int,
    centre: npt.NDArray[np.float64],
    label: npt.NDArray[np.int64],
    spread: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
) -> None:
    for i in range(label.size):
        for j in range(centre.shape[1]):
            centre[i, j] = _java.double(random)
        label[i] = _java.integer(random, classes)
        spread[i] = _java.double(random)
        weight[i] = _java.double(random)


@kernel
def chosen(key, draw: int, until: npt.NDArray[np.float64]) -> int:
    """Return the blob of a record in the counter flavour; until: running sum of the blobs' weights."""
    blob = np.searchsorted(until, until[-1] * rng.uniform(key, draw), side="right")
    return int(min(blob, until.size - 1))


@kernel
def scatter(
    key, draw: int, centre: npt.NDArray[np.float64], spread: float, record: npt.NDArray[np.float64]
) -> None:
    """Fill a record float64[a] off a centre float64[a] in the counter flavour."""
    square = 0.0
    for j in range(record.size):
        offset = 2.0 * rng.uniform(key, draw + _DIRECTION + j) - 1.0
        record[j] = offset
        square += offset * offset
    scale = rng.normal(key, (draw + _DISTANCE) >> 1) * spread / math.sqrt(square)
    for j in range(record.size):
        record[j] = centre[j] + record[j] * scale


@kernel
def total(weight: npt.NDArray[np.float64]) -> float:
    """Return the sum of the blobs' weights, added one by one."""
    whole = 0.0
    for i in range(weight.size):
        whole += weight[i]
    return whole


@kernel
def draw_blob(random: npt.NDArray[np.int64], weight: npt.NDArray[np.float64], whole: float) -> int:
    """Return the blob of a record as MOA draws it; whole: the sum of the weights."""
    rest = _java.double(random) * whole
    blob, sum_of_weights = 0, weight[0]
    while sum_of_weights <= rest and blob < weight.size - 1:
        blob += 1
        sum_of_weights += weight[blob]
    return blob


@kernel
def scatter_point(
    random: npt.NDArray[np.int64],
    centre: npt.NDArray[np.float64],
    spread: float,
    record: npt.NDArray[np.float64],
) -> None:
    """Fill a record float64[a] off a centre float64[a] with MOA's draws."""
    square = 0.0
    for j in range(record.size):
        offset = 2.0 * _java.double(random) - 1.0
        record[j] = offset
        square += offset * offset
    scale = _java.gaussian(random) * spread / math.sqrt(square)
    for j in range(record.size):
        record[j] = centre[j] + record[j] * scale


@kernel(
    "void(uint64, float64[:, ::1], int64[::1], float64[::1], float64[::1], int64,"
    " float64[:, ::1], int32[::1])"
)
def _count(
    key,
    centre: npt.NDArray[np.float64],
    label: npt.NDArray[np.int64],
    spread: npt.NDArray[np.float64],
    until: npt.NDArray[np.float64],
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, a], y int32[m]; until: running sum of the blobs' weights."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        blob = chosen(key, draw, until)
        scatter(key, draw, centre[blob], spread[blob], x[row])
        y[row] = label[blob]


@kernel(
    "void(int64[::1], float64[:, ::1], int64[::1], float64[::1], float64[::1], float64[:, ::1], int32[::1])"
)
def _draw(
    random: npt.NDArray[np.int64],
    centre: npt.NDArray[np.float64],
    label: npt.NDArray[np.int64],
    spread: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, a], y int32[m] with MOA's draws."""
    whole = total(weight)
    for row in range(y.size):
        blob = draw_blob(random, weight, whole)
        scatter_point(random, centre[blob], spread[blob], x[row])
        y[row] = label[blob]
