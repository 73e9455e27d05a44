"""Layout of the sections of calibration and of conformal sets, and of what an answer reports of them."""

from __future__ import annotations

from typing import Any, Final

from core.kernels.records import Record, Words, word, words_after
from core.layout.measures import LABELS, UNSET

THRESHOLD: Final = 0
"""Column of a report: threshold of the set; NaN: the model has no sets."""
KNOWN: Final = 1
"""Column: number of classes that the model knew; NaN: nothing is reported."""
REBUILDS: Final = 2
"""Column: blocks replaced after drifts before the answer (`ModelHeader.rebuilds`); NaN without raw shares."""
RAW: Final = 3
"""First of the columns of raw shares [class]; NaN: they were not calibrated."""


class Calibration(Record):
    """The section of a calibrator: the labels that it has learned, then the state of each class."""

    basis: int = word("weights of the labels: UNSET, RECORDS or LABELS", low=UNSET, high=LABELS)
    labels: int = word("labels learned")
    weight: float = word("sum of their weights")
    states: Any = words_after(float, "state [class][words of the calibrator]")

    def state_of(self, label: int, words: int) -> Words:
        """Return the state of a class; words: of each state."""
        return Words(self.ints, self.floats, self.start + CALIBRATION_HEAD + label * words)


CALIBRATION_HEAD: Final = Calibration.SIZE


class ConformalState(Record):
    """The threshold of sets, and how often they held the label.

    A *judged* label is one whose answer had a set. Its weight makes the sums represent all records.
    """

    threshold: float = word("classes with a probability of at least 1 - threshold are in the set")
    basis: int = word("weights of the labels: UNSET, RECORDS or LABELS", low=UNSET, high=LABELS)
    steps: int = word("steps of the threshold since it began, or since the last drift")
    labels: int = word("judged labels")
    weight: float = word("sum of their weights")
    squares: float = word("sum of the squared weights")
    covered: float = word("sum of the weights of labels that were in their sets")
    sets: int = word("answers with a set")
    classes: int = word("classes in these sets")
    single: int = word("sets of one class")
    size: int = word("classes in the set of the last answer")


CONFORMAL_WORDS: Final = ConformalState.SIZE
