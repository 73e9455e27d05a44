"""Layout of the state of an input detector in a model: counters, then a row of words for each feature."""

from __future__ import annotations

from typing import Any, Final

from core.kernels.records import Record, word, words_after

NEW: Final = 0
"""Phase: no record has come yet; a model of zeros is in this phase."""
SAMPLING: Final = 1
"""Phase: the first values of each number are kept, for the edges of its bins."""
COUNTING: Final = 2
"""Phase: the values of the reference are counted."""
COMPARING: Final = 3
"""Phase: the values of the current window are counted; the window is compared when it is full."""


class InputState(Record):
    """The counters of an input detector."""

    phase: int = word("one of NEW … COMPARING")
    records: int = word("records of the phase, while COMPARING those of the current window")
    ends: int = word("records at which the phase or the window ends")
    comparisons: int = word("windows compared since the model began, over all references")
    alarms: int = word("windows that differed")
    open: int = word("number of next records whose labels are requested because of an alarm")
    rows: Any = words_after(int, "a FeatureRow for each feature")


FIRST_ROW: Final = InputState.SIZE


class FeatureRow(Record):
    """The values of a feature; a row of zeros belongs to a feature that was missing in all records.

    A number has, while SAMPLING, its first values, and afterwards bins - 1 edges and two counts for each bin:
    of the reference and of the current window. A category has two counts for each of 4 · bins cells.
    """

    values: int = word("values in the sample; 0 after this phase")
    numbers: Any = words_after(float, "the sample, or the edges, ascending")
    counts: Any = words_after(int, "the same words as integers")


SAMPLE_OF_BIN: Final = 8
"""Records of the sample for each bin: a bin has about an equal share of the values then."""


ROW_FIELDS: Final = FeatureRow.SIZE


def row_words(bins: int) -> int:
    """Return the words of a row."""
    return ROW_FIELDS + SAMPLE_OF_BIN * bins
