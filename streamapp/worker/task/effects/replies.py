"""Replies of a run: the answers as columns by row, and the groups in which they are encoded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.layout.published import KNOWN, RAW, THRESHOLD
from core.model.numbers_seen import NumberRange
from core.model_table import Answers
from streamapp.worker.task.effects.effects import PredictionGroup
from streamapp.worker.task.models.class_order import ClassOrder
from streamapp.worker.task.models.families import Kind
from streamapp.worker.task.models.traits import ModelTraits
from topics.codecs.offset_ids import OffsetIds
from topics.columns.distinct import distinct, put_in_order
from topics.columns.records import Acquired, Floats, Instances, Ints32, Ints64, Malformed, Predictions
from topics.columns.spans import Texts

Mask = npt.NDArray[np.bool_]
Columns = tuple[Ints32, Floats, Ints64]  # prediction, probability, version
NO_CLASS = -1  # class code of an answer without a class
DEAD = -1  # version of a dead-lettered row of a block
ROOT = "all"  # the path to a tree that is one leaf


_order = lru_cache(maxsize=1024)(ClassOrder.of)


def _none(n: int) -> Answers:
    """Return empty answers to n rows."""
    is_not = np.zeros(n, dtype=np.bool_)
    sampled, importance = np.zeros(n, dtype=np.int8), np.zeros(n)
    version = np.full(n, DEAD, dtype=np.int64)
    return Answers(
        np.full(n, NO_CLASS, dtype=np.int32), np.zeros((n, 0)), is_not, sampled, importance, version, []
    )


class Replies:
    """The answers to the rows of a run; n rows, refused rows are empty."""

    def __init__(self, n: int, whole: Answers | None = None, known: Ints32 | None = None) -> None:
        """`whole`: the answers to all rows, else `add` takes them; `known`: int32[n], known classes of each
        row's model.
        """
        self.acquired: list[Acquired] | None = None  # of a run whose rows all are the ends of episodes
        self.explanation: list[str | None] | None = None  # where a model explains itself
        self.seen: dict[int, dict[int, NumberRange]] = {}  # of such rows whose label is requested, by column
        self.raw: list[dict[str, float] | None] | None = None  # where a model calibrates its probabilities
        self.sets: list[list[str] | None] | None = None  # where a model answers sets
        self.challenger: list[str | None] | None = None  # class that the challenger of a row's model answered
        self.challenged: Mask | None = None  # bool[n], rows that a challenger has answered; None: no row
        self.report: Floats | None = None  # float64[n, RAW + class] (core/layout/published.py)
        self.answered: Mask = np.full(n, whole is not None)
        self._take(
            _none(n) if whole is None else whole, np.zeros(n, dtype=np.int32) if known is None else known
        )
        if whole is not None and whole.explanations:
            self._explain(np.arange(n), whole)

    def _take(self, answers: Answers, known: Ints32) -> None:
        self.asked, self.sampled, self.importance = answers.asked, answers.sampled, answers.importance
        self.prediction, self.probability, self.version = (
            answers.prediction,
            answers.probability,
            answers.version,
        )
        self.known, self.report = known, answers.report

    def add(self, rows: Ints64, answers: Answers, known: Ints32) -> None:
        """Take the answers to `rows` (int64[m], ascending); known: int32[m]."""
        n, width = len(self.answered), answers.probability.shape[1]
        if answers.explanations:
            self._explain(rows, answers)
        if len(rows) == n:
            self.answered[:] = True
            self._take(answers, known)
            return
        if width > self.probability.shape[1]:
            missing = np.zeros((n, width - self.probability.shape[1]))
            self.probability = np.hstack((self.probability, missing))
        self.answered[rows] = True
        self.asked[rows] = answers.asked
        self.sampled[rows], self.importance[rows] = answers.sampled, answers.importance
        self.prediction[rows] = answers.prediction
        self.version[rows] = answers.version
        self.probability[rows, :width] = answers.probability
        self.known[rows] = known
        if answers.report is not None:
            self._report(rows, answers.report)

    def _report(self, rows: Ints64, report: Floats) -> None:
        """Take reports of some rows; those of the other rows stay, or are NaN."""
        before, width = self.report, report.shape[1]
        if before is None or before.shape[1] < width:
            self.report = np.full((len(self.answered), width), np.nan)
            if before is not None:
                self.report[:, : before.shape[1]] = before
        assert self.report is not None
        self.report[rows, :width] = report

    def _explain(self, rows: Ints64, answers: Answers) -> None:
        if self.explanation is None:
            self.explanation = [None] * len(self.answered)
        for at, path in answers.explanations.items():
            self.explanation[int(rows[at])] = " and ".join(map(str, path)) or ROOT
        self.seen |= {int(rows[at]): ranges for at, ranges in answers.seen.items()}

    def _members(self, rows: Ints64) -> dict[str, Any]:
        """Return the optional columns of some rows, by their names in Predictions."""
        columns: dict[str, Sequence[Any] | None] = {
            "explanation": self.explanation,
            "acquired": self.acquired,
            "raw_probabilities": self.raw,
            "sets": self.sets,
        }
        if self.challenged is not None and self.challenged[rows].any():
            columns["challenger"] = self.challenger
        return {
            name: [column[row] for row in rows.tolist()]
            for name, column in columns.items()
            if column is not None
        }

    def challenge(self, prediction: Ints32, challenged: Mask, model: Ints64, traits: ModelTraits) -> None:
        """Take the answers of challengers (int32[n], -1: none); challenged: bool[n], model: int64[n]."""
        self.challenged, self.challenger = challenged, [None] * len(challenged)
        for row in np.flatnonzero(challenged & (prediction >= 0)).tolist():
            self.challenger[row] = traits.schema(int(model[row])).classes[int(prediction[row])]

    def groups(self, batch: Instances, model: Ints64, traits: ModelTraits) -> list[PredictionGroup]:
        """Return the answers by classes, and each block separately; model: int64[n] slots.

        Classes are never removed or reordered. So the classes known when a row was answered are the first
        classes of the model's current schema.
        """
        if self.report is not None:
            self._publish(self.report, model, traits)
        single = self.answered.copy()
        groups: list[PredictionGroup] = []
        for record, first, rows in batch.blocks.tolist():
            single[first : first + rows] = False
            block = self._block(batch, record, slice(first, first + rows), model, traits)
            if block is not None:
                groups.append(block)
        parts = [single] if self.challenged is None else [single & ~self.challenged, single & self.challenged]
        for part in parts:  # the answers of challenged keys take longer to encode
            rows = part.nonzero()[0]
            if len(rows):
                groups += self._by_classes(batch, rows, model, traits)
        return groups

    def _publish(self, report: Floats, model: Ints64, traits: ModelTraits) -> None:
        """Name the classes of raw probabilities and sets; report: float64[n, RAW + class]."""
        n = len(self.answered)
        raw: list[dict[str, float] | None] = [None] * n
        sets: list[list[str] | None] = [None] * n
        for row in np.flatnonzero(self.answered & (report[:, KNOWN] >= 1.0)).tolist():
            order = _order(traits.schema(int(model[row])).classes[: int(self.known[row])])
            columns, threshold = list(order.columns), report.item(row, THRESHOLD)
            shares = report[row, RAW:][columns].tolist()
            if not math.isnan(shares[0]):
                raw[row] = dict(zip(order.classes, shares, strict=True))
            if not math.isnan(threshold):
                probabilities = self.probability[row, columns].tolist()
                sets[row] = [
                    name
                    for name, probability in zip(order.classes, probabilities, strict=True)
                    if probability >= 1.0 - threshold
                ]
        self.raw = raw if any(cell is not None for cell in raw) else None
        self.sets = sets if any(cell is not None for cell in sets) else None

    def of_kind(self, batch: Instances, kind: Kind, order: Ints64) -> PredictionGroup:
        """Return the same as `groups` for a run whose rows all have classes of one kind; order: int64[n]."""
        prediction, probability = self.prediction, self.probability
        if kind.moved:
            orders = (order, kind.codes, kind.columns)
            prediction, probability = np.empty_like(prediction), np.empty_like(probability)
            put_in_order(self.prediction, self.probability, *orders, prediction, probability)
        columns = (prediction, probability, self.version)
        optional = self._members(np.arange(len(self.answered)))
        return PredictionGroup(batch.record, Predictions(kind.classes, batch.ids, *columns, **optional))

    def _by_classes(
        self, batch: Instances, rows: Ints64, model: Ints64, traits: ModelTraits
    ) -> list[PredictionGroup]:
        """Return the answers to single records, grouped by their classes."""
        slots, n_known = model[rows], self.known[rows]
        kind = traits.schema_uid[slots] * (1 << 20) + n_known
        if np.count_nonzero(kind == kind[0]) == len(kind):
            order = _order(traits.schema(int(slots[0])).classes[: int(n_known[0])])
            return [self._answers(batch, rows, [order], np.zeros(len(rows), dtype=np.int64))]
        first, number = distinct(kind)
        orders = [_order(traits.schema(int(slots[at])).classes[: int(n_known[at])]) for at in first.tolist()]
        alike: dict[tuple[str, ...], list[int]] = {}
        for which, order in enumerate(orders):
            alike.setdefault(order.classes, []).append(which)
        if len(alike) == 1:
            return [self._answers(batch, rows, orders, number)]
        groups = []
        for members in alike.values():
            place = np.zeros(len(orders), dtype=np.int64)
            place[members] = np.arange(len(members))
            mine = np.isin(number, members)
            groups.append(
                self._answers(batch, rows[mine], [orders[which] for which in members], place[number[mine]])
            )
        return groups

    def _answers(
        self, batch: Instances, rows: Ints64, orders: Sequence[ClassOrder], number: Ints64
    ) -> PredictionGroup:
        """Return the answers to rows (int64[m]) that name the same classes; number: int64[m] into orders."""
        classes = orders[0].classes
        k, record, ids = len(classes), batch.record, batch.ids
        prediction, probability, version = self.prediction, self.probability, self.version
        if len(rows) < len(batch):
            record, ids = record[rows], ids_of(batch, rows)
            prediction, probability, version = prediction[rows], probability[rows], version[rows]
        if any(order.moved for order in orders):
            columns = np.array([order.columns for order in orders], dtype=np.int64)
            codes = np.array([order.codes for order in orders])
            old, orders_of_rows = (prediction, probability), (number, codes, columns)
            prediction, probability = np.empty_like(prediction), np.empty((len(rows), k))
            put_in_order(*old, *orders_of_rows, prediction, probability)
        columns_of = (prediction, probability[:, :k], version)
        return PredictionGroup(record, Predictions(classes, ids, *columns_of, **self._members(rows)))

    def _block(
        self, batch: Instances, record: int, rows: slice, model: Ints64, traits: ModelTraits
    ) -> PredictionGroup | None:
        """Return the answer to a block: a row for each of its rows, including refused rows."""
        if not self.answered[rows].any():
            return None
        order = _order(traits.schema(int(model[rows.start])).classes[: int(self.known[rows].max())])
        prediction, probability = self.prediction[rows], self.probability[rows, : len(order.classes)]
        if order.moved:
            prediction, probability = order.codes[prediction], probability[:, order.columns]
        columns, ids = (prediction, probability, self.version[rows]), batch.ids[rows]
        n_bad = _bad_rows(batch.malformed, record)
        if n_bad:
            columns, ids = _with_gaps(columns, ids, batch.row[rows], len(ids) + n_bad)
        optional = self._members(np.arange(rows.start, rows.stop))
        for name, cells in optional.items() if n_bad else ():
            by_row = dict(zip(batch.row[rows].tolist(), cells, strict=True))
            optional[name] = [by_row.get(row) for row in range(len(ids))]
        record_of_row = np.full(len(ids), record, dtype=np.int32)
        return PredictionGroup(
            record_of_row, Predictions(order.classes, ids, *columns, **optional), block=True
        )


def ids_of(batch: Instances, rows: Ints64) -> Sequence[str]:
    """Return the ids of rows (int64[m])."""
    if isinstance(batch.ids, OffsetIds | Texts):
        return batch.ids.taken(rows)
    return [batch.ids[row] for row in rows.tolist()]


def _bad_rows(malformed: list[Malformed], record: int) -> int:
    """Return how many rows of a block the codec refused."""
    return sum(len(flawed.rows) for flawed in malformed if flawed.record == record)


def _with_gaps(columns: Columns, ids: Sequence[str], place: Ints32, n: int) -> tuple[Columns, list[str]]:
    """Return columns of n rows in which the given rows are at `place` and all remaining rows are dead."""
    prediction, version = np.full(n, NO_CLASS, dtype=np.int32), np.full(n, DEAD, dtype=np.int64)
    probability = np.zeros((n, columns[1].shape[1]))
    prediction[place], probability[place], version[place] = columns
    names = [""] * n
    for at, name in zip(place.tolist(), ids, strict=True):
        names[at] = name
    return (prediction, probability, version), names
