"""Quadratic discriminant: a normal distribution per class, a threshold between each class and the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from core.kernels.jit import kernel
from core.numeric.moments import deviation, merged
from core.numeric.qda import cut_of, left_share
from core.observers import gaussian
from core.observers.base import Observer
from core.observers.gaussian import STATISTICS, GaussianStatistics

PROBLEMS: Final = ()

FEWEST: Final = 2.0
"""Weight of a class below which it has no threshold [D52]."""

update_numeric = gaussian.update_numeric
log_densities_numeric = gaussian.log_densities_numeric
densities_numeric = gaussian.densities_numeric


@dataclass(frozen=True, slots=True)
class Plugin(Observer):
    """Statistics of the gaussian observer, quadratic discriminants: ``"numeric_observer": "qda"``.

    At a threshold the densities of a class and of the rest together, each times its weight, are equal (Gama,
    Medas, Rodrigues 2004). There is one threshold for two classes, else one for each class
    (``core/numeric/qda.py``). The moments of the rest are pooled exactly. The masses on both sides follow
    from the normal distribution of each class.
    """

    kind: ClassVar[str] = "numeric"
    axes: ClassVar[tuple[str | int, ...]] = ("class", STATISTICS, "attribute")

    def clear(self, statistics: Any) -> None:
        """Write zero weight, and ranges that any value widens."""
        statistics[...] = 0.0
        statistics[..., gaussian.LOW, :] = math.inf
        statistics[..., gaussian.HIGH, :] = -math.inf


@kernel
def candidates_numeric(plan, p) -> int:
    """Return the number of classes that there is room for: one threshold for each."""
    return max(plan.classes, 1)


@kernel
def moments_of(plan, statistics: GaussianStatistics, c: int, a: int) -> tuple[float, float, float]:
    """Return weight, mean and squared deviations of a class."""
    normals = statistics.of_class(plan, c)
    return normals.weight[a], normals.mean[a], normals.m2[a]


@kernel
def threshold_of(plan, statistics: GaussianStatistics, k: int, c: int, a: int) -> float:
    """Return the threshold between class c and the rest for an attribute, NaN if there is none."""
    n, mean, m2 = moments_of(plan, statistics, c, a)
    n_rest, mean_rest, m2_rest = 0.0, 0.0, 0.0
    for other in range(k):
        if other != c:
            n_other, mean_other, m2_other = moments_of(plan, statistics, other, a)
            n_rest, mean_rest, m2_rest = merged(n_rest, mean_rest, m2_rest, n_other, mean_other, m2_other)
    if n < FEWEST or n_rest < FEWEST:
        return math.nan
    exists, cut = cut_of(n, mean, deviation(n, m2), n_rest, mean_rest, deviation(n_rest, m2_rest))
    return cut if exists else math.nan


@kernel
def propose_numeric(
    plan, p, statistics: GaussianStatistics, k: int, start: int, end: int, candidates
) -> None:
    """Write thresholds, ascending, and class masses on both sides; columns (a - start)·classes + i."""
    room = candidates_numeric(plan, p)
    left, right, thresholds = candidates.left, candidates.right, candidates.value
    for a in range(start, end):
        first = (a - start) * room
        stop = first
        for c in range(1 if k == 2 else k):
            cut = threshold_of(plan, statistics, k, c, a)
            if cut - cut != 0.0:
                continue
            place = stop
            while place > first and thresholds[place - 1] > cut:
                thresholds[place] = thresholds[place - 1]
                place -= 1
            thresholds[place] = cut
            stop += 1
        for i in range(stop, first + room):
            thresholds[i] = math.nan
        for c in range(k):
            n, mean, m2 = moments_of(plan, statistics, c, a)
            sd = deviation(n, m2)
            for i in range(first, first + room):
                left[c, i] = n * left_share(mean, sd, thresholds[i]) if i < stop else 0.0
                right[c, i] = max(n - left[c, i], 0.0)


@kernel
def masses_numeric(
    plan, p, statistics: GaussianStatistics, k: int, position: int, value: float, left, right
) -> None:
    """Write the class masses at or below a threshold of attribute ``position`` and above it."""
    for c in range(k):
        n, mean, m2 = moments_of(plan, statistics, c, position)
        left[c] = n * left_share(mean, deviation(n, m2), value)
        right[c] = max(n - left[c], 0.0)
        if n == 0.0:
            left[c], right[c] = -1.0, -1.0
