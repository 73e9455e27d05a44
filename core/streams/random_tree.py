"""Random tree (Domingos and Hulten 2000): uniform records, labelled by a tree that was drawn at random."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from core.kernels.jit import kernel
from core.numeric import rng
from core.plugin import count, number
from core.schema.schema import Attribute, Schema
from core.streams import _java
from core.streams.base import Generator, Writer

LEAF: Final = -1


@dataclass(frozen=True, slots=True)
class Concept:
    """The tree, node by node in the order of creation; the root is node 0."""

    attribute: npt.NDArray[np.int64]
    """Tested attribute, -1 at a leaf."""
    threshold: npt.NDArray[np.float64]
    """Threshold of numeric tests: values below it go to the first child."""
    child: npt.NDArray[np.int64]
    """Inner node: index of its first child in ``children``; leaf: its class."""
    children: npt.NDArray[np.int64]
    """Children of the inner nodes, concatenated."""


@dataclass(frozen=True, slots=True)
class Plugin(Generator):
    """Uniform attributes, nominal before numeric, with the classes of a random tree, without noise.

    ``seed`` draws the records, ``model_seed`` the tree. It is at most ``depth`` deep; from level
    ``first_leaf_level`` on a node is a leaf with probability ``leaf_share``. A nominal attribute is tested at
    most once on a path, with a branch for each of its ``values``.
    """

    model_seed: int = count(1, at_most=2**63 - 1)
    classes: int = count(2, at_least=1, at_most=1000)
    nominal: int = count(5, at_least=0, at_most=10_000)
    numeric: int = count(5, at_least=0, at_most=10_000)
    values: int = count(5, at_least=1, at_most=1000)
    depth: int = count(5, at_least=0, at_most=12)
    first_leaf_level: int = count(3, at_least=0)
    leaf_share: float = number(0.15, at_least=0.0, at_most=1.0)

    @property
    def schema(self) -> Schema:
        """The nominal attributes come first."""
        return _schema(self.nominal, self.values, self.numeric, self.classes)

    def concept(self) -> Concept:
        return _concept(self)

    def writer(self) -> Writer:
        tree = self.concept()
        how = (self.nominal, self.values, tree.attribute, tree.threshold, tree.child, tree.children)
        if self.rng == "java":
            random = _java.seeded(self.seed)
            return lambda _first, x, y: _draw(random, *how, x, y)
        key = rng.stream_key(self.seed, rng.GENERATOR_RECORD)
        return lambda first, x, y: _count(key, *how, first, x, y)


@functools.cache
def _schema(nominal: int, values: int, numeric: int, classes: int) -> Schema:
    words = tuple(f"value{i + 1}" for i in range(values))
    attributes = [Attribute(f"nominal{i + 1}", "nominal", words) for i in range(nominal)]
    attributes += [Attribute(f"numeric{i + 1}") for i in range(numeric)]
    names = tuple(f"class{i + 1}" for i in range(classes))
    return Schema.of(attributes, names, max_classes=max(64, classes))


class _JavaDraws:
    """The model's draws in MOA's order."""

    def __init__(self, seed: int) -> None:
        self._random = _java.seeded(seed)

    def double(self) -> float:
        return _java.double(self._random)

    def integer(self, n: int) -> int:
        return _java.integer(self._random, n)


class _CounterDraws:
    """The model's draws in sequence: the tree is always made as a whole."""

    def __init__(self, seed: int) -> None:
        self._key = rng.stream_key(seed, rng.GENERATOR_MODEL)
        self._position = -1

    def double(self) -> float:
        self._position += 1
        return float(rng.uniform(self._key, self._position))

    def integer(self, n: int) -> int:
        self._position += 1
        return int(rng.integer(self._key, self._position, n))


@functools.lru_cache(maxsize=16)
def _concept(plugin: Plugin) -> Concept:
    """Draw the tree depth first, branches from left to right."""
    draws = (_JavaDraws if plugin.rng == "java" else _CounterDraws)(plugin.model_seed)
    attribute: list[int] = []
    threshold: list[float] = []
    child: list[int] = []
    children: list[int] = []

    def grow(level: int, unused: list[int], low: dict[int, float], high: dict[int, float]) -> int:
        """Create a node and its subtree; return its number."""
        node = len(attribute)
        attribute.append(LEAF)
        threshold.append(0.0)
        child.append(0)
        candidates = len(unused) + plugin.numeric
        if (
            level >= plugin.depth
            or candidates == 0
            or (level >= plugin.first_leaf_level and plugin.leaf_share >= 1.0 - draws.double())
        ):
            child[node] = draws.integer(plugin.classes)
            return node
        chosen = draws.integer(candidates)
        if chosen < len(unused):
            tested = unused[chosen]
            rest = [other for other in unused if other != tested]
            branches = [(rest, low, high)] * plugin.values
        else:
            tested = plugin.nominal + chosen - len(unused)
            least, most = low.get(tested, 0.0), high.get(tested, 1.0)
            cut = (most - least) * draws.double() + least
            threshold[node] = cut
            branches = [(unused, low, high | {tested: cut}), (unused, low | {tested: cut}, high)]
        attribute[node] = tested
        child[node] = place = len(children)
        children.extend([0] * len(branches))
        for branch, arguments in enumerate(branches):
            children[place + branch] = grow(level + 1, *arguments)
        return node

    grow(0, list(range(plugin.nominal)), {}, {})
    return Concept(
        np.array(attribute, np.int64),
        np.array(threshold),
        np.array(child, np.int64),
        np.array(children, np.int64),
    )


@kernel
def _label(
    nominal: int,
    attribute: npt.NDArray[np.int64],
    threshold: npt.NDArray[np.float64],
    child: npt.NDArray[np.int64],
    children: npt.NDArray[np.int64],
    record: npt.NDArray[np.float64],
) -> int:
    node = 0
    while attribute[node] != LEAF:
        value = record[attribute[node]]
        at_least = 0 if value < threshold[node] else 1
        node = children[child[node] + (int(value) if attribute[node] < nominal else at_least)]
    return int(child[node])


@kernel(
    "void(uint64, int64, int64, int64[::1], float64[::1], int64[::1], int64[::1], int64,"
    " float64[:, ::1], int32[::1])"
)
def _count(
    key,
    nominal: int,
    values: int,
    attribute: npt.NDArray[np.int64],
    threshold: npt.NDArray[np.float64],
    child: npt.NDArray[np.int64],
    children: npt.NDArray[np.int64],
    first: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, d], y int32[m] in the counter flavour: draw j is attribute j."""
    for row in range(y.size):
        draw = (first + row) << rng.DRAW_BITS
        for j in range(x.shape[1]):
            if j < nominal:
                x[row, j] = rng.integer(key, draw + j, values)
            else:
                x[row, j] = rng.uniform(key, draw + j)
        y[row] = _label(nominal, attribute, threshold, child, children, x[row])


@kernel(
    "void(int64[::1], int64, int64, int64[::1], float64[::1], int64[::1], int64[::1],"
    " float64[:, ::1], int32[::1])"
)
def _draw(
    random: npt.NDArray[np.int64],
    nominal: int,
    values: int,
    attribute: npt.NDArray[np.int64],
    threshold: npt.NDArray[np.float64],
    child: npt.NDArray[np.int64],
    children: npt.NDArray[np.int64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.int32],
) -> None:
    """Fill x float64[m, d], y int32[m] with MOA's draws."""
    for row in range(y.size):
        for j in range(x.shape[1]):
            if j < nominal:
                x[row, j] = _java.integer(random, values)
            else:
                x[row, j] = _java.double(random)
        y[row] = _label(nominal, attribute, threshold, child, children, x[row])
