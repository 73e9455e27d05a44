"""Pool protocol: a system chooses an instance of the pool, gets its label, and is tested on a test set.

    System.choose ──> row ──> its label ──> System.learn ──> System.predict ──> a point of the curve

This repeats until the budget is spent (Settles, *Active Learning Literature Survey*, 2009, section 2.3:
pool-based sampling; BCI, section V). Random choices use one vector of uniform numbers for each label, so
that systems with the same seed that choose among the same rows choose the same row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.layout.model import Floats, Ints
from core.schema.schema import Schema

COIN, PICK = 0, 1
"""Columns of the uniform numbers of a label: for exploration, and for the choice among several rows."""


@dataclass(frozen=True, slots=True)
class Records:
    """Labelled rows in memory."""

    schema: Schema
    x: Floats
    """float64[n, d]: numbers, codes of nominal values, NaN where missing."""
    y: Ints
    """int64[n]: class codes."""

    def part(self, rows: Ints) -> Records:
        return Records(self.schema, np.ascontiguousarray(self.x[rows]), self.y[rows])


class System(Protocol):
    """A participant: a learner with a way to choose labels, made for the instances of one pool."""

    def choose(self, unlabelled: Ints, drawn: Floats) -> int:
        """Return the row of the pool whose label is requested.

        unlabelled: int64[m], the rows without a label, ascending, at least one; drawn: float64[2] in [0,
        1), by COIN and PICK.
        """

    def learn(self, row: int, label: int) -> None:
        """Learn the label of a row."""

    def predict(self, x: Floats) -> npt.NDArray[np.integer]:
        """Return class codes of the rows of x (float64[n, d]), -1 while no class is known."""

    @property
    def leaves(self) -> int:
        """Number of leaves of its tree; 1 for a system without a tree."""


@dataclass(frozen=True, slots=True)
class Point:
    """The accuracy of a system after a number of labels."""

    labels: int
    accuracy: float
    """On the test set."""
    leaves: int


def pick(rows: Ints, u: float) -> int:
    """Return one of some rows, by a uniform number."""
    return int(rows[min(int(u * len(rows)), len(rows) - 1)])


def split(n: int, share: float, seed: int) -> tuple[Ints, Ints]:
    """Return the rows of the pool and of the test set, each ascending: a random ``share`` is for the test."""
    order = np.random.default_rng([seed, 0]).permutation(n)
    test = round(n * share)
    return np.sort(order[test:]), np.sort(order[:test])


def label_pool(
    system: System,
    pool: Records,
    test: Records,
    budget: int,
    seed: int,
    judged: Sequence[int],
    advance: Callable[[int], None] = lambda _: None,
) -> list[Point]:
    """Buy labels until the budget is spent; return the curve at the label counts ``judged``, ascending.

    budget: at most the rows of the pool; advance: called with 1 after each label.
    """
    drawn = np.random.default_rng([seed, 1]).random((budget, 2))
    unlabelled = np.arange(len(pool.y))
    judged_counts = frozenset(judged)
    curve = []
    for labels in range(1, budget + 1):
        row = system.choose(unlabelled, drawn[labels - 1])
        system.learn(row, int(pool.y[row]))
        unlabelled = np.delete(unlabelled, np.searchsorted(unlabelled, row))
        if labels in judged_counts:
            accuracy = float((system.predict(test.x) == test.y).mean())
            curve.append(Point(labels, accuracy, system.leaves))
        advance(1)
    return curve


def label_counts(budget: int, at_most: int = 1000) -> list[int]:
    """Return the counts of labels up to the budget, or `at_most` of them, evenly spaced, with the last."""
    if budget <= at_most:
        return list(range(1, budget + 1))
    return sorted({round(budget * i / at_most) for i in range(1, at_most + 1)})
