"""Toy problem of BCI (Bayesian Credible Intervals, section V): a tree of known cells, so risks are exact.

The unit square is halved along x₁, x₂, x₁, … into 64 cells. A label in cell k is 1 with probability µ_k =
1/(1 + exp(-5(x₂ - √x₁))) at its centre. The text of the paper has lost which coordinate is under the root.
Both readings are here, and the printed axis fits both, because one label for all cells has the same risk.
Only the halvings may be installed. Systems have the interface of the pool protocol, with cells in the
place of rows that never run out: ``choose`` returns a cell, ``labels`` returns the predicted label of each
cell.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from core.layout.model import Floats, Ints
from core.learners.boct import boct
from core.model.model import Model
from core.model.pool import survey
from core.model_table import ModelTable
from core.schema.schema import Attribute, Schema
from core.spec import Spec
from streamapp.lab.pool.pool_models import TOTAL, RiskBounds, riskiest
from streamapp.lab.pool.pool_protocol import pick

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


def true_risk(labels: npt.NDArray[np.integer], root: str = ROOTS[0]) -> float:
    """Return the error probability of predicting these labels; int[cell]."""
    shares = SHARES[root]
    return float(np.where(labels == 1, 1.0 - shares, shares).mean())


def best_risk(depth: int, root: str = ROOTS[0]) -> float:
    """Return the least risk with one label for each node at a depth."""
    means = SHARES[root].reshape(1 << depth, -1).mean(axis=1)
    return float(np.minimum(means, 1.0 - means).mean())


class ToySystem(Protocol):
    """A system that learns labels of cells."""

    def choose(self, u: float) -> int:
        """Return the cell whose label is drawn next; u: uniform in [0, 1)."""

    def learn(self, cell: int, label: int) -> None:
        """Learn the label of a cell."""

    def labels(self) -> npt.NDArray[np.integer]:
        """Return the predicted label of each cell, int[cell]."""


class ToyBoct:
    """BOCT that may install the halvings, and with δ2 BOCT-AL; risk: parameter of ``boct_al``."""

    def __init__(self, delta: float, delta2: float | None = None, risk: str = TOTAL) -> None:
        schema = Schema.of([Attribute("x1"), Attribute("x2")], CLASSES)
        spec = Spec.parse({"learner": {"name": "boct", "sizes": "toy", "delta": delta}})
        self._table = ModelTable()
        self._index = self._table.add(Model.create(spec, schema))
        self._bounds = None if delta2 is None else RiskBounds(delta2)
        self._risk = risk
        self._ends = np.zeros(CELLS, dtype=np.int64)
        self._leaves = 0

    @property
    def model(self) -> Model:
        return self._table.model(self._index)

    def choose(self, u: float) -> int:
        cells = np.arange(CELLS)
        if self._bounds is None:
            return pick(cells, u)
        leaves = boct.leaves(self.model)
        if len(leaves.node) != self._leaves:
            self._ends, self._leaves = boct.leaf_of(self.model, CENTRES), len(leaves.node)
        bounds = self._bounds.of(leaves.labels, leaves.positives)
        first = riskiest(leaves.size, bounds, self._risk)[0]
        return pick(cells[self._ends == leaves.node[first]], u)

    def learn(self, cell: int, label: int) -> None:
        self._table.learn(
            np.array([self._index]),
            CENTRES[cell : cell + 1],
            np.array([label], dtype=np.int32),
            np.ones(1),
            np.array([-1], dtype=np.int32),
            np.zeros(1, dtype=np.bool_),
        )

    def labels(self) -> npt.NDArray[np.integer]:
        return np.maximum(survey(self.model, CENTRES).prediction, 0)


class Mbinomial:
    """mbinomial on the nodes of a depth (Collet and Pietquin 2014): a fixed partition, actively labelled.

    It chooses the part with the highest bound of current risk minus optimal risk: W·max(0, 2q - 1), where
    q is the bound of BCI's equation 7 for W = 1 [D32]; of equal parts, the first.
    """

    def __init__(self, depth: int, delta: float) -> None:
        self._bounds = RiskBounds(delta)
        self._cells_each = CELLS >> depth
        self._labels = np.zeros(1 << depth, dtype=np.int64)
        self._positives = np.zeros(1 << depth, dtype=np.int64)

    def choose(self, u: float) -> int:
        part = int(self.scores().argmax())
        return pick(np.arange(self._cells_each) + part * self._cells_each, u)

    def scores(self) -> Floats:
        """Return the score of each part, float64[part]."""
        q = self._bounds.of(self._labels, self._positives)
        return np.maximum(0.0, 2.0 * q - 1.0) / len(q)

    def learn(self, cell: int, label: int) -> None:
        part = cell // self._cells_each
        self._labels[part] += 1
        self._positives[part] += label

    def labels(self) -> Ints:
        """Return 1 for parts of whose labels at least half are 1, and for parts without labels."""
        return np.repeat((2 * self._positives >= self._labels).astype(np.int64), self._cells_each)


def system_of(name: str, deltas: list[float]) -> ToySystem:
    """Return a system of figure 5 with its parameters."""
    if name == "BOCT":
        return ToyBoct(deltas[0])
    if name == "BOCT-AL":
        return ToyBoct(deltas[0], deltas[1])
    if name == BY_EXCESS:
        return ToyBoct(deltas[0], deltas[1], "mbinomial")
    return Mbinomial({"mbinomial_8": 3, "mbinomial_64": 6}[name], deltas[0])


def run(system: ToySystem, labels: int, every: int, seed: int, root: str = ROOTS[0]) -> Floats:
    """Return the true risk at the start and after every `every` labels, float64[labels / every + 1]."""
    drawn: Any = np.random.default_rng([seed, 2]).random((labels, 2))
    risks = [true_risk(system.labels(), root)]
    for t in range(labels):
        cell = system.choose(drawn[t, 0])
        system.learn(cell, int(drawn[t, 1] < SHARES[root][cell]))
        if (t + 1) % every == 0:
            risks.append(true_risk(system.labels(), root))
    return np.array(risks)
