"""Answers of a round: those to runs that lead to nothing else, as columns over all of these runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamapp.worker.task import counters
from streamapp.worker.task.effects.effects import Effects, PredictionGroup
from topics.columns.records import Ints64, Predictions
from topics.columns.spans import RecordSpans


@dataclass(frozen=True, slots=True, eq=False)
class RoundAnswers:
    """n answers, in the order of the runs and of their records."""

    runs: Sequence[int]  # their numbers in the round
    labelled: Sequence[int]  # of each run, records with a label, which was learned
    ends: Ints64  # int64[runs + 1]: the first answer of each run, and the end
    spans: RecordSpans  # the records that are answered
    partitions: Ints64  # int64[n]
    predictions: Predictions

    def effects(self, at: int) -> Effects:
        """Return the effects of a run, as if it had been processed alone."""
        rows, predictions = slice(int(self.ends[at]), int(self.ends[at + 1])), self.predictions
        effects, n = Effects(), rows.stop - rows.start
        columns = predictions.prediction[rows], predictions.probability[rows], predictions.version[rows]
        effects.answers.append(
            PredictionGroup(
                np.arange(n, dtype=np.int32),
                Predictions(predictions.classes, predictions.ids[rows], *columns),
            )
        )
        effects.count(counters.ANSWERED, n)
        effects.count(counters.LABELLED, self.labelled[at])
        return effects
