"""Exact observer: the first values of a leaf, sorted, with class and weight; every threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from core.kernels.jit import kernel
from core.numeric.special import LN2, LN_SQRT_2PI, log2
from core.observers.base import Observer
from core.plugin import count
from core.tree import layout

# Rows of a leaf's statistics: the number of values, then values (ascending), classes and weights
FIRST: Final = 1
PARTS: Final = 3

PROBLEMS: Final = (
    "the number of values of an attribute must be an integer from 0 to its capacity",
    "classes of the values must be known classes of the model",
)

LN_FLOOR: Final = math.log(1e-300)


@dataclass(frozen=True, slots=True)
class Plugin(Observer):
    """``"numeric_observer": "exact", "capacity": 200``: the first values of each attribute at a leaf.

    Candidates are the midpoints between neighbours that differ (ALGORITHMS section 2.4c; Quinlan 1993). A
    full leaf takes in no more values: it decides on the stored values, and their weight is the n of the
    bound, so that more records do not lower ε. ε has to be small enough at ``capacity`` (R·0.2 at 200, R·0.09
    at 1,000, for δ = 1e-7), and ``tau`` splits a tie only if ε falls below it there. For few attributes:
    memory is 24·capacity·attributes bytes a leaf, an attempt costs capacity·classes·attributes. Naive Bayes
    uses the normal density of the stored values.
    """

    capacity: int = count(200, at_least=2, at_most=10_000)
    """Number of values of each attribute that a leaf keeps."""

    kind: ClassVar[str] = "numeric"
    axes: ClassVar[tuple[str | int, ...]] = ("row", "attribute")

    def sizes(self) -> dict[str, int]:
        return {"row": FIRST + PARTS * self.capacity}


@kernel
def _capacity(plan, params) -> int:
    """Return the number of values that an attribute has room for."""
    return int(params[plan[layout.PLAN_NUMERIC_OBSERVER + 1]])


@kernel
def update_numeric(plan, params, floats, at: int, label: int, xs, weight: float) -> bool:
    """Take in one record; xs: float64[attribute], not finite = missing. Equal values keep their order."""
    d, room = plan[layout.PLAN_NUMERIC], _capacity(plan, params)
    whole = True
    for a in range(d):
        x = xs[a]
        column = at + a
        n = int(floats[column])
        if x - x == 0.0 and n >= room:
            whole = False
        elif x - x == 0.0:
            values, step = column + FIRST * d, room * d
            place = n
            while place > 0 and floats[values + (place - 1) * d] > x:
                for part in range(PARTS):
                    moved = values + part * step + place * d
                    floats[moved] = floats[moved - d]
                place -= 1
            floats[values + place * d] = x
            floats[values + step + place * d] = label
            floats[values + 2 * step + place * d] = weight
            floats[column] = n + 1.0
    return whole


@kernel
def candidates_numeric(plan, params) -> int:
    """Return the number of gaps between the values of a full leaf."""
    return _capacity(plan, params) - 1


@kernel
def propose_numeric(plan, params, floats, at: int, k: int, start: int, end: int, left, right, value) -> None:
    """Write midpoints and class masses on both sides; left, right: float64[class, (a - start)·gaps + i]."""
    d, room, gaps = plan[layout.PLAN_NUMERIC], _capacity(plan, params), candidates_numeric(plan, params)
    for a in range(start, end):
        n = int(floats[at + a])
        values, step = at + a + FIRST * d, room * d
        first = (a - start) * gaps
        for c in range(k):
            left[c, first], right[c, first] = 0.0, 0.0
        for i in range(n):
            right[int(floats[values + step + i * d]), first] += floats[values + 2 * step + i * d]
        for i in range(gaps):
            value[first + i] = math.nan
            column = first + i
            if i > 0:
                for c in range(k):
                    left[c, column], right[c, column] = left[c, column - 1], right[c, column - 1]
            if i < n:
                c, weight = int(floats[values + step + i * d]), floats[values + 2 * step + i * d]
                left[c, column] += weight
                right[c, column] = max(right[c, column] - weight, 0.0)
        for i in range(n - 1):
            one, other = floats[values + i * d], floats[values + (i + 1) * d]
            if one < other:
                middle = one * 0.5 + other * 0.5
                # Two neighbouring floats have no float between them.
                value[first + i] = middle if one <= middle < other else one


@kernel
def masses_numeric(plan, params, floats, at: int, k: int, position: int, value: float, left, right) -> None:
    """Write the class masses at or below a threshold of attribute ``position`` and above it."""
    d, room = plan[layout.PLAN_NUMERIC], _capacity(plan, params)
    values, step = at + position + FIRST * d, room * d
    for c in range(k):
        left[c], right[c] = -1.0, -1.0
    for i in range(int(floats[at + position])):
        c, weight = int(floats[values + step + i * d]), floats[values + 2 * step + i * d]
        if floats[values + i * d] <= value:
            left[c] = max(left[c], 0.0) + weight
        else:
            right[c] = max(right[c], 0.0) + weight


@kernel
def _normal(plan, params, floats, at: int, a: int, c: int) -> tuple[float, float, float]:
    """Return weight, mean and variance of a class."""
    d, room = plan[layout.PLAN_NUMERIC], _capacity(plan, params)
    values, step = at + a + FIRST * d, room * d
    total, mean, squares = 0.0, 0.0, 0.0
    for i in range(int(floats[at + a])):
        if floats[values + step + i * d] == c:
            x, weight = floats[values + i * d], floats[values + 2 * step + i * d]
            total += weight
            delta = x - mean
            mean += weight * delta / total
            squares += weight * delta * (x - mean)
    # Deviations beyond the range of floats are clipped, which avoids infinity over infinity.
    return total, mean, min(max(squares, 0.0) / (total - 1.0), 1e300) if total > 1.0 else 0.0


@kernel
def log_densities_numeric(plan, params, floats, at: int, k: int, xs, scratch, out) -> None:
    """Add the sum of ln f(x_a | c) to out[c], each density floored at 1e-300; missing values add nothing.

    If the deviation is 0, the density is 1 at the mean and 0 elsewhere; without weight it is 0.
    """
    for a in range(plan[layout.PLAN_NUMERIC]):
        x = xs[a]
        if x - x == 0.0:
            for c in range(k):
                total, mean, variance = _normal(plan, params, floats, at, a, c)
                delta = x - mean
                density = LN_FLOOR
                if variance > 1e-300:
                    density = -LN_SQRT_2PI - 0.5 * LN2 * log2(variance) - delta * delta / (2.0 * variance)
                elif delta == 0.0 and total > 0.0:
                    density = 0.0
                out[c] += max(density, LN_FLOOR)


@kernel
def densities_numeric(plan, params, floats, at: int, k: int, xs, out) -> None:
    """Multiply out[c] by the densities, which may underflow (MOA has no such observer)."""
    for a in range(plan[layout.PLAN_NUMERIC]):
        x = xs[a]
        if x - x == 0.0:
            for c in range(k):
                total, mean, variance = _normal(plan, params, floats, at, a, c)
                delta = x - mean
                if variance > 0.0:
                    spread = math.sqrt(2.0 * math.pi * variance)
                    out[c] *= math.exp(-(delta * delta / (2.0 * variance))) / spread
                elif total == 0.0 or delta != 0.0:
                    out[c] *= 0.0


@kernel
def problem(plan, params, floats, at: int, k: int) -> int:
    """Return the number of the sentence in PROBLEMS that applies to a leaf's statistics, 0: none."""
    d, room = plan[layout.PLAN_NUMERIC], _capacity(plan, params)
    for a in range(d):
        count = floats[at + a]
        if not 0.0 <= count <= room or count != math.floor(count):
            return 1
        classes = at + a + (FIRST + room) * d
        for i in range(int(count)):
            label = floats[classes + i * d]
            if not 0.0 <= label < k or label != math.floor(label):
                return 2
    return 0
