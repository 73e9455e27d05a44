"""Statistics of a node: weight, mean and squared deviations by column and class, and their naive Bayes."""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.learners.ufft.layout import ColumnMoments, PairForest, PairNode
from core.learners.ufft.steps import least_deviation
from core.numeric.moments import deviation
from core.numeric.special import LN2, exp, log2

SMALLEST: Final = 1e-9
"""Least deviation for a density, as a share of the mean's size (or of 1), where values have no step
(core/learners/ufft/steps.py).
"""
HUGE: Final = 1e290
"""Largest square of a standard score, so that sums of squares are finite."""
WIDE: Final = 1e100
"""Products of variances above it, or below its inverse, are replaced by their logarithm."""


@kernel
def value_of(plan: PlanRecord, forest: PairForest, x, column: int) -> float:
    """Return the value of a column in a record (x: float64[attribute]); NaN: missing.

    A nominal value that the model has not learned is missing; when it was added to the schema has no
    influence.
    """
    if column < plan.numeric:
        value = x[plan.numeric_column(column)]
        return value if value - value == 0.0 else math.nan
    for j in range(plan.nominal):
        attribute = plan.nominal_column(j)
        code = column - plan.numeric - attribute.first
        if 0 <= code < attribute.room:
            value = x[attribute.column]
            if not 0.0 <= value < forest.model.values_seen(plan)[j]:
                return math.nan
            return 1.0 if value == code else 0.0
    return math.nan


@kernel
def add_value(moments: ColumnMoments, value: float, weight: float) -> None:
    """Take in a value that is not missing: ``n += w; δ = x - mean; mean += w·δ/n; M2 += w·δ·(x - mean)``."""
    total = moments.n + weight
    delta = value - moments.mean
    mean = moments.mean + weight * delta / total
    moments.n = total
    moments.mean = mean
    moments.m2 += weight * delta * (value - mean)


@kernel
def add_record(plan: PlanRecord, node: PairNode, side: int, x, weight: float) -> None:
    """Take in a record of a class (side 0 or 1) at a node.

    A missing value is left out of the statistics of its column.
    """
    node.add_weight(side, weight)
    statistics, numeric = node.statistics(plan), plan.numeric
    for column in range(numeric):
        value = x[plan.numeric_column(column)]
        if value - value == 0.0:
            add_value(statistics.moments(column, side), value, weight)
    for j in range(plan.nominal):
        attribute = plan.nominal_column(j)
        value, room = x[attribute.column], attribute.room
        if 0.0 <= value < room:
            first = numeric + attribute.first
            for code in range(room):
                hit = 1.0 if value == code else 0.0
                add_value(statistics.moments(first + code, side), hit, weight)


@kernel
def variance(moments: ColumnMoments, least: float) -> float:
    """Return the variance of a column in a class, at least the square of the smallest deviation."""
    least = max(least, SMALLEST * max(1.0, abs(moments.mean)))
    spread = deviation(moments.n, moments.m2)
    return max(spread * spread, least * least)


@kernel
def column_odds(
    first: ColumnMoments, second: ColumnMoments, value: float, least: float
) -> tuple[float, float, float]:
    """Return half the difference of a value's squared scores, its rounding error, and the ratio of variances.

    first, second: the moments of the column in the two classes. least: the smallest deviation of both
    classes. ln f(x|0) - ln f(x|1) changes by the first two results plus half the logarithm of the third. If a
    class has fewer than two values in the column, or a number is not finite, the column has no effect: 0, 0
    and 1.
    """
    if not (first.n >= 2.0 and second.n >= 2.0) or value - value != 0.0:
        return 0.0, 0.0, 1.0
    first_variance, second_variance = variance(first, least), variance(second, least)
    to_first, to_second = value - first.mean, value - second.mean
    first_score = min(to_first * to_first / first_variance, HUGE)
    second_score = min(to_second * to_second / second_variance, HUGE)
    scores, ratio = second_score - first_score, second_variance / first_variance
    if scores - scores != 0.0 or not 0.0 < ratio < math.inf:
        return 0.0, 0.0, 1.0
    # Next to a score of 1e18 of one class the second score would be lost (Knuth's two-sum is exact).
    back = scores - second_score
    return 0.5 * scores, 0.5 * ((second_score - (scores - back)) - (first_score + back)), ratio


@kernel
def plus(total: float, lost: float, term: float) -> tuple[float, float]:
    """Return a sum with another term, and the rounding error so far (Neumaier 1974).

    The score of a value that no record of a class has had is 1e18: two such scores, one for each class, must
    not erase the other columns.
    """
    added = total + term
    rest = (total - added) + term if abs(total) >= abs(term) else (term - added) + total
    return added, lost + rest


@kernel
def log_odds(plan: PlanRecord, forest: PairForest, node: PairNode, x) -> float:
    """Return ln P(0|x) - ln P(1|x) of a node's naive Bayes; 0 while it has seen nothing."""
    first, second = node.first_weight, node.second_weight
    if first <= 0.0 or second <= 0.0:
        return 0.0 if first == second else (math.inf if first > 0.0 else -math.inf)
    total, lost, product = LN2 * (log2(first) - log2(second)), 0.0, 1.0
    if first < 2.0 or second < 2.0:
        return total
    statistics, numeric = node.statistics(plan), plan.numeric
    for column in range(numeric):
        value, least = x[plan.numeric_column(column)], least_deviation(plan, forest, column)
        score, rest, ratio = column_odds(
            statistics.moments(column, 0), statistics.moments(column, 1), value, least
        )
        total, lost = plus(total, lost + rest, score)
        if not 1.0 / WIDE < ratio < WIDE:
            total, lost = plus(total, lost, 0.5 * LN2 * log2(max(ratio, 1e-300)))
            ratio = 1.0
        product *= ratio
        if not 1.0 / WIDE < product < WIDE:
            total, lost = plus(total, lost, 0.5 * LN2 * log2(product))
            product = 1.0
    least_of_codes = least_deviation(plan, forest, numeric)
    for j in range(plan.nominal):
        attribute = plan.nominal_column(j)
        value, seen = x[attribute.column], forest.model.values_seen(plan)[j]
        if 0.0 <= value < seen:
            for code in range(seen):
                column, hit = numeric + attribute.first + code, 1.0 if value == code else 0.0
                score, rest, ratio = column_odds(
                    statistics.moments(column, 0), statistics.moments(column, 1), hit, least_of_codes
                )
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
