"""Prequential evaluation: each prediction is judged before its label is learned, over all and over a window.

Kept as exact counts: labels, predictions and hits per class, and for the window the codes themselves, packed
into 2·b bits a record (b = bits of a class code), so that windowed kappa and F1 are exact too.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from operator import mul
from typing import Any, Final

import numpy as np

from core.account import DRAWN_FOR_EVALUATION, Account
from core.jit import kernel
from core.plan import Plan
from core.tree import layout as at
from core.tree.layout import Ints


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well a model predicts; shares are in [0, 1], 0 before anything was judged."""

    records: int
    labels: int
    accuracy: float
    accuracy_windowed: float
    kappa: float
    kappa_windowed: float
    f1_rarer: float
    """F1 of the class with the fewest labels among those that have any."""
    f1_rarer_windowed: float
    label_share: float
    """Labels learned per record answered."""
    asked: int
    """Labels asked for; so many of them were"""
    answered: int
    """learned,"""
    declined: int
    """refused,"""
    expired: int
    """not learned in time,"""
    outstanding: int
    """and are still awaited."""
    drawn_labels: int
    """Judged predictions behind the unbiased accuracy: of the records that ``evaluation.share`` reserves, or
    without it of those a strategy that knows its chances has asked for."""
    accuracy_unbiased: float
    """Accuracy over these, each weighted with the records it stands for, an estimate of that over all
    records; NaN without any: the strategy does not know its chances."""
    accuracy_unbiased_low: float
    """Lower end of its interval of 95 %, NaN without any."""
    accuracy_unbiased_high: float
    growth_stopped: bool
    """The tree that answers reached max_leaves or max_bytes: it learns, but grows no more [D1]."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


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
    drawn = int(ints[section + at.EVALUATION_DRAWN])
    unbiased, low, high = _unbiased(plan, ints, section)
    account = Account.of(ints)
    return Evaluation(
        records=records,
        labels=labels,
        accuracy=accuracy,
        accuracy_windowed=accuracy_windowed,
        kappa=kappa,
        kappa_windowed=kappa_windowed,
        f1_rarer=f1,
        f1_rarer_windowed=f1_windowed,
        label_share=labels / records if records else 0.0,
        asked=account.asked,
        answered=account.answered,
        declined=account.declined,
        expired=account.expired,
        outstanding=account.outstanding,
        drawn_labels=drawn,
        accuracy_unbiased=unbiased,
        accuracy_unbiased_low=low,
        accuracy_unbiased_high=high,
        growth_stopped=bool(ints[int(ints[at.MODEL_MAIN]) + at.TREE_STOPPED]),
    )


NORMAL_95: Final = 1.959963984540054
"""Two-sided quantile of the standard normal distribution at 95 %."""


def _unbiased(plan: Plan, ints: Ints, section: int) -> tuple[float, float, float]:
    """Return the accuracy over all records that drawn ones tell of, and its interval of 95 %.

    Reserved records are drawn evenly: their share is an estimate as it is. What a strategy chose is weighted
    with the inverse of its chance and divided by the sum of the weights (Hájek 1971). Its variance is that of
    a share of n = (Σ carried)² / Σ carried²/chance labels, the sums taken over all records the strategy was
    asked about, not over those it chose: where likely ones were all that came up, the sample does not know
    how much of the whole is missing in it, but the chances do. Labels that are late or lost make n smaller.
    """
    drawn, hits = (int(ints[section + word]) for word in (at.EVALUATION_DRAWN, at.EVALUATION_DRAWN_HIT))
    if drawn == 0:
        return math.nan, math.nan, math.nan
    if plan.spec.evaluation.slice:
        return hits / drawn, *wilson(hits, drawn)
    sums = ints[section : section + at.EVALUATION_FIELDS].view(np.float64)
    share = float(sums[at.EVALUATION_STANDING_HIT] / sums[at.EVALUATION_STANDING])
    reached, spread = float(sums[at.EVALUATION_REACHED]), float(sums[at.EVALUATION_SPREAD])
    n = reached * reached / spread * drawn / max(int(ints[section + at.EVALUATION_CHOSEN]), drawn)
    return share, *wilson(share * n, n)


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Return the interval of 95 % for a share of which hits of n are known (Wilson 1927); NaN for n = 0.

    It does not leave [0, 1] and keeps its word for few labels and for shares near 0 or 1. Records that are
    drawn one from each block vary less than independent ones: there it is rather too wide.
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
    # Whole numbers as long as possible: (p0 - pe)/(1 - pe) with p0 = right/n, pe = Σ actual·predicted / n².
    chance = sum(map(mul, actual, predicted))
    kappa = (right * n - chance) / (n * n - chance) if n * n > chance else 0.0
    rarer = actual.index(min(filter(None, actual)))
    f1 = 2 * hit[rarer] / (actual[rarer] + predicted[rarer])
    return right / n, kappa, f1


@kernel
def judge(plan: Any, ints: Any, floats: Any, label: int, prediction: int, drawn: int, stands: float) -> None:
    """Count a judged prediction; drawn, stands: whether its record was drawn, for how many it stands."""
    section = plan[at.PLAN_EVALUATION]
    # A reserved slice is drawn at an even rate. What a strategy asked for counts only where there is none.
    if drawn == DRAWN_FOR_EVALUATION or (stands > 0.0 and plan[at.PLAN_SLICE] == 0):
        right = 1 if label == prediction else 0
        ints[section + at.EVALUATION_DRAWN] += 1
        ints[section + at.EVALUATION_DRAWN_HIT] += right
        floats[section + at.EVALUATION_STANDING] += stands
        floats[section + at.EVALUATION_STANDING_HIT] += right * stands
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
    if ints[section + at.EVALUATION_COUNT] >= plan[at.PLAN_WINDOW]:
        _count(ints, window, classes, old & mask, (old >> bits) & mask, -1)
    ints[word] ^= ((old ^ (label | (prediction << bits))) & ((1 << 2 * bits) - 1)) << shift
    _count(ints, window, classes, label, prediction, 1)
    _count(ints, rows, classes, label, prediction, 1)
    ints[section + at.EVALUATION_COUNT] += 1
    ints[section + at.EVALUATION_NEXT] = position + 1 if position + 1 < plan[at.PLAN_WINDOW] else 0


@kernel
def _count(ints: Any, rows: int, classes: int, label: int, prediction: int, step: int) -> None:
    """Add to the counts of labels, predictions and hits."""
    ints[rows + at.EVALUATION_ACTUAL * classes + label] += step
    ints[rows + at.EVALUATION_PREDICTED * classes + prediction] += step
    # Whether it was right is what no branch predictor knows: so 0 is added, too.
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
    source = _window(old_plan, old)
    target = _window(new_plan, new)
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
    """Return the packed words of the window."""
    start = int(plan.ints[at.PLAN_EVALUATION]) + at.EVALUATION_FIELDS
    start += at.EVALUATION_ROWS * plan.schema.n_classes
    return ints[
        start : start + at.window_words(int(plan.ints[at.PLAN_WINDOW]), int(plan.ints[at.PLAN_CODE_BITS]))
    ]
