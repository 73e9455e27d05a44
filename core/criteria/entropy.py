"""Scaled entropy: half the entropy in nats, the unit of CDT's first theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.criteria.base import Criterion
from core.kernels.jit import kernel
from core.numeric.special import LN2, x_log2_x


@dataclass(frozen=True, slots=True)
class Plugin(Criterion):
    """``-½ Σ π_c ln π_c`` before the split minus its mean after it: ``"criterion": "entropy"``.

    The merit of ``info_gain`` is 2/ln 2 = 2.885 times as large. In contrast to ``info_gain``, a split may
    send almost all weight down one branch (De Rosa and Cesa-Bianchi 2017, section 4).
    """

    def merit_range(self, classes: int) -> float:
        """Return ½ ln max(K, 2)."""
        return 0.5 * math.log(max(classes, 2))


@kernel
def reach(k: int) -> float:
    return 0.5 * math.log(max(k, 2))


@kernel
def deviation(n: float, log_delta: float, k: int) -> float:
    """Return CDT's theorem 1, with K/n for the bias of K classes [D11]."""
    return math.log(n) * math.sqrt(2.0 / n * (math.log(4.0) - log_delta)) + max(k, 2) / n


@kernel
def growth(n: float) -> float:
    return math.log(n)


@kernel
def sensitivity(n: float, k: int, printed: bool) -> float:
    """Return McDiarmid's constant for information gain, in this unit [D15]."""
    first = 1.0 / LN2 if printed else math.log2(n) + 1.0 / LN2
    return 0.5 * LN2 * (6.0 * (k * first + math.log2(2.0 * n)) + 2.0 * math.log2(float(k)))


@kernel
def impurity(masses, k: int, n: int, out, total) -> None:
    """Write ``W·H½ = ½(W ln W - Σ w_c ln w_c)`` and W for each of n columns."""
    for j in range(n):
        total[j] = masses[0, j]
        out[j] = x_log2_x(masses[0, j])
    for c in range(1, k):
        row = masses[c]
        for j in range(n):
            total[j] += row[j]
            out[j] += x_log2_x(row[j])
    for j in range(n):
        out[j] = 0.5 * LN2 * (x_log2_x(total[j]) - out[j])
