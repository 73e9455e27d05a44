"""Prequential evaluation: each prediction is scored before its label is learned; all records and a window.

The counts are exact: labels, predictions and hits per class, and for the window the codes, packed into 2·b
bits a record (b = bits of a class code), so that windowed kappa and F1 are exact too.

Two baselines are counted on the same labels: the last label (kappa temporal compares with it; Žliobaitė,
Bifet, Read, Pfahringer and Holmes 2015) and the class with most labels so far, or in the window (kappa M;
Bifet, de Francisci Morales, Read, Holmes and Pfahringer 2015). As in MOA, the label of a record is counted
before the majority class is determined, the last label before the first record is class 0, and each record of
a window keeps the majority class that the window had then.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from operator import mul
from typing import Any, Final

import numpy as np

from core.active.label_account import SAMPLED_FOR_EVALUATION, Account
from core.events import Event
from core.kernels.jit import kernel
from core.plan import Plan
from core.tree import layout as at
from core.tree.layout import Ints


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well a model predicts; shares are in [0, 1], and 0 before the first label."""

    records: int
    labels: int
    accuracy: float
    accuracy_windowed: float
    kappa: float
    kappa_windowed: float
    kappa_m: float
    """(p - m) / (1 - m): accuracy p, and accuracy m of predicting the most frequent class so far."""
    kappa_m_windowed: float
    kappa_temporal: float
    """As kappa M, against a prediction of the last label."""
    kappa_temporal_windowed: float
    f1_rarer: float
    """F1 of the class with the fewest labels among those that have any."""
    f1_rarer_windowed: float
    label_share: float
    """Labels learned per record answered."""
    asked: int
    """Labels that were requested; the sum of answered, declined, expired and outstanding."""
    answered: int
    """Requested labels that were learned."""
    declined: int
    """Requests that will get no label."""
    expired: int
    """Requests whose label did not come in time."""
    outstanding: int
    """Requests that are still open."""
    drawn_labels: int
    """Number of labels that the unbiased accuracy uses.

    With ``evaluation.share`` these are the labels of reserved records, else requests of a strategy with known
    probabilities.
    """
    accuracy_unbiased: float
    """Estimate of the accuracy over all records; sampled records are weighted with their importance.

    NaN without sampled records, for example if the strategy has no known probabilities.
    """
    accuracy_unbiased_low: float
    """Lower end of the 95 % interval of ``accuracy_unbiased``, NaN without sampled records."""
    accuracy_unbiased_high: float
    growth_stopped: bool
    """The tree that answers reached max_leaves or max_bytes: it learns, but no longer grows [D1]."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class EvaluationDue(Event):
    """Another ``evaluation.every`` labels have been learned."""

    evaluation: Evaluation
    judged: tuple[int, ...]
    """Labels of each class so far, in the order of the schema, up to the last class that has any."""


def labels_of_classes(plan: Plan, ints: Ints) -> tuple[int, ...]:
    """Return how many labels of each class the evaluation of a model has counted, in the order of its schema.

    The tuple ends with the last class that has any: the number of classes after it depends on where runs are
    cut.
    """
    first = int(plan.ints[at.PLAN_EVALUATION]) + at.EVALUATION_FIELDS
    first += at.EVALUATION_ACTUAL * plan.schema.n_classes
    judged = ints[first : first + plan.schema.n_classes]
    return tuple(judged[: int(np.flatnonzero(judged).max(initial=-1)) + 1].tolist())


def read(plan: Plan, ints: Ints) -> Evaluation:
    """Return the evaluation of a model's buffer."""
    start = int(plan.ints[at.PLAN_EVALUATION]) + at.EVALUATION_FIELDS
    classes = plan.schema.n_classes
    counts = ints[start : start + at.EVALUATION_ROWS * classes].tolist()  # an array costs ten times as much
    rows = [counts[row * classes : (row + 1) * classes] for row in range(at.EVALUATION_ROWS)]
    accuracy, kappa, f1 = _measures(*rows[: at.EVALUATION_WINDOW])
    accuracy_windowed, kappa_windowed, f1_windowed = _measures(*rows[at.EVALUATION_WINDOW :])
    records, labels = int(ints[at.MODEL_RECORDS]), int(ints[at.MODEL_LABELS])
    section = start - at.EVALUATION_FIELDS
    hits = ints[section:start].tolist()
    n = hits[at.EVALUATION_COUNT] - hits[at.EVALUATION_UNCOMPARED]
    right = sum(rows[at.EVALUATION_HIT]) - hits[at.EVALUATION_UNCOMPARED_HIT]
    inside = rows[at.EVALUATION_WINDOW + at.EVALUATION_HIT]
    recent = sum(rows[at.EVALUATION_WINDOW + at.EVALUATION_ACTUAL])
    sampled = int(ints[section + at.EVALUATION_SAMPLED])
    unbiased, low, high = _unbiased(plan, ints, section)
    account = Account.of(ints)
    return Evaluation(
        records=records,
        labels=labels,
        accuracy=accuracy,
        accuracy_windowed=accuracy_windowed,
        kappa=kappa,
        kappa_windowed=kappa_windowed,
        kappa_m=_against(right, hits[at.EVALUATION_MAJORITY_HIT], n),
        kappa_m_windowed=_against(sum(inside), hits[at.EVALUATION_WINDOW_MAJORITY_HIT], recent),
        kappa_temporal=_against(right, hits[at.EVALUATION_LAST_HIT], n),
        kappa_temporal_windowed=_against(sum(inside), hits[at.EVALUATION_WINDOW_LAST_HIT], recent),
        f1_rarer=f1,
        f1_rarer_windowed=f1_windowed,
        label_share=labels / records if records else 0.0,
        asked=account.asked,
        answered=account.answered,
        declined=account.declined,
        expired=account.expired,
        outstanding=account.outstanding,
        drawn_labels=sampled,
        accuracy_unbiased=unbiased,
        accuracy_unbiased_low=low,
        accuracy_unbiased_high=high,
        growth_stopped=plan.blocks.has_stopped(ints, int(ints[at.MODEL_FIRST])),
    )


NORMAL_95: Final = 1.959963984540054
"""Two-sided quantile of the standard normal distribution at 95 %."""


def _unbiased(plan: Plan, ints: Ints, section: int) -> tuple[float, float, float]:
    """Return an estimate of the accuracy over all records from the sampled records, and its 95 % interval.

    Reserved records are sampled evenly: the share of hits among them is the estimate. Records that a strategy
    chose are weighted with their importance and divided by its sum (Hájek 1971). The variance is as for a
    share of n = (Σ represented)² / Σ represented²/probability labels. These sums cover all records that the
    strategy has scored, not only the chosen records: if only likely records were chosen, the sample does not
    show how much of the stream is missing in it, but the probabilities do. Labels that are late or lost make
    n smaller.
    """
    sampled, hits = (int(ints[section + word]) for word in (at.EVALUATION_SAMPLED, at.EVALUATION_SAMPLED_HIT))
    if sampled == 0:
        return math.nan, math.nan, math.nan
    if plan.spec.evaluation.slice:
        return hits / sampled, *wilson(hits, sampled)
    sums = ints[section : section + at.EVALUATION_FIELDS].view(np.float64)
    represented, squares = float(sums[at.EVALUATION_REPRESENTED]), float(sums[at.EVALUATION_SQUARES])
    if not (sums[at.EVALUATION_IMPORTANCE] > 0.0 and squares > 0.0):
        return math.nan, math.nan, math.nan  # all sampled records come from a share that was reserved earlier
    share = min(float(sums[at.EVALUATION_IMPORTANCE_HIT] / sums[at.EVALUATION_IMPORTANCE]), 1.0)
    n = (
        represented
        * represented
        / squares
        * sampled
        / max(int(ints[section + at.EVALUATION_CHOSEN]), sampled)
    )
    return share, *wilson(share * n, n)


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval for a share from ``hits`` of n (Wilson 1927); NaN for n = 0.

    It stays within [0, 1] and keeps its coverage for few labels and for shares near 0 or 1. The interval is
    rather too wide if one record is sampled from each block: such samples vary less than independent records.
    """
    if n == 0:
        return math.nan, math.nan
    z2 = NORMAL_95 * NORMAL_95
    share = hits / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)
    return min(low, share), max(high, share)  # rounding must not leave the share itself outside


def _measures(actual: list[int], predicted: list[int], hit: list[int]) -> tuple[float, float, float]:
    """Return accuracy, kappa and F1 of the rarer class from counts per class."""
    n = sum(actual)
    if n == 0:
        return 0.0, 0.0, 0.0
    right = sum(hit)
    # Integers as long as possible: (p0 - pe)/(1 - pe) with p0 = right/n, pe = Σ actual·predicted / n².
    chance = sum(map(mul, actual, predicted))
    kappa = (right * n - chance) / (n * n - chance) if n * n > chance else 0.0
    rarer = actual.index(min(filter(None, actual)))
    f1 = 2 * hit[rarer] / (actual[rarer] + predicted[rarer])
    return right / n, kappa, f1


def _against(right: int, baseline: int, n: int) -> float:
    """Return (p - b) / (1 - b) with the shares p = right / n and b = baseline / n; 0 if b is 1."""
    return (right - baseline) / (n - baseline) if n > baseline else 0.0


@kernel
def count_prediction(
    plan, ints, floats, label: int, prediction: int, sampled: int, importance: float
) -> None:
    """Count a prediction whose label is known; sampled and importance belong to the same record."""
    section = plan[at.PLAN_EVALUATION]
    # A reserved share is sampled evenly. Requests of a strategy count only if no share is reserved.
    if sampled == SAMPLED_FOR_EVALUATION or (importance > 0.0 and plan[at.PLAN_SLICE] == 0):
        right = 1 if label == prediction else 0
        ints[section + at.EVALUATION_SAMPLED] += 1
        ints[section + at.EVALUATION_SAMPLED_HIT] += right
        floats[section + at.EVALUATION_IMPORTANCE] += importance
        floats[section + at.EVALUATION_IMPORTANCE_HIT] += right * importance
    classes = plan[at.PLAN_CLASSES]
    rows = section + at.EVALUATION_FIELDS
    position = ints[section + at.EVALUATION_NEXT]
    bits = plan[at.PLAN_CODE_BITS]
    # All sizes are powers of two: 32 // bits records a word, 2·bits each, without a division.
    log = plan[at.PLAN_CODE_SHIFT]
    word = rows + at.EVALUATION_ROWS * classes + (position >> (5 - log))
    shift = (position & ((1 << (5 - log)) - 1)) << (log + 1)
    mask = (1 << bits) - 1
    window = rows + at.EVALUATION_WINDOW * classes
    old = ints[word] >> shift
    oldest = -1
    if ints[section + at.EVALUATION_COUNT] >= plan[at.PLAN_WINDOW]:
        oldest = old & mask
        _count(ints, window, classes, oldest, (old >> bits) & mask, -1)
    ints[word] ^= ((old ^ (label | (prediction << bits))) & ((1 << 2 * bits) - 1)) << shift
    _count(ints, window, classes, label, prediction, 1)
    _count(ints, rows, classes, label, prediction, 1)
    count_baselines(plan, ints, section, label, oldest, position)
    ints[section + at.EVALUATION_COUNT] += 1
    ints[section + at.EVALUATION_NEXT] = position + 1 if position + 1 < plan[at.PLAN_WINDOW] else 0


@kernel
def count_baselines(plan, ints, section: int, label: int, oldest: int, position: int) -> None:
    """Count the hits of the two baselines; the counts of labels include this label.

    oldest: label of the record that has left the window, -1: none; position: of this record in the window.
    """
    classes = plan[at.PLAN_CLASSES]
    rows = section + at.EVALUATION_FIELDS
    window = rows + at.EVALUATION_WINDOW * classes
    repeats = 1 if ints[section + at.EVALUATION_LAST] == label else 0
    ints[section + at.EVALUATION_LAST] = label
    ints[section + at.EVALUATION_LAST_HIT] += repeats
    ints[section + at.EVALUATION_WINDOW_LAST_HIT] += repeats
    if oldest >= 0:
        gone = 1 if ints[section + at.EVALUATION_BEFORE] == oldest else 0
        ints[section + at.EVALUATION_BEFORE] = oldest
        ints[section + at.EVALUATION_WINDOW_LAST_HIT] -= gone
    majority = larger_class(ints, rows, ints[section + at.EVALUATION_MAJORITY], label)
    ints[section + at.EVALUATION_MAJORITY] = majority
    ints[section + at.EVALUATION_MAJORITY_HIT] += 1 if majority == label else 0
    recent = ints[section + at.EVALUATION_WINDOW_MAJORITY]
    if oldest == recent and oldest != label:  # the majority may now be another class
        recent = largest_class(ints, window, classes)
    else:
        recent = larger_class(ints, window, recent, label)
    ints[section + at.EVALUATION_WINDOW_MAJORITY] = recent
    word, shift = plan[at.PLAN_WINDOW_BITS] + (position >> 6), position & 63
    was, now = (ints[word] >> shift) & 1, 1 if recent == label else 0
    ints[section + at.EVALUATION_WINDOW_MAJORITY_HIT] += now - was
    ints[word] ^= (was ^ now) << shift


@kernel
def larger_class(ints, counts: int, one: int, other: int) -> int:
    """Return the class with the larger count (from word ``counts`` on), the lower code if they are equal."""
    mine, yours = ints[counts + one], ints[counts + other]
    return other if yours > mine or (yours == mine and other < one) else one


@kernel
def largest_class(ints, counts: int, classes: int) -> int:
    """Return the class with the largest count (from word ``counts`` on), the lowest code of equal counts."""
    best = 0
    for c in range(1, classes):
        if ints[counts + c] > ints[counts + best]:
            best = c
    return best


@kernel
def _count(ints, rows: int, classes: int, label: int, prediction: int, step: int) -> None:
    """Add ``step`` to the counts of a label, a prediction and, if they are equal, a hit."""
    ints[rows + at.EVALUATION_ACTUAL * classes + label] += step
    ints[rows + at.EVALUATION_PREDICTED * classes + prediction] += step
    # No branch predictor foresees hits, so the sum adds 0 instead of branching.
    ints[rows + at.EVALUATION_HIT * classes + label] += step if label == prediction else 0


def repack(old_plan: Plan, old: Ints, new_plan: Plan, new: Ints) -> None:
    """Copy the evaluation section of a model to the layout of a schema with more classes."""
    old_at, new_at = int(old_plan.ints[at.PLAN_EVALUATION]), int(new_plan.ints[at.PLAN_EVALUATION])
    new[new_at : new_at + at.EVALUATION_FIELDS] = old[old_at : old_at + at.EVALUATION_FIELDS]
    k, grown = old_plan.schema.n_classes, new_plan.schema.n_classes
    old_rows = old[old_at + at.EVALUATION_FIELDS :][: at.EVALUATION_ROWS * k].reshape(at.EVALUATION_ROWS, k)
    new_rows = new[new_at + at.EVALUATION_FIELDS :][: at.EVALUATION_ROWS * grown]
    new_rows.reshape(at.EVALUATION_ROWS, grown)[:, :k] = old_rows
    window = int(old_plan.ints[at.PLAN_WINDOW])
    source, target = _window(old_plan, old), _window(new_plan, new)
    old_bits, new_bits_at = int(old_plan.ints[at.PLAN_WINDOW_BITS]), int(new_plan.ints[at.PLAN_WINDOW_BITS])
    n = -(-window // 64)
    new[new_bits_at : new_bits_at + n] = old[old_bits : old_bits + n]
    bits, new_bits = int(old_plan.ints[at.PLAN_CODE_BITS]), int(new_plan.ints[at.PLAN_CODE_BITS])
    if bits == new_bits:
        target[:] = source
        return
    position = np.arange(window)
    pairs = source[position // (32 // bits)] >> (2 * bits * (position % (32 // bits)))
    mask = (1 << bits) - 1
    pairs = (pairs & mask) | (((pairs >> bits) & mask) << new_bits)
    np.bitwise_or.at(
        target, position // (32 // new_bits), pairs << (2 * new_bits * (position % (32 // new_bits)))
    )


def _window(plan: Plan, ints: Ints) -> Ints:
    start = int(plan.ints[at.PLAN_EVALUATION]) + at.EVALUATION_FIELDS
    start += at.EVALUATION_ROWS * plan.schema.n_classes
    return ints[
        start : start + at.window_words(int(plan.ints[at.PLAN_WINDOW]), int(plan.ints[at.PLAN_CODE_BITS]))
    ]
