"""Test-then-train over a data set without a broker (`grove prequential`)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from core.active.label_account import EXPIRED
from core.events import Event, ThresholdsSet
from core.kernels import jit
from core.learners.ufodt.account import feature_account
from core.measures import powered as powered_accuracy
from core.measures.named_measures import defined, named
from core.model.model import Model
from core.model_table import NO_LABEL, ON_REQUEST, Answers, ModelTable
from core.publishing.coverage import SET_FIGURES
from core.schema.schema import Schema
from core.spec import Spec
from streamapp.errors import UsageError
from streamapp.lab.datasets import Declared, FollowingSchema

if TYPE_CHECKING:
    from topics.readers import Batch, Dataset

_UNLABELLED = np.array([NO_LABEL], np.int32)
_UNIT = np.ones(1)

BATCH_ROWS = 8192
BATCH_BYTES = 64 << 20
"""Bytes of a batch of rows: with 40,000 attributes, a batch has 209 rows."""


def batch_rows(attributes: int) -> int:
    """Return how many rows of `attributes` float64 values a batch holds."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES // (8 * attributes)))


OnEvent = Callable[[int, Event, Schema], None]


def read_spec(text: str, option: str = "--spec ") -> Spec:
    """The spec of a preset's name, JSON text, or `@FILE`; `option`: the option, for errors."""
    return Spec.parse(spec_text(text, option))


def spec_text(given: str, option: str = "--spec ") -> str:
    """The text of a spec, which may be in a file (`@FILE`); `option`: the option, for errors."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"{option}{given}: cannot read the file ({reason}); correct the name after @"
        raise UsageError(message) from None


def check_save(path: Path) -> None:
    """Refuse a file that cannot be written, before the model is learned."""
    if path.is_dir() or not path.parent.is_dir():
        what = "is a directory" if path.is_dir() else f"there is no directory {path.parent}"
        message = f"--save {path}: {what}; choose another file"
        raise UsageError(message)


def save_model(model: Model, path: Path) -> None:
    """Write a model's snapshot to a file."""
    try:
        model.save(path)
    except OSError as error:
        message = f"--save {path}: {error.strerror}; choose another file"
        raise UsageError(message) from None


class Prequential:
    """One model over the rows of a data set, in order."""

    def __init__(
        self,
        spec: Spec,
        dataset: Dataset,
        records: int | None = None,
        source: str = "the data set",
        declared: Declared | None = None,
        label_delay: int | None = None,
    ) -> None:
        """Check the spec against `label_delay`.

        source: name of the data set in messages; declared: further properties of attributes; label_delay:
        number of rows that are answered after a row before its label is learned, None: the label comes
        with the row.
        """
        if label_delay is not None and spec.learner.name == "ufodt":
            message = (
                "--label-delay must be left out with the learner 'ufodt': labels end its purchases row by row"
            )
            raise UsageError(message)
        self._label_delay = label_delay
        self._declared = declared
        self._source = source
        self._spec = spec
        self._dataset = dataset
        self._limit = records
        self._tally = Tally(spec.evaluation.window)
        self._model: Model | None = None
        self.overfull: dict[str, int] = {}
        """For nominal attributes with more values than a schema may have: number of values that were met."""
        self.gathered = 0
        """Numeric attributes whose thresholds were made from their first values."""

    @property
    def model(self) -> Model:
        """The model of the run, once there was a row."""
        if self._model is None:
            message = f"{self._source} has no rows; name a file with at least one"
            raise UsageError(message)
        return self._model

    @property
    def rows(self) -> int | None:
        """Number of rows of the run, None while unknown."""
        bounds = [n for n in (self._dataset.rows, self._limit) if n is not None]
        return min(bounds) if self._dataset.rows is not None else None

    def _note(self, event: Event) -> None:
        """Count the attributes that got thresholds from their first values."""
        if isinstance(event, ThresholdsSet):
            self.gathered += event.attributes

    def over_all(
        self, advance: Callable[[int], None] = lambda _: None, on_event: OnEvent | None = None
    ) -> dict[str, Any]:
        """Run; `advance` gets the number of rows of each batch. The time of compiling kernels does not count.

        `on_event` gets each event with the number of its row and the schema at that time.
        """
        spec = self._spec
        following = FollowingSchema(self._dataset, spec.max_classes, self._declared, spec.learner)
        self.overfull = following.overfull
        table = ModelTable()
        model: Model | None = None
        index = 0
        rows = 0
        delayed: DelayedLabels | None = None
        judge = None if learns_all(spec) else Judge(spec)
        jit.warm()
        began = time.perf_counter()
        for x, y in self._batches():
            schema = following.follow((x, y))
            if model is None:
                model = Model.create(self._spec, schema)
                index = table.add(model)
                if self._label_delay is not None:
                    delayed = DelayedLabels(table, index, self._label_delay)
            elif model.schema is not schema:
                model.adopt(schema)
                table.refresh(index)
            n = len(y)
            if delayed is not None:
                prediction, probability, events = delayed.answer(x, y)
            else:
                which = np.full(n, index, np.int64)
                answers = table.answer(which, x, y, np.ones(n), ON_REQUEST)
                prediction, probability = answers.prediction, answers.probability
                events = [(event.row, event) for event in answers.events]
            self._tally.add(y, prediction)
            if judge is not None:
                judge.add(schema, x, y, prediction, probability)
            for row, event in events:
                self._note(event)
                if on_event is not None:
                    on_event(rows + row, event, schema)
            rows += n
            advance(n)
        if delayed is not None:
            for event in delayed.rest():
                self._note(event)
                if on_event is not None:
                    on_event(rows - 1, event, following.current)
        seconds = time.perf_counter() - began
        self._model = model
        summary = self.model.summary()
        return {
            **self._tally.figures(),
            **_per_class(self.model if judge is None else judge.model),
            "leaves": summary.leaves,
            "nodes": summary.nodes,
            "depth": summary.depth,
            "splits": summary.splits,
            "attempts": summary.attempts,
            "labels": summary.labels,
            "refused": summary.refused,
            **_estimate(self.model),
            **_curve(self.model),
            **_sets(self.model),
            **_purchases(self.model),
            "seconds": round(seconds, 6),
            "records_per_second": round(rows / seconds, 1),
        }

    def _batches(self) -> Iterator[Batch]:
        rows_left = self._limit
        for x, y in self._dataset.batches(batch_rows(len(self._dataset.kinds))):
            if rows_left is not None and len(y) >= rows_left:
                yield x[:rows_left], y[:rows_left]
                return
            yield x, y
            rows_left = rows_left if rows_left is None else rows_left - len(y)


class DelayedLabels:
    """The labels of one model, each learned when a number of later rows have been answered."""

    def __init__(self, table: ModelTable, index: int, delay: int) -> None:
        """`delay`: rows that are answered between a row and its label."""
        self._table = table
        self._which = np.array([index], np.int64)
        self._delay = delay
        self._owed: deque[tuple[npt.NDArray[np.float64], npt.NDArray[np.int32], Answers]] = deque()

    def answer(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], list[tuple[int, Event]]]:
        """Answer the rows x: float64[n, d] with the labels y: int32[n], and learn what is due after each.

        Returns the predictions int32[n], the class shares float64[n, k], and the events with the row after
        which they happened.
        """
        prediction = np.full(len(y), -1, np.int32)
        shares: list[npt.NDArray[np.float64]] = []
        events: list[tuple[int, Event]] = []
        for row in range(len(y)):
            this_row = slice(row, row + 1)
            answers = self._table.answer(self._which, x[this_row], _UNLABELLED, _UNIT)
            prediction[row] = answers.prediction[0]
            shares.append(answers.probability)
            events += [(row, event) for event in answers.events]
            self._owed.append((x[this_row], y[this_row], answers))
            if len(self._owed) > self._delay:
                events += [(row, event) for event in self._learn()]
        return prediction, np.concatenate(shares), events

    def rest(self) -> list[Event]:
        """Learn the labels that are left when the rows have ended, as a replay sends them."""
        events: list[Event] = []
        while self._owed:
            events += self._learn()
        return events

    def _learn(self) -> list[Event]:
        """Learn the oldest label, if it was requested; if the row has no label, its request expires."""
        x, y, answers = self._owed.popleft()
        if not answers.asked[0]:
            return []
        label = y if y[0] >= 0 else np.array([EXPIRED], np.int32)
        decision = answers.prediction, answers.asked, answers.sampled, answers.importance
        kept = answers.probability, answers.report
        return self._table.learn(self._which, x, label, _UNIT, *decision, *kept)


def learns_all(spec: Spec) -> bool:
    """Whether a model learns the labels of all rows: then its own measures are those of all rows."""
    every = spec.query.name == "always" and spec.budget.limit >= 1.0 and spec.evaluation.share == 0.0
    return every and spec.evaluation.per_class


class Judge:
    """The measures of all labelled rows, whether the model learned them or not.

    A model that learns nothing but the majority class is given the answers: its measures are computed as
    those of any model.
    """

    def __init__(self, spec: Spec) -> None:
        body = {"learner": "majority-class", "query": "never", "evaluation": {"every": 0, "window": 1}}
        self._spec = Spec.parse(body | {"max_classes": spec.max_classes})
        self._table = ModelTable()
        self._index = -1

    @property
    def model(self) -> Model:
        """The model whose measures are those of all rows."""
        return self._table.model(self._index)

    def add(
        self,
        schema: Schema,
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.int32],
        prediction: npt.NDArray[np.int32],
        probability: npt.NDArray[np.float64],
    ) -> None:
        """Judge the answers to rows x: float64[n, d] with labels y: int32[n], -1: none."""
        if self._index < 0:
            self._index = self._table.add(Model.create(self._spec, schema))
        elif self.model.schema is not schema:
            self.model.adopt(schema)
            self._table.refresh(self._index)
        labelled = y >= 0
        n = int(labelled.sum())
        answers = prediction[labelled], np.zeros(n, np.bool_), None, None, probability[labelled]
        self._table.learn(np.full(n, self._index, np.int64), x[labelled], y[labelled], np.ones(n), *answers)


CURVE: Final = (
    "advice",
    *(f"{name}{end}" for name in ("accuracy_forecast", "gain_forecast") for end in ("", "_low", "_high")),
    "learning_curve",
)
"""Names of the figures that a model has if the `evaluation.worth` of its spec is above 0."""
PER_CLASS: Final = ("kappa_unbiased", "accuracy_powered", "accuracy_always", "measured")
"""The beginnings of the names of figures that the estimate of the model has, or nobody."""


def _per_class(model: Model) -> dict[str, Any]:
    """Log-loss, figures per class and their like over all labelled rows; None: no row had a label."""
    measures = model.measures()
    figures = {} if measures is None else defined(named(measures, model.schema.classes))
    return {name: value for name, value in figures.items() if not name.startswith(PER_CLASS)}


def _estimate(model: Model) -> dict[str, float | None]:
    """The model's own estimate of its accuracy, from the labels that it requested; None: no estimate."""
    evaluation, measures = model.evaluation(), model.measures()
    powered = powered_accuracy.NOTHING if measures is None else measures.accuracy
    drawn = evaluation.drawn_labels > 0
    return {
        "drawn_labels": evaluation.drawn_labels,
        "accuracy_unbiased": evaluation.accuracy_unbiased if drawn else None,
        "accuracy_unbiased_low": evaluation.accuracy_unbiased_low if drawn else None,
        "accuracy_unbiased_high": evaluation.accuracy_unbiased_high if drawn else None,
        "accuracy_powered": defined(powered.accuracy.value),
        "accuracy_powered_low": defined(powered.accuracy.low),
        "accuracy_powered_high": defined(powered.accuracy.high),
        "accuracy_of_labels": evaluation.accuracy if evaluation.labels else None,
    }


def _curve(model: Model) -> dict[str, Any]:
    """The learning curve of the model, its forecast and the advice; None: no estimate, or not kept."""
    curve = model.learning_curve()
    return dict.fromkeys(CURVE) if curve is None else defined(curve.to_dict())


def _sets(model: Model) -> dict[str, float | None]:
    """The coverage and size of the conformal sets; None: no label was judged, or the model has none."""
    sets = model.coverage()
    members: dict[str, float | None] = dict.fromkeys(SET_FIGURES)
    return members if sets is None else members | defined(sets.to_dict())


def _purchases(model: Model) -> dict[str, float | None]:
    """Purchases of a learner that buys features; None: the learner uses all features of a record."""
    if model.spec.learner.name != "ufodt":
        return {"features_bought": None, "feature_cost": None}
    account = feature_account(model)
    return {"features_bought": account.bought, "feature_cost": account.cost}


MEASURES: Final = ("accuracy", "accuracy_windowed", "kappa", "kappa_m", "kappa_temporal")
COMPARED: Final = 1 << 18
"""Counts of labels, by row and class, that are compared at a time."""


class Tally:
    """Predictions against labels over all labelled rows, whether the model learned them or not."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._total = 0
        self._hits = 0
        self._labels = np.zeros(0, np.int64)
        self._predictions = np.zeros(0, np.int64)
        self._recent = np.zeros(0, np.bool_)
        self._repeats = 0
        self._majority = 0
        self._last = 0

    def add(self, label: npt.NDArray[np.int32], prediction: npt.NDArray[np.int32]) -> None:
        """Count rows; label int32[n] (-1: none, not counted), prediction int32[n] (-1: no class known)."""
        labelled = label >= 0
        label, prediction = label[labelled], prediction[labelled]
        hit = label == prediction
        self._compare(label)
        self._total += len(label)
        self._hits += int(hit.sum())
        self._labels = _added(self._labels, label)
        self._predictions = _added(self._predictions, prediction[prediction >= 0])
        self._recent = np.concatenate((self._recent, hit))[-self._window :]

    def _compare(self, label: npt.NDArray[np.int32]) -> None:
        """Count the hits of the last label and of the most frequent class, as core/evaluation.py does."""
        if not len(label):
            return
        self._repeats += int((np.concatenate(([self._last], label[:-1])) == label).sum())
        self._last = int(label[-1])
        counts = _added(self._labels, np.array([label.max()], dtype=np.int32))
        counts[label.max()] -= 1
        step = max(COMPARED // len(counts), 1)
        for start in range(0, len(label), step):
            part = label[start : start + step]
            after = counts + np.cumsum(part[:, None] == np.arange(len(counts)), axis=0)
            self._majority += int((after.argmax(axis=1) == part).sum())
            counts = after[-1]

    def figures(self) -> dict[str, float | None]:
        """Accuracy, accuracy of the last window, Cohen's kappa, and kappas against two baselines.

        The baselines are the most frequent class and the last label; their kappas are 0 if the baseline is
        always right. All values are None if no row had a label.
        """
        if self._total == 0:
            return dict.fromkeys(MEASURES)
        total = self._total
        agreed = self._hits / total
        both = min(len(self._labels), len(self._predictions))
        by_chance = float(self._labels[:both] / total @ (self._predictions[:both] / total))
        return {
            "accuracy": agreed,
            "accuracy_windowed": float(self._recent.mean()),
            "kappa": _kappa(agreed, by_chance),
            "kappa_m": _kappa(agreed, self._majority / total),
            "kappa_temporal": _kappa(agreed, self._repeats / total),
        }


def _kappa(agreed: float, baseline: float) -> float:
    """Gain over a baseline, as a share of the possible gain; 0: no gain is possible."""
    return (agreed - baseline) / (1 - baseline) if baseline < 1 else 0.0


def _added(counts: npt.NDArray[np.int64], codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Counts per code plus the counts of `codes`; longer if a code is new."""
    more = np.bincount(codes, minlength=len(counts))
    more[: len(counts)] += counts
    return more
