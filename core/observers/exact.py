"""Exact observer: the first values of a leaf, sorted, with class and weight; every threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from core.kernels.jit import kernel, tail
from core.kernels.records import Record, words_after
from core.numeric.special import LN2, LN_SQRT_2PI, log2
from core.observers.base import Observer
from core.plugin import count

# Rows [attribute] of a leaf's statistics: one of numbers, then as many rows of each part as there is room
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

    Candidates are the midpoints between neighbours that differ (Quinlan 1993). A full leaf takes in no more
    values: it decides on the stored values, and their weight is the n of the bound, so that more records do
    not lower ε. ε has to be small enough at ``capacity`` (R·0.2 at 200, R·0.09 at 1,000, for δ = 1e-7), and
    ``tau`` splits a tie only if ε falls below it there. For few attributes: memory is 24·capacity·attributes
    bytes a leaf, an attempt costs capacity·classes·attributes. Naive Bayes uses the normal density of the
    stored values.
    """

    capacity: int = count(200, at_least=2, at_most=10_000)
    """Number of values of each attribute that a leaf keeps."""

    kind: ClassVar[str] = "numeric"
    axes: ClassVar[tuple[str | int, ...]] = ("row", "attribute")

    def sizes(self) -> dict[str, int]:
        return {"row": FIRST + PARTS * self.capacity}


class Column(NamedTuple):
    """The values of one attribute at a leaf, ascending; value i is at index i·d of each part."""

    values: Any
    classes: Any
    weights: Any


class SortedValues(Record):
    """The statistics of d numeric attributes at a leaf: counts, then the entries of each part."""

    counts: Any = words_after(
        float, "number of values [attribute], then values, classes, weights [i][attribute]"
    )

    def column(self, plan: Any, p: Any, a: int) -> Column:
        """Return the values of numeric attribute a."""
        d, room = plan.numeric, int(p.capacity)
        return Column(
            tail(self.counts, FIRST * d + a),
            tail(self.counts, (FIRST + room) * d + a),
            tail(self.counts, (FIRST + 2 * room) * d + a),
        )


@kernel
def update_numeric(plan, p, statistics: SortedValues, label: int, xs, weight: float) -> bool:
    """Take in one record; xs: float64[attribute], not finite = missing. Equal values keep their order."""
    d, room = plan.numeric, int(p.capacity)
    whole = True
    for a in range(d):
        x = xs[a]
        n = int(statistics.counts[a])
        if x - x == 0.0 and n >= room:
            whole = False
        elif x - x == 0.0:
            column = statistics.column(plan, p, a)
            place = n * d
            while place > 0 and column.values[place - d] > x:
                column.values[place] = column.values[place - d]
                column.classes[place] = column.classes[place - d]
                column.weights[place] = column.weights[place - d]
                place -= d
            column.values[place] = x
            column.classes[place] = label
            column.weights[place] = weight
            statistics.counts[a] = n + 1.0
    return whole


@kernel
def candidates_numeric(plan, p) -> int:
    """Return the number of gaps between the values of a full leaf."""
    return int(p.capacity) - 1


@kernel
def propose_numeric(plan, p, statistics: SortedValues, k: int, start: int, end: int, candidates) -> None:
    """Write midpoints and class masses on both sides; columns (a - start)·gaps + i."""
    d, gaps = plan.numeric, candidates_numeric(plan, p)
    left, right, thresholds = candidates.left, candidates.right, candidates.value
    for a in range(start, end):
        n = int(statistics.counts[a])
        entries = statistics.column(plan, p, a)
        first = (a - start) * gaps
        for c in range(k):
            left[c, first], right[c, first] = 0.0, 0.0
        for i in range(n):
            right[int(entries.classes[i * d]), first] += entries.weights[i * d]
        for i in range(gaps):
            thresholds[first + i] = math.nan
            column = first + i
            if i > 0:
                for c in range(k):
                    left[c, column], right[c, column] = left[c, column - 1], right[c, column - 1]
            if i < n:
                c, weight = int(entries.classes[i * d]), entries.weights[i * d]
                left[c, column] += weight
                right[c, column] = max(right[c, column] - weight, 0.0)
        for i in range(n - 1):
            lower, upper = entries.values[i * d], entries.values[(i + 1) * d]
            if lower < upper:
                middle = lower * 0.5 + upper * 0.5
                # Two neighbouring floats have no float between them.
                thresholds[first + i] = middle if lower <= middle < upper else lower


@kernel
def masses_numeric(
    plan, p, statistics: SortedValues, k: int, position: int, value: float, left, right
) -> None:
    """Write the class masses at or below a threshold of attribute ``position`` and above it."""
    d = plan.numeric
    entries = statistics.column(plan, p, position)
    for c in range(k):
        left[c], right[c] = -1.0, -1.0
    for i in range(int(statistics.counts[position])):
        c, weight = int(entries.classes[i * d]), entries.weights[i * d]
        if entries.values[i * d] <= value:
            left[c] = max(left[c], 0.0) + weight
        else:
            right[c] = max(right[c], 0.0) + weight


@kernel
def _normal(plan, p, statistics: SortedValues, a: int, c: int) -> tuple[float, float, float]:
    """Return weight, mean and variance of a class."""
    d = plan.numeric
    entries = statistics.column(plan, p, a)
    total, mean, squares = 0.0, 0.0, 0.0
    for i in range(int(statistics.counts[a])):
        if entries.classes[i * d] == c:
            x, weight = entries.values[i * d], entries.weights[i * d]
            total += weight
            delta = x - mean
            mean += weight * delta / total
            squares += weight * delta * (x - mean)
    # Deviations beyond the range of floats are clipped, which avoids infinity over infinity.
    return total, mean, min(max(squares, 0.0) / (total - 1.0), 1e300) if total > 1.0 else 0.0


@kernel
def log_densities_numeric(plan, p, statistics: SortedValues, k: int, xs, scratch, out) -> None:
    """Add the sum of ln f(x_a | c) to out[c], each density floored at 1e-300; missing values add nothing.

    If the deviation is 0, the density is 1 at the mean and 0 elsewhere; without weight it is 0.
    """
    for a in range(plan.numeric):
        x = xs[a]
        if x - x == 0.0:
            for c in range(k):
                total, mean, variance = _normal(plan, p, statistics, a, c)
                delta = x - mean
                density = LN_FLOOR
                if variance > 1e-300:
                    density = -LN_SQRT_2PI - 0.5 * LN2 * log2(variance) - delta * delta / (2.0 * variance)
                elif delta == 0.0 and total > 0.0:
                    density = 0.0
                out[c] += max(density, LN_FLOOR)


@kernel
def densities_numeric(plan, p, statistics: SortedValues, k: int, xs, out) -> None:
    """Multiply out[c] by the densities, which may underflow (MOA has no such observer)."""
    for a in range(plan.numeric):
        x = xs[a]
        if x - x == 0.0:
            for c in range(k):
                total, mean, variance = _normal(plan, p, statistics, a, c)
                delta = x - mean
                if variance > 0.0:
                    spread = math.sqrt(2.0 * math.pi * variance)
                    out[c] *= math.exp(-(delta * delta / (2.0 * variance))) / spread
                elif total == 0.0 or delta != 0.0:
                    out[c] *= 0.0


@kernel
def problem(plan, p, statistics: SortedValues, k: int) -> int:
    """Return the number of the sentence in PROBLEMS that applies to a leaf's statistics, 0: none."""
    d = plan.numeric
    for a in range(d):
        count = statistics.counts[a]
        if not 0.0 <= count <= int(p.capacity) or count != math.floor(count):
            return 1
        entries = statistics.column(plan, p, a)
        for i in range(int(count)):
            label = entries.classes[i * d]
            if not 0.0 <= label < k or label != math.floor(label):
                return 2
    return 0
