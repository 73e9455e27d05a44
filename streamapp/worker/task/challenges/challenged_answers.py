"""Answering: the challengers of a run answer its rows, and some of their disagreements are requested.

    champion's answers ──> the same rows, labels and weights to the challenger ──> compare ──> requests

Only the rows of challenged keys are handled here, after the champions have answered them: the answers that
leave the task stay the champion's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from core.active.disagreement import GIVEN, NOBODY, NOT_DRAWN, REQUESTED, request_key
from core.active.label_account import NOT_SAMPLED, SAMPLED_FOR_EVALUATION
from core.errors import RowError
from core.layout.challenge_counts import ChallengeCounts
from core.measures.challenged_rows import BY_STRATEGY, ROW_WORDS, ComparedRow, Purse, compare_answers
from core.model_table import LABELLED
from core.numeric import rng
from streamapp.worker.task.challenges.decision_steps import step_of
from streamapp.worker.task.effects.label_requests import FOR_COMPARISON
from streamapp.worker.task.models.challenge import Challenge
from streamapp.worker.task.pending.entries import NOT_CHALLENGED

if TYPE_CHECKING:
    from streamapp.worker.task.effects.model_events import ModelEvents
    from streamapp.worker.task.effects.replies import Replies
    from streamapp.worker.task.models.model_store import ModelStore
    from topics.columns.records import Floats, Ints32, Ints64


class ChallengedRows:
    """The answers of the challengers of a run; n rows."""

    def __init__(self, store: ModelStore, n: int) -> None:
        self._store, self._n = store, n
        self._rivals: dict[int, int] = {}  # challengers by champion, of the rows answered so far

    def __bool__(self) -> bool:
        """Return whether a challenger has answered a row."""
        return bool(self._rivals)

    def answer(self, rows: Ints64, model: Ints64, x: Floats, code: Ints32, weight: Floats) -> None:
        """Let the challengers answer rows (int64[m]), and learn those with a class; columns of m rows.

        Raise RowError with the index in `rows` if a challenger fails.
        """
        store, rivals = self._store, self._store.keys.challengers_of(model)
        if not rivals:
            return
        self._rivals |= rivals
        at = np.flatnonzero(np.isin(model, [*rivals]))
        challengers = np.array([rivals[slot] for slot in model[at].tolist()], dtype=np.int64)
        try:
            answers = store.table.answer(challengers, x[at], code[at], weight[at], LABELLED)
        except RowError as error:
            raise RowError(int(at[error.row]), error.model) from error.__cause__
        store.traits.learn_classes(challengers, code[at])
        self.prediction[rows[at]] = answers.prediction
        self.version[rows[at]] = answers.version
        self.label[rows[at]] = code[at]

    @cached_property
    def prediction(self) -> Ints32:
        """int32[n]: the classes that challengers answered, -1: none."""
        return np.full(self._n, NOT_CHALLENGED, dtype=np.int32)

    @cached_property
    def label(self) -> Ints32:
        """int32[n]: the classes that rows brought and that were learned at once, -1: none."""
        return np.full(self._n, -1, dtype=np.int32)

    @cached_property
    def version(self) -> Ints64:
        """int64[n]: the labels that challengers had learned when they answered."""
        return np.zeros(self._n, dtype=np.int64)

    @cached_property
    def octave(self) -> npt.NDArray[np.int8]:
        """int8[n]: the octaves of the draws for the comparison."""
        return np.full(self._n, NOT_DRAWN, dtype=np.int8)

    def columns(self, rows: Ints64) -> tuple[Ints32 | None, npt.NDArray[np.int8] | None]:
        """Return the answers (int32[m]) and octaves (int8[m]) of rows to keep, None: no row has any."""
        return (self.prediction[rows], self.octave[rows]) if self._rivals else (None, None)

    def compare(self, model: Ints64, replies: Replies, clocks: Ints64, events: ModelEvents) -> None:
        """Exchange requests, draw among the disagreements, and compare labels; model, clocks: int64[n].

        Changes `asked`, `sampled` and `importance` of the replies.
        """
        challenged = self.prediction != NOT_CHALLENGED
        replies.challenge(self.prediction, challenged, model, self._store.traits)
        for slot, challenger in self._rivals.items():
            rows = np.flatnonzero(challenged & (model == slot))
            self._compare(slot, challenger, rows, replies, clocks, events)

    def _compare(
        self,
        slot: int,
        challenger: int,
        rows: Ints64,
        replies: Replies,
        clocks: Ints64,
        events: ModelEvents,
    ) -> None:
        store, challenge = self._store, self._store.traits.challenges[challenger]
        # The last row of a key has the number of records of its model.
        number = store.table.model(slot).scale().records - len(rows) + 1 + np.arange(len(rows))
        asked, sampled = replies.asked[rows], replies.sampled[rows]
        by_strategy = np.where(sampled == SAMPLED_FOR_EVALUATION, REQUESTED, BY_STRATEGY)
        source = np.where(asked, by_strategy, np.where(self.label[rows] >= 0, GIVEN, NOBODY))
        is_warm = self.version[rows] >= challenge.terms.warm_up
        table = np.zeros((len(rows), ROW_WORDS), dtype=np.int64)
        for name, column in (
            ("number", number),
            ("champion", replies.prediction[rows]),
            ("challenger", np.where(is_warm, self.prediction[rows], -1)),
            ("label", self.label[rows]),
            ("source", source),
        ):
            table[:, ComparedRow.FIELDS[name].offset] = column
        importance = ComparedRow.FIELDS["importance"].offset
        table.view(np.float64)[:, importance] = replies.importance[rows]
        due = events.evaluated(slot)
        ends = np.searchsorted(rows, due, side="right").tolist()
        spec = store.cache.plan(slot).spec
        results = compared_in_parts(challenge, spec, table, ends)
        for event_row, result in zip(due, results, strict=False):
            events.compared(slot, event_row, result.summary())
        after = results[-1]
        if after.decided_at is not None and challenge.decided_at is None:
            after = after._replace(decided_at=step_of(int(clocks[rows[after.decided_at]])))
        store.set_challenge(challenger, after)
        now = table[:, ComparedRow.FIELDS["source"].offset]
        self.octave[rows] = table[:, ComparedRow.FIELDS["octave"].offset]
        replies.asked[rows] = (now == BY_STRATEGY) | (now == REQUESTED)
        sampled = np.where((source == BY_STRATEGY) & (now != BY_STRATEGY), NOT_SAMPLED, sampled)
        is_ours = (now == REQUESTED) & (source != REQUESTED)
        replies.sampled[rows] = np.where(is_ours, FOR_COMPARISON, sampled)
        replies.importance[rows] = table.view(np.float64)[:, importance]


def compared_in_parts(
    challenge: Challenge, spec: Any, table: npt.NDArray[np.int64], ends: Sequence[int]
) -> list[Challenge]:
    """Return the challenge after the rows before each end (ascending), and after all n rows of the table.

    `decided_at` of a result is the row in which the rule has decided, if it has.
    """
    words, results = challenge.mutable(), []
    terms = np.array([challenge.terms.share, challenge.terms.share * spec.budget.limit])
    rules = challenge.terms.rules.array()
    keys = request_key(spec.seed), rng.stream_key(spec.seed, rng.EXCHANGE)
    purse, counts = Purse.over(words), ChallengeCounts.over(words[Purse.SIZE :])
    start, decided_at = 0, challenge.decided_at
    for stop in [*ends, len(table)]:
        if stop > start:
            part = ComparedRow.over(table[start:stop].ravel())
            row = compare_answers(counts, purse, terms, rules, *keys, part, stop - start)
            if row and decided_at is None:
                decided_at = start + row - 1
            start = stop
        results.append(challenge._replace(words=words.tobytes(), decided_at=decided_at))
    return results
