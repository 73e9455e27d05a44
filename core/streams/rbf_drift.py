"""Random radial basis functions that move: blobs travel through the unit cube and turn back at its sides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, number
from core.streams import _java, rbf
from core.streams.base import Writer


@dataclass(frozen=True, slots=True)
class Plugin(rbf.Plugin):
    """``rbf`` whose first ``drift_centroids`` blobs move by ``speed`` before each record.

    Each blob has a direction, upwards in every attribute until it meets a side. In the counter flavour it is
    reflected there; MOA stops it at the side for one record. As in MOA the default speed is 0; the literature
    uses 0.001 (fast) and 0.0001 (moderate).
    """

    speed: float = number(0.001, at_least=0.0)
    drift_centroids: int = count(50, at_most=100_000)

    def directions(self) -> npt.NDArray[np.float64]:
        """Return a direction of length 1 for each blob that moves, float64[k, a]."""
        shape = (min(self.drift_centroids, self.centroids), self.attributes)
        direction = np.empty(shape)
        if self.rng == "java":
            _draw_directions(_java.seeded(self.model_seed), direction)
        else:
            _count_directions(rng.stream_key(self.model_seed, rng.GENERATOR_MODEL), direction)
        return direction

    def writer(self) -> Writer:
        centre, label, spread, weight = self.blobs()
        direction, speed = self.directions(), self.speed
        if self.rng == "java":
            random = _java.seeded(self.seed)
            blobs = (centre, label, spread, weight)
            return lambda _first, x, y: _draw(random, direction, speed, *blobs, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        blobs = (centre, label, spread, np.cumsum(weight))
        return lambda first, x, y: _count(key, direction, speed, *blobs, first, x, y)


@kernel("void(uint64, float64[:, ::1])")
def _count_directions(key, direction: npt.NDArray[np.float64]) -> None:
    """Fill the directions, from the draws of a blob that follow its centre."""
    for i in range(direction.shape[0]):
        draw = (i << rng.DRAW_BITS) + rbf.CENTRE + direction.shape[1]
        square = 0.0
        for j in range(direction.shape[1]):
            direction[i, j] = 1.0 - rng.uniform(key, draw + j)
            square += direction[i, j] * direction[i, j]
        for j in range(direction.shape[1]):
            direction[i, j] /= math.sqrt(square)


@kernel("void(int64[::1], float64[:, ::1])")
def _draw_directions(random: npt.NDArray[np.int64], direction: npt.NDArray[np.float64]) -> None:
    for i in range(direction.shape[0]):
        square = 0.0
        for j in range(direction.shape[1]):
            direction[i, j] = _java.double(random)
            square += direction[i, j] * direction[i, j]
        length = math.sqrt(square)
        for j in range(direction.shape[1]):
            direction[i, j] /= length


@kernel
def _reflected(place: float) -> float:
    """Return the position of a point in [0, 1] that would be at ``place`` without reflection."""
    rest = place - 2.0 * math.floor(0.5 * place)
    return 2.0 - rest if rest > 1.0 else rest


@kernel(
    "void(uint64, float64[:, ::1], float64, float64[:, ::1], int64[::1], float64[::1], float64[::1], int64,"
    " float64[:, ::1], int32[::1])"
)
def _count(
    key,
    direction: npt.NDArray[np.float64],
    speed: float,
    centre: npt.NDArray[np.float64],
    label: npt.NDArray[np.int64],
    spread: npt.NDArray[np.float64],
    until: npt.NDArray[np.float64],
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, a], y int32[m]; the position of a blob depends on the number of the record alone."""
    moved = np.empty(x.shape[1])
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        blob = rbf.chosen(key, draw, until)
        moved[:] = centre[blob]
        if blob < direction.shape[0]:
            way = speed * (first + row + 1)
            for j in range(x.shape[1]):
                moved[j] = _reflected(centre[blob, j] + way * direction[blob, j])
        rbf.scatter(key, draw, moved, spread[blob], x[row])
        y[row] = label[blob]


@kernel(
    "void(int64[::1], float64[:, ::1], float64, float64[:, ::1], int64[::1], float64[::1], float64[::1],"
    " float64[:, ::1], int32[::1])"
)
def _draw(
    random: npt.NDArray[np.int64],
    direction: npt.NDArray[np.float64],
    speed: float,
    centre: npt.NDArray[np.float64],
    label: npt.NDArray[np.int64],
    spread: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, a], y int32[m] with MOA's draws; changes centres and directions in place."""
    total = rbf.total(weight)
    for row in range(y.size):
        for i in range(direction.shape[0]):
            for j in range(direction.shape[1]):
                place = centre[i, j] + direction[i, j] * speed
                if place > 1.0 or place < 0.0:
                    place = 1.0 if place > 1.0 else 0.0
                    direction[i, j] = -direction[i, j]
                centre[i, j] = place
        blob = rbf.draw_blob(random, weight, total)
        rbf.scatter_point(random, centre[blob], spread[blob], x[row])
        y[row] = label[blob]
