"""Family round: runs of several tasks in which nothing is new, answered in one call of the models.

    decode together ─> survey ─> begin each task ─> one call of the kernel ─> end each task

A run takes part if its task may join and its models are of the family of the round. Most such runs lead to
answers and nothing else: their tasks only move their clocks, positions and counts, and their answers stay
together (`RoundAnswers`). A run with more (label requests, events, waiting instances) ends as a family run
does, with effects of its own.

Models of different tasks are different, and rows are answered run after run. So a decision that fails leaves
the runs before it done and the runs after it untouched: these are answered in another call.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.errors import RowError
from core.model_table import Answers, JoinedTables
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.effects.record_error import RecordError
from streamapp.worker.task.models.families import Surveyed
from streamapp.worker.task.rounds.round_answers import RoundAnswers
from streamapp.worker.task.rounds.run_survey import RunSurvey, survey_runs
from streamapp.worker.task.task import CODE, Task
from streamapp.worker.task.task_config import TaskConfig
from topics.codecs.compiled.small_runs import JoinedRuns
from topics.columns.distinct import put_in_order
from topics.columns.records import Ints64, Predictions, RawRecords
from topics.columns.spans import TIMESTAMP, RecordSpans, between

logger = logging.getLogger(__name__)


TaskRecords = tuple[Task, RawRecords, int]
"""A task, its next instances, and the position after them."""


@dataclass(slots=True)
class RoundOutcome:
    """The runs that took part, by their numbers in the round; the others are processed one by one."""

    answers: RoundAnswers | None = None
    """Of the plain runs; None: there is none."""
    done: dict[int, Effects | Exception] = field(default_factory=dict)
    """Effects of the runs that lead to more than answers, and exceptions of runs that failed."""
    keys: Sequence[tuple[int, bytes | None]] = ()
    """Partition and model key of each pair of the runs that were examined."""


class FamilyRounds:
    """Processes rounds of a worker; keeps working memory from round to round."""

    def __init__(self) -> None:
        self._rooms: list[Any] = []  # arrays for calls of models
        join = CODE["instances"].join
        assert join is not None
        self.join = join
        """Decodes runs together."""

    def process(self, work: Sequence[TaskRecords], config: TaskConfig) -> RoundOutcome:
        """Process the runs of different tasks that can be answered together."""
        numbers = [number for number, (task, _, _) in enumerate(work) if task.may_join]
        if len(numbers) < 2:
            return RoundOutcome()
        try:
            read = self.join([work[number][1] for number in numbers], config.limits)
            if read is None:
                return RoundOutcome()
            joined, covered = read
            step = _Step.of([(numbers[at], *work[numbers[at]]) for at in covered], joined)
        except Exception:  # nothing has changed: each run is processed alone, and the record is found
            logger.exception("%d runs could not be answered together", len(numbers))
            return RoundOutcome()
        if step is None:
            return RoundOutcome()
        of_pairs = joined.of_runs.repeat(joined.n_pairs).tolist()
        step.outcome.keys = list(zip(of_pairs, joined.key_bytes, strict=True))
        try:
            step.begin()
            step.answer(self._rooms)
            step.end()
        except Exception as error:  # noqa: BLE001 - each run goes back to its beginning, and is processed alone
            step.give_up(error)
        return step.outcome


class _Step:
    """One round. Runs are indices into the joined runs; those in `_runs` take part."""

    def __init__(
        self,
        work: Sequence[tuple[int, Task, RawRecords, int]],
        runs: list[int],
        joined: JoinedRuns,
        surveyed: RunSurvey,
        slots: Ints64,
        kind: int,
    ) -> None:
        """`work`: of each joined run its number in the round, its task, its records and its position."""
        self._work, self._runs = work, runs
        self._joined, self._surveyed, self._slots = joined, surveyed, slots
        self._pairs = joined.pairs.tolist()
        self._kind = surveyed.family.kinds[kind]
        self.outcome = RoundOutcome()
        self._rows: Ints64 | None = None  # of the runs that take part; None: all
        self._failed: set[int] = set()  # places in `_runs`

    @staticmethod
    def of(work: Sequence[tuple[int, Task, RawRecords, int]], joined: JoinedRuns) -> _Step | None:
        """Return the step of the runs whose models are of one family and kind; None: fewer than two are."""
        first = joined.pairs.tolist()
        of_pairs: list[int] = []
        for at, (_, task, _, _) in enumerate(work):
            of_pairs += task.models.keys.known(joined.texts[first[at] : first[at + 1]])
        slots = np.array(of_pairs, dtype=np.int64)
        surveyed = survey_runs(joined, [task.models.traits.families for _, task, _, _ in work], slots)
        if surveyed is None:
            return None
        kind = next((kind for kind in surveyed.kind if kind >= 0), -1)
        runs = [at for at, of_run in enumerate(surveyed.kind) if of_run == kind]
        if kind < 0 or len(runs) < 2:
            return None
        if not work[runs[0]][1].has_in_place(joined.features, of_pairs[first[runs[0]]]):
            return None
        return _Step(work, runs, joined, surveyed, slots, kind)

    def _slots_of(self, run: int) -> Ints64:
        """Return int64[k]: the slots of the models of a run."""
        return self._slots[self._pairs[run] : self._pairs[run + 1]]

    def begin(self) -> None:
        """Begin each run; a run in which event time is not steady is left out."""
        joined, times = self._joined, self._joined.spans.table[TIMESTAMP]
        first = times[joined.ends[:-1]].tolist()
        highest = np.maximum.reduceat(times, joined.ends[:-1]).tolist()
        begun: list[int] = []
        for run in self._runs:
            number, task, raw, _ = self._work[run]
            try:
                if not task.begin_joined(raw, first[run], highest[run]):
                    continue
            except Exception:  # it has changed nothing
                logger.exception("topic=%s partition=%d: a run cannot begin", raw.topic, raw.partition)
                continue
            try:
                task.will_change(self._slots_of(run))
            except Exception as error:  # noqa: BLE001 - of one run: the others go on
                self.outcome.done[number] = error
            else:
                begun.append(run)
        self._runs = begun

    def answer(self, rooms: list[Any]) -> None:
        """Answer the rows of all runs, in their order.

        rooms: working memory for calls of models. It is kept from round to round and the tables are not: they
        hold the models of all partitions, also of those that leave the worker.
        """
        if not self._runs:
            return
        joined, surveyed, runs = self._joined, self._surveyed, self._runs
        n_pairs, slots, model = joined.n_pairs, self._slots, joined.pair.astype(np.int64)
        x, weight, self._code, self._order, self._ends = (
            joined.features.values,
            joined.weight,
            surveyed.code,
            surveyed.order,
            joined.ends,
        )
        if len(runs) < len(self._work):
            lengths = between(joined.ends)
            takes_part = np.zeros(len(lengths), dtype=np.bool_)
            takes_part[runs] = True
            self._rows = rows = np.flatnonzero(takes_part.repeat(lengths))
            pairs = np.flatnonzero(takes_part.repeat(n_pairs))
            place = np.empty(len(slots), dtype=np.int64)
            place[pairs] = np.arange(len(pairs))
            model, slots, n_pairs = place[model[rows]], slots[pairs], n_pairs[runs]
            x, weight, self._code, self._order = x[rows], weight[rows], self._code[rows], self._order[rows]
            self._ends = _ends_of(lengths[runs])
        table = np.arange(len(runs)).repeat(n_pairs)
        tables = JoinedTables([self._work[run][1].models.table for run in runs], table, slots)
        tables.rooms = rooms
        start, n = 0, len(model)
        self._answers = Answers.to(n, tables.most_classes)
        while start < n:
            answers = _part(self._answers, start)
            try:
                tables.answer_into(answers, model[start:], x[start:], self._code[start:], weight[start:])
                end = n
            except Exception as error:  # noqa: BLE001 - of one run: the others go on
                end = self._fail(start + tables.reached, error)
            self._take(answers, start)
            start = end
        self._tables = tables

    def _fail(self, row: int, error: Exception) -> int:
        """Note that the run of a row failed; return the first row of the next run."""
        at = int(np.searchsorted(self._ends, row, side="right")) - 1
        if isinstance(error, RowError):
            failed = RecordError(row - int(self._ends[at]))
            failed.__cause__ = error.__cause__
            error = failed
        self.outcome.done[self._work[self._runs[at]][0]] = error
        self._failed.add(at)
        return int(self._ends[at + 1])

    def _take(self, answers: Answers, start: int) -> None:
        """Take events and explanations of the rows from `start` on."""
        mine = self._answers
        if answers.events:
            mine.events.extend(replace(event, row=event.row + start) for event in answers.events)
        if answers.explanations:
            mine.explanations.update({row + start: path for row, path in answers.explanations.items()})
            mine.seen.update({row + start: seen for row, seen in answers.seen.items()})

    def give_up(self, error: Exception) -> None:
        """Let all runs fail that have not ended yet, and those that ended with answers only."""
        self.outcome.answers = None
        for run in self._runs:
            self.outcome.done.setdefault(self._work[run][0], error)

    def end(self) -> None:
        """End each run that was answered."""
        if not self._runs:
            return
        ends, labels = self._ends.tolist(), self._surveyed.labels
        more = self._with_more()
        plain: list[int] = []
        for at, run in enumerate(self._runs):
            if at in self._failed:
                continue
            number, task, _, position = self._work[run]
            if at in more or task.waits_for_labels:
                try:
                    self.outcome.done[number] = self._end_alone(run, slice(ends[at], ends[at + 1]))
                except Exception as error:  # noqa: BLE001 - of one run: the others go on
                    self.outcome.done[number] = error
            else:
                task.end_plain(ends[at + 1] - ends[at], labels[run], position)
                plain.append(at)
        if plain:
            self.outcome.answers = self._joined_answers(plain)

    def _with_more(self) -> set[int]:
        """Return the places in `_runs` of the runs that lead to more than answers."""
        answers = self._answers
        rows = [event.row for event in answers.events]
        rows += answers.explanations
        if answers.asked.any():
            rows += np.flatnonzero(answers.asked).tolist()
        if not rows:
            return set()
        return set((np.searchsorted(self._ends, rows, side="right") - 1).tolist())

    def _end_alone(self, run: int, rows: slice) -> Effects:
        """Return the effects of a run, and end its task; rows: of its answers."""
        answers, joined, first = self._answers, self._joined, rows.start
        _, task, raw, position = self._work[run]
        pair = joined.pair[int(joined.ends[run]) : int(joined.ends[run + 1])]
        slots = self._slots_of(run)[pair - self._pairs[run]]
        within = range(rows.start, rows.stop)
        own = Answers(
            answers.prediction[rows],
            answers.probability[rows],
            answers.asked[rows],
            answers.sampled[rows],
            answers.importance[rows],
            answers.version[rows],
            [
                replace(event, row=event.row - first, model=self._tables.slot(event.model))
                for event in answers.events
                if event.row in within
            ],
            {row - first: path for row, path in answers.explanations.items() if row in within},
            {row - first: seen for row, seen in answers.seen.items() if row in within},
        )
        labels = self._surveyed.labels[run]
        surveyed = Surveyed(slots, self._code[rows], labels, self._kind, self._order[rows])
        return task.end_answered(raw, joined.part(run), surveyed, own, position)

    def _joined_answers(self, plain: Sequence[int]) -> RoundAnswers:
        """Return the answers of the runs at the places `plain` in `_runs`."""
        joined, kind, answers = self._joined, self._kind, self._answers
        prediction, probability, version = answers.prediction, answers.probability, answers.version
        order, rows, ends = self._order, self._rows, self._ends
        if len(plain) < len(self._runs):
            lengths = between(ends)
            is_plain = np.zeros(len(lengths), dtype=np.bool_)
            is_plain[plain] = True
            chosen = np.flatnonzero(is_plain.repeat(lengths))
            prediction, probability, version = prediction[chosen], probability[chosen], version[chosen]
            order, rows = order[chosen], chosen if rows is None else rows[chosen]
            ends = _ends_of(lengths[plain])
        if kind.moved:
            old, places = (prediction, probability), (order, kind.codes, kind.columns)
            prediction, probability = np.empty_like(prediction), np.empty_like(probability)
            put_in_order(*old, *places, prediction, probability)
        spans, partitions, ids = joined.spans, joined.partitions, joined.all_ids
        if rows is not None:
            spans = RecordSpans(spans.buffer, spans.table.take(rows, axis=1))
            partitions, ids = partitions[rows], joined.ids_of(rows)
        predictions = Predictions(kind.classes, ids, prediction, probability, version)
        runs = [self._runs[at] for at in plain]
        numbers, labels = [self._work[run][0] for run in runs], self._surveyed.labels
        return RoundAnswers(numbers, [labels[run] for run in runs], ends, spans, partitions, predictions)


def _part(answers: Answers, start: int) -> Answers:
    """Return the columns of the rows from `start` on, for a call that begins there."""
    return Answers(
        answers.prediction[start:],
        answers.probability[start:],
        answers.asked[start:],
        answers.sampled[start:],
        answers.importance[start:],
        answers.version[start:],
        [],
    )


def _ends_of(lengths: Ints64) -> Ints64:
    """Return int64[n + 1]: the first row of each of n runs that follow each other, and the end."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends
