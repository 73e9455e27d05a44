"""Rows of a run are added to the sums of the measures of their models, after the run.

No kernel reads these sums, so that they are updated at the end of a call, when the columns of the run are
complete. In these loops the sums of a model are in registers: the same updates between the other steps of
a row would cost four times as much. Rows that were answered in this run and came with their labels, where
measures are a visible part of the cost, have a loop that treats no other rows.
"""

from __future__ import annotations

from typing import Any, Final

from core.kernels.jit import bits, called, from_bits, kernel, stay_apart, tail, words_at
from core.layout.measures import GAPS, LABELS, MOST_CLASSES, MeasureSums
from core.layout.plan import PlanRecord, plan_at
from core.measures.sums import (
    LEAST_SHARE,
    basis_of,
    clear,
    score_weighted,
    sort_by_class,
    sort_by_share,
    weigh,
)

LEAST_PRODUCT: Final = 1e-280
"""A product of shares below this gives its exponent to ``octaves``."""

LN_2: Final = 0.6931471805599453
FRACTION_BITS: Final = 52
BIAS: Final = 1023
FRACTION: Final = 2.0**-52
EXPONENT: Final = 1023.0 - 0.0430
"""Of a power of two, less the mean error of the linear interpolation between two powers."""


@called
def measure(run: Any, cursor: Any, end: int, answers: bool, all_labels: bool) -> None:
    """Add the rows of a run from ``cursor.measured`` to before ``end`` to the sums (core/run.py).

    answers: the rows were answered in this run; all_labels: every label is used, whether it was requested or
    not. A label of a row that was answered in this run, without a request, came with its record.
    """
    first = cursor.measured
    while first < end:
        model, stop = run.model[first], first + 1
        while stop < end and run.model[stop] == model:
            stop += 1
        plan = plan_at(run.plans[model])
        ints, floats = words_at(run.addresses[model])
        sums = MeasureSums(ints, floats, plan.measures)
        if plan.measure_words == 0:
            first = stop
            continue
        if answers and all_labels and plan.slice == 0 and sums.overflow == 0:
            if plan.classes == 2:
                first = add_pairs(run, sums, first, stop)
            elif plan.classes <= MOST_CLASSES:
                first = add_of_many(run, sums, first, stop, plan.classes)
        if first < stop:
            first = add_rows(run, plan, sums, first, stop, answers, all_labels)
    cursor.measured = end


@kernel
def rough_loss(share: float) -> float:
    """Return the log-loss of a share to within 0.03: enough for a variance, and cheaper than a logarithm."""
    return (EXPONENT - bits(share) * FRACTION) * LN_2


@kernel
def sum_of_squares(shares, classes: int) -> float:
    """Return the sum of the squared shares; two classes, the commonest case, need no loop."""
    if classes == 2:
        return shares[0] * shares[0] + shares[1] * shares[1]
    squared = 0.0
    for c in range(classes):
        squared += shares[c] * shares[c]
    return squared


@kernel
def octave_of(product: float) -> int:
    """Return the exponent of the largest power of two in a product."""
    return (bits(product) >> FRACTION_BITS) - BIAS


@kernel
def without_octave(product: float, octave: int) -> float:
    """Return product / 2^octave."""
    return from_bits(bits(product) - (octave << FRACTION_BITS))


@kernel
def add_pairs(run: Any, sums: MeasureSums, first: int, end: int) -> int:
    """Add rows as ``add_labelled`` does, compiled for two classes."""
    stay_apart()
    return add_labelled(run, sums, first, end, 2)


@kernel
def add_of_many(run: Any, sums: MeasureSums, first: int, end: int, classes: int) -> int:
    """Add rows as ``add_labelled`` does, compiled for any number of classes."""
    stay_apart()
    return add_labelled(run, sums, first, end, classes)


@kernel
def add_labelled(run: Any, sums: MeasureSums, first: int, end: int, classes: int) -> int:
    """Add rows of one model, answered in this run, whose labels, if they have any, came with them.

    Returns the first labelled row whose answer has no shares, or ``end``. The sums become the same, bit by
    bit, as those of ``add_rows``. All classes are within the matrix, and no share of the records is reserved.
    """
    gaps, matrix, histograms = sums.gaps, sums.matrix(classes), sums.histograms(classes)
    confidence, product = sums.confidence, sums.product
    losses, brier, briers = sums.log_loss_squares, sums.brier, sums.brier_squares
    claims, claim_squares, hit_claims = sums.claims, sums.claim_squares, sums.hit_claims
    product = product if product > 0.0 else 1.0
    row, unlabelled, unsure = first, 0, 0
    while row < end:
        label, prediction = int(run.label[row]), int(run.prediction[row])
        shares = tail(run.probability, row * run.classes)
        claim = shares[prediction] if prediction >= 0 else 0.0
        if label < 0 or prediction < 0:
            row += 1
            unlabelled += 1
            unsure += 1 if claim == 0.0 else 0
            confidence += claim
            continue
        if claim == 0.0:
            break
        row += 1
        right = 1.0 if label == prediction else 0.0
        matrix[label * classes + prediction] += 1.0
        gaps[min(int(claim * GAPS), GAPS - 1)] += right - claim
        sort_by_share(histograms, classes, shares, label, 1.0, run.scratch)
        score = sum_of_squares(shares, classes) - 2.0 * shares[label] + 1.0
        share = max(shares[label], LEAST_SHARE)
        loss = rough_loss(share)
        product *= share
        losses += loss * loss
        brier += score
        briers += score * score
        confidence += claim
        claims += claim
        claim_squares += claim * claim
        hit_claims += claim * right
        if product < LEAST_PRODUCT:
            octave = octave_of(product)
            sums.octaves += octave
            product = without_octave(product, octave)
    sums.answered += row - first - unsure
    sums.given += row - first - unlabelled
    sums.confidence, sums.product = confidence, product
    sums.log_loss_squares, sums.brier, sums.brier_squares = losses, brier, briers
    sums.claims, sums.claim_squares, sums.hit_claims = claims, claim_squares, hit_claims
    return row


@kernel
def add_rows(
    run: Any, plan: PlanRecord, sums: MeasureSums, first: int, end: int, answers: bool, all_labels: bool
) -> int:
    """Add rows of one model; return the row after the last one that was added.

    That is ``end``, or the first row with another basis, before which the sums start again.
    """
    classes, width, basis, overflow = plan.classes, run.classes, sums.basis, sums.overflow
    is_slice = plan.slice != 0
    came_along = answers and all_labels and not is_slice
    side = min(classes, MOST_CLASSES)
    gaps, matrix, histograms = sums.gaps, sums.matrix(classes), sums.histograms(classes)
    answered, confidence, unchosen = sums.answered, sums.confidence, sums.given
    product, octaves = sums.product, sums.octaves
    losses, brier, briers = sums.log_loss_squares, sums.brier, sums.brier_squares
    claims, claim_squares, hit_claims = sums.claims, sums.claim_squares, sums.hit_claims
    product = product if product > 0.0 else 1.0
    row = first
    while row < end:
        label, prediction = int(run.label[row]), int(run.prediction[row])
        weight = 1.0 if label >= 0 and prediction >= 0 else 0.0
        if came_along:
            unchosen += int(weight)
        elif weight > 0.0 and (all_labels or run.asked[row] != 0):
            importance = run.importance[row]
            following = basis_of(is_slice, basis, importance)
            if following != basis and basis == LABELS:
                break
            basis = following
            weight = weigh(is_slice, basis, int(run.sampled[row]), importance)
        else:
            weight = 0.0
        shares = tail(run.probability, row * width)
        row += 1
        if prediction < 0:
            continue
        claim = shares[prediction]
        if answers and claim > 0.0:
            answered += 1
            confidence += claim
        if weight == 0.0:
            continue
        right = 1.0 if label == prediction else 0.0
        if weight == 1.0 and label < side and prediction < side:
            matrix[label * side + prediction] += 1.0
        else:
            sort_by_class(plan, sums, label, prediction, weight)
            overflow = sums.overflow
        if claim == 0.0 or overflow != 0:
            continue
        share = shares[label]
        score = sum_of_squares(shares, classes) - 2.0 * share + 1.0
        gaps[min(int(claim * GAPS), GAPS - 1)] += weight * (right - claim)
        sort_by_share(histograms, classes, shares, label, weight, run.scratch)
        if weight != 1.0:
            score_weighted(sums, share, score, claim, right, weight)
            continue
        share = max(share, LEAST_SHARE)
        loss = rough_loss(share)
        product *= share
        losses += loss * loss
        brier += score
        briers += score * score
        claims += claim
        claim_squares += claim * claim
        hit_claims += claim * right
        if product < LEAST_PRODUCT:
            octave = octave_of(product)
            octaves += octave
            product = without_octave(product, octave)
    sums.basis, sums.answered, sums.confidence, sums.given = basis, answered, confidence, unchosen
    sums.product, sums.octaves = product, octaves
    sums.log_loss_squares, sums.brier, sums.brier_squares = losses, brier, briers
    sums.claims, sums.claim_squares, sums.hit_claims = claims, claim_squares, hit_claims
    if row < end:
        clear(plan, sums)
    return row
