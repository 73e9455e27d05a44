"""Sums of the measures: each judged prediction is added with the weight of its label.

The sums are updated at the end of a call of the kernel (core/measures/rows.py), row by row in the order of
the run. Where a run is cut does not change them.

The weight of a label makes the sums represent all records: 1 for a reserved record, or else the importance of
the label (core/active/label_query.py), and 1 for a label that came with its record: the model did not choose
it. If the strategy has no known chances and no share is reserved, each label counts once (the basis is
LABELS) until the first label with a known chance: then the sums start again.
"""

from __future__ import annotations

import math
from typing import Final

from core.active.label_account import SAMPLED_FOR_EVALUATION
from core.kernels.jit import bits, called, from_bits, kernel, part, tail
from core.layout.measures import (
    ACTUAL,
    BINS,
    HISTOGRAM,
    HIT,
    LABELS,
    MOST_CLASSES,
    NEGATIVES,
    POSITIVES,
    PREDICTED,
    RECORDS,
    SQUARED,
    UNSET,
    MeasureSums,
    MeasureTables,
)
from core.layout.model import Floats
from core.layout.plan import PlanRecord

LEAST_SHARE: Final = 2.220446049250313e-16
"""Smallest share in a log-loss, as in scikit-learn: a class that was ruled out costs 36.04."""

SIDE: Final = BINS // 2
"""Bins of the shares up to one half; the others are their mirror image."""
STEPS: Final = 32.0
"""From 1/16 to 15/16 a bin is 1/STEPS wide."""
LINEAR_FROM: Final = 0.0625
FIRST_LINEAR: Final = SIDE - 16
EXPONENT_OF_LINEAR: Final = 1019
"""Biased exponent of LINEAR_FROM: smaller shares, down to 2^-1023, have bins of 1, 2, 4, …, 512 octaves.

The shares of naive Bayes are products of many factors, of which most are that small.
"""
LAST_EXTREME: Final = 9
FRACTION_BITS: Final = 52
BIAS: Final = 1023


@kernel
def code_of(share: float, rest: float) -> int:
    """Return the bin of a class share, 0 to BINS - 1; rest: the share of all other classes."""
    part = share if share <= 0.5 else rest
    linear = FIRST_LINEAR + min(int(part * STEPS), 15)
    octaves = float(max(EXPONENT_OF_LINEAR - (bits(part) >> FRACTION_BITS), 1))
    extreme = LAST_EXTREME + BIAS - (bits(octaves) >> FRACTION_BITS)
    code = linear if part >= LINEAR_FROM else extreme  # no branch: no processor foresees shares
    return code if share <= 0.5 else BINS - 1 - code


@kernel
def weigh(is_slice: bool, basis: int, sampled: int, importance: float) -> float:
    """Return the weight of a judged label, 0: it does not count; is_slice: a share of records is reserved."""
    if is_slice:
        return 1.0 if sampled == SAMPLED_FOR_EVALUATION else 0.0
    return 1.0 if importance == 0.0 and basis != RECORDS else importance


@kernel
def basis_of(is_slice: bool, basis: int, importance: float) -> int:
    """Return the basis with a judged label, after the labels before it had ``basis``."""
    if is_slice or importance > 0.0:
        return RECORDS
    return LABELS if basis == UNSET else basis


@kernel
def clear(plan: PlanRecord, sums: MeasureSums) -> None:
    """Start all sums again."""
    words = tail(sums.ints, sums.start)
    for position in range(plan.measure_words):
        words[position] = 0


@called
def sort_by_class(plan: PlanRecord, sums: MeasureSums, label: int, prediction: int, weight: float) -> None:
    """Add a judged prediction of another weight than 1, or of a class beyond the matrix."""
    classes = plan.classes
    side = min(classes, MOST_CLASSES)
    if label >= side or prediction >= side:
        sums.overflow = 1
    else:
        sums.weighted_matrix(classes)[label * side + prediction] += weight
    square, right = weight * weight, 1.0 if label == prediction else 0.0
    rows = sums.rows()
    rows[HIT * classes + label] += weight * right
    rows[ACTUAL * classes + label] += weight
    rows[PREDICTED * classes + prediction] += weight
    rows[(SQUARED + HIT) * classes + label] += square * right
    rows[(SQUARED + ACTUAL) * classes + label] += square
    rows[(SQUARED + PREDICTED) * classes + prediction] += square


@called
def score_weighted(
    sums: MeasureSums, share: float, brier: float, claim: float, right: float, weight: float
) -> None:
    """Add the scores of an answer whose label has another weight than 1.

    share: of the label's class; right: 1.0 or 0.0.
    """
    square, loss = weight * weight, -math.log(max(share, LEAST_SHARE))
    sums.weight += weight
    sums.squares += square
    sums.weighted_log_loss += weight * loss
    sums.square_log_loss += square * loss
    sums.square_log_loss_squares += square * loss * loss
    sums.weighted_brier += weight * brier
    sums.square_brier += square * brier
    sums.square_brier_squares += square * brier * brier
    sums.weighted_claims += weight * claim
    sums.weighted_hits += weight * right
    sums.square_claims += square * claim
    sums.square_claim_squares += square * claim * claim
    sums.square_hit_claims += square * claim * right
    sums.square_hits += square * right


@kernel
def sort_by_share(histograms, classes: int, shares, label: int, weight: float, scratch) -> None:
    """Add the shares of an answer to the histograms.

    The bin of the second class mirrors that of the first if no other class has a share. So its histogram can
    be derived from the first one when a third class comes (``repack``). Then the share of the one is the rest
    of the other, exactly: 1 - share is 0 for a share of less than 1.1e-16. Of the classes after the second, a
    share of 0 where the label is another class is left out: the reader adds what is missing from the sum.
    scratch: workspace, float64[2·class].
    """
    c = 2
    while c < classes and shares[c] == 0.0:
        c += 1
    if c < classes:
        sort_all_by_share(histograms, min(classes, MOST_CLASSES), shares, label, weight, scratch)
        return
    code = code_of(shares[0], shares[1] if classes > 1 else 1.0 - shares[0])
    histograms[(POSITIVES if label == 0 else NEGATIVES) + code] += weight
    if classes > 2:
        histograms[HISTOGRAM + (POSITIVES if label == 1 else NEGATIVES) + BINS - 1 - code] += weight
        if 1 < label < MOST_CLASSES:
            histograms[label * HISTOGRAM + POSITIVES + code_of(shares[label], 1.0 - shares[label])] += weight


@kernel
def sort_all_by_share(histograms, n: int, shares, label: int, weight: float, scratch) -> None:
    """Add the shares of the first n classes to their histograms, where a class after the second has a share.

    The words of the histograms are computed in vectors, without a branch. A class that is left out gets 0.
    The loop is not filled to whole vectors: words that a masked store has written are slow to load.
    """
    words, weights = part(scratch, 0, n), part(scratch, n, n)
    for c in range(n):
        half = POSITIVES if c == label else NEGATIVES
        words[c] = from_bits(c * HISTOGRAM + half + code_of(shares[c], 1.0 - shares[c]))
        weights[c] = weight if (shares[c] > 0.0) | (c == label) | (c < 2) else 0.0
    for c in range(n):
        histograms[bits(words[c])] += weights[c]


def repack(old_classes: int, old: Floats, new_classes: int, new: Floats) -> None:
    """Copy a measures section to one with room for more classes (all zeros).

    old, new: the float64 words of the sections. A class that comes later is as if it had been there from the
    beginning, with a share of 0 and without labels.
    """
    new[: MeasureSums.SIZE] = old[: MeasureSums.SIZE]
    source, target = MeasureTables.of(old, old_classes), MeasureTables.of(new, new_classes)
    target.gaps[:] = source.gaps
    target.rows[:, :old_classes] = source.rows
    side, n = len(source.matrix), len(source.histograms)
    target.matrix[:side, :side] = source.matrix
    target.weighted_matrix[:side, :side] = source.weighted_matrix
    target.histograms[:n] = source.histograms
    if n == 1 < len(target.histograms):
        target.histograms[1] = source.histograms[0, ::-1, ::-1]
