"""Fit of the learning curve: the accuracy as a power law of the labels, and how it may leave this law.

The accuracy with n labels is a + u(n) - b·(n + 1)^-c with b ≥ 0 (inverse power law; Viering and Loog 2022).
Trees learn in steps and streams change, so that no law holds exactly: u is a random walk with variance
STEPS² per unit of log n, for growth, and WALKS² per 500 labels, for changes of the stream. For each exponent
and each pair of variances, a Kalman filter over the intervals has the exact posterior of a and b (Harvey
1989). The filters are averaged by their likelihoods (Hoeting, Madigan, Raftery and Volinsky 1999). There is
no iteration to a tolerance: a grid, and two passes, because the variance of a share depends on the accuracy.

b is measured at the first interval. Its prior is normal with standard deviation DROP, and b ≥ 0; that of a
is normal about the mean accuracy. Grid and priors were chosen on generated streams, seeds 1 to 10.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.kernels.jit import kernel

EXPONENTS: Final = (0.125, 0.25, 0.5, 1.0, 2.0)
STEPS: Final = (0.0, 0.02, 0.04)
STEP_PRIORS: Final = (0.4, 0.4, 0.2)
WALKS: Final = (0.0, 0.01, 0.03)
WALK_PRIORS: Final = (0.6, 0.25, 0.15)
FILTERS: Final = len(EXPONENTS) * len(STEPS) * len(WALKS)

LEVEL: Final = 0.5
"""Standard deviation of the prior of a."""
DROP: Final = 0.3
"""Scale of the prior of b."""

MORE: Final = 500
"""Labels that the forecast looks ahead."""

# Words of the result
MEAN: Final = 0
"""Accuracy after MORE more labels."""
SPREAD: Final = 1
"""Its standard deviation."""
GAIN: Final = 2
"""The part of the law in the change of the accuracy until then."""
GAIN_SPREAD: Final = 3
EXPECTED: Final = 4
"""Accuracy of the last interval, from the earlier intervals alone."""
EXPECTED_SPREAD: Final = 5
"""Its standard deviation, with the chance of the labels."""
RESULTS: Final = 6

# Words of a filter
WEIGHT: Final = 0
"""Logarithm of its likelihood times its prior; later its weight."""
EARLIER: Final = 1
"""The same without the last interval."""
A: Final = 2
B: Final = 3
VAR_A: Final = 4
COV: Final = 5
VAR_B: Final = 6
LAST: Final = 7
"""Mean of the last interval from the earlier ones."""
LAST_VAR: Final = 8
MEANS: Final = 9
"""Mean and second moment of the forecast, of the gain: four words."""
WORDS: Final = 13

# Rows of the terms that all filters share, with a column for each interval
POWERS: Final = 0
"""First of the rows of exponents: mean of (n + 1)^-c in the first interval, then its share of that."""
VARIANCE: Final = len(EXPONENTS)
"""Variance of the accuracy by the chance of the labels."""
GROWN: Final = VARIANCE + 1
"""Logarithm by which the labels grew since the middle of the interval before."""
CHANGED: Final = VARIANCE + 2
"""Labels since then, in units of MORE."""
TERMS: Final = VARIANCE + 3


@kernel
def mean_power(first: float, end: float, exponent: float) -> float:
    """Return the mean of (n + 1)^-exponent over n from ``first`` to ``end``."""
    first, end = first + 1.0, end + 1.0
    if exponent == 1.0:
        return (math.log(end) - math.log(first)) / (end - first)
    rest = 1.0 - exponent
    return (end**rest - first**rest) / (rest * (end - first))


@kernel
def above_zero(mean: float, spread: float) -> tuple[float, float, float]:
    """Return mean, variance and probability of the part of a normal variate that is above 0."""
    t = -mean / spread
    if t > 8.0:  # the ratios below would be of numbers near 0
        rest = spread / t
        return rest, rest * rest, 1e-15
    probability = 0.5 * math.erfc(t / math.sqrt(2.0))
    hazard = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / probability
    variance = spread * spread * max(1.0 + t * hazard - hazard * hazard, 0.0)
    return mean + spread * hazard, variance, probability


@kernel
def write_terms(intervals, terms) -> None:
    """Write the terms except the variances."""
    before = 0.0
    for row in range(len(intervals)):
        first, end = intervals[row, 0], intervals[row, 1]
        for number in range(len(EXPONENTS)):
            power = mean_power(first, end, EXPONENTS[number])
            terms[POWERS + number, row] = power if row == 0 else power / terms[POWERS + number, 0]
        middle = 0.5 * (first + end)
        terms[GROWN, row] = math.log((middle + 1.0) / (before + 1.0))
        terms[CHANGED, row] = (middle - before) / MORE
        before = middle


@kernel
def pass_filter(intervals, terms, filters, number: int, level: float) -> None:
    """Let a filter take in all intervals; level: mean of the prior of a."""
    powers = POWERS + number // (len(STEPS) * len(WALKS))
    growth, change = number // len(WALKS) % len(STEPS), number % len(WALKS)
    step, walk = STEPS[growth] * STEPS[growth], WALKS[change] * WALKS[change]
    a, b, var_a, cov, var_b = level, 0.0, LEVEL * LEVEL, 0.0, DROP * DROP
    likelihood = math.log(STEP_PRIORS[growth] * WALK_PRIORS[change])
    earlier, last, last_var = likelihood, 0.0, 1.0
    for row in range(len(intervals)):
        x = 1.0
        if row > 0:
            x = terms[powers, row]
            var_a += step * terms[GROWN, row] + walk * terms[CHANGED, row]
        earlier = likelihood
        gain_a, gain_b = var_a - x * cov, cov - x * var_b
        last, last_var = a - b * x, gain_a - x * gain_b + terms[VARIANCE, row]
        error = intervals[row, 2] - last
        likelihood -= 0.5 * (math.log(last_var) + error * error / last_var)
        a += gain_a / last_var * error
        b += gain_b / last_var * error
        var_a -= gain_a * gain_a / last_var
        cov -= gain_a * gain_b / last_var
        var_b -= gain_b * gain_b / last_var
    state = filters[number]
    state[A], state[B], state[VAR_A], state[COV], state[VAR_B] = a, b, var_a, cov, var_b
    state[LAST], state[LAST_VAR] = last, last_var
    state[EARLIER] = earlier
    state[WEIGHT] = likelihood + math.log(above_zero(b, math.sqrt(var_b))[2])


@kernel
def weigh(filters, word: int) -> None:
    """Turn logarithms into weights that add up to 1."""
    largest, total = -math.inf, 0.0
    for number in range(FILTERS):
        largest = max(largest, filters[number, word])
    for number in range(FILTERS):
        filters[number, word] = math.exp(filters[number, word] - largest)
        total += filters[number, word]
    for number in range(FILTERS):
        filters[number, word] /= total


@kernel
def foresee(state, number: int, scale: float, labels: float, middle: float) -> None:
    """Write the moments of a filter's forecast.

    scale: mean of (n + 1)^-c in the first interval; labels: of the model now; middle: of the last interval.
    """
    exponent = EXPONENTS[number // (len(STEPS) * len(WALKS))]
    step, walk = STEPS[number // len(WALKS) % len(STEPS)], WALKS[number % len(WALKS)]
    now = (labels + 1.0) ** -exponent / scale
    then = (labels + MORE + 1.0) ** -exponent / scale
    b, var_b, _ = above_zero(state[B], math.sqrt(state[VAR_B]))
    slope = state[COV] / state[VAR_B]
    # Given b, a is normal with this slope; b itself is normal, cut off at 0.
    mean = state[A] - state[B] * then + (slope - then) * (b - state[B])
    variance = max(state[VAR_A] - slope * state[COV], 0.0) + (slope - then) ** 2 * var_b
    variance += step * step * math.log((labels + MORE + 1.0) / (middle + 1.0))
    variance += walk * walk * (labels + MORE - middle) / MORE
    gain, gain_var = (now - then) * b, (now - then) ** 2 * var_b
    state[MEANS], state[MEANS + 1] = mean, variance + mean * mean
    state[MEANS + 2], state[MEANS + 3] = gain, gain_var + gain * gain


@kernel("void(float64[:, ::1], float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def write_forecast(intervals, labels: float, terms, filters, out) -> None:
    """Write the forecast to ``out``, float64[RESULTS].

    intervals: float64[m, 4], the labels before and after an interval, the accuracy in it, and the number of
    labels that this rests on; labels: of the model now, counted like these. Workspace: terms,
    float64[TERMS, m]; filters, float64[FILTERS, WORDS].
    """
    total, hits, m = 0.0, 0.0, len(intervals)
    for row in range(m):
        total += intervals[row, 3]
        hits += intervals[row, 3] * intervals[row, 2]
    level = (hits + 1.0) / (total + 2.0)
    write_terms(intervals, terms)
    for row in range(m):
        terms[VARIANCE, row] = level * (1.0 - level) / intervals[row, 3]
    for again in range(2):
        for number in range(FILTERS):
            pass_filter(intervals, terms, filters, number, level)
        weigh(filters, WEIGHT)
        for row in range(m if again == 0 else 0):
            share = 0.0
            for number in range(FILTERS):
                x = terms[POWERS + number // (len(STEPS) * len(WALKS)), row] if row > 0 else 1.0
                share += filters[number, WEIGHT] * (filters[number, A] - filters[number, B] * x)
            share = min(max(share, 0.02), 0.98)
            terms[VARIANCE, row] = share * (1.0 - share) / intervals[row, 3]
    weigh(filters, EARLIER)
    middle = 0.5 * (intervals[m - 1, 0] + intervals[m - 1, 1])
    mean, square, gain, gain_square, expected, expected_square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for number in range(FILTERS):
        state = filters[number]
        foresee(state, number, terms[POWERS + number // (len(STEPS) * len(WALKS)), 0], labels, middle)
        mean += state[WEIGHT] * state[MEANS]
        square += state[WEIGHT] * state[MEANS + 1]
        gain += state[WEIGHT] * state[MEANS + 2]
        gain_square += state[WEIGHT] * state[MEANS + 3]
        expected += state[EARLIER] * state[LAST]
        expected_square += state[EARLIER] * (state[LAST_VAR] + state[LAST] * state[LAST])
    out[MEAN], out[SPREAD] = mean, spread_of(mean, square)
    out[GAIN], out[GAIN_SPREAD] = gain, spread_of(gain, gain_square)
    out[EXPECTED], out[EXPECTED_SPREAD] = expected, spread_of(expected, expected_square)


@kernel
def spread_of(mean: float, square: float) -> float:
    """Return the standard deviation of a mixture from its first two moments."""
    return math.sqrt(max(square - mean * mean, 0.0))


def workspace(m: int) -> tuple[Any, Any]:
    """Return workspace for m intervals: terms and filters."""
    return np.empty((TERMS, m)), np.empty((FILTERS, WORDS))
