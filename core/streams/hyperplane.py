"""A moving hyperplane (Hulten, Spencer and Domingos 2001): the weights of some attributes change."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.errors import ParameterError
from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, number
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

# Draws of a record in the counter flavour: 0 the noise, then the attributes, then the turns.
_ATTRIBUTES: Final = 1


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Points of the unit cube; class 1 where the weighted sum is at least half of the sum of the weights.

    The initial weights are uniform in [0, 1). After each record the first ``drift_attributes`` weights move
    by ``magnitude``, all upwards at first, and each changes its direction with the probability ``sigma``.
    ``noise`` is the probability that a label is inverted. In the java flavour sigma and noise are whole
    percents. As in MOA the default magnitude is 0: the hyperplane does not move.
    """

    attributes: int = count(10, at_least=1, at_most=10_000)
    drift_attributes: int = count(2, at_most=10_000)
    magnitude: float = number(0.001, at_least=0.0, at_most=1.0)
    noise: float = number(0.05, at_least=0.0, at_most=1.0)
    sigma: float = number(0.1, at_least=0.0, at_most=1.0)

    def __post_init__(self) -> None:
        """Check that at least ``drift_attributes`` attributes exist."""
        Generator.__post_init__(self)
        if self.drift_attributes > self.attributes:
            msg = f"drift_attributes={self.drift_attributes} must be at most attributes={self.attributes}"
            raise ParameterError(msg)

    @property
    def schema(self) -> Schema:
        """Numeric attributes, two classes."""
        return _schema(self.attributes)

    def weights(self) -> npt.NDArray[np.float64]:
        """Return the weights float64[a] of the first record."""
        if self.rng == "java":
            return _first_draws(_java.seeded(self.seed), self.attributes)
        key = rng.stream_key(self.seed, rng.GENERATOR_MODEL)
        return np.array([rng.uniform(key, j) for j in range(self.attributes)])

    def writer(self) -> Writer:
        if self.rng == "counter":
            return _Writer(self)
        random = _java.seeded(self.seed)
        weights = _first_draws(random, self.attributes)
        direction = np.ones(self.drift_attributes)
        how = (self.magnitude, round(100 * self.noise), round(100 * self.sigma))
        return lambda _first, x, y: _draw(random, weights, direction, *how, x, y)


class _Writer:
    """Writes records of the counter flavour: a weight is its first value plus steps of the magnitude.

    To start elsewhere in the stream the earlier turns are counted; the records are not generated.
    """

    def __init__(self, plane: Plugin) -> None:
        self._plane = plane
        self._key = rng.stream_key(plane.seed, rng.GENERATOR_RECORD)
        self._first = plane.weights()
        self._steps = np.zeros(plane.drift_attributes, np.int64)
        self._direction = np.ones(plane.drift_attributes, np.int64)
        self._position = 0

    def __call__(self, first: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.int32]) -> None:
        """Fill x float64[m, a] and y int32[m] with the records from ``first`` on."""
        plane = self._plane
        if first < self._position:
            self._steps[:], self._direction[:], self._position = 0, 1, 0
        if plane.magnitude > 0.0:
            _walk(
                self._key, plane.attributes, plane.sigma, self._position, first, self._steps, self._direction
            )
        how = (plane.magnitude, plane.noise, plane.sigma)
        _count(self._key, self._first, self._steps, self._direction, *how, first, x, y)
        self._position = first + len(y)


@functools.cache
def _schema(attributes: int) -> Schema:
    return Schema.of([Attribute(f"att{i + 1}") for i in range(attributes)], ("class1", "class2"))


def _first_draws(random: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.float64]:
    return np.array([_java.double(random) for _ in range(n)])


@kernel
def _step(
    key, draw: int, sigma: float, steps: npt.NDArray[np.int64], direction: npt.NDArray[np.int64]
) -> None:
    """Move the weights after a record whose turns are the draws from ``draw`` on."""
    for j in range(steps.size):
        steps[j] += direction[j]
        if rng.uniform(key, draw + j) < sigma:
            direction[j] = -direction[j]


@kernel("void(uint64, int64, float64, int64, int64, int64[::1], int64[::1])")
def _walk(
    key,
    attributes: int,
    sigma: float,
    first: int,
    end: int,
    steps: npt.NDArray[np.int64],
    direction: npt.NDArray[np.int64],
) -> None:
    """Move steps and direction int64[k] past the records ``first`` to ``end`` - 1."""
    for record in range(first, end):
        _step(key, (record << rng.DRAW_BITS) + _ATTRIBUTES + attributes, sigma, steps, direction)


@kernel(
    "void(uint64, float64[::1], int64[::1], int64[::1], float64, float64, float64, int64,"
    " float64[:, ::1], int32[::1])"
)
def _count(
    key,
    weights: npt.NDArray[np.float64],
    steps: npt.NDArray[np.int64],
    direction: npt.NDArray[np.int64],
    magnitude: float,
    noise: float,
    sigma: float,
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, a], y int32[m] and move the weights after each record."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        weighted, whole = 0.0, 0.0
        for j in range(x.shape[1]):
            weight = weights[j] + magnitude * steps[j] if j < steps.size else weights[j]
            x[row, j] = rng.uniform(key, draw + _ATTRIBUTES + j)
            weighted += weight * x[row, j]
            whole += weight
        label = 1 if weighted >= 0.5 * whole else 0
        y[row] = 1 - label if rng.uniform(key, draw) < noise else label
        if magnitude > 0.0:
            _step(key, draw + _ATTRIBUTES + x.shape[1], sigma, steps, direction)


@kernel("void(int64[::1], float64[::1], float64[::1], float64, int64, int64, float64[:, ::1], int32[::1])")
def _draw(
    random: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float64],
    magnitude: float,
    noise: int,
    sigma: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, a], y int32[m] with MOA's draws; moves the weights in place."""
    for row in range(y.size):
        weighted, whole = 0.0, 0.0
        for j in range(x.shape[1]):
            x[row, j] = _java.double(random)
            weighted += weights[j] * x[row, j]
            whole += weights[j]
        label = 1 if weighted >= whole * 0.5 else 0
        y[row] = 1 - label if 1 + _java.integer(random, 100) <= noise else label
        for j in range(direction.size):
            weights[j] += direction[j] * magnitude
            if 1 + _java.integer(random, 100) <= sigma:
                direction[j] = -direction[j]
