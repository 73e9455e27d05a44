"""Kearns and Mansour's index, for two classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from core.criteria.base import Criterion
from core.kernels.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Criterion):
    """``sqrt(p(1-p))`` before the split minus its mean after it: ``"criterion": "km"``.

    A model that uses it has at most two classes (Kearns and Mansour 1996).
    """

    max_classes: ClassVar[int | None] = 2
    deviation_classes: ClassVar[int | None] = 2

    def merit_range(self, classes: int) -> float:
        return 0.5


@kernel
def reach(k: int) -> float:
    return 0.5


@kernel
def deviation(n: float, log_delta: float, k: int) -> float:
    """Return CDT's theorem 3."""
    return 4.0 * math.sqrt(1.0 / n * (math.log(8.0) - log_delta))


@kernel
def growth(n: float) -> float:
    return 1.0


@kernel
def impurity(masses, k: int, n: int, out, total) -> None:
    """Write ``W·Q = sqrt(w_0 w_1)`` and W for each of n columns; a single class is pure."""
    for j in range(n):
        total[j] = masses[0, j]
        out[j] = math.sqrt(masses[0, j]) if k > 1 else 0.0
    if k > 1:
        row = masses[1]
        for j in range(n):
            total[j] += row[j]
            out[j] *= math.sqrt(row[j])
