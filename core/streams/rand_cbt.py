"""RandCBT (CDT, Algorithm 7): a random binary tree over the unit cube with noisy labels in its leaves."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, number
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

ROUNDS: Final = 6  # rounds of the shuffle


@dataclass(frozen=True, slots=True)
class Concept:
    """The leaves from left to right: boxes that tile the unit cube."""

    low: npt.NDArray[np.float64]
    """float64[leaf, attribute]"""
    high: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64]
    """Probability of class 1, by leaf."""
    depth: npt.NDArray[np.int64]
    is_left: npt.NDArray[np.bool_]
    """Whether the leaf is a left child."""


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """``leaves`` boxes, ``per_leaf`` records uniform in each, all shuffled: ``gen:rand_cbt?model_seed=7``.

    ``model_seed`` draws the tree, ``seed`` the records. In a left leaf class 1 has probability ``q``, in a
    right leaf 1-q, so that the best possible accuracy is max(q, 1-q) in the long run. After leaves·per_leaf
    records the stream continues with the same number of new records from the same tree (CDT, section 7.1
    [D25]). The java flavour uses java.util.Random's draws; MOA has no such generator.
    """

    model_seed: int = count(1, at_most=2**63 - 1)
    leaves: int = count(50, at_least=1, at_most=100_000)
    attributes: int = count(5, at_least=1, at_most=1000)
    q: float = number(0.7, at_least=0.0, at_most=1.0)
    per_leaf: int = count(10_000, at_least=1, at_most=10_000_000)

    @property
    def schema(self) -> Schema:
        """Numeric attributes in [0, 1), two classes."""
        return _schema(self.attributes)

    def concept(self) -> Concept:
        return _concept(self)

    def writer(self) -> Writer:
        tree = self.concept()
        shuffle = rng.stream_key(self.seed, rng.GENERATOR_ORDER)
        how = (self.per_leaf, (tree.low, tree.high), tree.probability)
        if self.rng == "java":
            random = _java.seeded(self.seed)
            return lambda first, x, y: _draw(random, shuffle, *how, first, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: _count(key, shuffle, *how, first, x, y)


@functools.cache
def _schema(attributes: int) -> Schema:
    return Schema.of([Attribute(f"x{i + 1}") for i in range(attributes)], ("0", "1"))


def _draws(plugin: Plugin) -> tuple[Callable[[], float], Callable[[int], int]]:
    """Return two functions that draw for the model: the next float in [0, 1), the next integer below n."""
    if plugin.rng == "java":
        random = _java.seeded(plugin.model_seed)
        return (lambda: float(_java.double(random))), (lambda n: int(_java.integer(random, n)))
    key, positions = rng.stream_key(plugin.model_seed, rng.GENERATOR_MODEL), itertools.count()
    return (
        lambda: float(rng.uniform(key, next(positions))),
        lambda n: int(rng.integer(key, next(positions), n)),
    )


@functools.lru_cache(maxsize=1024)
def _concept(plugin: Plugin) -> Concept:
    """Draw the tree depth first, left branches before right branches; three draws an inner node."""
    double, integer = _draws(plugin)
    boxes: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], int, bool]] = []
    whole = (np.zeros(plugin.attributes), np.ones(plugin.attributes), 0, False)
    waiting = [(plugin.leaves, *whole)]
    while waiting:
        n, low, high, depth, is_left = waiting.pop()
        if n == 1:
            boxes.append((low, high, depth, is_left))
            continue
        left = max(1, int(n * double()))
        attribute = integer(plugin.attributes)
        below, above = high.copy(), low.copy()
        below[attribute] = above[attribute] = low[attribute] + (high[attribute] - low[attribute]) * double()
        waiting.append((n - left, above, high, depth + 1, False))
        waiting.append((left, low, below, depth + 1, True))
    is_left_child = np.array([box[3] for box in boxes])
    return Concept(
        low=np.array([box[0] for box in boxes]),
        high=np.array([box[1] for box in boxes]),
        probability=np.where(is_left_child, plugin.q, 1.0 - plugin.q),
        depth=np.array([box[2] for box in boxes], np.int64),
        is_left=is_left_child,
    )


@kernel
def _place(key, size: int, position: int) -> int:
    """Return the index in the unshuffled order of a position of the stream: a permutation of 0 … size-1.

    A Feistel network on the next even number of bits, repeated until the result is in range, so that any
    position can be computed alone.
    """
    block = position // size
    half = 1
    while 1 << (2 * half) < size:
        half += 1
    mask = (1 << half) - 1
    value = position - block * size
    while True:
        left, right = value >> half, value & mask
        for turn in range(ROUNDS):
            mixed: Any = np.int64(rng.integer(key, ((block * ROUNDS + turn) << 24) + right, 1 << half))
            left, right = right, left ^ mixed
        value = (left << half) | right
        if value < size:
            return value


@kernel(
    "void(uint64, uint64, int64, UniTuple(float64[:, ::1], 2), float64[::1], int64, float64[:, ::1],"
    " int32[::1])"
)
def _count(
    key,
    shuffle,
    per_leaf: int,
    corners: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    probability: npt.NDArray[np.float64],
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, d], y int32[m] in the counter flavour: draw j is attribute j, draw d the class.

    corners: the lowest and the highest corner of each leaf's box, float64[leaf, attribute].
    """
    d = x.shape[1]
    low, high = corners
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        leaf = _place(shuffle, per_leaf * len(probability), first + row) // per_leaf
        for j in range(d):
            x[row, j] = low[leaf, j] + (high[leaf, j] - low[leaf, j]) * rng.uniform(key, draw + j)
        y[row] = 1 if rng.uniform(key, draw + d) < probability[leaf] else 0


@kernel(
    "void(int64[::1], uint64, int64, UniTuple(float64[:, ::1], 2), float64[::1], int64, float64[:, ::1],"
    " int32[::1])"
)
def _draw(
    random: npt.NDArray[np.int64],
    shuffle,
    per_leaf: int,
    corners: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    probability: npt.NDArray[np.float64],
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, d], y int32[m] with java.util.Random's draws, in the order of the counter flavour."""
    low, high = corners
    for row in range(y.size):
        leaf = _place(shuffle, per_leaf * len(probability), first + row) // per_leaf
        for j in range(x.shape[1]):
            x[row, j] = low[leaf, j] + (high[leaf, j] - low[leaf, j]) * _java.double(random)
        y[row] = 1 if _java.double(random) < probability[leaf] else 0
