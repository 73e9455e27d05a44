"""Classification error as the published code of CorrH-Tree computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.criteria.base import Criterion
from core.kernels.jit import kernel


@dataclass(frozen=True, slots=True)
class Plugin(Criterion):
    """The smaller of two class shares, with two faults that change trees: ``"criterion": "sorted_error"``.

    The published code sorts the class weights of a branch in place, so that the leaves of a split start with
    the larger weight for the second class, in any case. Also, a branch that the second class never reached
    counts as all wrong. For two classes; ``{"name": "corrh-tree", "compat": "cdt"}`` uses it (code of De
    Rosa and Cesa-Bianchi 2017).
    """

    max_classes: ClassVar[int | None] = 2
    sorts_branches: ClassVar[bool] = True

    def merit_range(self, classes: int) -> float:
        """Return 1 [D14]."""
        return 1.0


@kernel
def reach(k: int) -> float:
    return 1.0


@kernel
def impurity(masses, k: int, n: int, out, total) -> None:
    """Write ``W·min π_c``, W where the second class has no weight, and W for each of n columns."""
    for j in range(n):
        second = masses[1, j] if k > 1 else 0.0
        total[j] = masses[0, j] + second
        out[j] = min(masses[0, j], second) if second > 0.0 else masses[0, j]
