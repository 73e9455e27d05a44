"""C4.5 in the pool protocol: labels at random, and a tree of all labels for each prediction."""

from __future__ import annotations

import numpy as np

from core.batch.c45 import C45, C45Tree
from core.layout.model import Floats, Ints
from core.schema.schema import Schema
from streamapp.lab.pool.pool_protocol import PICK, pick


class BatchSystem:
    """The batch tree, which is trained again after new labels; BCI and other papers compare with it."""

    def __init__(self, learner: C45, schema: Schema, x: Floats) -> None:
        self._learner = learner
        self._x = x
        self._classes = schema.n_classes
        self._values = [max(len(a.values), 1) if a.kind == "nominal" else 0 for a in schema.attributes]
        self._rows: list[int] = []
        self._labels: list[int] = []
        self._tree: C45Tree | None = None

    @property
    def tree(self) -> C45Tree:
        """The tree of the labels so far, of which there must be at least one."""
        if self._tree is None:
            y = np.array(self._labels, dtype=np.int64)
            self._tree = self._learner.fit(self._x[self._rows], y, self._values, self._classes)
        return self._tree

    @property
    def leaves(self) -> int:
        return self.tree.leaves if self._rows else 1

    def choose(self, unlabelled: Ints, drawn: Floats) -> int:
        return pick(unlabelled, drawn[PICK])

    def learn(self, row: int, label: int) -> None:
        self._rows.append(row)
        self._labels.append(label)
        self._tree = None

    def predict(self, x: Floats) -> Ints:
        return self.tree.predict(x) if self._rows else np.full(len(x), -1, dtype=np.int64)
