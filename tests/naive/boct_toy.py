"""BOCT on the toy problem with dictionaries of counts, and bounds by bisection of sums of binomial terms."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

DEPTH = 6
CELLS = 64


@cache
def quantile(a: float, b: float, p: float) -> float:
    """The p-quantile of Beta(a, b), whole a and b: a sum of binomial terms, bisected."""
    n = int(a + b - 1)
    low, high = 0.0, 1.0
    for _ in range(100):
        x = (low + high) / 2
        below = sum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(int(a), n + 1))
        low, high = (x, high) if below < p else (low, x)
    return low


@cache
def half_width(labels: int, positives: int, q: float) -> float:
    """r with P(|µ - ½| <= r) = q."""
    n, a = labels + 1, positives + 1

    def cdf(x: float) -> float:
        return sum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))

    low, high = 0.0, 0.5
    for _ in range(100):
        r = (low + high) / 2
        low, high = (r, high) if cdf(0.5 + r) - cdf(0.5 - r) < q else (low, r)
    return low


def entropy(p: float) -> float:
    return -sum(x * math.log(x) for x in (p, 1 - p) if x > 0)


class NaiveToyBoct:
    """Leaves are the nodes (depth, number) that no test was installed at; cells are numbered by halvings."""

    def __init__(self, delta: float, delta2: float | None = None) -> None:
        self.delta, self.delta2 = delta, delta2
        self.cells: list[tuple[int, int]] = [(0, 0)] * CELLS
        self.tree: list[Any] = [(0, 0)]
        self.numbers = {(0, 0): 0}
        self.known = 0

    @property
    def leaves(self) -> int:
        return len(self.tree)

    def cells_of(self, node: tuple[int, int]) -> range:
        depth, number = node
        width = CELLS >> depth
        return range(number * width, (number + 1) * width)

    def counts(self, node: tuple[int, int]) -> tuple[int, int]:
        return (
            sum(self.cells[cell][0] for cell in self.cells_of(node)),
            sum(self.cells[cell][1] for cell in self.cells_of(node)),
        )

    def bound(self, node: tuple[int, int], q: float) -> float:
        return float(entropy(0.5 - half_width(*self.counts(node), q)) / 2 ** node[0])

    def risk(self, node: tuple[int, int]) -> float:
        assert self.delta2 is not None
        t, k = self.counts(node)
        errors = min(k, t - k)
        return float(quantile(errors + 1, t - errors + 1, 1 - self.delta2) / 2 ** node[0])

    def choose(self, u: float) -> int:
        cells = range(CELLS)
        if self.delta2 is not None:
            cells = self.cells_of(max(self.tree, key=lambda node: (self.risk(node), -self.numbers[node])))
        return cells[int(u * len(cells))]

    def learn(self, cell: int, label: int) -> None:
        t, k = self.cells[cell]
        self.cells[cell] = (t + 1, k + label)
        self.known = max(self.known, label + 1)
        self.update(next(node for node in self.tree if cell in self.cells_of(node)))

    def update(self, node: tuple[int, int]) -> None:
        depth, number = node
        if depth == DEPTH:
            return
        below = [(depth + 1, 2 * number), (depth + 1, 2 * number + 1)]
        if sum(self.bound(child, self.delta) for child in below) < self.bound(node, 1 - self.delta):
            at = self.tree.index(node)
            self.tree[at : at + 1] = below
            for child in below:
                self.numbers[child] = len(self.numbers)
            for child in below:
                self.update(child)

    def labels(self) -> list[int]:
        labels = [0] * CELLS
        for node in self.tree:
            t, k = self.counts(node)
            for cell in self.cells_of(node):
                labels[cell] = int(2 * k >= t) if self.known > 1 else 0
        return labels
