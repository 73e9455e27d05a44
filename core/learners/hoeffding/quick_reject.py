"""Quick rejection: a due leaf whose approximate merits rule out a split is not ranked exactly.

Ranking a leaf exactly is the most expensive part of a split attempt, and most attempts fail by far. Here the
merits are computed with a short approximation of the normal distribution and of the logarithm whose error is
bounded: the gap between the two best merits is at most the approximate gap plus that bound. If this gap is
too small for a split at the leaf's weight, the attempt has failed; in all other cases the exact ranking
decides. So the tree is always the same.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from core.criteria import base as criteria
from core.kernels.jit import kernel
from core.kernels.records import Words
from core.layout.plan import PlanRecord
from core.learners.hoeffding.ranking import complement, untested
from core.observers import base as observers
from core.tree import layout as at

_ERROR: Final = 1e-5
"""Error of a merit: this for each class, plus ten times (special.rough_log2, rough_cdf: at most 4e-7)."""

_SHARE_ERROR: Final = 1e-6
"""Error of a branch's share of the weight."""

# The best merits so far (float64[LEADERS_WORDS])
_BEST: Final = 0  # upper bound of the best merit, including "do not split" with merit 0
_FIRST: Final = 1  # the two best merits of tests that are certainly suggested
_SECOND: Final = 2
_SUGGESTIONS: Final = 3
_LEADERS_WORDS: Final = 4

candidates_numeric = observers.numeric_dispatcher()[2]
masses_nominal, may_be_multiway = observers.nominal_dispatcher()[1:3]
propose_roughly = observers.rough_dispatcher()
impurity_roughly = criteria.rough_dispatcher()


@kernel
def gap_at_most(plan, params, ints, floats, t: int, node: int, leaf: int) -> float:
    """Return an upper bound of the gap between best and second best merit; infinity if there is none.

    For leaves whose numeric observer and criterion have approximations (PLAN_QUICK_REJECT). "Do not split" is
    one of the tests, with merit 0.
    """
    leaders = np.zeros(_LEADERS_WORDS)
    leaders[_SECOND] = -math.inf
    k = ints[at.MODEL_CLASSES]
    if plan[at.PLAN_NUMERIC] > 0:
        scan_numeric(plan, params, floats, leaf, k, leaders)
    if plan[at.PLAN_NOMINAL] > 0:
        scan_nominal(plan, params, ints, floats, t, node, leaf, k, leaders)
    if leaders[_SUGGESTIONS] == 0.0:
        return math.inf
    return leaders[_BEST] - leaders[_SECOND] + 2.0 * _ERROR * (10 + k)


@kernel
def add_merits(leaders, possibly: float, surely: float) -> None:
    """Add the best merits of an attribute: of all its tests, and of the tests that are certainly suggested.

    A merit that is not a number makes the gap unknown.
    """
    if math.isnan(possibly):
        possibly = math.inf
    leaders[_BEST] = max(leaders[_BEST], possibly)
    if surely > -math.inf:
        leaders[_SUGGESTIONS] += 1.0
    if surely > leaders[_FIRST]:
        leaders[_FIRST], leaders[_SECOND] = surely, leaders[_FIRST]
    else:
        leaders[_SECOND] = max(leaders[_SECOND], surely)


@kernel
def scan_numeric(plan, params, floats, leaf: int, k: int, leaders) -> None:
    """Add the merits of the thresholds of all numeric attributes."""
    kind, criterion = plan[at.PLAN_NUMERIC_OBSERVER], plan[at.PLAN_CRITERION]
    share = params[plan[at.PLAN_CRITERION + 1]]
    candidates = candidates_numeric(
        kind, PlanRecord(plan, params, 0), Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1])
    )
    d = plan[at.PLAN_NUMERIC]
    n = d * candidates
    left, right, thresholds = np.empty((k, n)), np.empty((k, n)), np.empty(n)
    statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    d = propose_roughly(
        kind,
        PlanRecord(plan, params, 0),
        Words(plan, params, plan[at.PLAN_NUMERIC_OBSERVER + 1]),
        Words(plan, floats, statistics),
        k,
        observers.Candidates(left, right, thresholds),
    )
    n = d * candidates
    mixed, weight = np.empty(n), np.empty(n)
    mixed_right, weight_right = np.empty(n), np.empty(n)
    impurity_roughly(criterion, left, k, n, mixed, weight)
    impurity_roughly(criterion, right, k, n, mixed_right, weight_right)
    totals, mixed_before, weight_before = np.empty((k, d)), np.empty(d), np.empty(d)
    for c in range(k):
        for a in range(d):
            totals[c, a] = left[c, a * candidates] + right[c, a * candidates]
    impurity_roughly(criterion, totals, k, d, mixed_before, weight_before)
    for a in range(d):
        base = mixed_before[a] / weight_before[a]
        possibly, surely = -math.inf, -math.inf
        for i in range(a * candidates, (a + 1) * candidates):
            if math.isnan(thresholds[i]):
                continue
            total = weight[i] + weight_right[i]
            gain = base - (mixed[i] + mixed_right[i]) / total
            smaller = min(weight[i], weight_right[i]) / total
            if math.isnan(gain):
                gain = math.inf
            if share <= 0.0 or smaller > share - _SHARE_ERROR:
                possibly = max(possibly, gain)
            if share <= 0.0 or smaller > share + _SHARE_ERROR:
                surely = max(surely, gain)
        add_merits(leaders, possibly, surely)


@kernel
def scan_nominal(plan, params, ints, floats, t: int, node: int, leaf: int, k: int, leaders) -> None:
    """Add the merits of all nominal attributes; the weights, and so the set of suggestions, are exact."""
    criterion, table = plan[at.PLAN_CRITERION], plan[at.PLAN_NOMINAL_TABLE]
    share = params[plan[at.PLAN_CRITERION + 1]]
    kind = plan[at.PLAN_NOMINAL_OBSERVER]
    d, n, seen = plan[at.PLAN_NOMINAL], plan[at.PLAN_VALUES], plan[at.PLAN_VALUES_SEEN]
    equal, other, totals = np.empty((k, n)), np.empty((k, n)), np.empty((k, d))
    statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
    masses_nominal(kind, PlanRecord(plan, params, 0), Words(ints, floats, statistics), k, 0, n, equal)
    complement(plan, k, 0, d, equal, other, totals)
    mixed, weight = np.empty(n), np.empty(n)
    mixed_other, weight_other = np.zeros(n), np.zeros(n)
    mixed_before, weight_before = np.empty(d), np.empty(d)
    impurity_roughly(criterion, equal, k, n, mixed, weight)
    impurity_roughly(criterion, totals, k, d, mixed_before, weight_before)
    halves = True  # attributes of two values have only the multiway test
    for j in range(d):
        halves = (
            halves
            and ints[seen + j] == 2
            and may_be_multiway(
                kind, PlanRecord(plan, params, 0), Words(plan, params, plan[at.PLAN_NOMINAL_OBSERVER + 1]), 2
            )
        )
    if not halves:
        impurity_roughly(criterion, other, k, n, mixed_other, weight_other)
    usable = untested(plan, ints, t, node)
    for j in range(d):
        entry = table + j * at.NOMINAL_FIELDS
        if not usable[plan[entry + at.NOMINAL_COLUMN]] or weight_before[j] <= 0.0:
            continue
        base = mixed_before[j] / weight_before[j]
        first = plan[entry + at.NOMINAL_FIRST]
        end = first + ints[seen + j]
        merit = -math.inf
        multiway = may_be_multiway(
            kind,
            PlanRecord(plan, params, 0),
            Words(plan, params, plan[at.PLAN_NOMINAL_OBSERVER + 1]),
            end - first,
        )
        if multiway and end > first:
            merit = rough_multiway(share, first, end, base, mixed, weight)
        if not multiway or end - first != 2:
            for v in range(first, end):
                total = weight[v] + weight_other[v]
                if share <= 0.0 or min(weight[v], weight_other[v]) / total > share:
                    merit = max(merit, base - (mixed[v] + mixed_other[v]) / total)
        add_merits(leaders, merit, merit)


@kernel
def rough_multiway(share: float, first: int, end: int, base: float, mixed, weight) -> float:
    """Return the merit of one branch for each value; minus infinity if it is no suggestion."""
    total, remaining, large = 0.0, 0.0, 0
    for v in range(first, end):
        total += weight[v]
        remaining += mixed[v]
    for v in range(first, end):
        if weight[v] / total > share:
            large += 1
    return base - remaining / total if share <= 0.0 or large >= 2 else -math.inf
