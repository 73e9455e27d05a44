"""Gaussian observer: a normal distribution per class and numeric attribute; ten thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from core.kernels.jit import kernel, part, tail
from core.kernels.records import Record, words_after
from core.numeric import cephes
from core.numeric.special import LN2, LN_SQRT_2PI, in_half_vectors, in_vectors, log2, normal_cdf, rough_cdf
from core.observers.base import Observer
from core.plugin import count
from core.tree import quirks

# Statistics of a class and attribute, in order
WEIGHT: Final = 0
MEAN: Final = 1
M2: Final = 2
"""Weighted squared deviations from the mean."""
LOW: Final = 3
HIGH: Final = 4
STATISTICS: Final = 5

PROBLEMS: Final = ()

LN_FLOOR: Final = math.log(1e-300)
FAR: Final = 40.0
"""A z whose Φ is 0 or 1 to the last bit."""
HIGHEST: Final = 1e300
"""Largest density that is multiplied."""


class Normals(NamedTuple):
    """The normal distributions of the numeric attributes in one class, each part float64[attribute]."""

    weight: Any
    mean: Any
    m2: Any
    """Weighted squared deviations from the mean."""
    low: Any
    high: Any


class GaussianStatistics(Record):
    """The statistics of the numeric attributes at a leaf."""

    words: Any = words_after(float, "[class][statistic][attribute]")

    def of_class(self, plan: Any, c: int) -> Normals:
        """Return the statistics of one class."""
        d = plan.numeric
        row = c * STATISTICS * d
        return Normals(
            part(self.words, row + WEIGHT * d, d),
            part(self.words, row + MEAN * d, d),
            part(self.words, row + M2 * d, d),
            part(self.words, row + LOW * d, d),
            part(self.words, row + HIGH * d, d),
        )


@dataclass(frozen=True, slots=True)
class Plugin(Observer):
    """Weight, mean, squared deviations and range (Welford's update; Pfahringer, Holmes, Kirkby 2008).

    ``candidates`` thresholds lie evenly between the smallest and the largest value of the leaf. Layout
    [class][statistic][attribute]: an update touches one class and runs along the attributes.
    """

    candidates: int = count(10, at_least=1, at_most=1000)
    """Thresholds of each attribute that an attempt evaluates."""

    kind: ClassVar[str] = "numeric"
    axes: ClassVar[tuple[str | int, ...]] = ("class", STATISTICS, "attribute")

    def clear(self, statistics: Any) -> None:
        """Write zero weight, and ranges that any value widens."""
        statistics[...] = 0.0
        statistics[..., LOW, :] = math.inf
        statistics[..., HIGH, :] = -math.inf


@kernel
def update_numeric(plan, p, statistics: GaussianStatistics, label: int, xs, weight: float) -> bool:
    """Take in one record; xs: float64[attribute], not finite = missing.

    ``n += w; δ = x - mean; mean += w·δ/n; M2 += w·δ·(x - mean)``. A missing value gets weight 0 instead of a
    branch, and everything is loaded before anything is chosen, so that the loop runs in vectors.
    """
    d = plan.numeric
    normals = statistics.of_class(plan, label)
    n, mean, m2 = normals.weight, normals.mean, normals.m2
    for a in range(d):
        value, before, old, squares = xs[a], n[a], mean[a], m2[a]
        is_known = value - value == 0.0
        x = value if is_known else old
        w = weight if is_known else 0.0
        total = before + w
        delta = x - old
        step = w * delta / total
        # The first value becomes the mean exactly, so that a density without deviation is found at it.
        moved = old + step if before > 0.0 else x
        n[a] = total
        mean[a] = moved
        m2[a] = squares + w * delta * (x - moved)
    low, high = normals.low, normals.high
    for a in range(d):
        value, lowest, highest = xs[a], low[a], high[a]
        x = value if value - value == 0.0 else math.nan
        low[a] = x if x < lowest else lowest
        high[a] = x if x > highest else highest
    return True


@kernel
def _range_of(plan, statistics: GaussianStatistics, k: int, a: int) -> tuple[float, float]:
    """Return the smallest and the largest value of numeric attribute a over all classes."""
    low, high = math.inf, -math.inf
    for c in range(k):
        normals = statistics.of_class(plan, c)
        low = min(low, normals.low[a])
        high = max(high, normals.high[a])
    return low, high


@kernel
def _divide_range(low: float, high: float, n: int, thresholds, first: int) -> None:
    """Write ``lo + (hi - lo)/(n + 1)·i`` for i = 1 … n, from column ``first`` on.

    NaN is written where that is not strictly inside the range.
    """
    step = (high - low) / (n + 1.0)
    for i in range(n):
        v = step * (i + 1.0) + low
        thresholds[first + i] = v if low < v < high else math.nan


@kernel
def _deviation(n: float, m2: float) -> float:
    """Return the standard deviation, 0 for a weight of at most 1."""
    return math.sqrt(max(m2, 0.0) / (n - 1.0)) if n > 1.0 else 0.0


@kernel
def _standardised(v: float, low: float, high: float, mean: float, deviation: float) -> float:
    """Return the z of a threshold; far out if the whole class lies on one side of it."""
    if v < low:
        return -FAR
    if v >= high:
        return FAR
    if deviation > 0.0:
        return (v - mean) / deviation
    return FAR if v >= mean else -FAR


@kernel
def candidates_numeric(plan, p) -> int:
    """Return the number of thresholds per attribute."""
    return int(p.candidates)


@kernel
def _is_unmet(weight, start: int, end: int) -> bool:
    """Return whether a class has no weight in the attributes start … end-1."""
    a = start
    while a < end and weight[a] == 0.0:
        a += 1
    return bool(a == end)


@kernel
def propose_numeric(
    plan, p, statistics: GaussianStatistics, k: int, start: int, end: int, candidates
) -> None:
    """Write thresholds and class masses on both sides; columns (a - start)·candidates + i."""
    n_thresholds = candidates_numeric(plan, p)
    thresholds = candidates.value
    for a in range(start, end):
        low, high = _range_of(plan, statistics, k, a)
        _divide_range(low, high, n_thresholds, thresholds, (a - start) * n_thresholds)
    columns = (end - start) * n_thresholds
    for c in range(k):
        below, weight = candidates.left[c], candidates.right[c]
        normals = statistics.of_class(plan, c)
        if _is_unmet(normals.weight, start, end):
            for i in range(columns):
                below[i], weight[i] = 0.0, 0.0
            continue
        for a in range(start, end):
            n, mean, low, high = normals.weight[a], normals.mean[a], normals.low[a], normals.high[a]
            deviation = _deviation(n, normals.m2[a])
            for i in range((a - start) * n_thresholds, (a - start + 1) * n_thresholds):
                below[i] = _standardised(thresholds[i], low, high, mean, deviation)
                weight[i] = n
        if plan.has(quirks.ROUNDED_MASSES):
            _propose_moa(normals, start, end, n_thresholds, thresholds, below, weight)
        else:
            for i in range(in_vectors(columns)):
                if i < columns:
                    below[i] = weight[i] * normal_cdf(below[i])
                    weight[i] = max(weight[i] - below[i], 0.0)


@kernel
def propose_roughly(plan, p, statistics: GaussianStatistics, k: int, candidates) -> int:
    """Write the same with a fast Φ (not for MOA), only for attributes with a range; return their number."""
    n_thresholds = candidates_numeric(plan, p)
    thresholds = candidates.value
    n = 0
    for a in range(plan.numeric):
        lowest, highest = _range_of(plan, statistics, k, a)
        if not lowest < highest:
            continue
        first = n * n_thresholds
        _divide_range(lowest, highest, n_thresholds, thresholds, first)
        for c in range(k):
            normals = statistics.of_class(plan, c)
            _stand(normals, a, thresholds, first, n_thresholds, candidates.left[c], candidates.right[c])
        n += 1
    columns = n * n_thresholds
    for c in range(k):
        below, weight = candidates.left[c], candidates.right[c]
        for i in range(in_vectors(columns)):
            if i < columns:
                below[i] = weight[i] * rough_cdf(below[i])
                weight[i] = max(weight[i] - below[i], 0.0)
    return n


@kernel
def _stand(normals: Normals, a: int, thresholds, first: int, n: int, below, weight) -> None:
    """Write the z of n thresholds of attribute a and the class' weight, from column ``first`` on.

    The z is that of ``_standardised`` up to rounding, computed without branches.
    """
    total, mean, low, high = normals.weight[a], normals.mean[a], normals.low[a], normals.high[a]
    deviation = _deviation(total, normals.m2[a])
    steepness = 1.0 / deviation if deviation > 0.0 else 1e300
    for i in range(first, first + n):
        v = thresholds[i]
        z = (v - mean) * steepness
        z = FAR if deviation <= 0.0 and v == mean else z
        z = -FAR if v < low else z
        below[i] = FAR if v >= high else z
        weight[i] = total


@kernel
def _propose_moa(normals: Normals, start: int, end: int, n_thresholds: int, thresholds, below, above) -> None:
    """Write the masses of one class on both sides of all thresholds in the way of MOA."""
    for a in range(start, end):
        n, mean, low, high = normals.weight[a], normals.mean[a], normals.low[a], normals.high[a]
        deviation = _deviation(n, normals.m2[a])
        for i in range((a - start) * n_thresholds, (a - start + 1) * n_thresholds):
            below[i], above[i] = _moa_masses(thresholds[i], low, high, n, mean, deviation)


@kernel
def _moa_masses(
    v: float, low: float, high: float, n: float, mean: float, deviation: float
) -> tuple[float, float]:
    """Return the masses at or below and above a threshold, with MOA's rounding.

    MOA subtracts the density at the threshold from the lower part and adds it back: this cancels up to
    rounding, which shows if a deviation is tiny. If the deviation is 0, MOA's lower part is inverted. A
    density beyond the range of floats is not subtracted, because the masses would become NaN.
    """
    if v < low:
        return 0.0, n
    if v >= high:
        return n, 0.0
    if deviation <= 0.0:
        return (n, 0.0) if v <= mean else (0.0, n)
    distance = v - mean
    scale = 1.0 / (math.sqrt(2.0 * math.pi) * deviation)
    equal = scale * math.exp(-(distance * distance / (2.0 * deviation * deviation))) * n
    if not equal < math.inf:
        equal = 0.0
    below = cephes.normal_cdf(min(max(distance / deviation, -FAR), FAR)) * n - equal
    return below + equal, max(n - equal - below, 0.0)


@kernel
def masses_numeric(
    plan, p, statistics: GaussianStatistics, k: int, position: int, value: float, left, right
) -> None:
    """Write the class masses at or below a threshold of attribute ``position`` and above it."""
    for c in range(k):
        normals = statistics.of_class(plan, c)
        n, mean = normals.weight[position], normals.mean[position]
        low, high = normals.low[position], normals.high[position]
        deviation = _deviation(n, normals.m2[position])
        z = _standardised(value, low, high, mean, deviation)
        if plan.has(quirks.ROUNDED_MASSES):
            left[c], right[c] = _moa_masses(value, low, high, n, mean, deviation)
        else:
            left[c] = n * normal_cdf(z)
            right[c] = max(n - left[c], 0.0)
        if n == 0.0 or value < low:
            left[c] = -1.0
        if n == 0.0 or value >= high:
            right[c] = -1.0


@kernel
def log_densities_numeric(plan, p, statistics: GaussianStatistics, k: int, xs, scratch, out) -> None:
    """Add the sum of ln f(x_a | c) to out[c], each density floored at 1e-300; missing values add nothing.

    If the deviation is 0, the density is 1 at the mean and 0 elsewhere; without weight it is 0. A class that
    is impossible already (minus infinity) stays so. Four sums run in parallel, because each addition of a sum
    waits for the previous one.
    """
    d = plan.numeric
    first = 0
    while first < k:
        n, end = 0, first
        while n < 4 and end < k:
            if out[end] > -math.inf:
                _log_densities(statistics.of_class(plan, end), d, xs, tail(scratch, n * d))
                n += 1
            end += 1
        if n == 0:
            return
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        if n <= 2:
            for a in range(d):
                t0 += scratch[a]
                t1 += scratch[d + a]
        else:
            for a in range(d):
                t0 += scratch[a]
                t1 += scratch[d + a]
                t2 += scratch[2 * d + a]
                t3 += scratch[3 * d + a]
        i = 0
        for c in range(first, end):
            if out[c] > -math.inf:
                low, high = (t0 if i == 0 else t1), (t2 if i == 2 else t3)
                out[c] += low if i < 2 else high
                i += 1
        first = end


@kernel
def _log_densities(normals: Normals, d: int, xs, out) -> None:
    """Write ln f(x_a | c) of one class for each of d attributes, and up to LANES - 1 words after these.

    The loop runs in halves of vectors.
    """
    n, mean, m2 = normals.weight, normals.mean, normals.m2
    for a in range(in_half_vectors(d)):
        value, weight, squares, centre = math.nan, 0.0, 0.0, 0.0
        if a < d:
            value, weight, squares, centre = xs[a], n[a], m2[a], mean[a]
        variance = squares / (weight - 1.0)
        variance = variance if weight > 1.0 else 0.0
        delta = value - centre
        # Deviations beyond the range of floats are clipped, which avoids infinity over infinity.
        spread = min(max(variance, 1e-300), 1e300)
        density = -LN_SQRT_2PI - 0.5 * LN2 * log2(spread) - delta * delta / (2.0 * spread)
        at_point = 0.0 if delta == 0.0 and weight > 0.0 else LN_FLOOR
        density = max(density, LN_FLOOR) if variance > 1e-300 else at_point
        out[a] = density if value - value == 0.0 else 0.0


@kernel
def densities_numeric(plan, p, statistics: GaussianStatistics, k: int, xs, out) -> None:
    """Multiply out[c] by the densities, which may underflow (MOA); densities above HIGHEST are clipped."""
    for c in range(k):
        normals = statistics.of_class(plan, c)
        for a in range(plan.numeric):
            if xs[a] - xs[a] == 0.0:
                n = normals.weight[a]
                delta = xs[a] - normals.mean[a]
                deviation = _deviation(n, normals.m2[a])
                if deviation > 0.0:
                    scale = 1.0 / (math.sqrt(2.0 * math.pi) * deviation)
                    density = scale * math.exp(-(delta * delta / (2.0 * deviation * deviation)))
                    if not density < HIGHEST:  # the square of a tiny deviation is 0
                        density = HIGHEST if delta == 0.0 else 0.0
                    out[c] = min(out[c] * density, HIGHEST)
                elif n == 0.0 or delta != 0.0:
                    out[c] *= 0.0
