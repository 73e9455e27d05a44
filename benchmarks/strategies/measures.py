"""How good the answers to all records are: accuracy, its last fifth, kappa, F1 of the rarest class; sets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.layout.published import KNOWN, THRESHOLD


class Measures(NamedTuple):
    """Shares in [0, 1]; kappa in [-1, 1]."""

    accuracy: float
    last_fifth: float
    """Accuracy over the last fifth of the records."""
    kappa: float
    f1: float
    """F1 of the rarest class that the stream has."""


class Sets(NamedTuple):
    """Conformal sets of the answers to all records; NaN: the model has none."""

    coverage: float
    """Share of the records whose label is in the set."""
    single: float
    """Share of the records whose set has one class."""
    hits: float
    """Share of the records whose set has one class, and this is the label."""


NO_SETS = Sets(math.nan, math.nan, math.nan)


def sets_of(
    label: npt.NDArray[np.int32],
    probability: npt.NDArray[np.float64],
    report: npt.NDArray[np.float64] | None,
) -> Sets:
    """Judge the sets of answers; label: int32[n], at least 0; probability: float64[n, class].

    report: float64[n, column] of the answers (core/layout/published.py), None: the model has no sets. An
    answer before the first label has no set, and counts as one that leaves its label out.
    """
    if report is None or np.isnan(report[:, THRESHOLD]).all():
        return NO_SETS
    inside = probability >= 1.0 - report[:, THRESHOLD, np.newaxis]
    inside &= np.arange(probability.shape[1]) < report[:, KNOWN, np.newaxis]
    is_covered, is_single = inside[np.arange(len(label)), label], inside.sum(axis=1) == 1
    return Sets(float(is_covered.mean()), float(is_single.mean()), float((is_covered & is_single).mean()))


def measures_of(label: npt.NDArray[np.int32], prediction: npt.NDArray[np.int32]) -> Measures:
    """Compare predictions (int32[n], -1: no class known) with labels (int32[n], at least 0)."""
    right = prediction == label
    last = len(label) - len(label) // 5
    return Measures(
        float(np.mean(right)), float(np.mean(right[last:])), _kappa(label, prediction), _f1(label, prediction)
    )


def _kappa(label: npt.NDArray[np.int32], prediction: npt.NDArray[np.int32]) -> float:
    """Return the agreement beyond that of independent answers with the same frequencies (Cohen 1960)."""
    n, bins = len(label), int(max(label.max(), prediction.max())) + 2
    by_chance = float(np.bincount(label + 1, minlength=bins) @ np.bincount(prediction + 1, minlength=bins))
    observed, expected = float(np.mean(label == prediction)), by_chance / n / n
    return (observed - expected) / (1.0 - expected) if expected < 1.0 else 0.0


def _f1(label: npt.NDArray[np.int32], prediction: npt.NDArray[np.int32]) -> float:
    counts = np.bincount(label)
    rare = int(np.argmin(np.where(counts > 0, counts, len(label) + 1)))
    hits = int(np.sum((prediction == rare) & (label == rare)))
    return 2.0 * hits / int(np.sum(prediction == rare) + counts[rare])
