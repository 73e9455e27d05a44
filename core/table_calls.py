"""Table calls: compiled calls over the models of a table, and the decisions between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core import run
from core.active.label_account import CLOSINGS, SAMPLED_FOR_EVALUATION
from core.errors import RowError, SchemaError
from core.evaluation import EvaluationDue, MeasuresThen, labels_of_classes
from core.events import Event
from core.kernels import jit
from core.layout.model import Floats, Ints
from core.layout.published import KNOWN, RAW, REBUILDS, THRESHOLD
from core.learners.protocol import Learner, Stretch, workspace_of
from core.learning_curve.forecast import CurveThen
from core.model import drift_reaction, input_alarm, numbers_seen
from core.model.model import Model
from core.model.numbers_seen import NumberRange
from core.model.prediction import preparation
from core.run import ANSWER_ONLY as ANSWER_ONLY
from core.run import LABELLED as LABELLED
from core.run import ON_REQUEST as ON_REQUEST
from core.run import Cursor, LogEntry, Run
from core.tree.conditions import Branch

NO_LABEL: Final = -1
_NO_REPORT: Final = np.full((1, 1), np.nan)
"""Reports of a table whose models have none: no kernel reads or writes it."""
_OWN: Final[dict[type, np.dtype[Any]]] = {of: np.dtype(of) for of in (np.int64, np.int32, np.float64)}
"""The dtype object that nearly every array of such numbers shares; other dtypes are compared by value."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to a run; columns by row."""

    prediction: npt.NDArray[np.int32]
    """Class code, -1 while the model has learned no class."""
    probability: npt.NDArray[np.float64]
    """Normalised votes [row, class], zeros where nothing has been learned yet."""
    asked: npt.NDArray[np.bool_]
    """Whether the label is requested."""
    sampled: npt.NDArray[np.int8]
    """NOT_SAMPLED, SAMPLED_BY_STRATEGY or SAMPLED_FOR_EVALUATION (core/active/label_account.py)."""
    importance: npt.NDArray[np.float64]
    """Inverse-probability weight of the requested label, 0: unknown (core/active/label_query.py)."""
    version: npt.NDArray[np.int64]
    """Number of labels that the model had learned when it answered."""
    events: list[Event]
    explanations: dict[int, tuple[Branch, ...]] = field(default_factory=dict)
    """By row, if the model explains: the branches that led to the prediction."""
    seen: dict[int, dict[int, NumberRange]] = field(default_factory=dict)
    """By row, if the model explains and the label is requested: by column, the numbers seen so far."""
    report: npt.NDArray[np.float64] | None = None
    """Threshold, known classes, rebuilds and raw shares [row, RAW + class] (core/layout/published.py), NaN
    for models without them; None: no model of the table has any."""

    @staticmethod
    def to(n: int, classes: int, reports: bool = False) -> Answers:
        """Return answers to n rows that are not computed yet; reports: with room for reports."""
        return Answers(
            np.full(n, -1, dtype=np.int32),
            np.zeros((n, classes)),
            np.zeros(n, dtype=np.bool_),
            np.zeros(n, dtype=np.int8),
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
            [],
            report=np.full((n, RAW + classes), np.nan) if reports else None,
        )


class _Rows(NamedTuple):
    """The columns of a run, each contiguous and of the dtype that the kernel was compiled for."""

    model: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    label: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    classes: int
    """The largest number of classes of the models."""


class _Room:
    """The arrays of a run that do not depend on its rows; a table keeps them for its next run."""

    __slots__ = ("classes", "columns", "cursor", "log", "scratch", "votes", "width", "workspace")

    def __init__(self, width: int, classes: int) -> None:
        """Take the number of columns of the rows, and the largest number of classes of their models."""
        self.width, self.classes = width, classes
        self.workspace = workspace_of(width, classes)
        self.columns, self.scratch, self.votes = self.workspace
        self.log = run.log_of(classes)
        self.cursor = run.new_cursor()


def _ready(array: npt.NDArray[Any], dtype: type) -> npt.NDArray[Any]:
    """Return an array that compiled code accepts: the array itself, or a copy."""
    flags = array.flags
    if array.dtype is _OWN.get(dtype) and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, dtype, ["C", "W"])


def _widened(
    shares: npt.NDArray[np.float64] | None, n: int, columns: int, fill: float = 0.0
) -> npt.NDArray[np.float64]:
    """Return float64[n, columns] with the columns that are given, and a value in the others."""
    whole = np.full((n, columns), fill)
    if shares is not None:
        width = min(shares.shape[1], columns)
        whole[:, :width] = shares[:, :width]
    return whole


def _examine_report(report: npt.NDArray[np.float64]) -> None:
    """Refuse reports that no answer can have."""
    is_missing = np.isnan(report)
    is_legal = is_missing | ((report >= 0.0) & (report <= 1.0))
    is_legal[:, THRESHOLD] = is_missing[:, THRESHOLD] | np.isfinite(report[:, THRESHOLD])
    is_legal[:, REBUILDS] = is_missing[:, REBUILDS] | (report[:, REBUILDS] >= 0.0)
    classes = report[:, KNOWN]
    is_legal[:, KNOWN] = is_missing[:, KNOWN] | ((classes >= 1.0) & (classes <= report.shape[1] - RAW))
    if not is_legal.all():
        msg = (
            "report must be a threshold, a number of classes, a number of rebuilds of at least 0 and shares "
            "from 0 to 1; pass the answer's own"
        )
        raise SchemaError(msg)


def unit_weight_rule(weight: float, learner: Learner) -> str:
    """Return the error text for a weight that a learner refuses."""
    return (
        f"weight={weight} must be 1 with {learner.spelled!r}, which counts records; leave it out, or take a "
        "learner that weighs them, such as 'h-tree'"
    )


class TableCalls(ABC):
    """Models by index, as columns that kernels read; n rows of a call name them."""

    _addresses: npt.NDArray[np.int64]
    _plans: npt.NDArray[np.int64]
    _columns: npt.NDArray[np.int64]
    _classes: npt.NDArray[np.int64]
    _prepared_at: npt.NDArray[np.int64]
    _counts_records: npt.NDArray[np.bool_]  # weights other than 1 are refused
    _has_counted = False  # whether any model, now or earlier, counts records
    has_reports = False  # whether any model, now or earlier, has calibrated probabilities or sets

    def __init__(self) -> None:
        self._prepared: dict[int, Floats] = {}  # the arrays that _prepared_at points to
        self.rooms: list[_Room] = []  # those that no call uses now
        self._cursor: Cursor | None = None  # of the latest call

    @abstractmethod
    def model(self, index: int) -> Model:
        """Return a model; raise IndexError if there is none."""

    @abstractmethod
    def moved(self, index: int, model: Model) -> None:
        """Update the address of a model's buffer after a decision."""

    def forget_preparation(self, index: int) -> None:
        """Forget what was computed ahead for a frozen model."""
        self._prepared_at[index] = 0
        self._prepared.pop(index, None)

    def answer(
        self,
        model: npt.NDArray[np.int64],
        x: npt.NDArray[np.float64],
        label: npt.NDArray[np.int32],
        weight: npt.NDArray[np.float64],
        mode: int = LABELLED,
    ) -> Answers:
        """Answer a run of rows in order, learning the labels that come with them.

        model: int64[n]; x: float64[n, D] with at least each model's columns, nominal values as codes, missing
        NaN (nominal: also -1); label: int32[n] class codes, -1 none; weight: float64[n], above 0 and at most
        1e9 (run.MAX_WEIGHT). In LABELLED mode a row with a label is test-then-train, and labels are requested
        only for rows without one; in ON_REQUEST mode a label is used only if the strategy requests it; in
        ANSWER_ONLY mode models are read and never changed.
        """
        n = len(model)
        rows = self._examine(model, x, label, weight)
        answers = Answers.to(n, rows.classes, self.has_reports)
        self._run(rows, answers, mode)
        return answers

    def learn(
        self,
        model: npt.NDArray[np.int64],
        x: npt.NDArray[np.float64],
        label: npt.NDArray[np.int32],
        weight: npt.NDArray[np.float64],
        predicted: npt.NDArray[np.int32],
        requested: npt.NDArray[np.bool_],
        sampled: npt.NDArray[np.int8] | None = None,
        importance: npt.NDArray[np.float64] | None = None,
        probability: npt.NDArray[np.float64] | None = None,
        report: npt.NDArray[np.float64] | None = None,
    ) -> list[Event]:
        """Learn labels that arrived later, in order; return the events.

        predicted: int32[n], the class of the answer (-1: unknown; neither evaluation nor detector use the
        row), always below the number of classes of the model; requested: bool[n], whether the label had been
        requested; sampled: int8[n] and importance: float64[n], as in the answer (None: no row was sampled);
        probability: float64[n, classes], as in the answer, zeros where it is no longer known; report:
        float64[n, RAW + classes], as in the answer, NaN where it is not known: calibrators and sets do not
        learn the row. x is routed through the tree in its present state [D58]. A row with the label
        DECLINED, EXPIRED or ANSWERED (label_account.py) has no label: it closes requests, whose number is its
        weight.
        """
        if len(label) and not np.isin(label[label < 0], CLOSINGS).all():
            msg = f"label={label.min()} must be a class code, or DECLINED, EXPIRED or ANSWERED"
            raise SchemaError(msg)
        rows = self._examine(model, x, label, weight)
        self._examine_answers(rows.model, predicted, sampled, importance)
        if probability is not None and not ((probability >= 0.0) & (probability <= 1.0)).all():
            msg = "probability must be class shares from 0 to 1; pass the answer's own column"
            raise SchemaError(msg)
        if self.has_reports and report is not None:
            report = _widened(report, len(model), RAW + rows.classes, np.nan)
            _examine_report(report)
        answers = Answers(
            prediction=np.ascontiguousarray(predicted, dtype=np.int32),
            probability=_widened(probability, len(model), rows.classes),
            asked=np.ascontiguousarray(requested, dtype=np.bool_),
            sampled=np.zeros(len(model), np.int8)
            if sampled is None
            else np.ascontiguousarray(sampled, np.int8),
            importance=np.zeros(len(model))
            if importance is None
            else np.ascontiguousarray(importance, np.float64),
            version=np.zeros(len(model), dtype=np.int64),
            events=[],
            report=report if self.has_reports else None,
        )
        self._run(rows, answers, run.LEARN_ONLY)
        return answers.events

    def _examine(
        self,
        model: npt.NDArray[np.int64],
        x: npt.NDArray[np.float64],
        label: npt.NDArray[np.int32],
        weight: npt.NDArray[np.float64],
    ) -> _Rows:
        """Return the columns of a run in the form that the kernel takes; refuse rows that are not valid."""
        n = len(model)
        if x.ndim != 2 or not len(x) == len(label) == len(weight) == n:
            msg = f"x, label and weight must have one row for each of {n} rows of model"
            raise SchemaError(msg)
        models, weights = _ready(model, np.int64), _ready(weight, np.float64)
        sizes = np.zeros(run.SIZES_WORDS, dtype=np.int64)
        row = run.examine(models, weights, self._addresses, self._columns, self._classes, sizes)
        if row < n:
            self.model(int(models[row]))
            msg = (
                f"weight={weight[row]} of row {row} must be above 0 and at most {run.MAX_WEIGHT:g}; scale "
                "all weights by one factor, or leave the row out"
            )
            raise SchemaError(msg)
        self._examine_units(models, label, weights)
        columns, classes = sizes.tolist()
        if columns > x.shape[1]:
            msg = f"x must have at least {columns} columns, not {x.shape[1]}"
            raise SchemaError(msg)
        return _Rows(models, _ready(x, np.float64), _ready(label, np.int32), weights, classes)

    def _examine_units(
        self, models: npt.NDArray[np.int64], label: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]
    ) -> None:
        """Refuse weights other than 1 for models that count records; rows that close requests are exempt."""
        if not self._has_counted:
            return
        bad = np.flatnonzero(self._counts_records[models] & (weights != 1.0) & (label >= NO_LABEL))
        if len(bad):
            learner = self.model(int(models[bad[0]])).spec.learner
            msg = f"row {bad[0]}: {unit_weight_rule(float(weights[bad[0]]), learner)}"
            raise SchemaError(msg)

    def _examine_answers(
        self,
        models: npt.NDArray[np.int64],
        predicted: npt.NDArray[np.int32],
        sampled: npt.NDArray[np.int8] | None,
        importance: npt.NDArray[np.float64] | None,
    ) -> None:
        """Refuse values that no answer can have: the evaluation relies on valid values."""
        last_codes = self._classes[models] - 1
        columns: list[tuple[str, npt.NDArray[Any], int, Any, str]] = [
            ("predicted", predicted, -1, last_codes, "from -1 to the last class code of its model")
        ]
        if sampled is not None:
            columns.append(
                (
                    "sampled",
                    sampled,
                    0,
                    SAMPLED_FOR_EVALUATION,
                    "NOT_SAMPLED or a source of samples (label_account.py)",
                )
            )
        if importance is not None:
            columns.append(("importance", importance, 0, np.finfo(np.float64).max, "finite and at least 0"))
        for name, column, smallest, largest, rule in columns:
            bad = np.flatnonzero(~((column >= smallest) & (column <= largest)))
            if len(bad):
                msg = f"{name}={column[bad[0]]} of row {bad[0]} must be {rule}; pass the answer's own columns"
                raise SchemaError(msg)

    def _run(self, rows: _Rows, answers: Answers, mode: int) -> None:
        """Drive the kernel from decision to decision."""
        models, x, label, weight, classes = rows
        if mode != ANSWER_ONLY and self._prepared:
            for index in np.unique(models[self._prepared_at[models] != 0]).tolist():
                self.forget_preparation(index)  # the rows of a frozen model are counted
        report = answers.report
        if report is None or report.shape[1] != RAW + classes:
            report = np.full((len(models), RAW + classes), np.nan) if self.has_reports else _NO_REPORT
        room = self._room(x.shape[1], classes)
        workspace, log, cursor = room.workspace, room.log, room.cursor
        self._cursor = cursor
        arrays = Run(
            addresses=self._addresses,
            plans=self._plans,
            prepared=self._prepared_at,
            model=models,
            x=x,
            label=label,
            weight=weight,
            prediction=answers.prediction,
            probability=answers.probability,
            report=report,
            asked=answers.asked.view(np.int8),
            sampled=answers.sampled,
            importance=answers.importance,
            version=answers.version,
            columns=room.columns,
            scratch=room.scratch,
            votes=room.votes,
            log=log,
            cursor=cursor.ints,
            rows=len(models),
            width=x.shape[1],
            classes=classes,
            entry_words=len(log) // run.LOG_ENTRIES,
            mode=mode,
        )
        ahead: deque[Event] = deque()  # of rows that were learned but not evaluated yet
        go_on = jit.unchecked(run.run)  # _examine and this class have seen to the types of the arrays
        reason = go_on(arrays)
        while reason != run.END:
            row = int(cursor.row)
            if ahead or cursor.logged:
                # Changed inputs are found before the row is answered, its other events come afterwards.
                last = row - int(reason == run.INPUTS_CHANGED)
                answers.events.extend(self._logged(ahead, log, cursor, last))
            index = int(models[row])
            if reason in run.DECISIONS:
                self._decide(reason, cursor, index, answers.events)
            elif reason == run.STRETCH_DUE:
                columns = (x, label, weight, answers.prediction, answers.probability, workspace)
                stretch = Stretch(*columns, row, int(cursor.stretch), mode == LABELLED)
                ahead.extend(self._play(stretch, index))
                cursor.played = stretch.end
            elif reason == run.EVALUATION_DUE:
                model = self.model(index)
                judged = labels_of_classes(model.plan, model.ints)
                sums = MeasuresThen.of(model.plan, model.ints)
                curve = CurveThen.of(model.plan, model.ints)
                figures = model.evaluation(), judged, sums, curve, model.coverage()
                answers.events.append(EvaluationDue(row, index, *figures))
            elif reason == run.EXPLANATION_DUE:
                self._explain(self.model(index), cursor, x[row], answers, learns=mode != ANSWER_ONLY)
            elif reason == run.PREPARATION_DUE:
                self._prepared[index] = preparation(self.model(index).plan, self.model(index).ints)
                self._prepared_at[index] = self._prepared[index].ctypes.data
            elif reason == run.UNKNOWN_CLASS:
                n_classes = self.model(index).schema.n_classes
                msg = (
                    f"label={label[row]} of row {row} must be below {n_classes}; "
                    "adopt a schema with the class"
                )
                raise SchemaError(msg)
            reason = go_on(arrays)
        if ahead or cursor.logged:
            answers.events.extend(self._logged(ahead, log, cursor, int(cursor.row)))
        self.rooms.append(room)

    def _room(self, width: int, classes: int) -> _Room:
        """Return arrays that no other run uses, with the cursor of a run that has not begun."""
        try:
            room = self.rooms.pop()
        except IndexError:
            return _Room(width, classes)
        if (room.width, room.classes) != (width, classes):
            return _Room(width, classes)
        room.cursor.ints.fill(0)
        return room

    def _play(self, stretch: Stretch, index: int) -> list[Event]:
        """Let a model learn a stretch of rows; return its events."""
        model = self.model(index)
        try:
            events: list[Event] = model.plan.blocks.play(model, stretch, index)
        except Exception as error:
            raise RowError(stretch.row, index) from error
        self.moved(index, model)
        return events

    def _logged(self, ahead: deque[Event], log: Ints, cursor: Cursor, last: int) -> Iterator[Event]:
        """Yield events up to the row ``last``: of stretches, then of the log (run.log_of)."""
        while ahead and ahead[0].row <= last:
            yield ahead.popleft()
        for words in log.reshape(run.LOG_ENTRIES, -1)[: cursor.logged]:
            entry = LogEntry.over(words)
            row, index = int(entry.row), int(entry.model)
            yield self.model(index).plan.blocks.event_of(entry.event, row, index)
        cursor.logged = 0

    @staticmethod
    def _explain(model: Model, cursor: Cursor, x: Floats, answers: Answers, *, learns: bool) -> None:
        """Store the branches to the place of the current row, and the numbers seen so far."""
        row, plan = int(cursor.row), model.plan
        answers.explanations[row] = plan.blocks.explain(
            model.schema, model.ints, int(cursor.block), x, int(cursor.place)
        )
        if learns:
            numbers_seen.take(plan, model.floats, x)
            if answers.asked[row]:
                answers.seen[row] = numbers_seen.read(plan, model.floats)

    def _decide(self, reason: int, cursor: Cursor, index: int, events: list[Event]) -> None:
        """Take the decision for which the kernel returned, and update the address of the model's buffer."""
        model, row = self.model(index), int(cursor.row)
        try:
            if reason == run.LEVEL_CHANGED:
                events.append(drift_reaction.react(model, row, index))
            elif reason == run.INPUTS_CHANGED:
                events.append(input_alarm.alarm(model, row, index))
            else:
                block, place = int(cursor.block), int(cursor.place)
                events.extend(model.plan.blocks.grow(model, reason, block, place, row, index))
        except Exception as error:
            raise RowError(row, index) from error
        self.moved(index, model)
