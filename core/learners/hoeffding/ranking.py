"""Ranking of a leaf's tests: one suggestion for each attribute, then best and second best [D5].

All steps work on columns: the observer writes class masses of each candidate, the criterion turns them into
impurities, and a scan along the attributes selects. An attempt is one call of a compiled function.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.criteria import base as criteria
from core.kernels.jit import WORDS, kernel, outlined, words_at
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.observers import base as observers
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.routing import node_at

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

_SIGNATURE = "void(int64, int64, int64, int64, float64[::1])"

propose_numeric, candidates_numeric = observers.numeric_dispatcher()[1:3]
masses_nominal, may_be_multiway = observers.nominal_dispatcher()[1:3]
impurity = criteria.dispatcher()


@kernel(_SIGNATURE)
def rank(plan_address: int, address: int, t: int, leaf: int, out) -> None:
    """Write the ranking of the leaf whose record is at word ``leaf`` of the tree at word t."""
    plan, params = words_at(plan_address)
    ints, floats = words_at(address)
    rank_leaf(plan, params, ints, floats, t, leaf, out)


@kernel
def rank_leaf(plan, params, ints, floats, t: int, leaf: int, out) -> None:
    """Write the ranking of a leaf, out: float64[RANKING_WORDS]."""
    merit, test, value, _ = new_survey(plan)
    survey_here(plan, params, ints, floats, t, leaf, merit, test, value, out)


@kernel
def new_survey(plan) -> tuple[Any, Any, Any, Any]:
    """Return arrays for merit, kind of test and value by attribute, and for the ranking."""
    d = plan[at.PLAN_ATTRIBUTES]
    return np.zeros(d), np.full(d, at.LEAF), np.zeros(d), np.zeros(RANKING_WORDS)


@kernel(f"void({WORDS}, int64, int64, float64[::1], int64[::1], float64[::1], float64[::1])")
def survey_leaf(plan, params, ints, floats, t: int, leaf: int, merit, test, value, out) -> None:
    """Write the best test of every attribute (test LEAF: none) and the ranking, into a new survey."""
    node = node_at(ints, t, ints[leaf + at.LEAF_NODE])
    k = ints[at.MODEL_CLASSES]
    out[CLASSES] = classes_with_weight(plan, floats, node, leaf, k)
    if out[CLASSES] < 2:
        return
    usable = untested(plan, ints, t, node)
    before, null = moa_merits(plan, floats, node, k)
    if plan[at.PLAN_NUMERIC] > 0:
        suggest_numeric_here(
            plan, params, floats, leaf, k, before, usable, 0, plan[at.PLAN_NUMERIC], merit, test, value
        )
    if plan[at.PLAN_NOMINAL] > 0:
        statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
        suggest_nominal_here(
            plan,
            params,
            ints,
            floats,
            statistics,
            k,
            before,
            usable,
            0,
            plan[at.PLAN_NOMINAL],
            merit,
            test,
            value,
        )
    choose(plan, merit, test, value, null, out)


survey_here: Any = outlined(survey_leaf)


@kernel
def classes_with_weight(plan, floats, node: int, leaf: int, k: int) -> int:
    """Return the number of classes with evidence in the leaf; for MOA inherited weight counts too."""
    by_votes = plan[at.PLAN_QUIRKS] & quirks.INHERITED_COUNTS != 0
    masses = node + at.NODE_FIELDS if by_votes else leaf + at.LEAF_FIELDS
    n = 0
    for c in range(k):
        if floats[masses + c] != 0.0:
            n += 1
    return n


@kernel
def untested(plan, ints, t: int, node: int) -> Any:
    """Return bool[attribute]: not the subject of a multiway test above [D4] (MOA: all are True).

    Where splits are revised: not the subject of any nominal test above.
    """
    revises = plan[at.PLAN_REVISION] != 0
    usable = np.ones(plan[at.PLAN_ATTRIBUTES], dtype=np.bool_)
    parent = ints[node + at.NODE_PARENT]
    while parent >= 0 and plan[at.PLAN_QUIRKS] & quirks.TESTS_AGAIN == 0:
        above = node_at(ints, t, parent)
        kind = ints[above + at.NODE_KIND]
        if kind == at.MULTIWAY or (revises and kind == at.CATEGORY):
            usable[ints[above + at.NODE_ATTRIBUTE]] = False
        parent = ints[above + at.NODE_PARENT]
    return usable


@kernel
def moa_merits(plan, floats, node: int, k: int) -> tuple[float, float]:
    """Return the impurity that MOA compares every test with, and the merit of not splitting.

    Without the quirk: NaN, since each attribute is compared with the impurity of its totals, and merit 0.
    """
    if plan[at.PLAN_QUIRKS] & quirks.MERIT_OF_NULL == 0:
        return math.nan, 0.0
    masses = np.empty((k, 1))
    for c in range(k):
        masses[c, 0] = floats[node + at.NODE_FIELDS + c]
    mixed, total = np.empty(1), np.empty(1)
    impurity(plan[at.PLAN_CRITERION], masses, k, 1, mixed, total)
    if plan[at.PLAN_NULL_MERIT] != 0:
        return 1.0, 1.0 - mixed[0] / total[0]
    return mixed[0] / total[0], -math.inf


@kernel(
    "void(CPointer(int64), CPointer(float64), CPointer(float64), int64, int64, float64, boolean[::1],"
    " int64, int64, float64[::1], int64[::1], float64[::1])"
)
def suggest_numeric(
    plan, params, floats, leaf: int, k: int, before: float, usable, start: int, end: int, merit, test, value
) -> None:
    """Write the best thresholds of the numeric attributes start … end-1; the smallest of equals."""
    kind, criterion = plan[at.PLAN_NUMERIC_OBSERVER], plan[at.PLAN_CRITERION]
    share = params[plan[at.PLAN_CRITERION + 1]]
    candidates = candidates_numeric(
        kind, PlanRecord(plan, params, 0), Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1])
    )
    d = end - start
    n = d * candidates
    left, right, thresholds = np.empty((k, n)), np.empty((k, n)), np.empty(n)
    statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    propose_numeric(
        kind,
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
        Words(plan, floats, statistics),
        k,
        start,
        end,
        observers.Candidates(left, right, thresholds),
    )
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
    for a in range(d):
        attribute = plan[plan[at.PLAN_NUMERIC_TABLE] + start + a]
        base = mixed_before[a] / weight_before[a] if math.isnan(before) else before
        for i in range(a * candidates, (a + 1) * candidates):
            if not usable[attribute] or math.isnan(thresholds[i]):
                continue
            total = weight[i] + weight_right[i]
            gain = base - (mixed[i] + mixed_right[i]) / total
            if share > 0.0 and min(weight[i], weight_right[i]) / total <= share:
                if plan[at.PLAN_QUIRKS] & quirks.SUGGESTS_UNFIT == 0:
                    continue
                gain = -math.inf
            elif moa_divides_by_zero(plan, weight[i] * weight_right[i]):
                gain = math.nan
            if test[attribute] == at.LEAF or gain > merit[attribute]:
                merit[attribute], test[attribute] = gain, at.NUMERIC
                value[attribute] = thresholds[i]


suggest_numeric_here: Any = outlined(suggest_numeric)


@kernel
def keep_met(k: int, n: int, one, other) -> int:
    """Move the classes with weight in any of n columns to the front; return their number, 1 at least.

    one, other: float64[class, column]. Classes without weight add nothing to an impurity, and a leaf has seen
    few of many classes. Two classes both stay: some criteria for two classes depend on their places.
    """
    if k <= 2:
        return k
    met = 0
    for c in range(k):
        column = 0
        while column < n and one[c, column] == 0.0 and other[c, column] == 0.0:
            column += 1
        if column < n:
            if met < c:
                for i in range(n):
                    one[met, i], other[met, i] = one[c, i], other[c, i]
            met += 1
    return max(met, 1)


@kernel(
    f"void({WORDS}, int64, int64, float64, boolean[::1],"
    " int64, int64, float64[::1], int64[::1], float64[::1])"
)
def suggest_nominal(
    plan,
    params,
    ints,
    floats,
    statistics: int,
    k: int,
    before: float,
    usable,
    start: int,
    end: int,
    merit,
    test,
    value,
) -> None:
    """Write the best tests of the nominal attributes start … end-1.

    Among equals the multiway test comes first, then the smallest value code.
    """
    kind, criterion = plan[at.PLAN_NOMINAL_OBSERVER], plan[at.PLAN_CRITERION]
    table = plan[at.PLAN_NOMINAL_TABLE]
    origin = plan[table + start * at.NOMINAL_FIELDS + at.NOMINAL_FIRST]
    last = table + (end - 1) * at.NOMINAL_FIELDS
    n, d = plan[last + at.NOMINAL_FIRST] + plan[last + at.NOMINAL_ROOM] - origin, end - start
    equal, other, totals = np.empty((k, n)), np.empty((k, n)), np.empty((k, d))
    masses_nominal(
        kind, PlanRecord(plan, params, 0), Words(ints, floats, statistics), k, origin, origin + n, equal
    )
    k = keep_met(k, n, equal, equal)
    complement(plan, k, start, end, equal, other, totals)
    if plan[at.PLAN_SORTS] != 0:
        mark_met(plan, k, start, end, equal, other)
    mixed, weight = np.empty(n), np.empty(n)
    mixed_other, weight_other = np.empty(n), np.empty(n)
    mixed_before, weight_before = np.empty(d), np.empty(d)
    impurity(criterion, equal, k, n, mixed, weight)
    impurity(criterion, other, k, n, mixed_other, weight_other)
    impurity(criterion, totals, k, d, mixed_before, weight_before)
    has_empty = plan[at.PLAN_QUIRKS] & quirks.EMPTY_VALUES != 0
    for j in range(d):
        entry = table + (start + j) * at.NOMINAL_FIELDS
        attribute = plan[entry + at.NOMINAL_COLUMN]
        first = plan[entry + at.NOMINAL_FIRST] - origin
        if not usable[attribute] or (weight_before[j] <= 0.0 and not has_empty):
            continue
        base = mixed_before[j] / weight_before[j] if math.isnan(before) else before
        stop = first + ints[plan[at.PLAN_VALUES_SEEN] + start + j]
        if has_empty:
            stop = first + reach(weight, first, first + plan[entry + at.NOMINAL_ROOM])
        if stop == first:
            continue
        multiway = may_be_multiway(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NOMINAL_OBSERVER + 1]),
            stop - first,
        )
        if multiway:
            best_multiway(plan, params, attribute, first, stop, base, mixed, weight, merit, test)
        if multiway and stop - first == 2:
            continue  # the test of either value gives the same partition
        share = params[plan[at.PLAN_CRITERION + 1]]
        for v in range(first, stop):
            total = weight[v] + weight_other[v]
            gain = base - (mixed[v] + mixed_other[v]) / total
            if share > 0.0 and min(weight[v], weight_other[v]) / total <= share:
                if plan[at.PLAN_QUIRKS] & quirks.SUGGESTS_UNFIT == 0:
                    continue
                gain = -math.inf
            elif moa_divides_by_zero(plan, weight[v] if v == first else weight[v] * weight_other[v]):
                gain = math.nan
            if test[attribute] == at.LEAF or gain > merit[attribute]:
                merit[attribute], test[attribute] = gain, at.CATEGORY
                value[attribute] = v - first


suggest_nominal_here: Any = outlined(suggest_nominal)


@kernel
def complement(plan, k: int, start: int, end: int, equal, other, totals) -> None:
    """Write class masses of the nominal attributes start … end-1, and the rest without each value.

    equal: the masses of their values; other: float64[class, value]; totals: float64[class, attribute].
    """
    table = plan[at.PLAN_NOMINAL_TABLE]
    origin = plan[table + start * at.NOMINAL_FIELDS + at.NOMINAL_FIRST]
    for c in range(k):
        for j in range(end - start):
            entry = table + (start + j) * at.NOMINAL_FIELDS
            first, room = plan[entry + at.NOMINAL_FIRST] - origin, plan[entry + at.NOMINAL_ROOM]
            total = 0.0
            for v in range(first, first + room):
                total += equal[c, v]
            for v in range(first, first + room):
                other[c, v] = total - equal[c, v]
            totals[c, j] = total


@kernel
def mark_met(plan, k: int, start: int, end: int, equal, other) -> None:
    """Give classes that were seen in a branch, but have no weight there, the least weight in it.

    A class counts as seen with all values below the largest value seen with it, where the vectors of
    published code end (core/learners/hoeffding/branch_masses.py:divide_nominal). Branches without any weight
    stay so.
    """
    table = plan[at.PLAN_NOMINAL_TABLE]
    origin = plan[table + start * at.NOMINAL_FIELDS + at.NOMINAL_FIRST]
    for j in range(end - start):
        entry = table + (start + j) * at.NOMINAL_FIELDS
        first, room = plan[entry + at.NOMINAL_FIRST] - origin, plan[entry + at.NOMINAL_ROOM]
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
def best_multiway(
    plan, params, attribute: int, first: int, end: int, base: float, mixed, weight, merit, test
) -> None:
    """Write the merit of one branch for each value, the columns first … end-1."""
    total, remaining, large = 0.0, 0.0, 0
    for v in range(first, end):
        total += weight[v]
        remaining += math.nan if moa_divides_by_zero(plan, weight[v]) else mixed[v]
    share = params[plan[at.PLAN_CRITERION + 1]]
    for v in range(first, end):
        if weight[v] / total > share:
            large += 1
    if share > 0.0 and large < 2:
        if plan[at.PLAN_QUIRKS] & quirks.SUGGESTS_UNFIT != 0:
            merit[attribute], test[attribute] = -math.inf, at.MULTIWAY
        return
    merit[attribute], test[attribute] = base - remaining / total, at.MULTIWAY


@kernel
def moa_divides_by_zero(plan, weight: float) -> bool:
    """Return whether MOA's Gini merit is not a number, because one of its branches has no weight."""
    return plan[at.PLAN_QUIRKS] & quirks.EMPTY_VALUES != 0 and plan[at.PLAN_NULL_MERIT] != 0 and weight == 0.0


@kernel
def beats(merit: float, other: float, last_wins: bool) -> bool:
    """Return whether a later merit replaces an earlier one."""
    if not last_wins:
        return merit > other
    return math.isnan(merit) or merit >= other


@kernel
def choose(plan, merit, test, value, null: float, out) -> None:
    """Write best and second best of the suggestions and "do not split".

    Ties go to the first suggestion; "do not split" comes before all suggestions [D7]. In MOA ties go to the
    last one, and a merit that is not a number comes last of all.
    """
    last_wins = plan[at.PLAN_QUIRKS] & quirks.LAST_OF_EQUALS != 0
    best, best_merit, second_merit, suggestions = NO_SPLIT, null, -math.inf, 1
    for a in range(len(merit)):
        if test[a] == at.LEAF:
            continue  # no suggestion
        suggestions += 1
        if beats(merit[a], best_merit, last_wins):
            second_merit = best_merit
            best, best_merit = a, merit[a]
        elif beats(merit[a], second_merit, last_wins):
            second_merit = merit[a]
    out[BEST_ATTRIBUTE] = best
    out[BEST_TEST] = test[best] if best >= 0 else at.LEAF
    out[BEST_VALUE] = value[best] if best >= 0 else 0.0
    out[BEST_MERIT] = best_merit
    out[SECOND_MERIT] = second_merit
    out[SUGGESTIONS] = suggestions
