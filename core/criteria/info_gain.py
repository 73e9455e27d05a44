"""Information gain in bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core.criteria import entropy
from core.criteria.base import Criterion
from core.kernels.jit import kernel
from core.numeric.special import LN2, in_vectors, log2, rough_log2, x_log2_x
from core.plugin import number

E: Final = math.e


@dataclass(frozen=True, slots=True)
class Plugin(Criterion):
    """Entropy before the split minus mean entropy after it: ``"criterion": "info_gain"``.

    A split is not suggested if all its weight except ``min_branch_frac`` goes down one branch (Quinlan 1986).
    """

    min_branch_frac: float = number(0.01, at_least=0.0, at_most=0.5)
    """At least two branches must hold more than this share of the weight; 0: no such rule."""

    null_merit_is_gain: ClassVar[bool] = False

    def merit_range(self, classes: int) -> float:
        """Return lg max(K, 2)."""
        return math.log2(max(classes, 2))


@kernel
def reach(k: int) -> float:
    return math.log2(max(k, 2))


@kernel
def deviation(n: float, log_delta: float, k: int) -> float:
    """Return CDT's theorem 1 in bits."""
    return 2.0 / LN2 * entropy.deviation(n, log_delta, k)


@kernel
def growth(n: float) -> float:
    return 2.0 / LN2 * entropy.growth(n)


@kernel
def sensitivity(n: float, k: int, printed: bool) -> float:
    """Return ``6·(K·lg(e·n) + lg 2n) + 2·lg K`` [D15]; the seed paper prints lg e instead of lg(e·n)."""
    first = 1.0 / LN2 if printed else math.log2(n) + 1.0 / LN2
    return 6.0 * (k * first + math.log2(2.0 * n)) + 2.0 * math.log2(float(k))


@kernel
def impurity(masses, k: int, n: int, out, total) -> None:
    """Write ``W·H = W lg W - Σ w_c lg w_c`` and W for each of n columns."""
    for j in range(in_vectors(n)):
        if j < n:
            total[j] = masses[0, j]
            out[j] = x_log2_x(masses[0, j])
    for c in range(1, k):
        row = masses[c]
        for j in range(in_vectors(n)):
            if j < n:
                total[j] += row[j]
                out[j] += x_log2_x(row[j])
    for j in range(in_vectors(n)):
        if j < n:
            out[j] = x_log2_x(total[j]) - out[j]


@kernel
def moment(n: float, squares: float) -> float:
    return x_log2_x(n)


@kernel
def steepest(n: float, ratio: float) -> float:
    """Return lg ``ratio``, the slope of x lg x at n minus the slope at a cell, at most lg n + lg e."""
    return log2(min(ratio, n * E))


@kernel
def increment(n: float, cell: float, moment: float, weight: float) -> tuple[float, float]:
    """Return the increase of ``W·H`` by a record: VFS Theorem 1 with the limits at zero cells."""
    grown = x_log2_x(n + weight)
    return (grown - moment) - (x_log2_x(cell + weight) - x_log2_x(cell)), grown


@kernel
def impurity_roughly(masses, k: int, n: int, out, total) -> None:
    for j in range(in_vectors(n)):
        if j < n:
            total[j] = masses[0, j]
            out[j] = masses[0, j] * rough_log2(masses[0, j])
    for c in range(1, k):
        row = masses[c]
        for j in range(in_vectors(n)):
            if j < n:
                total[j] += row[j]
                out[j] += row[j] * rough_log2(row[j])
    for j in range(in_vectors(n)):
        if j < n:
            out[j] = total[j] * rough_log2(total[j]) - out[j]
