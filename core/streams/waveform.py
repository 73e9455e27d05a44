"""Waveforms (Breiman et al. 1984): two of three triangles in a random mixture, under Gaussian noise."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import flag
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer, open_generator

POINTS: Final = 21
IRRELEVANT: Final = 19
_PEAKS: Final = (6, 14, 10)
TRIANGLES: Final = np.array([[max(6.0 - abs(i - peak), 0.0) for i in range(POINTS)] for peak in _PEAKS])

# Draws of a record in the counter flavour: 0 the class, 1 the mixture, from 2 on pairs of the noise.
_NOISE: Final = 2


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """21 numeric attributes and, with ``irrelevant``, 19 more of pure noise; three classes.

    Class 0 mixes the triangles with peaks at 6 and 14, class 1 at 6 and 10, class 2 at 14 and 10; every
    attribute has noise of deviation 1. The best possible error is 0.134.
    """

    irrelevant: bool = flag(False)

    @property
    def schema(self) -> Schema:
        """21 or 40 numeric attributes, three classes."""
        return _schema(POINTS + IRRELEVANT if self.irrelevant else POINTS)

    def other_concept(self) -> Generator:
        """Return the stream with some columns in other places."""
        options = {"seed": self.next_seed, "rng": self.rng, "irrelevant": self.irrelevant}
        return open_generator("waveform_drift", **options)

    def writer(self) -> Writer:
        place = np.arange(self.schema.n_attributes)
        if self.rng == "java":
            random = _java.seeded(self.seed)
            return lambda _first, x, y: fill_by_java(random, TRIANGLES, place, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: fill_by_counter(key, TRIANGLES, place, first, x, y)


@functools.cache
def _schema(attributes: int) -> Schema:
    return Schema.of([Attribute(f"att{i + 1}") for i in range(attributes)], ("class1", "class2", "class3"))


@kernel("void(uint64, float64[:, ::1], int64[::1], int64, float64[:, ::1], int32[::1])")
def fill_by_counter(
    key,
    triangles: npt.NDArray[np.float64],
    place: npt.NDArray[np.int64],
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 21 or 40], y int32[m] in the counter flavour; point j is in column place[j]."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        label = rng.integer(key, draw, 3)
        share = rng.uniform(key, draw + 1)
        first_wave, second_wave = label // 2, 1 if label == 0 else 2
        for j in range(x.shape[1]):
            x[row, place[j]] = rng.normal(key, ((draw + _NOISE) >> 1) + j)
            if j < POINTS:
                x[row, place[j]] += (
                    share * triangles[first_wave, j] + (1.0 - share) * triangles[second_wave, j]
                )
        y[row] = label


@kernel("void(int64[::1], float64[:, ::1], int64[::1], float64[:, ::1], int32[::1])")
def fill_by_java(
    random: npt.NDArray[np.int64],
    triangles: npt.NDArray[np.float64],
    place: npt.NDArray[np.int64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 21 or 40], y int32[m] with MOA's draws; point j is in column place[j]."""
    for row in range(y.size):
        label = _java.integer(random, 3)
        share = _java.double(random)
        first_wave, second_wave = label // 2, 1 if label == 0 else 2
        for j in range(x.shape[1]):
            noise = _java.gaussian(random)
            if j < POINTS:
                mixed = share * triangles[first_wave, j] + (1.0 - share) * triangles[second_wave, j]
                x[row, place[j]] = mixed + noise
            else:
                x[row, place[j]] = noise
        y[row] = label
