"""SEA concepts (Street and Kim 2001): two of three uniform attributes against a threshold."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, flag, number
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

THRESHOLDS = (8.0, 9.0, 7.0, 9.5)


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Three attributes, uniform in [0, 10); class 0 iff the first two sum to at most a threshold.

    ``function`` 1 to 4 has the threshold 8, 9, 7 or 9.5; ``noise`` is the share of flipped labels (whole
    percents in the java flavour); ``balanced`` alternates the classes, before the noise.
    """

    function: int = count(1, at_least=1, at_most=4)
    noise: float = number(0.1, at_least=0.0, at_most=1.0)
    balanced: bool = flag(False)

    @property
    def schema(self) -> Schema:
        """Three numeric attributes, two classes."""
        return _schema()

    def writer(self) -> Writer:
        threshold = THRESHOLDS[self.function - 1]
        if self.rng == "java":
            random, percent = _java.seeded(self.seed), round(100 * self.noise)
            return lambda first, x, y: _draw(random, threshold, percent, self.balanced, first, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: _count(key, threshold, self.noise, self.balanced, first, x, y)


@functools.cache
def _schema() -> Schema:
    return Schema.of([Attribute(f"attrib{i}") for i in (1, 2, 3)], ("groupA", "groupB"))


@kernel("void(uint64, float64, float64, boolean, int64, float64[:, ::1], int32[::1])")
def _count(
    key,
    threshold: float,
    noise: float,
    balanced: bool,
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 3], y int32[m] in the counter flavour: four draws an attempt."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        while True:
            for j in range(3):
                x[row, j] = 10.0 * rng.uniform(key, draw + j)
            label = 0 if x[row, 0] + x[row, 1] <= threshold else 1
            if not balanced or label != (first + row) & 1:
                break
            draw += 4
        y[row] = 1 - label if rng.uniform(key, draw + 3) < noise else label


@kernel("void(int64[::1], float64, int64, boolean, int64, float64[:, ::1], int32[::1])")
def _draw(
    random: npt.NDArray[np.int64],
    threshold: float,
    percent: int,
    balanced: bool,
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 3], y int32[m] with MOA's draws."""
    for row in range(y.size):
        while True:
            for j in range(3):
                x[row, j] = 10.0 * _java.double(random)
            label = 0 if x[row, 0] + x[row, 1] <= threshold else 1
            if not balanced or label != (first + row) & 1:
                break
        y[row] = 1 - label if 1 + _java.integer(random, 100) <= percent else label
