"""Layout of the learning curve: the accuracy in intervals of the labels that a model has learned.

All intervals have the same number of labels. When the section is full, each two neighbours are joined. So the
curve of a model with many labels has MOST_INTERVALS / 2 intervals or more.
"""

from __future__ import annotations

from typing import Any, Final

from core.kernels.records import Record, word, words_after

MOST_INTERVALS: Final = 16
"""Intervals of a curve, at most; when there are so many, they are joined in pairs."""

FIRST_STEP: Final = 32
"""Labels of an interval at first."""

WEIGHT: Final = 0
"""Word of an interval: sum of the weights of its judged labels."""
HIT: Final = 1
"""Word: sum of the weights of the hits."""
SQUARES: Final = 2
"""Word: weight² / squares is the number of labels that the accuracy of the interval rests on."""
INTERVAL: Final = 3
"""Words of an interval."""


class LearningCurve(Record):
    """The learning curve section: its beginning, counters at the end of its last interval, the intervals."""

    began: int = word("labels learned before it begins")
    step: int = word("labels of an interval; 0: the curve has not begun")
    intervals: int = word("intervals that have ended")
    restarts: int = word("drifts after which the curve began again")
    # Counters of the evaluation at the end of the last interval (EvaluationCounters)
    judged: int = word("predictions evaluated")
    hits: int = word("hits among them")
    replies: int = word("requested labels that were learned (ModelHeader)")
    sampled: int = word("evaluated predictions of records that were sampled at random")
    sampled_hit: int = word("hits among the sampled")
    chosen: int = word("requests with a known probability")
    importance: float = word("sum of the importance of the sampled records")
    importance_hit: float = word("sum of the importance of the hits among them")
    represented: float = word("records that the strategy scored, with the records they represent")
    squares: float = word("sum of their squares divided by their probabilities")
    cells: Any = words_after(float, "the intervals [MOST_INTERVALS, INTERVAL]")


CURVE_WORDS: Final = LearningCurve.SIZE + MOST_INTERVALS * INTERVAL
"""Words of the section."""

NEVER: Final = 1 << 53
"""Number of labels that no model reaches: no curve is kept."""
