"""Answers of a round: those to runs that lead to nothing else, as columns over all of these runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects, PredictionGroup
from topics.columns.records import Ints64, Predictions
from topics.columns.spans import RecordSpans

if TYPE_CHECKING:
    from streamapp.worker.task.task import Task


@dataclass(frozen=True, slots=True, eq=False)
class PlainRun:
    """A run that only led to an answer for each of its records."""

    number: int  # in the round
    task: Task
    answered: int
    labelled: int  # of these, records with a label, which was learned

    def count(self, effects: Effects) -> None:
        """Add the counts of the run."""
        effects.count(counters.ANSWERED, self.answered)
        effects.count(counters.LABELLED, self.labelled)


@dataclass(frozen=True, slots=True, eq=False)
class RoundAnswers:
    """n answers, in the order of the runs and of their records."""

    runs: Sequence[PlainRun]
    ends: Ints64  # int64[runs + 1]: the first answer of each run, and the end
    spans: RecordSpans  # the records that are answered
    partitions: Ints64  # int64[n]
    predictions: Predictions

    def effects(self, at: int) -> Effects:
        """Return the effects of a run, as if it had been processed alone."""
        rows, predictions = slice(int(self.ends[at]), int(self.ends[at + 1])), self.predictions
        effects, run = Effects(), self.runs[at]
        columns = predictions.prediction[rows], predictions.probability[rows], predictions.version[rows]
        effects.answers.append(
            PredictionGroup(
                np.arange(run.answered, dtype=np.int32),
                Predictions(predictions.classes, predictions.ids[rows], *columns),
            )
        )
        run.count(effects)
        return effects
