"""One pair of models under two ways to request labels, and under exchanged answers: the outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.challenger.pairs import Pair
from core.active.disagreement import NOT_DRAWN, draw_rows, request_key
from core.layout.challenge_counts import CHALLENGE_WORDS, ChallengeCounts
from core.measures.challenge_bounds import Rules, compare_rows, read

RATE: Final = 0.02
"""Labels per record for the comparison: a fifth of a budget of 10 %."""
DENSE: Final = 10.0
"""Random requests are also tried at so many times this rate: at RATE most of them do not end."""
RULES: Final = Rules(max_labels=10**9)


@dataclass(frozen=True)
class Outcome:
    """A challenge up to its decision, or up to the last record."""

    decision: str
    requests: int
    """Labels requested for the comparison."""
    compared: int
    records: int
    """Records before the decision."""
    difference: float
    low: float
    high: float
    truth: float
    """The true mean difference over these records."""
    truth_in_the_end: float
    """The true mean difference over all records of the stream, later ones included."""

    @property
    def is_wrong(self) -> bool:
        """A promotion of a challenger that was not better so far, or the drop of one worth the change."""
        return self._is_against(self.truth)

    @property
    def is_overtaken(self) -> bool:
        """The decision is right for the records before it, but would be wrong for the whole stream."""
        return not self.is_wrong and self._is_against(self.truth_in_the_end)

    def _is_against(self, truth: float) -> bool:
        if self.decision == "promoted":
            return truth <= RULES.margin
        return self.decision == "dropped" and truth >= RULES.worth


def by_disagreement(pair: Pair, seed: int, rate: float = RATE) -> Outcome:
    """Draw disagreements as the product does."""
    n = len(pair.label)
    counts = _new_counts()
    octave = np.empty(n, dtype=np.int8)
    source, numbers = np.zeros(n, dtype=np.int8), np.arange(1, n + 1)
    draw_rows(counts, request_key(seed), rate, numbers, pair.champion, pair.challenger, source, octave)
    return _outcome(pair, octave, octave != NOT_DRAWN)


def at_random(pair: Pair, seed: int, rate: float = RATE) -> Outcome:
    """Request labels of records at random, whether the models disagree or not; compare by the same bounds."""
    asked = np.random.default_rng(7000 + seed).random(len(pair.label)) < rate
    differs = (pair.champion != pair.challenger) & (pair.champion >= 0) & (pair.challenger >= 0)
    octave = np.where(asked & differs, 0, NOT_DRAWN).astype(np.int8)
    return _outcome(pair, octave, asked)


def exchanged(pair: Pair, seed: int) -> Pair:
    """Return the pair with the answers of each record exchanged or not, at random.

    The expected difference of the two columns is 0 at every record, however good the models are.
    """
    is_exchanged = np.random.default_rng(9000 + seed).random(len(pair.label)) < 0.5
    return Pair(
        np.where(is_exchanged, pair.challenger, pair.champion),
        np.where(is_exchanged, pair.champion, pair.challenger),
        pair.label,
        np.zeros(len(pair.label)),
    )


def _new_counts() -> ChallengeCounts:
    return ChallengeCounts.over(np.zeros(CHALLENGE_WORDS, dtype=np.int64))


def _outcome(pair: Pair, octave: npt.NDArray[np.int8], requested: npt.NDArray[np.bool_]) -> Outcome:
    """Compare the drawn labels in order, each at once, with the counts of the records up to it."""
    counts = _new_counts()
    both = (pair.champion >= 0) & (pair.challenger >= 0)
    differs = both & (pair.champion != pair.challenger)
    records, disagreements = np.cumsum(both), np.cumsum(differs)
    rules, end = RULES.array(), len(pair.label)
    for row in np.flatnonzero(octave != NOT_DRAWN).tolist():
        counts.records, counts.disagreements = records[row], disagreements[row]
        here = slice(row, row + 1)
        columns = pair.label[here], pair.champion[here], pair.challenger[here], octave[here]
        if compare_rows(counts, rules, *columns):
            end = row + 1
            break
    counts.records, counts.disagreements = records[end - 1], disagreements[end - 1]
    comparison = read(counts.ints, RULES)
    return Outcome(
        comparison.decision,
        int(requested[:end].sum()),
        comparison.labels,
        end,
        comparison.difference,
        comparison.low,
        comparison.high,
        float(pair.truth[end - 1]),
        float(pair.truth[-1]),
    )
