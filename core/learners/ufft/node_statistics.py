"""Statistics of a node: weight, mean and squared deviations by column and class, and their naive Bayes."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.learners.ufft import layout as of
from core.learners.ufft.steps import least_deviation
from core.numeric.moments import deviation
from core.numeric.special import LN2, exp, log2
from core.tree import layout as at

SMALLEST: Final = 1e-9
"""Least deviation for a density, as a share of the mean's size (or of 1), where values have no step
(core/learners/ufft/steps.py).
"""
HUGE: Final = 1e290
"""Largest square of a standard score, so that sums of squares are finite."""
WIDE: Final = 1e100
"""Products of variances above it, or below its inverse, are replaced by their logarithm."""


@kernel
def value_of(plan, ints, x, column: int) -> float:
    """Return the value of a column in a record (x: float64[attribute]); NaN: missing.

    A nominal value that the model has not learned is missing; when it was added to the schema has no
    influence.
    """
    numeric = plan[at.PLAN_NUMERIC]
    if column < numeric:
        value = x[plan[plan[at.PLAN_NUMERIC_TABLE] + column]]
        return value if value - value == 0.0 else math.nan
    wanted = column - numeric
    for j in range(plan[at.PLAN_NOMINAL]):
        entry = plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS
        code = wanted - plan[entry + at.NOMINAL_FIRST]
        if 0 <= code < plan[entry + at.NOMINAL_ROOM]:
            value = x[plan[entry + at.NOMINAL_COLUMN]]
            if not 0.0 <= value < ints[plan[at.PLAN_VALUES_SEEN] + j]:
                return math.nan
            return 1.0 if value == code else 0.0
    return math.nan


@kernel
def add_value(floats, at: int, value: float, weight: float) -> None:
    """Take in a value that is not missing: ``n += w; δ = x - mean; mean += w·δ/n; M2 += w·δ·(x - mean)``."""
    total = floats[at] + weight
    delta = value - floats[at + 1]
    mean = floats[at + 1] + weight * delta / total
    floats[at] = total
    floats[at + 1] = mean
    floats[at + 2] += weight * delta * (value - mean)


@kernel
def add_record(plan, floats, node: int, side: int, x, weight: float) -> None:
    """Take in a record of a class (side 0 or 1) at the node whose record begins at word ``node``.

    A missing value is left out of the statistics of its column.
    """
    floats[node + of.NODE_WEIGHT + side] += weight
    statistics = node + of.place(plan, of.STATISTICS_AT) + side * of.STATISTICS
    numeric, table = plan[at.PLAN_NUMERIC], plan[at.PLAN_NUMERIC_TABLE]
    for column in range(numeric):
        value = x[plan[table + column]]
        if value - value == 0.0:
            add_value(floats, statistics + column * of.COLUMN_WORDS, value, weight)
    for j in range(plan[at.PLAN_NOMINAL]):
        entry = plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS
        value, room = x[plan[entry + at.NOMINAL_COLUMN]], plan[entry + at.NOMINAL_ROOM]
        if 0.0 <= value < room:
            first = statistics + (numeric + plan[entry + at.NOMINAL_FIRST]) * of.COLUMN_WORDS
            for code in range(room):
                hit = 1.0 if value == code else 0.0
                add_value(floats, first + code * of.COLUMN_WORDS, hit, weight)


@kernel
def variance(floats, at: int, least: float) -> float:
    """Return the variance of a column in a class, at least the square of the smallest deviation."""
    mean = floats[at + 1]
    least = max(least, SMALLEST * max(1.0, abs(mean)))
    spread = deviation(floats[at], floats[at + 2])
    return max(spread * spread, least * least)


@kernel
def column_odds(floats, at: int, value: float, least: float) -> tuple[float, float, float]:
    """Return half the difference of a value's squared scores, its rounding error, and the ratio of variances.

    least: the smallest deviation of both classes. ln f(x|0) - ln f(x|1) changes by the first two numbers plus
    half the logarithm of the third. If a class has fewer than two values in the column, or a number is
    not finite, the column has no effect: 0, 0 and 1.
    """
    if not (floats[at] >= 2.0 and floats[at + of.STATISTICS] >= 2.0) or value - value != 0.0:
        return 0.0, 0.0, 1.0
    first, second = variance(floats, at, least), variance(floats, at + of.STATISTICS, least)
    to_first, to_second = value - floats[at + 1], value - floats[at + of.STATISTICS + 1]
    of_first, of_second = min(to_first * to_first / first, HUGE), min(to_second * to_second / second, HUGE)
    scores, ratio = of_second - of_first, second / first
    if scores - scores != 0.0 or not 0.0 < ratio < math.inf:
        return 0.0, 0.0, 1.0
    # Next to a score of 1e18 of one class the second score would be lost (Knuth's two-sum is exact).
    taken = scores - of_second
    return 0.5 * scores, 0.5 * ((of_second - (scores - taken)) - (of_first + taken)), ratio


@kernel
def plus(total: float, lost: float, term: float) -> tuple[float, float]:
    """Return a sum with another term, and the rounding error so far (Neumaier 1974).

    The score of a value that no record of a class has had is 1e18: two such scores, one for each class, must
    not erase the other columns.
    """
    found = total + term
    rest = (total - found) + term if abs(total) >= abs(term) else (term - found) + total
    return found, lost + rest


@kernel
def log_odds(plan, params, ints, floats, t: int, node: int, x) -> float:
    """Return ln P(0|x) - ln P(1|x) of a node's naive Bayes; 0 while it has seen nothing."""
    first, second = floats[node + of.NODE_WEIGHT], floats[node + of.NODE_WEIGHT + 1]
    if first <= 0.0 or second <= 0.0:
        return 0.0 if first == second else (math.inf if first > 0.0 else -math.inf)
    total, lost, product = LN2 * (log2(first) - log2(second)), 0.0, 1.0
    if first < 2.0 or second < 2.0:
        return total
    statistics = node + of.place(plan, of.STATISTICS_AT)
    numeric, table = plan[at.PLAN_NUMERIC], plan[at.PLAN_NUMERIC_TABLE]
    for column in range(numeric):
        value = x[plan[table + column]]
        least = least_deviation(plan, params, floats, t, column)
        score, rest, ratio = column_odds(floats, statistics + column * of.COLUMN_WORDS, value, least)
        total, lost = plus(total, lost + rest, score)
        if not 1.0 / WIDE < ratio < WIDE:
            total, lost = plus(total, lost, 0.5 * LN2 * log2(max(ratio, 1e-300)))
            ratio = 1.0
        product *= ratio
        if not 1.0 / WIDE < product < WIDE:
            total, lost = plus(total, lost, 0.5 * LN2 * log2(product))
            product = 1.0
    of_codes = least_deviation(plan, params, floats, t, numeric)
    for j in range(plan[at.PLAN_NOMINAL]):
        entry = plan[at.PLAN_NOMINAL_TABLE] + j * at.NOMINAL_FIELDS
        value, seen = x[plan[entry + at.NOMINAL_COLUMN]], ints[plan[at.PLAN_VALUES_SEEN] + j]
        if 0.0 <= value < seen:
            here = statistics + (numeric + plan[entry + at.NOMINAL_FIRST]) * of.COLUMN_WORDS
            for code in range(seen):
                hit = 1.0 if value == code else 0.0
                score, rest, ratio = column_odds(floats, here + code * of.COLUMN_WORDS, hit, of_codes)
                # Deviations are bounded from below and values are 0 or 1: ratios lie within 1e18.
                total, lost = plus(total, lost + rest, score)
                product *= ratio
                if not 1.0 / WIDE < product < WIDE:
                    total, lost = plus(total, lost, 0.5 * LN2 * log2(product))
                    product = 1.0
    total, lost = plus(total, lost, 0.5 * LN2 * log2(product))
    return total + lost


@kernel
def share_of(odds: float) -> float:
    """Return the probability of the first class: the softmax of the two."""
    e = exp(-min(abs(odds), 1e9))
    return 1.0 / (1.0 + e) if odds >= 0.0 else e / (1.0 + e)
