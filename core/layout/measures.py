"""Layout of the measures section: weighted sums over judged predictions, by class and by share.

Two thirds of the words belong to histograms of class shares. Classes from MOST_CLASSES on have no cell in
the matrix and no histogram: with a thousand classes a model would take a million words.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from core.kernels.jit import tail
from core.kernels.records import Record, word, words_after

MOST_CLASSES: Final = 32
"""Classes of the confusion matrix and of the histograms, at most."""

GAPS: Final = 15
"""Bins of equal width for the calibration error (Guo, Pleiss, Sun and Weinberger 2017)."""

BINS: Final = 48
"""Bins of a histogram of shares (``code_of`` in core/measures/sums.py)."""

HIT: Final = 0
"""Row of the sums by class: hits."""
ACTUAL: Final = 1
"""Row: labels."""
PREDICTED: Final = 2
"""Row: predictions."""
SQUARED: Final = 3
"""First row of the same three with squared weights."""
MEASURE_ROWS: Final = 6

NEGATIVES: Final = 0
"""First word of a class's histogram: the share of the class where the label was another class."""
POSITIVES: Final = BINS
"""Its second half: the share of the class where the label was this class."""
HISTOGRAM: Final = 2 * BINS

UNSET: Final = 0
"""Basis: no label with a known or unknown chance was judged so far."""
RECORDS: Final = 1
"""Basis: labels are weighted so that they represent all records."""
LABELS: Final = 2
"""Basis: the strategy has no known chances; each judged label counts once."""


class MeasureSums(Record):
    """The measures section: sums, then gaps [bin], six rows [class], two matrices and the histograms.

    Most labels have the weight 1. Their sums are kept apart: they need no squared weights. A label is
    *scored* if the class shares of its answer are known. The *claim* of an answer is its share of the class
    answered.
    """

    basis: int = word("weights of the labels: UNSET, RECORDS or LABELS", low=UNSET, high=LABELS)
    overflow: int = word("1: a label or prediction was above the last class of the matrix", low=0, high=1)
    answered: int = word("records answered with a class, whose share is known")
    confidence: float = word("sum of the claims of these records")
    given: int = word("judged labels that came with their records")
    # Scored labels of weight 1
    product: float = word("product of the shares of the labels' classes, without 2^octaves; 0: none")
    octaves: int = word("exponent of a power of two that was taken out of the product")
    log_loss_squares: float = word("sum of the squared log-losses, each rounded (core/measures/sums.py)")
    brier: float = word("sum of the Brier scores, each summed over all classes")
    brier_squares: float = word("sum of the squared Brier scores")
    claims: float = word("sum of the claims")
    claim_squares: float = word("sum of the squared claims")
    hit_claims: float = word("sum of the claims of hits")
    # Scored labels of other weights: sums weighted once, and sums with squared weights
    weight: float = word("sum of the weights")
    squares: float = word("sum of the squared weights")
    weighted_log_loss: float = word("weighted sum of the log-losses")
    square_log_loss: float = word("sum of the log-losses with squared weights")
    square_log_loss_squares: float = word("sum of the squared log-losses with squared weights")
    weighted_brier: float = word("weighted sum of the Brier scores")
    square_brier: float = word("sum of the Brier scores with squared weights")
    square_brier_squares: float = word("sum of the squared Brier scores with squared weights")
    weighted_claims: float = word("weighted sum of the claims")
    weighted_hits: float = word("weighted sum of the hits")
    square_claims: float = word("sum of the claims with squared weights")
    square_claim_squares: float = word("sum of the squared claims with squared weights")
    square_hit_claims: float = word("sum of the claims of hits with squared weights")
    square_hits: float = word("sum of the squared weights of hits")
    gaps: Any = words_after(float, "weighted sums of hit less claim [GAPS]; rows, matrices, …")

    def rows(self) -> Any:
        """Return the six rows [class]: labels of other weights than 1, and classes beyond the matrix."""
        return tail(self.gaps, GAPS)

    def matrix(self, classes: int) -> Any:
        """Return the labels of weight 1 [label, prediction] of the first classes; classes: of the model."""
        return tail(self.gaps, GAPS + MEASURE_ROWS * classes)

    def weighted_matrix(self, classes: int) -> Any:
        """Return the sums of all other weights [label, prediction]."""
        side = min(classes, MOST_CLASSES)
        return tail(self.gaps, GAPS + MEASURE_ROWS * classes + side * side)

    def histograms(self, classes: int) -> Any:
        """Return the histograms [class with a histogram, HISTOGRAM]."""
        side = min(classes, MOST_CLASSES)
        return tail(self.gaps, GAPS + MEASURE_ROWS * classes + 2 * side * side)


def histograms_of(classes: int) -> int:
    """Return the number of histograms; the second of two classes has none: it would mirror the first."""
    return 1 if classes == 2 else min(classes, MOST_CLASSES)


def measure_words(classes: int) -> int:
    """Return the number of words of the measures section."""
    side = min(classes, MOST_CLASSES)
    fixed = MeasureSums.SIZE + GAPS + MEASURE_ROWS * classes
    return fixed + 2 * side * side + HISTOGRAM * histograms_of(classes)


class MeasureTables(NamedTuple):
    """The tables of a measures section, as views for Python."""

    gaps: Any
    """float64[GAPS]"""
    rows: Any
    """float64[MEASURE_ROWS, class]"""
    matrix: Any
    """float64[label, prediction] of labels of weight 1"""
    weighted_matrix: Any
    """float64[label, prediction] of other labels"""
    histograms: Any
    """float64[class with a histogram, negatives or positives, bin]"""

    @staticmethod
    def of(words: Any, classes: int) -> MeasureTables:
        """Return the tables of a section (float64 words) with room for a number of classes."""
        side = min(classes, MOST_CLASSES)
        views, start = [], MeasureSums.SIZE
        for shape in (
            (GAPS,),
            (MEASURE_ROWS, classes),
            (side, side),
            (side, side),
            (histograms_of(classes), 2, BINS),
        ):
            size = math.prod(shape)
            views.append(words[start : start + size].reshape(shape))
            start += size
        return MeasureTables(*views)
