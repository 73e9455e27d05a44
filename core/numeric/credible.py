"""Credible bounds of a share: quantiles of a Beta posterior, and of a heterogeneity that depends on it.

T labels with k positives give Beta(k + 1, T - k + 1) under a uniform prior (Collet and Pietquin 2015, section
III). A heterogeneity H is symmetric about ½ and grows up to it, so that its quantiles follow from one number:
``s`` with ``P(s <= µ <= 1 - s) = q``, that is ``I_s(a, b) + I_s(b, a) = 1 - q``. The paper's r_q is ½ - s
(BCI, section III). The equation is solved for s because near 0 s has digits that ½ - s has lost. For the same
reason callers pass the probability of a tail, not of the rest: 1 - δ has lost the digits of a small δ. All in
plain arithmetic: the same bits on every platform, with or without the compiler.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.errors import ParameterError
from core.kernels.jit import called, kernel
from core.numeric.special import LN2, exp, log2

# Parts of a distribution of µ
ABOVE: Final = 0  # s < µ
OUTSIDE: Final = 1  # µ < s or µ > 1 - s
INSIDE: Final = 2  # s < µ < 1 - s

# Heterogeneities
ENTROPY: Final = 0  # in nats
VARIANCE: Final = 1
DEVIATION: Final = 2
HETEROGENEITIES: Final = {"entropy": ENTROPY, "variance": VARIANCE, "stddev": DEVIATION}

TINY: Final = 1e-300
MOST_TERMS: Final = 1_000_000
"""Most terms of a continued fraction: it needs some 60 for T = 1,000, and 40,000 for 10⁹."""
MOST_STEPS: Final = 400
CLOSE: Final = 4e-16
SMALL: Final = 1e-4
NOTHING: Final = 1e-30
"""Smallest factor of a continued fraction: below it the product vanishes in a sum with 1."""
LEAST_DELTA: Final = 1e-25
"""Least probability of a tail that is solved for; a smaller one would be below NOTHING."""

# ln n! minus Stirling's formula, n = 0 … 15; beyond that the series to 1/n^9 is exact to the last digit.
_STIRLING: Final = np.array(
    [0.0]
    + [
        math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
        for n in range(1, 16)
    ]
)
_STIRLING_KNOWN: Final = 15.5


@kernel
def stirling_error(n: float) -> float:
    """Return ln n! - (n + ½) ln n + n - ½ ln 2π for an integer n >= 1 (Loader 2000)."""
    if n < _STIRLING_KNOWN:
        return _STIRLING[int(n)]
    z = 1.0 / (n * n)
    series = 1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)
    return (1.0 / 12.0 - z * (1.0 / 360.0 - z * series)) / n


@called
def deviance(x: float, mean: float) -> float:
    """Return x·ln(x / mean) + mean - x, x > 0, without cancellation (Loader 2000)."""
    if abs(x - mean) >= 0.1 * (x + mean):
        return x * LN2 * log2(x / mean) + mean - x
    v = (x - mean) / (x + mean)
    total = (x - mean) * v
    term = 2.0 * x * v
    for j in range(1, 1000):
        term *= v * v
        following = total + term / (2 * j + 1)
        if following == total:
            break
        total = following
    return total


@called
def binomial(x: float, n: float, p: float, q: float) -> float:
    """Return the probability of x successes in n, p + q = 1, 0 <= x <= n, integers (Loader 2000)."""
    if x == 0.0:
        return exp(max(-deviance(n, n * q) - n * p, -1e3)) if n > 0.0 else 1.0
    if x == n:
        return exp(max(-deviance(n, n * p) - n * q, -1e3))
    logarithm = stirling_error(n) - stirling_error(x) - stirling_error(n - x)
    logarithm -= deviance(x, n * p) + deviance(n - x, n * q)
    if logarithm < -1e3:
        return 0.0
    return exp(logarithm) * math.sqrt(n / (2.0 * math.pi * x * (n - x)))


@called
def beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (Lentz), x below (a + 1)/(a + b + 2)."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > TINY else TINY)
    value = d
    for m in range(1, MOST_TERMS):
        twice = a + 2.0 * m
        factor = m * (b - m) * x / ((twice - 1.0) * twice)
        d = 1.0 + factor * d
        d = 1.0 / (d if abs(d) > TINY else TINY)
        c = 1.0 + factor / c
        c = c if abs(c) > TINY else TINY
        value *= d * c
        factor = -(a + m) * (a + b + m) * x / (twice * (twice + 1.0))
        d = 1.0 + factor * d
        d = 1.0 / (d if abs(d) > TINY else TINY)
        c = 1.0 + factor / c
        c = c if abs(c) > TINY else TINY
        step = d * c
        value *= step
        if abs(step - 1.0) <= CLOSE:
            break
    return value


@called
def tails(a: float, b: float, s: float) -> tuple[float, float, float]:
    """Return I_s(a, b), 1 - I_s(a, b) and the density at s.

    a, b: integers of at least 1; 0 < s < 1. The smaller of the first two results has full precision.
    """
    front = binomial(a, a + b - 1.0, s, 1.0 - s) * (1.0 - s)
    density = front * a / (s * (1.0 - s))
    if s > (a + 1.0) / (a + b + 2.0):
        rest = front * a / b
        upper = rest * beta_fraction(b, a, 1.0 - s) if rest > NOTHING else 0.0
        return 1.0 - upper, upper, density
    lower = front * beta_fraction(a, b, s) if front > NOTHING else 0.0
    return lower, 1.0 - lower, density


@called
def tail_point(a: float, b: float, target: float, part: int) -> float:
    """Return s where a part of Beta(a, b) has the probability ``target``.

    part: ABOVE s; OUTSIDE or INSIDE of the interval from s to 1 - s, s <= ½. A small s has full precision.

    Halley's steps, halved or shortened where they leave the interval that contains the solution.
    """
    low, high = 0.0, 1.0 if part == ABOVE else 0.5
    s = min(a / (a + b), 0.75 * high)
    for _ in range(MOST_STEPS):
        lower, upper, slope = tails(a, b, s)
        value, bend = target - upper, slope * ((a - 1.0) / s - (b - 1.0) / (1.0 - s))
        if part != ABOVE:
            other_lower, _, other = tails(b, a, s)
            value = lower + other_lower - target if part == OUTSIDE else target - (upper - other_lower)
            slope += other
            bend += other * ((b - 1.0) / s - (a - 1.0) / (1.0 - s))
        if value > 0.0:
            high = s
        else:
            low = s
        if value == 0.0 or high - low <= CLOSE * high:
            break
        following = -1.0
        if slope > 0.0:
            step = value / slope
            following = s - step / max(1.0 - 0.5 * step * bend / slope, 0.5)
        if not low < following < high:
            following = 0.5 * (low + high) if high <= 8.0 * low else max(0.125 * high, low)
            if following <= low:
                following = 0.5 * (low + high)
        if abs(following - s) <= CLOSE * s:
            s = following
            break
        s = following
    return s


@kernel
def middle_tail(labels: float, fewer: float, probability: float, part: int) -> float:
    """Return s = ½ - r_q of a leaf with ``labels`` labels, ``fewer`` of them of the rarer class.

    probability: that µ lies INSIDE of s to 1 - s (q), or OUTSIDE of it (1 - q).
    """
    return tail_point(fewer + 1.0, labels - fewer + 1.0, probability, part)


@kernel
def heterogeneity(kind: int, s: float) -> float:
    """Return H(s) for a share 0 <= s <= ½."""
    if kind == VARIANCE:
        return s * (1.0 - s)
    if kind == DEVIATION:
        return math.sqrt(s * (1.0 - s))
    if s < TINY:
        return 0.0
    if s < SMALL:  # (1 - s) ln(1 - s) as a series: 1 - s has lost digits of s
        return -s * LN2 * log2(s) + s - s * s * (0.5 + s * (1.0 / 6.0 + s / 12.0))
    return -LN2 * (s * log2(s) + (1.0 - s) * log2(1.0 - s))


@kernel
def largest_risk(labels: float, errors: float, delta: float) -> float:
    """Return the bound that the risk of a leaf's label exceeds with probability δ (equation 7, W = 1)."""
    return tail_point(errors + 1.0, labels - errors + 1.0, delta, ABOVE)


@kernel("void(float64[::1], float64[::1], float64, int64, float64[::1])", alone=True)
def _tail_points(labels, fewer, probability: float, part: int, out) -> None:
    for i in range(len(labels)):
        out[i] = tail_point(fewer[i] + 1.0, labels[i] - fewer[i] + 1.0, probability, part)


@kernel("void(float64[::1], int64, float64[::1])", alone=True)
def _heterogeneities(shares, kind: int, out) -> None:
    for i in range(len(shares)):
        out[i] = heterogeneity(kind, shares[i])


def _solved(labels: Any, positives: Any, probability: float, part: int) -> Any:
    labels, positives = np.broadcast_arrays(
        np.asarray(labels, dtype=np.float64), np.asarray(positives, dtype=np.float64)
    )
    flat = np.ascontiguousarray(labels).reshape(-1)
    fewer = np.ascontiguousarray(np.minimum(positives, labels - positives)).reshape(-1)
    out = np.empty(len(flat))
    _tail_points(flat, fewer, probability, part, out)
    return out.reshape(labels.shape)


def check_delta(delta: float) -> None:
    """Refuse a δ whose bounds would have no correct digit."""
    if not LEAST_DELTA <= delta < 1.0:
        msg = (
            f"delta={delta} must be at least {LEAST_DELTA} and below 1: bounds for a smaller one have no "
            f"digit that is right; take {LEAST_DELTA} or more"
        )
        raise ParameterError(msg)


def half_width(labels: Any, positives: Any, q: float) -> Any:
    """Return r_q, float64 of the shape of T and k: P(|µ - ½| <= r_q) = q."""
    root = _solved(labels, positives, q, INSIDE) if q <= 0.5 else _solved(labels, positives, 1.0 - q, OUTSIDE)
    return 0.5 - root


def heterogeneity_bounds(labels: Any, positives: Any, delta: float, kind: str = "entropy") -> tuple[Any, Any]:
    """Return the upper and the lower credible bound ε(δ), ε(1 - δ), float64 of the shape of T and k.

    kind: entropy (nats), variance or stddev. The true value is above the upper bound with probability δ, and
    below the lower bound with probability δ. Raises ParameterError for a δ below LEAST_DELTA or not below 1.
    """
    check_delta(delta)
    bounds = []
    for part in (INSIDE, OUTSIDE):
        shares = _solved(labels, positives, delta, part)
        out = np.empty(shares.size)
        _heterogeneities(shares.reshape(-1), HETEROGENEITIES[kind], out)
        bounds.append(out.reshape(shares.shape))
    return bounds[0], bounds[1]


def risk_bound(labels: Any, positives: Any, delta: float) -> Any:
    """Return the bound that a leaf's risk with its majority exceeds with probability δ (equation 7).

    float64 of the shape of T and k, per unit of the leaf's size. ParameterError as for
    ``heterogeneity_bounds``.
    """
    check_delta(delta)
    return _solved(labels, positives, delta, ABOVE)
