"""Sine curves (Gama, Medas, Castillo and Rodrigues 2004): points below and above a curve."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, flag
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

IRRELEVANT: Final = 2
# An attempt at a point uses two draws from 2 on; 0 and 1 are the irrelevant attributes.
_POINT: Final = 2


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """A point of the unit square and, with ``irrelevant``, two more uniform attributes; no noise.

    ``function`` 1: points below ``sin x`` are positive; 3: points below ``0.5 + 0.3 sin 3πx`` are; 2 and 4
    are 1 and 3 reversed. ``balanced`` alternates the classes.
    """

    function: int = count(1, at_least=1, at_most=4)
    irrelevant: bool = flag(True)
    balanced: bool = flag(False)

    @property
    def schema(self) -> Schema:
        """Two or four numeric attributes; the classes positive and negative."""
        return _schema(2 + IRRELEVANT if self.irrelevant else 2)

    def writer(self) -> Writer:
        how = (self.function, self.balanced)
        if self.rng == "java":
            random = _java.seeded(self.seed)
            return lambda first, x, y: _draw(random, *how, first, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: _count(key, *how, first, x, y)


@functools.cache
def _schema(n: int) -> Schema:
    return Schema.of([Attribute(f"att{i + 1}") for i in range(n)], ("positive", "negative"))


@kernel
def _label(function: int, point: npt.NDArray[np.float64]) -> int:
    """Return the class of a point: 0 for positive."""
    curve = math.sin(point[0]) if function <= 2 else 0.5 + 0.3 * math.sin(3.0 * math.pi * point[0])
    is_below = point[1] < curve
    return 0 if is_below == (function % 2 == 1) else 1


@kernel("void(uint64, int64, boolean, int64, float64[:, ::1], int32[::1])")
def _count(
    key, function: int, balanced: bool, first: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.int32]
) -> None:
    """Fill x float64[m, 2 or 4], y int32[m] in the counter flavour."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        for j in range(2, x.shape[1]):
            x[row, j] = rng.uniform(key, draw + j - 2)
        draw += _POINT
        while True:
            x[row, 0], x[row, 1] = rng.uniform(key, draw), rng.uniform(key, draw + 1)
            label = _label(function, x[row])
            if not balanced or label != (first + row) & 1:
                break
            draw += 2
        y[row] = label


@kernel("void(int64[::1], int64, boolean, int64, float64[:, ::1], int32[::1])")
def _draw(
    random: npt.NDArray[np.int64],
    function: int,
    balanced: bool,
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 2 or 4], y int32[m] with MOA's draws."""
    for row in range(y.size):
        while True:
            x[row, 0] = _java.double(random)
            x[row, 1] = _java.double(random)
            label = _label(function, x[row])
            if not balanced or label != (first + row) & 1:
                break
        for j in range(2, x.shape[1]):
            x[row, j] = _java.double(random)
        y[row] = label
