"""STAGGER concepts (Schlimmer and Granger 1986): rules on the size, colour and shape of an object."""

from __future__ import annotations

import functools
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

SIZES: Final = ("small", "medium", "large")
COLOURS: Final = ("red", "blue", "green")
SHAPES: Final = ("circle", "square", "triangle")


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Three nominal attributes, each uniform over three values; no noise.

    ``function`` 1: small and red; 2: green or a circle; 3: medium or large. Objects that satisfy the rule are
    of class "true". ``balanced`` alternates the classes.
    """

    function: int = count(1, at_least=1, at_most=3)
    balanced: bool = flag(False)

    @property
    def schema(self) -> Schema:
        """Size, colour and shape; the classes false and true."""
        return _schema()

    def writer(self) -> Writer:
        how = (self.function, self.balanced)
        if self.rng == "java":
            random = _java.seeded(self.seed)
            return lambda first, x, y: _draw(random, *how, first, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: _count(key, *how, first, x, y)


@functools.cache
def _schema() -> Schema:
    attributes = [
        Attribute("size", "nominal", SIZES),
        Attribute("color", "nominal", COLOURS),
        Attribute("shape", "nominal", SHAPES),
    ]
    return Schema.of(attributes, ("false", "true"))


@kernel
def _label(function: int, record: npt.NDArray[np.float64]) -> int:
    size, colour, shape = record[0], record[1], record[2]
    if function == 1:
        return 1 if size == 0.0 and colour == 0.0 else 0
    if function == 2:
        return 1 if colour == 2.0 or shape == 0.0 else 0
    return 1 if size >= 1.0 else 0


@kernel("void(uint64, int64, boolean, int64, float64[:, ::1], int32[::1])")
def _count(
    key, function: int, balanced: bool, first: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.int32]
) -> None:
    """Fill x float64[m, 3], y int32[m] in the counter flavour: three draws an attempt."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        while True:
            for j in range(3):
                x[row, j] = rng.integer(key, draw + j, 3)
            label = _label(function, x[row])
            if not balanced or label != (first + row) & 1:
                break
            draw += 3
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
    """Fill x float64[m, 3], y int32[m] with MOA's draws."""
    for row in range(y.size):
        while True:
            for j in range(3):
                x[row, j] = _java.integer(random, 3)
            label = _label(function, x[row])
            if not balanced or label != (first + row) & 1:
                break
        y[row] = label
