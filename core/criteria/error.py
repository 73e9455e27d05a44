"""Classification error."""

from __future__ import annotations

from dataclasses import dataclass

from core.criteria.base import Criterion
from core.kernels.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Criterion):
    """``1 - max π_c`` before the split minus its mean after it: ``"criterion": "error"``.

    A split whose branches all have the leaf's majority class has gain 0, even if they are much purer
    (Matuszyk et al. 2013).
    """

    def merit_range(self, classes: int) -> float:
        """Return 1 [D14]."""
        return 1.0


@kernel
def reach(k: int) -> float:
    return 1.0


@kernel
def impurity(masses, k: int, n: int, out, total) -> None:
    """Write ``W·Ψ = W - max w_c`` and W for each of n columns."""
    for j in range(n):
        total[j] = masses[0, j]
        out[j] = masses[0, j]
    for c in range(1, k):
        row = masses[c]
        for j in range(n):
            total[j] += row[j]
            out[j] = max(out[j], row[j])
    for j in range(n):
        out[j] = total[j] - out[j]
