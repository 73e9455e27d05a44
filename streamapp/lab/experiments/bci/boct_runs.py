"""Runs of BOCT side by side, a label in turn for each: one table of models learns the labels of all runs.

A call of the table takes several times as long as learning one label, and so does reading all leaves.
Therefore a call learns a label for each run, the counts of leaves are kept here until the tree splits, and
records are answered again only if an answer may have changed. The runs do not depend on each other: models
share no state, and BOCT draws no random number while its leaves keep all labels.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.layout.model import Floats, Ints
from core.learners.boct import boct
from core.model.model import Model
from core.model.pool import survey
from core.model_table import NO_LABEL, ModelTable
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.lab.pool.pool_models import ENTERING, TOTAL, RiskBounds, riskiest
from streamapp.lab.pool.pool_protocol import pick

TABLES: Final = 16
"""Values of δ2 whose bounds are kept: more than a grid has."""


@functools.lru_cache(maxsize=TABLES)
def bounds_of(delta: float) -> RiskBounds:
    """Return the bounds of the risk for a δ2, which all runs share."""
    return RiskBounds(delta)


class BoctRuns:
    """Models of one spec, one for each run, with the leaves that BOCT-AL ranks."""

    def __init__(
        self,
        learner: dict[str, Any],
        schema: Schema,
        x: Floats,
        tested: Floats,
        delta2: float | None = None,
        risk: str = TOTAL,
    ) -> None:
        """Begin the runs. A pool's records enter the models here, before the first label.

        learner: members of ``boct``, whose capacity must be at least the labels that come. x: float64[run,
        n, d], the records whose labels are chosen. tested: float64[run, m, d], the records that ``predict``
        answers. delta2, risk: parameters of ``boct_al``; without delta2 leaves are not ranked.
        """
        runs, n, _ = x.shape
        spec = Spec.parse({"learner": learner, "evaluation": {"every": 0}})
        self._table = ModelTable()
        self._index = np.array([self._table.add(Model.create(spec, schema)) for _ in range(runs)])
        self._x, self._tested, self._risk = x, tested, risk
        self._bounds = None if delta2 is None else bounds_of(delta2)
        if learner["sizes"] in ENTERING:
            entering = np.repeat(self._index, n)
            no_label = np.full(runs * n, NO_LABEL, dtype=np.int32)
            self._table.answer(entering, x.reshape(runs * n, -1), no_label, np.ones(runs * n))
        self._leaves = [_Leaves(self.model(run), x[run], self._bounds) for run in range(runs)]
        self._answers = np.zeros(tested.shape[:2], dtype=np.int32)
        self._differs = np.ones(runs, dtype=np.bool_)

    def model(self, run: int) -> Model:
        return self._table.model(int(self._index[run]))

    def in_riskiest_leaf(self, run: int, rows: Ints) -> Ints:
        """Return those of some rows (int64, not empty) that end in the leaf with the largest bound.

        Leaves without such rows are left out; of equal bounds the leaf with the lower number is taken.
        """
        leaves = self._leaves[run]
        assert leaves.risk is not None, "runs without δ2 rank no leaves"
        ends = leaves.ends[rows]
        for leaf in riskiest(leaves.size, leaves.risk, self._risk):
            ending: Ints = rows[ends == leaf]
            if len(ending):
                return ending
        message = f"every one of {len(rows)} rows must end in one of {len(leaves.size)} leaves"
        raise RuntimeError(message)

    def learn(self, rows: Ints, labels: Ints) -> None:
        """Learn a label of each run; int64[run]: row of x, class code."""
        runs = len(rows)
        events = self._table.learn(
            self._index,
            self._x[np.arange(runs), rows],
            labels.astype(np.int32),
            np.ones(runs),
            np.full(runs, -1, dtype=np.int32),
            np.zeros(runs, dtype=np.bool_),
        )
        for run, (row, label) in enumerate(zip(rows.tolist(), labels.tolist(), strict=True)):
            if self._leaves[run].count(row, label):
                self._differs[run] = True
        for run in {event.row for event in events}:
            self._leaves[run] = _Leaves(self.model(run), self._x[run], self._bounds)
            self._differs[run] = True

    def predict(self) -> npt.NDArray[np.int32]:
        """Return the class codes of the tested records, int32[run, m]; -1 while a model has no class."""
        for run in np.flatnonzero(self._differs).tolist():
            self._answers[run] = survey(self.model(run), self._tested[run]).prediction
        self._differs[:] = False
        return self._answers


class _Leaves:
    """The leaves of a tree until its next split, by position."""

    def __init__(self, model: Model, x: Floats, bounds: RiskBounds | None) -> None:
        """Read the leaves; x: float64[n, d]; bounds: of their risk, None if they are not ranked."""
        node, size, labels, positives = boct.leaves(model)
        self.size = size.copy()
        self.ends = np.searchsorted(node, boct.leaf_of(model, x))
        """int64[n]: position of the leaf of each row."""
        self.risk = None if bounds is None else bounds.of(labels, positives)
        """float64[leaf]: bound of the risk per unit of size."""
        self._bounds = bounds
        self._labels: list[int] = labels.tolist()
        self._positives: list[int] = positives.tolist()

    def count(self, row: int, label: int) -> bool:
        """Count a label of a row; return whether the answer of its leaf may have changed."""
        leaf = int(self.ends[row])
        labels, positives = self._labels[leaf] + 1, self._positives[leaf] + label
        was_one = 2 * self._positives[leaf] >= self._labels[leaf]
        self._labels[leaf], self._positives[leaf] = labels, positives
        if self.risk is not None and self._bounds is not None:
            self.risk[leaf] = self._bounds.at(labels, positives)
        return labels == 1 or was_one != (2 * positives >= labels)


def pick_each(rows: Sequence[Ints], u: Floats) -> Ints:
    """Return a row of each run, by a uniform number each (float64[run])."""
    return np.array([pick(own, x) for own, x in zip(rows, u.tolist(), strict=True)])
