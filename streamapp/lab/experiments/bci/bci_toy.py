"""Toy problem of BCI (Bayesian Credible Intervals, section V): a tree of known cells, so risks are exact.

The unit square is halved along x₁, x₂, x₁, … into 64 cells. A label in cell k is 1 with probability µ_k =
1/(1 + exp(-5(x₂ - √x₁))) at its centre. The text of the paper has lost which coordinate is under the root.
Both readings are here, and the printed axis fits both, because one label for all cells has the same risk.
Only the halvings may be installed. Systems label cells in the place of rows, which never run out: ``choose``
returns a cell of each run, ``labels`` returns the predicted label of each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from core.layout.model import Floats, Ints
from core.model.model import Model
from core.schema.schema import Attribute, Schema
from streamapp.lab.experiments.bci.boct_runs import BoctRuns, bounds_of, pick_each
from streamapp.lab.pool.pool_models import TOTAL

DEPTH: Final = 6
CELLS: Final = 1 << DEPTH
CLASSES: Final = ("0", "1")
BY_EXCESS: Final = "BOCT-AL, mbinomial"
"""BOCT-AL that ranks leaves as mbinomial ranks parts; it is not in the paper."""


def _path(cell: int) -> tuple[float, float]:
    """Return the centre of a cell. Its number in binary is the path to it, 0 for the lower half."""
    low, width = [0.0, 0.0], [1.0, 1.0]
    for level in range(DEPTH):
        axis = level % 2
        width[axis] /= 2
        low[axis] += width[axis] * (cell >> (DEPTH - 1 - level) & 1)
    return low[0] + width[0] / 2, low[1] + width[1] / 2


CENTRES: Final = np.array([_path(cell) for cell in range(CELLS)])
"""float64[cell, 2]."""
ROOTS: Final = ("√x₁", "√x₂")
"""The readings of the formula: x₂ - √x₁, and √x₂ - x₁."""


def _shares(root: str) -> Floats:
    x1, x2 = CENTRES.T
    x1, x2 = (np.sqrt(x1), x2) if root == ROOTS[0] else (x1, np.sqrt(x2))
    shares: Floats = 1.0 / (1.0 + np.exp(-5.0 * (x2 - x1)))
    return shares


SHARES: Final = {root: _shares(root) for root in ROOTS}
"""float64[cell] of each reading: probability of label 1, µ."""


def true_risks(labels: npt.NDArray[np.integer], root: str = ROOTS[0]) -> Floats:
    """Return the error probability of predicting labels, float64[...]; labels: int[..., cell]."""
    shares = SHARES[root]
    risks: Floats = np.where(labels == 1, 1.0 - shares, shares).mean(axis=-1)
    return risks


def best_risk(depth: int, root: str = ROOTS[0]) -> float:
    """Return the least risk with one label for each node at a depth."""
    means = SHARES[root].reshape(1 << depth, -1).mean(axis=1)
    return float(np.minimum(means, 1.0 - means).mean())


class ToySystem(Protocol):
    """A system in several runs, which label a cell each in turn."""

    def choose(self, u: Floats) -> Ints:
        """Return the cell of each run whose label is drawn next, int64[run]; u: uniform in [0, 1)."""

    def learn(self, cells: Ints, labels: Ints) -> None:
        """Learn the label of a cell in each run; int64[run] each."""

    def labels(self) -> npt.NDArray[np.integer]:
        """Return the predicted label of each cell, int[run, cell]."""


class ToyBoct:
    """BOCT that may install the halvings, and with δ2 BOCT-AL; risk: parameter of ``boct_al``."""

    def __init__(self, runs: int, delta: float, delta2: float | None = None, risk: str = TOTAL) -> None:
        schema = Schema.of([Attribute("x1"), Attribute("x2")], CLASSES)
        learner = {"name": "boct", "sizes": "toy", "delta": delta}
        cells = np.repeat(CENTRES[np.newaxis], runs, axis=0)
        self._runs = BoctRuns(learner, schema, cells, cells, delta2, risk)
        self._ranks = delta2 is not None
        self._every_cell = [np.arange(CELLS)] * runs

    def model(self, run: int = 0) -> Model:
        return self._runs.model(run)

    def choose(self, u: Floats) -> Ints:
        if not self._ranks:
            return pick_each(self._every_cell, u)
        riskiest = [self._runs.in_riskiest_leaf(run, cells) for run, cells in enumerate(self._every_cell)]
        return pick_each(riskiest, u)

    def learn(self, cells: Ints, labels: Ints) -> None:
        self._runs.learn(cells, labels)

    def labels(self) -> npt.NDArray[np.integer]:
        return np.maximum(self._runs.predict(), 0)


class Mbinomial:
    """mbinomial on the nodes of a depth (Collet and Pietquin 2014): a fixed partition, actively labelled.

    It chooses the part with the highest bound of current risk minus optimal risk: W·max(0, 2q - 1), where
    q is the bound of BCI's equation 7 for W = 1 [D32]; of equal parts, the first.
    """

    def __init__(self, runs: int, depth: int, delta: float) -> None:
        parts = 1 << depth
        self._bounds = bounds_of(delta)
        self._cells_each = CELLS >> depth
        self._labels = np.zeros((runs, parts), dtype=np.int64)
        self._positives = np.zeros((runs, parts), dtype=np.int64)
        self._risk = np.full((runs, parts), self._bounds.at(0, 0))

    def choose(self, u: Floats) -> Ints:
        cells = np.arange(CELLS).reshape(-1, self._cells_each)
        return pick_each([cells[part] for part in self.scores().argmax(axis=1)], u)

    def scores(self) -> Floats:
        """Return the score of each part, float64[run, part]."""
        return np.maximum(0.0, 2.0 * self._risk - 1.0) / self._risk.shape[1]

    def learn(self, cells: Ints, labels: Ints) -> None:
        for run, (part, label) in enumerate(zip(cells // self._cells_each, labels, strict=True)):
            self._labels[run, part] += 1
            self._positives[run, part] += label
            of_part = int(self._labels[run, part]), int(self._positives[run, part])
            self._risk[run, part] = self._bounds.at(*of_part)

    def labels(self) -> Ints:
        """Return 1 for parts of whose labels at least half are 1, and for parts without labels."""
        return np.repeat((2 * self._positives >= self._labels).astype(np.int64), self._cells_each, axis=1)


def system_of(name: str, deltas: list[float], runs: int) -> ToySystem:
    """Return a system of figure 5 with its parameters."""
    if name == "BOCT":
        return ToyBoct(runs, deltas[0])
    if name == "BOCT-AL":
        return ToyBoct(runs, deltas[0], deltas[1])
    if name == BY_EXCESS:
        return ToyBoct(runs, deltas[0], deltas[1], "mbinomial")
    return Mbinomial(runs, {"mbinomial_8": 3, "mbinomial_64": 6}[name], deltas[0])


def run(system: ToySystem, labels: int, every: int, seeds: Sequence[int], root: str = ROOTS[0]) -> Floats:
    """Return the true risk at the start and after every `every` labels, float64[seed, labels / every + 1]."""
    drawn: Any = np.stack([np.random.default_rng([seed, 2]).random((labels, 2)) for seed in seeds])
    risks = [true_risks(system.labels(), root)]
    for t in range(labels):
        cells = system.choose(drawn[:, t, 0])
        system.learn(cells, (drawn[:, t, 1] < SHARES[root][cells]).astype(np.int64))
        if (t + 1) % every == 0:
            risks.append(true_risks(system.labels(), root))
    return np.ascontiguousarray(np.transpose(risks))
