"""Moments of values: weight, mean and squared deviations of two sets together, deviation, standard score."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel

FARTHEST: Final = 5.0
"""Standard scores are clipped to ± this value: one far value must not undo a linear unit [D55]."""


@kernel
def merged(
    n: float, mean: float, m2: float, n_other: float, mean_other: float, m2_other: float
) -> tuple[float, float, float]:
    """Return weight, mean and squared deviations from the mean of the union of two sets of values.

    Sums of squares are avoided: they lose all digits of values far from 0 (Chan, Golub, LeVeque 1979).
    """
    total = n + n_other
    if n_other <= 0.0:
        return n, mean, m2
    if n <= 0.0:
        return n_other, mean_other, m2_other
    delta = mean_other - mean
    share = n_other / total
    return total, mean + delta * share, m2 + m2_other + delta * delta * n * share


@kernel
def deviation(n: float, m2: float) -> float:
    """Return the standard deviation, with the divisor n - 1; 0 for a weight of at most 1."""
    return math.sqrt(max(m2, 0.0) / (n - 1.0)) if n > 1.0 else 0.0


@kernel
def standard_score(x: float, mean: float, sd: float) -> float:
    """Return ``(x - mean)/sd``, clipped to ±FARTHEST; 0 if the value is not finite or sd is 0."""
    if x - x != 0.0 or not sd > 0.0:
        return 0.0
    return min(max((x - mean) / sd, -FARTHEST), FARTHEST)
