"""Variance splits: the test that reduces the variance of a leaf's targets most, and whether to make it."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from core.kernels.jit import kernel
from core.kernels.records import Words, name_tuple
from core.layout.plan import PlanRecord
from core.learners.sgbt.boosted_nodes import stop, take_leaf
from core.learners.sgbt.layout import (
    NO_LEAF,
    Boosting,
    NumberSketch,
    TreeEntry,
    parameters_of,
    places_of,
    sketch_of,
    value_sums,
)
from core.numeric.special import LN2, log2

LEAST_WEIGHT: Final = 5.0
"""Least weight of either branch of a test."""
EQUAL: Final = 1e-9
"""Relative difference up to which two merits are equal: targets have few values at first, and many tests
divide them alike, so that rounding would decide. A merit up to this share of the mean square is none: the
targets of a leaf are often all the same.
"""


class Candidate(NamedTuple):
    """A test of a leaf, or the best of several."""

    merit: float
    """Reduction of the variance."""
    second: float
    """The second largest merit of the tests that it was the best of."""
    order: int
    is_category: int
    cut: float
    columns: int
    """Number of tests that it was the best of, one for each column; 0: there was none."""


name_tuple(Candidate, "float64", "float64", "int64", "int64", "float64", "int64")


@kernel
def variance(weight: float, total: float, squares: float) -> float:
    return (squares - total * total / weight) / weight


@kernel
def merit_of(weight: float, total: float, squares: float, branch: tuple[float, float, float]) -> float:
    """Return by how much a test reduces the variance of targets; branch: the sums of its left branch.

    0: a branch has too little weight, or the reduction is no more than rounding.
    """
    left_weight, left_total, left_squares = branch
    right_weight = weight - left_weight
    if not (left_weight >= LEAST_WEIGHT and right_weight >= LEAST_WEIGHT):
        return 0.0
    right = variance(right_weight, total - left_total, squares - left_squares)
    remaining = left_weight / weight * variance(left_weight, left_total, left_squares)
    merit = variance(weight, total, squares) - remaining - right_weight / weight * right
    return merit if merit > EQUAL * squares / weight else 0.0


@kernel
def best_cut(sketch: NumberSketch, bins: int) -> tuple[float, float]:
    """Return the largest merit of the cuts of a numeric attribute, and the lowest cut that has it."""
    used = sketch.used
    weight, total, squares = 0.0, 0.0, 0.0
    for i in range(used + 1):
        # The sums above all thresholds stay 0 until the sketch is full.
        sums = sketch.sums(bins, i if i < used else bins)
        weight += sums.weight
        total += sums.total
        squares += sums.squares
    best, cut = 0.0, sketch.thresholds[0]
    left_weight, left_total, left_squares = 0.0, 0.0, 0.0
    for i in range(used):
        sums = sketch.sums(bins, i)
        left_weight += sums.weight
        left_total += sums.total
        left_squares += sums.squares
        merit = merit_of(weight, total, squares, (left_weight, left_total, left_squares))
        if merit > best * (1.0 + EQUAL):
            best, cut = merit, sketch.thresholds[i]
    return best, cut


@kernel
def better(best: Candidate, merit: float, order: int, is_category: int, cut: float) -> Candidate:
    """Return the better of the best candidate so far and another; of equals the later one."""
    if best.columns == 0 or merit >= best.merit * (1.0 - EQUAL):
        return Candidate(merit, best.merit, order, is_category, cut, best.columns + 1)
    second = max(best.second, merit)
    return Candidate(best.merit, second, best.order, best.is_category, best.cut, best.columns + 1)


@kernel
def best_of(plan: PlanRecord, boosting: Boosting, entry: TreeEntry, leaf: Words) -> Candidate:
    """Return the best test of a leaf.

    Each value of a nominal attribute is a column of 0 and 1; if the attribute has two values, the second
    one alone, because the first is its mirror image.
    """
    best = Candidate(0.0, 0.0, 0, 0, 0.0, 0)
    bins = places_of(plan).bins
    for i in range(plan.numeric):
        sketch = sketch_of(plan, leaf, i)
        if sketch.used > 0 and entry.sees(plan.numeric_column(i)):
            merit, cut = best_cut(sketch, bins)
            best = better(best, merit, i, 0, cut)
    for j in range(plan.nominal):
        attribute = plan.nominal_column(j)
        if entry.sees(attribute.column):
            best = best_value(plan, leaf, j, boosting.model.values_seen(plan)[j], best)
    return best


@kernel
def best_value(plan: PlanRecord, leaf: Words, j: int, values: int, best: Candidate) -> Candidate:
    """Return the better of a candidate and the tests of the values of a nominal attribute (number j)."""
    first = plan.nominal_column(j).first
    weight, total, squares = 0.0, 0.0, 0.0
    for code in range(values):
        sums = value_sums(plan, leaf, first + code)
        weight += sums.weight
        total += sums.total
        squares += sums.squares
    if weight > 0.0:
        for code in range(1 if values == 2 else 0, values):
            sums = value_sums(plan, leaf, first + code)
            rest = (weight - sums.weight, total - sums.total, squares - sums.squares)
            best = better(best, merit_of(weight, total, squares, rest), j, 1, float(code))
    return best


@kernel
def is_decided(plan: PlanRecord, best: Candidate, weight: float) -> bool:
    """Return whether a leaf of this weight is split by its best test.

    The ratio of the second best merit to the best is below 1 - ε, ε is below tau, or there is no other test
    (Ikonomovska, Gama and Džeroski 2011). A test that reduces nothing is never made.
    """
    if best.columns == 0 or not best.merit > 0.0:
        return False
    p = parameters_of(plan)
    bound = math.sqrt(-LN2 * log2(p.delta) / (2.0 * weight))
    return best.columns == 1 or best.second / best.merit < 1.0 - bound or bound < p.tau


@kernel
def attempt(plan: PlanRecord, boosting: Boosting, entry: TreeEntry, number: int) -> bool:
    """Split a leaf, by its number, if one test is surely the best; return whether it was split.

    Its children have seen nothing, and predict 0.
    """
    node = boosting.node(plan, number)
    node.tried = node.weight
    boosting.attempts += 1
    best = best_of(plan, boosting, entry, boosting.leaf(plan, node.leaf))
    if not is_decided(plan, best, node.weight):
        return False
    if boosting.splits_left == 0:
        stop(boosting)
        return False
    boosting.splits_left -= 1
    record = node.leaf
    node.leaf = NO_LEAF
    node.left = take_leaf(plan, boosting, node.tree, number, record)
    node.right = take_leaf(plan, boosting, node.tree, number, -1)
    node.order = best.order
    node.is_category = best.is_category
    node.cut = best.cut
    boosting.splits += 1
    return True
