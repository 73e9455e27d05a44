"""How good the answers to all records are: accuracy, its last fifth, kappa, F1 of the rarest class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Measures(NamedTuple):
    """Shares in [0, 1]; kappa in [-1, 1]."""

    accuracy: float
    last_fifth: float
    """Accuracy over the last fifth of the records."""
    kappa: float
    f1: float
    """F1 of the rarest class that the stream has."""


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
