"""Figures of the measures section in compiled code, for an evaluation is due after every thousand labels.

core/measures/class_measures.py describes the figures and their intervals. Here they are words: three for each
figure with an interval (value, low, high), NaN where it is not defined.
"""

from __future__ import annotations

import math
from typing import Any, Final

from core.kernels.jit import kernel
from core.layout.measures import (
    ACTUAL,
    BINS,
    HIT,
    PREDICTED,
    SQUARED,
)
from core.numeric.proportions import NORMAL_95, interval_here

# Words of the figures of the model
KAPPA: Final = 0
BALANCED: Final = 3
AUC: Final = 6
MODEL_FIGURES: Final = 9

# Words of the figures of a class, after these
WEIGHT: Final = 0
CHOSEN: Final = 1
PRECISION: Final = 2
RECALL: Final = 5
F1: Final = 8
CLASS_AUC: Final = 11
AUC_ERROR: Final = 14
CLASS_FIGURES: Final = 15

NAN: Final = math.nan


@kernel
def write(out: Any, at: int, value: float, low: float, high: float) -> None:
    """Write a figure and its interval."""
    out[at], out[at + 1], out[at + 2] = value, low, high


@kernel
def write_share(out: Any, at: int, share: float, n: float) -> None:
    """Write a share and Wilson's interval for n labels."""
    if not n > 0.0:
        write(out, at, NAN, NAN, NAN)
        return
    low, high = interval_here(share, n)
    write(out, at, share, low, high)


@kernel("void(float64[:, ::1], int64, float64[::1])")
def write_figures(rows, classes: int, out) -> None:
    """Write the figures made of the sums by class.

    rows: float64[6, room], the rows HIT … SQUARED + PREDICTED of all labels; out: float64[MODEL_FIGURES +
    classes·CLASS_FIGURES].
    """
    hits, weight, squares, by_chance, recalls, n = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    below, above = 0.0, 0.0
    for c in range(classes):
        at = MODEL_FIGURES + c * CLASS_FIGURES
        hit, actual, predicted = rows[HIT, c], rows[ACTUAL, c], rows[PREDICTED, c]
        of_actual, of_predicted = rows[SQUARED + ACTUAL, c], rows[SQUARED + PREDICTED, c]
        out[at + WEIGHT], out[at + CHOSEN] = actual, predicted
        write_share(out, at + PRECISION, hit / predicted, predicted * predicted / of_predicted)
        write_share(out, at + RECALL, hit / actual, actual * actual / of_actual)
        both = actual + predicted
        f1 = 2.0 * hit / both
        write_share(out, at + F1, f1, both * both / (of_actual + of_predicted) / (2.0 - f1))
        hits += hit
        weight += actual
        squares += of_actual
        by_chance += actual * predicted
        if actual > 0.0:
            recall = out[at + RECALL]
            recalls += recall
            below += (recall - out[at + RECALL + 1]) ** 2
            above += (out[at + RECALL + 2] - recall) ** 2
            n += 1
    write(out, KAPPA, NAN, NAN, NAN)
    write(out, BALANCED, NAN, NAN, NAN)
    if weight > 0.0:
        chance = by_chance / (weight * weight)
        write_share(out, KAPPA, hits / weight, weight * weight / squares)
        for part in range(KAPPA, KAPPA + 3):
            out[part] = (out[part] - chance) / (1.0 - chance) if chance < 1.0 else 0.0
        mean = recalls / n
        low, high = max(mean - math.sqrt(below) / n, 0.0), min(mean + math.sqrt(above) / n, 1.0)
        write(out, BALANCED, mean, low, high)


@kernel("void(float64[:, ::1], float64[:, :, ::1], int64, float64, float64[::1])")
def write_aucs(rows, histograms, classes: int, scored: float, out) -> None:
    """Write the AUC of each class against all others, and their mean.

    histograms: float64[class, negatives or positives, bin]; scored: weight of all labels in a histogram; rows
    and out as for ``write_figures``.
    """
    weight, squares, mean, low, high, n = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for c in range(rows.shape[1]):
        weight += rows[ACTUAL, c]
        squares += rows[SQUARED + ACTUAL, c]
    for c in range(classes):
        at = MODEL_FIGURES + c * CLASS_FIGURES
        write(out, at + CLASS_AUC, NAN, NAN, NAN)
        out[at + AUC_ERROR] = NAN
        if c >= len(histograms):
            continue
        of, against = 0.0, 0.0
        for b in range(BINS):
            against += histograms[c, 0, b]
            of += histograms[c, 1, b]
        missing = max(scored - of - against, 0.0)  # shares of 0 of classes after the second are left out
        against += missing
        if not of * against > 0.0:
            continue
        area, within, before = 0.0, 0.0, 0.0
        for b in range(BINS):
            negative = histograms[c, 0, b] + (missing if b == 0 else 0.0)
            area += histograms[c, 1, b] * (before + negative / 2)
            within += histograms[c, 1, b] * negative / 2
            before += negative
        area, within = area / (of * against), within / (of * against)
        above_positive, above_negative, before, passed = 0.0, 0.0, 0.0, 0.0
        for b in range(BINS):
            negative = histograms[c, 0, b] + (missing if b == 0 else 0.0)
            positive = histograms[c, 1, b]
            above_positive += positive * ((before + negative / 2) / against - area) ** 2
            above_negative += negative * ((of - passed - positive / 2) / of - area) ** 2
            before += negative
            passed += positive
        of_class, of_rest = rows[SQUARED + ACTUAL, c], squares - rows[SQUARED + ACTUAL, c]
        n_of = rows[ACTUAL, c] ** 2 / of_class
        n_against = (weight - rows[ACTUAL, c]) ** 2 / of_rest
        variance = above_positive / of / n_of + above_negative / against / n_against
        # Where all pairs are in order the variance is 0, which few labels do not show.
        write_share(out, at + CLASS_AUC, area, min(n_of, n_against))
        if variance > 0.0:
            half = NORMAL_95 * math.sqrt(variance)
            write(out, at + CLASS_AUC, area, max(area - half, 0.0), min(area + half, 1.0))
        out[at + AUC_ERROR] = within
        mean += area
        low += out[at + CLASS_AUC + 1]
        high += out[at + CLASS_AUC + 2]
        n += 1
    if n > 0:
        write(out, AUC, mean / n, low / n, high / n)
