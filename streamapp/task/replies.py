"""The answers of one run: columns by row, and the groups in which they are encoded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from core.model_table import Answers as Answered
from streamapp.task.effects import Answers
from streamapp.task.model_store import ModelStore
from topics.records import Floats, Instances, Ints32, Ints64, Malformed, Predictions

Mask = npt.NDArray[np.bool_]
Columns = tuple[Ints32, Floats, Ints64]  # prediction, probability, version
DEAD = -1  # version of a dead-lettered row of a block


class Replies:
    """What the rows of a run were answered with; n rows, those that were refused left empty."""

    def __init__(self, n: int) -> None:
        self._calls: list[tuple[Ints64, Answered]] = []
        self.answered: Mask = np.zeros(n, dtype=np.bool_)
        self.asked: Mask = np.zeros(n, dtype=np.bool_)
        self.known: Ints32 = np.zeros(n, dtype=np.int32)  # classes the model knew when it answered
        self.prediction: Ints32 = np.full(n, -1, dtype=np.int32)
        self.probability: Floats = np.zeros((n, 0))
        self.version: Ints64 = np.full(n, DEAD, dtype=np.int64)

    def add(self, rows: Ints64, answers: Answered, known: Ints32) -> None:
        """Take the answers to `rows` (int64[m], ascending); known: int32[m]."""
        n, width = len(self.answered), answers.probability.shape[1]
        if len(rows) == n:
            self.answered[:] = True
            self.asked, self.prediction, self.version = answers.asked, answers.prediction, answers.version
            self.probability, self.known = answers.probability, known
            return
        if width > self.probability.shape[1]:
            missing = np.zeros((n, width - self.probability.shape[1]))
            self.probability = np.hstack((self.probability, missing))
        self.answered[rows] = True
        self.asked[rows] = answers.asked
        self.prediction[rows] = answers.prediction
        self.version[rows] = answers.version
        self.probability[rows, :width] = answers.probability
        self.known[rows] = known

    def groups(self, batch: Instances, model: Ints64, store: ModelStore) -> list[Answers]:
        """Return the answers by classes, a block by itself; model: int64[n] slots.

        Classes are never taken away or reordered, so those known when a row was answered are the first ones
        of the model's schema of now.
        """
        single = self.answered.copy()
        found: list[Answers] = []
        for record, first, rows in batch.blocks.tolist():
            single[first : first + rows] = False
            block = self._block(batch, record, np.arange(first, first + rows), model, store)
            if block is not None:
                found.append(block)
        rows = np.flatnonzero(single)
        if len(rows):
            found += self._by_classes(batch, rows, model, store)
        return found

    def _by_classes(self, batch: Instances, rows: Ints64, model: Ints64, store: ModelStore) -> list[Answers]:
        slots, known = model[rows], self.known[rows]
        kind = store.schema_uid[slots] * (1 << 20) + known
        if (kind == kind[0]).all():
            classes = store.schema(int(slots[0])).classes[: int(known[0])]
            return [self._answers(batch, rows, classes)]
        by_classes: dict[tuple[str, ...], list[Ints64]] = {}
        _, first, number = np.unique(kind, return_index=True, return_inverse=True)
        for i, at in enumerate(first.tolist()):
            classes = store.schema(int(slots[at])).classes[: int(known[at])]
            by_classes.setdefault(classes, []).append(rows[number == i])
        return [
            self._answers(batch, np.sort(np.concatenate(parts)), classes)
            for classes, parts in by_classes.items()
        ]

    def _answers(self, batch: Instances, rows: Ints64, classes: tuple[str, ...]) -> Answers:
        k = len(classes)
        if len(rows) == len(batch):
            columns = (batch.ids, self.prediction, self.probability[:, :k], self.version)
            return Answers(batch.record, Predictions(classes, *columns))
        ids = [batch.ids[row] for row in rows.tolist()]
        columns = (ids, self.prediction[rows], self.probability[rows, :k], self.version[rows])
        return Answers(batch.record[rows], Predictions(classes, *columns))

    def _block(
        self, batch: Instances, record: int, rows: Ints64, model: Ints64, store: ModelStore
    ) -> Answers | None:
        """Return the answer to a block: a row for each of its rows, dead ones included."""
        if not self.answered[rows].any():
            return None
        classes = store.schema(int(model[rows[0]])).classes[: int(self.known[rows].max())]
        first, end, k = int(rows[0]), int(rows[-1]) + 1, len(classes)
        columns = (self.prediction[first:end], self.probability[first:end, :k], self.version[first:end])
        n_bad = _bad_rows(batch.malformed, record)
        if n_bad:
            columns, ids = _with_gaps(columns, batch.ids[first:end], batch.row[rows], len(rows) + n_bad)
        else:
            ids = batch.ids[first:end]
        record_of_row = np.full(len(ids), record, dtype=np.int32)
        return Answers(record_of_row, Predictions(classes, ids, *columns), block=True)


def _bad_rows(malformed: list[Malformed], record: int) -> int:
    """Return how many rows of a block the codec refused."""
    return sum(len(each.rows) for each in malformed if each.record == record)


def _with_gaps(columns: Columns, ids: list[str], place: Ints32, n: int) -> tuple[Columns, list[str]]:
    """Return columns of n rows in which the given ones stand at `place` and the others are dead."""
    prediction, version = np.full(n, -1, dtype=np.int32), np.full(n, DEAD, dtype=np.int64)
    probability = np.zeros((n, columns[1].shape[1]))
    prediction[place], probability[place], version[place] = columns
    names = [""] * n
    for at, name in zip(place.tolist(), ids, strict=True):
        names[at] = name
    return (prediction, probability, version), names
