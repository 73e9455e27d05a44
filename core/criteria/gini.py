"""Gini impurity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from core.criteria.base import Criterion
from core.kernels.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Criterion):
    """``1 - Σ π_c²`` before the split minus its mean after it: ``"criterion": "gini"`` (Breiman, Friedman,
    Olshen, Stone 1984)."""

    deviation_classes: ClassVar[int | None] = 2

    def merit_range(self, classes: int) -> float:
        """Return 1, as MOA does, though two classes reach only ½ [D2]."""
        return 1.0


@kernel
def reach(k: int) -> float:
    return 1.0


@kernel
def deviation(n: float, log_delta: float, k: int) -> float:
    """Return CDT's theorem 2, for two classes."""
    return math.sqrt(8.0 / n * (math.log(2.0) - log_delta)) + 4.0 / math.sqrt(n)


@kernel
def growth(n: float) -> float:
    return 1.0


@kernel
def sensitivity(n: float, k: int, printed: bool) -> float:
    """Return 8 (Rutkowski et al. 2013)."""
    return 8.0


@kernel
def impurity(masses, k: int, n: int, out, total) -> None:
    """Write ``W·G = W - Σ w_c² / W`` and W for each of n columns."""
    for j in range(n):
        total[j] = masses[0, j]
        out[j] = masses[0, j] * masses[0, j]
    for c in range(1, k):
        row = masses[c]
        for j in range(n):
            total[j] += row[j]
            out[j] += row[j] * row[j]
    for j in range(n):
        out[j] = total[j] - out[j] / total[j] if total[j] > 0.0 else 0.0


@kernel
def moment(n: float, squares: float) -> float:
    return squares


@kernel
def steepest(n: float, ratio: float) -> float:
    """Return 2: no unit of weight adds more."""
    return 2.0


@kernel
def increment(n: float, cell: float, moment: float, weight: float) -> tuple[float, float]:
    """Return the increase of ``W·G`` by a record: VFS Theorem 2; 0 if it is the first of its branch."""
    grown, squares = n + weight, moment + weight * (2.0 * cell + weight)
    before = moment / n if n > 0.0 else 0.0
    after = squares / grown if grown > 0.0 else 0.0
    return weight - (after - before), squares
