"""Ranking of a leaf's tests: one suggestion for each attribute, then best and second best [D5].

All steps work on columns: the observer writes class masses of each candidate, the criterion turns them into
impurities, and a scan along the attributes selects. An attempt is one call of a compiled function.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from core.criteria import base as criteria
from core.criteria.base import min_branch_frac
from core.kernels.jit import kernel, outlined
from core.kernels.records import name_tuple
from core.layout.plan import PlanRecord
from core.layout.tree import CATEGORY, LEAF, MULTIWAY, NUMERIC, Leaf, Node, Tree
from core.observers import base as observers
from core.tree import quirks

# Words of a ranking (float64[RANKING_WORDS])
BEST_ATTRIBUTE: Final = 0  # NO_SPLIT: not to split is best
BEST_TEST: Final = 1  # kind of node
BEST_VALUE: Final = 2
BEST_MERIT: Final = 3
SECOND_MERIT: Final = 4
SUGGESTIONS: Final = 5  # suggestions, including "do not split"
CLASSES: Final = 6  # classes that have weight; below 2 nothing is ranked
EPSILON: Final = 7  # half-width of the bound (core/learners/hoeffding/split_decision.py)
EVIDENCE: Final = 8  # the weight that the bound uses
RANKING_WORDS: Final = 9

NO_SPLIT: Final = -1
MET: Final = 1e-300
"""Weight of a class that was seen in a branch and has no weight there: too small to change any sum."""


class Ranking(NamedTuple):
    """The best test of each attribute of a leaf, and a choice among them."""

    merit: Any
    """float64[attribute]."""
    test: Any
    """int64[attribute]: kind of the test, LEAF: none."""
    value: Any
    """float64[attribute]: threshold or category."""
    out: Any
    """float64[RANKING_WORDS]."""


name_tuple(Ranking, "float64[::1]", "int64[::1]", "float64[::1]", "float64[::1]")

propose_numeric, candidates_numeric = observers.numeric_dispatcher()[1:3]
masses_nominal, may_be_multiway = observers.nominal_dispatcher()[1:3]
impurity = criteria.dispatcher()


@kernel("void(PlanRecord, Tree, Leaf, float64[::1])")
def rank(plan: PlanRecord, tree: Tree, leaf: Leaf, out) -> None:
    """Do ``rank_leaf`` for Python."""
    rank_leaf(plan, tree, leaf, out)


@kernel
def rank_leaf(plan: PlanRecord, tree: Tree, leaf: Leaf, out) -> None:
    """Write the ranking of a leaf, out: float64[RANKING_WORDS]."""
    ranking = new_ranking(plan)
    survey_here(plan, tree, leaf, Ranking(ranking.merit, ranking.test, ranking.value, out))


@kernel
def new_ranking(plan: PlanRecord) -> Ranking:
    """Return the ranking of a leaf without suggestions."""
    d = plan.attributes
    return Ranking(np.zeros(d), np.full(d, LEAF), np.zeros(d), np.zeros(RANKING_WORDS))


@kernel("void(PlanRecord, Tree, Leaf, Ranking)")
def survey_leaf(plan: PlanRecord, tree: Tree, leaf: Leaf, ranking: Ranking) -> None:
    """Write the best test of every attribute, and the choice among them, into a new ranking."""
    node, model = tree.node(leaf.node), tree.model
    ranking.out[CLASSES] = classes_with_weight(plan, node, leaf, model.classes)
    if ranking.out[CLASSES] < 2:
        return
    usable = untested(plan, tree, node)
    before, null = moa_merits(plan, node, model.classes)
    if plan.numeric > 0:
        suggest_numeric_here(plan, tree, leaf, before, usable, 0, plan.numeric, ranking)
    if plan.nominal > 0:
        suggest_nominal_here(plan, tree, leaf, before, usable, 0, plan.nominal, ranking)
    choose(plan, ranking, null)


survey_here: Any = outlined(survey_leaf)


@kernel
def classes_with_weight(plan: PlanRecord, node: Node, leaf: Leaf, k: int) -> int:
    """Return the number of classes with evidence in the leaf; for MOA inherited weight counts too."""
    masses = node.masses if plan.has(quirks.INHERITED_COUNTS) else leaf.seen
    n = 0
    for c in range(k):
        if masses[c] != 0.0:
            n += 1
    return n


@kernel
def untested(plan: PlanRecord, tree: Tree, node: Node) -> Any:
    """Return bool[attribute]: not the subject of a multiway test above [D4] (MOA: all are True).

    Where splits are revised: not the subject of any nominal test above.
    """
    revises = plan.revision != 0
    usable = np.ones(plan.attributes, dtype=np.bool_)
    parent = node.parent
    while parent >= 0 and not plan.has(quirks.TESTS_AGAIN):
        above = tree.node(parent)
        if above.kind == MULTIWAY or (revises and above.kind == CATEGORY):
            usable[above.attribute] = False
        parent = above.parent
    return usable


@kernel
def moa_merits(plan: PlanRecord, node: Node, k: int) -> tuple[float, float]:
    """Return the impurity that MOA compares every test with, and the merit of not splitting.

    Without the quirk: NaN, since each attribute is compared with the impurity of its totals, and merit 0.
    """
    if not plan.has(quirks.MERIT_OF_NULL):
        return math.nan, 0.0
    masses = np.empty((k, 1))
    for c in range(k):
        masses[c, 0] = node.masses[c]
    mixed, total = np.empty(1), np.empty(1)
    impurity(plan.criterion, masses, k, 1, mixed, total)
    if plan.null_merit != 0:
        return 1.0, 1.0 - mixed[0] / total[0]
    return mixed[0] / total[0], -math.inf


_SUGGEST = "void(PlanRecord, Tree, Leaf, float64, boolean[::1], int64, int64, Ranking)"


@kernel(_SUGGEST)
def suggest_numeric(
    plan: PlanRecord,
    tree: Tree,
    leaf: Leaf,
    before: float,
    usable,
    start: int,
    end: int,
    ranking: Ranking,
) -> None:
    """Write the best thresholds of the numeric attributes start … end-1; the smallest of equals.

    before: impurity of the leaf, NaN: it follows from each attribute's totals. usable: bool[attribute].
    """
    kind, criterion, share = plan.numeric_observer, plan.criterion, min_branch_frac(plan)
    p, k = plan.parameters(plan.numeric_observer_at), tree.model.classes
    candidates = candidates_numeric(kind, plan, p)
    d = end - start
    n = d * candidates
    left, right, thresholds = np.empty((k, n)), np.empty((k, n)), np.empty(n)
    proposed = observers.Candidates(left, right, thresholds)
    propose_numeric(kind, plan, p, tree.numeric_statistics(plan, leaf), k, start, end, proposed)
    k = keep_met(k, n, left, right)
    mixed, weight = np.empty(n), np.empty(n)
    mixed_right, weight_right = np.empty(n), np.empty(n)
    impurity(criterion, left, k, n, mixed, weight)
    impurity(criterion, right, k, n, mixed_right, weight_right)
    mixed_before, weight_before = np.empty(d), np.empty(d)
    if math.isnan(before):
        totals = np.empty((k, d))
        for c in range(k):
            for a in range(d):
                totals[c, a] = left[c, a * candidates] + right[c, a * candidates]
        impurity(criterion, totals, k, d, mixed_before, weight_before)
    merit, test, value = ranking.merit, ranking.test, ranking.value
    for a in range(d):
        attribute = plan.numeric_column(start + a)
        base = mixed_before[a] / weight_before[a] if math.isnan(before) else before
        for i in range(a * candidates, (a + 1) * candidates):
            if not usable[attribute] or math.isnan(thresholds[i]):
                continue
            total = weight[i] + weight_right[i]
            gain = base - (mixed[i] + mixed_right[i]) / total
            if share > 0.0 and min(weight[i], weight_right[i]) / total <= share:
                if not plan.has(quirks.SUGGESTS_UNFIT):
                    continue
                gain = -math.inf
            elif moa_divides_by_zero(plan, weight[i] * weight_right[i]):
                gain = math.nan
            if test[attribute] == LEAF or gain > merit[attribute]:
                merit[attribute], test[attribute] = gain, NUMERIC
                value[attribute] = thresholds[i]


suggest_numeric_here: Any = outlined(suggest_numeric)


@kernel
def keep_met(k: int, n: int, masses, other_masses) -> int:
    """Move the classes with weight in any of n columns to the front; return their number, 1 at least.

    one, other: float64[class, column]. Classes without weight add nothing to an impurity, and a leaf has seen
    few of many classes. Two classes both stay: some criteria for two classes depend on their places.
    """
    if k <= 2:
        return k
    met = 0
    for c in range(k):
        column = 0
        while column < n and masses[c, column] == 0.0 and other_masses[c, column] == 0.0:
            column += 1
        if column < n:
            if met < c:
                for i in range(n):
                    masses[met, i], other_masses[met, i] = masses[c, i], other_masses[c, i]
            met += 1
    return max(met, 1)


@kernel(_SUGGEST)
def suggest_nominal(
    plan: PlanRecord,
    tree: Tree,
    leaf: Leaf,
    before: float,
    usable,
    start: int,
    end: int,
    ranking: Ranking,
) -> None:
    """Write the best tests of the nominal attributes start … end-1.

    Among equals the multiway test comes first, then the smallest value code. before, usable: see
    ``suggest_numeric``.
    """
    kind, criterion, share = plan.nominal_observer, plan.criterion, min_branch_frac(plan)
    p, model = plan.parameters(plan.nominal_observer_at), tree.model
    k, last = model.classes, plan.nominal_column(end - 1)
    origin = plan.nominal_column(start).first
    n, d = last.first + last.room - origin, end - start
    equal, other, totals = np.empty((k, n)), np.empty((k, n)), np.empty((k, d))
    masses_nominal(kind, plan, tree.nominal_statistics(leaf), k, origin, origin + n, equal)
    k = keep_met(k, n, equal, equal)
    complement(plan, k, start, end, equal, other, totals)
    if plan.sorts != 0:
        mark_met(plan, k, start, end, equal, other)
    mixed, weight = np.empty(n), np.empty(n)
    mixed_other, weight_other = np.empty(n), np.empty(n)
    mixed_before, weight_before = np.empty(d), np.empty(d)
    impurity(criterion, equal, k, n, mixed, weight)
    impurity(criterion, other, k, n, mixed_other, weight_other)
    impurity(criterion, totals, k, d, mixed_before, weight_before)
    merit, test, value = ranking.merit, ranking.test, ranking.value
    has_empty = plan.has(quirks.EMPTY_VALUES)
    for j in range(d):
        column = plan.nominal_column(start + j)
        attribute, first = column.column, column.first - origin
        if not usable[attribute] or (weight_before[j] <= 0.0 and not has_empty):
            continue
        base = mixed_before[j] / weight_before[j] if math.isnan(before) else before
        stop = first + model.values_seen(plan)[start + j]
        if has_empty:
            stop = first + reach(weight, first, first + column.room)
        if stop == first:
            continue
        multiway = may_be_multiway(kind, plan, p, stop - first)
        if multiway:
            suggest_multiway(plan, attribute, first, stop, base, mixed, weight, ranking)
        if multiway and stop - first == 2:
            continue  # the test of either value gives the same partition
        for v in range(first, stop):
            total = weight[v] + weight_other[v]
            gain = base - (mixed[v] + mixed_other[v]) / total
            if share > 0.0 and min(weight[v], weight_other[v]) / total <= share:
                if not plan.has(quirks.SUGGESTS_UNFIT):
                    continue
                gain = -math.inf
            elif moa_divides_by_zero(plan, weight[v] if v == first else weight[v] * weight_other[v]):
                gain = math.nan
            if test[attribute] == LEAF or gain > merit[attribute]:
                merit[attribute], test[attribute] = gain, CATEGORY
                value[attribute] = v - first


suggest_nominal_here: Any = outlined(suggest_nominal)


@kernel
def complement(plan: PlanRecord, k: int, start: int, end: int, equal, other, totals) -> None:
    """Write class masses of the nominal attributes start … end-1, and the rest without each value.

    equal: the masses of their values; other: float64[class, value]; totals: float64[class, attribute].
    """
    origin = plan.nominal_column(start).first
    for c in range(k):
        for j in range(end - start):
            column = plan.nominal_column(start + j)
            first, room = column.first - origin, column.room
            total = 0.0
            for v in range(first, first + room):
                total += equal[c, v]
            for v in range(first, first + room):
                other[c, v] = total - equal[c, v]
            totals[c, j] = total


@kernel
def mark_met(plan: PlanRecord, k: int, start: int, end: int, equal, other) -> None:
    """Give classes that were seen in a branch, but have no weight there, the least weight in it.

    A class counts as seen with all values below the largest value seen with it, where the vectors of
    published code end (core/learners/hoeffding/branch_masses.py:divide_nominal). Branches without any weight
    stay so.
    """
    origin = plan.nominal_column(start).first
    for j in range(end - start):
        column = plan.nominal_column(start + j)
        first, room = column.first - origin, column.room
        weight, rest = np.zeros(room), np.zeros(room)
        for c in range(k):
            for v in range(room):
                weight[v] += equal[c, first + v]
                rest[v] += other[c, first + v]
        for c in range(k):
            met = 0
            for v in range(room):
                if equal[c, first + v] > 0.0:
                    met = v + 1
            for v in range(room):
                if v < met and weight[v] > 0.0:
                    equal[c, first + v] = max(equal[c, first + v], MET)
                if (met > 1 or (met == 1 and v > 0)) and rest[v] > 0.0:
                    other[c, first + v] = max(other[c, first + v], MET)


@kernel
def reach(weight, first: int, end: int) -> int:
    """Return one more than the largest value code that has weight, among the columns first … end-1."""
    last = first - 1
    for v in range(first, end):
        if weight[v] > 0.0:
            last = v
    return last + 1 - first


@kernel
def suggest_multiway(
    plan: PlanRecord, attribute: int, first: int, end: int, base: float, mixed, weight, ranking: Ranking
) -> None:
    """Write the merit of one branch for each value, the columns first … end-1."""
    total, remaining, large = 0.0, 0.0, 0
    for v in range(first, end):
        total += weight[v]
        remaining += math.nan if moa_divides_by_zero(plan, weight[v]) else mixed[v]
    share = min_branch_frac(plan)
    for v in range(first, end):
        if weight[v] / total > share:
            large += 1
    if share > 0.0 and large < 2:
        if plan.has(quirks.SUGGESTS_UNFIT):
            ranking.merit[attribute], ranking.test[attribute] = -math.inf, MULTIWAY
        return
    ranking.merit[attribute], ranking.test[attribute] = base - remaining / total, MULTIWAY


@kernel
def moa_divides_by_zero(plan: PlanRecord, weight: float) -> bool:
    """Return whether MOA's Gini merit is not a number, because one of its branches has no weight."""
    return plan.has(quirks.EMPTY_VALUES) and plan.null_merit != 0 and weight == 0.0


@kernel
def beats(merit: float, other: float, last_wins: bool) -> bool:
    """Return whether a later merit replaces an earlier one."""
    if not last_wins:
        return merit > other
    return math.isnan(merit) or merit >= other


@kernel
def choose(plan: PlanRecord, ranking: Ranking, null: float) -> None:
    """Write best and second best of the suggestions and "do not split", which has the merit ``null``.

    Ties go to the first suggestion; "do not split" comes before all suggestions [D7]. In MOA ties go to the
    last one, and a merit that is not a number comes last of all.
    """
    merit, test, value, out = ranking.merit, ranking.test, ranking.value, ranking.out
    last_wins = plan.has(quirks.LAST_OF_EQUALS)
    best, best_merit, second_merit, suggestions = NO_SPLIT, null, -math.inf, 1
    for a in range(len(merit)):
        if test[a] == LEAF:
            continue  # no suggestion
        suggestions += 1
        if beats(merit[a], best_merit, last_wins):
            second_merit = best_merit
            best, best_merit = a, merit[a]
        elif beats(merit[a], second_merit, last_wins):
            second_merit = merit[a]
    out[BEST_ATTRIBUTE] = best
    out[BEST_TEST] = test[best] if best >= 0 else LEAF
    out[BEST_VALUE] = value[best] if best >= 0 else 0.0
    out[BEST_MERIT] = best_merit
    out[SECOND_MERIT] = second_merit
    out[SUGGESTIONS] = suggestions
