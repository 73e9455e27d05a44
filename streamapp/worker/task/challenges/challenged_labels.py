"""Learning: the challengers of a run of labels learn what their champions learn, and are compared.

A label is compared if its record was drawn when both answered it (challenged_answers.py), by these answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.active.disagreement import NOT_DRAWN
from core.errors import RowError
from core.layout.challenge_counts import ChallengeCounts
from core.measures.challenge_bounds import compare_rows
from core.measures.challenged_rows import Purse
from streamapp.worker.task.challenges.decision_steps import step_of
from streamapp.worker.task.effects.label_requests import FOR_COMPARISON
from streamapp.worker.task.models.challenge import Challenge

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from streamapp.worker.task.effects.model_events import ModelEvents
    from streamapp.worker.task.partition_state import PartitionState
    from topics.columns.records import Floats, Ints32, Ints64


class LearnedLabels:
    """The m labels of a run that are learned."""

    def __init__(
        self, state: PartitionState, row: Ints64, model: Ints64, serial: Ints64, code: Ints32
    ) -> None:
        """row: int64[m] ascending; serial: of pending instances, below 0: not kept; code: below 0: none."""
        self._store, self._pending = state.store, state.pending
        self._row, self._model, self._serial, self._code = row, model, serial, code
        self._kept = (serial >= 0) & (code >= 0)
        self._rivals = state.store.keys.challengers_of(model)

    def learn(self, x: Floats, weight: Floats, sampled: npt.NDArray[np.int8]) -> None:
        """Let the challengers learn; x: float64[m, D], weight: float64[m], sampled: int8[m] as it was kept.

        Raise RowError with the index of the label if a challenger fails.
        """
        if not self._rivals:
            return
        at = np.flatnonzero(np.isin(self._model, [*self._rivals]) & (self._code >= 0))
        if not len(at):
            return
        challengers = np.array([self._rivals[slot] for slot in self._model[at].tolist()], dtype=np.int64)
        predicted = self._answers()[0][at]
        predicted[sampled[at] == FOR_COMPARISON] = -1
        requested = np.zeros(len(at), dtype=np.bool_)
        try:
            self._store.table.learn(challengers, x[at], self._code[at], weight[at], predicted, requested)
        except RowError as error:
            raise RowError(int(at[error.row]), error.model) from error.__cause__
        self._store.traits.learn_classes(challengers, self._code[at])

    def compare(self, champion: Ints32, clocks: Ints64, events: ModelEvents) -> None:
        """Compare the labels of drawn records; champion: int32[m], clocks: int64[m]."""
        if not self._rivals:
            return
        challenger, octave = self._answers()
        for slot, rival in self._rivals.items():
            at = np.flatnonzero((self._model == slot) & (octave != NOT_DRAWN))
            due = events.evaluated(slot)
            if not len(at) and not due:
                continue
            ends = np.searchsorted(self._row[at], due, side="right").tolist()
            before = self._store.traits.challenges[rival]
            columns = (self._code[at], champion[at], challenger[at], octave[at])
            results = _compared(before, columns, ends)
            for event_row, result in zip(due, results, strict=False):
                events.compared(slot, event_row, result.summary())
            after = results[-1]
            if after.decided_at is not None and before.decided_at is None:
                after = after._replace(decided_at=step_of(int(clocks[at[after.decided_at]])))
            self._store.set_challenge(rival, after)

    def _answers(self) -> tuple[Ints32, npt.NDArray[np.int8]]:
        """Return the challengers' answers to the records (int32[m], -1: none) and their octaves (int8[m])."""
        challenger = np.full(len(self._row), -1, dtype=np.int32)
        octave = np.full(len(self._row), NOT_DRAWN, dtype=np.int8)
        for slot, rival in self._rivals.items():
            since = self._store.traits.challenges[rival].since
            at = np.flatnonzero(self._kept & (self._model == slot) & (self._serial >= since))
            if len(at):
                kept = self._pending.column("challenger", self._serial[at])
                challenger[at] = np.maximum(kept, -1)
                octave[at] = self._pending.column("octave", self._serial[at])
        return challenger, octave


def _compared(
    challenge: Challenge, columns: Sequence[npt.NDArray[np.generic]], ends: Sequence[int]
) -> list[Challenge]:
    """Return the challenge after the labels before each end (ascending), and after all labels.

    columns: label, champion, challenger (int32[n]) and octave (int8[n]); `decided_at` of a result is the
    label by which the rule has decided.
    """
    words, rules, results = challenge.mutable(), challenge.terms.rules.array(), []
    counts = ChallengeCounts.over(words[Purse.SIZE :])
    start, decided_at = 0, challenge.decided_at
    for stop in [*ends, len(columns[0])]:
        if stop > start:
            row = compare_rows(
                counts, rules, *(np.ascontiguousarray(column[start:stop]) for column in columns)
            )
            if row and decided_at is None:
                decided_at = start + row - 1
            start = stop
        results.append(challenge._replace(words=words.tobytes(), decided_at=decided_at))
    return results
