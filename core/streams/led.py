"""LED display (Breiman et al. 1984): seven segments of a digit, each at times inverted, and random bits."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.errors import ParameterError
from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, flag, number
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

# Top, upper left, upper right, middle, lower left, lower right, bottom.
_DIGITS: Final = "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011"
SEGMENTS: Final = np.array([[int(bit) for bit in digit] for digit in _DIGITS.split(" ")], np.int64)
IRRELEVANT: Final = 17


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Seven segments of a uniform digit and 17 irrelevant bits, all nominal; the class is the digit.

    ``noise`` is the probability that a segment is inverted (whole percents in the java flavour). With 0.1 the
    best possible accuracy is 0.740022. ``drift`` is the number of first segments that swap places with
    irrelevant bits: segment i is then in column 7+i. Without ``irrelevant`` there are only the seven
    segments, and no drift.
    """

    drift: int = count(0, at_most=7)
    noise: float = number(0.1, at_least=0.0, at_most=1.0)
    irrelevant: bool = flag(True)

    def __post_init__(self) -> None:
        """Check that there are irrelevant bits to swap places with."""
        Generator.__post_init__(self)
        if self.drift and not self.irrelevant:
            msg = (
                f"drift={self.drift} must be 0 where irrelevant=False: there are no bits to swap places with"
            )
            raise ParameterError(msg)

    @property
    def schema(self) -> Schema:
        """24 or 7 nominal attributes of two values, ten classes."""
        return _schema(SEGMENTS.shape[1] + (IRRELEVANT if self.irrelevant else 0))

    def other_concept(self) -> Generator | None:
        """Return the stream with all segments in other columns, or none; None: there are no such columns."""
        if not self.irrelevant:
            return None
        return dataclasses.replace(self, seed=self.next_seed, drift=0 if self.drift else SEGMENTS.shape[1])

    def writer(self) -> Writer:
        place = np.arange(7 + IRRELEVANT)
        swapped = np.arange(self.drift)
        place[swapped], place[swapped + 7] = swapped + 7, swapped
        if self.rng == "java":
            random, percent = _java.seeded(self.seed), round(100 * self.noise)
            return lambda _first, x, y: _draw(random, SEGMENTS, percent, place, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: _count(key, SEGMENTS, self.noise, place, first, x, y)


@functools.cache
def _schema(n: int) -> Schema:
    attributes = [Attribute(f"att{i + 1}", "nominal", ("0", "1")) for i in range(n)]
    return Schema.of(attributes, tuple(str(digit) for digit in range(10)))


@kernel("void(uint64, int64[:, ::1], float64, int64[::1], int64, float64[:, ::1], int32[::1])")
def _count(
    key,
    segments: npt.NDArray[np.int64],
    noise: float,
    place: npt.NDArray[np.int64],
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 24 or 7], y int32[m], bit j at place[j].

    Draw 0 is the digit, 1 to 7 the noise, 8 the irrelevant bits.
    """
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        digit = rng.integer(key, draw, 10)
        for j in range(7):
            inverted = rng.uniform(key, draw + 1 + j) < noise
            x[row, place[j]] = 1 - segments[digit, j] if inverted else segments[digit, j]
        rest = rng.integer(key, draw + 8, 1 << IRRELEVANT)
        for j in range(x.shape[1] - 7):
            x[row, place[7 + j]] = (rest >> j) & 1
        y[row] = digit


@kernel("void(int64[::1], int64[:, ::1], int64, int64[::1], float64[:, ::1], int32[::1])")
def _draw(
    random: npt.NDArray[np.int64],
    segments: npt.NDArray[np.int64],
    percent: int,
    place: npt.NDArray[np.int64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, 24 or 7], y int32[m] with MOA's draws."""
    for row in range(y.size):
        digit = _java.integer(random, 10)
        for j in range(7):
            inverted = 1 + _java.integer(random, 100) <= percent
            x[row, place[j]] = 1 - segments[digit, j] if inverted else segments[digit, j]
        for j in range(x.shape[1] - 7):
            x[row, place[7 + j]] = _java.integer(random, 2)
        y[row] = digit
