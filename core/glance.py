"""A glance at a due leaf: most attempts fail by far, and a rough ranking is enough to see that.

Ranking a leaf to the last bit is what attempts cost. Here the same tests are measured with a short
approximation of the normal distribution and of the logarithm, whose error has a bound: the gap between the
two best merits is no more than the rough gap and that bound. If even this gap, and the weight, are too small
for a split, the attempt has failed; anything else is left to the ranking. So the result is never another.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.criteria import base as criteria
from core.jit import kernel
from core.observers import base as observers
from core.ranking import complement, untested
from core.tree import layout as at

_ERROR: Final = 1e-5
"""Of a merit, for each class and ten times over (special.rough_log2, rough_cdf: at most 4e-7)."""

_SHARE_ERROR: Final = 1e-6
"""Of a branch's share of the weight."""

# Where the tests stand (float64[STANDING_WORDS])
_BEST: Final = 0  # the best merit there may be, "do not split" with merit 0 among them,
_FIRST: Final = 1  # and the two best of those that there are for sure
_SECOND: Final = 2
_SUGGESTIONS: Final = 3
_STANDING_WORDS: Final = 4

candidates_numeric = observers.numeric_dispatcher()[2]
masses_nominal = observers.nominal_dispatcher()[1]
propose_roughly = observers.rough_dispatcher()
impurity_roughly = criteria.rough_dispatcher()


@kernel
def gap_at_most(plan: Any, knobs: Any, ints: Any, floats: Any, t: int, node: int, leaf: int) -> float:
    """Return what the gap between best and second best merit cannot exceed, infinity if that is unknown.

    For leaves whose numeric observer and criterion can be rough (PLAN_GLANCE). "Do not split" is one of the
    tests, with merit 0.
    """
    standing = np.zeros(_STANDING_WORDS)
    standing[_SECOND] = -math.inf
    k = ints[at.MODEL_CLASSES]
    if plan[at.PLAN_NUMERIC] > 0:
        glance_numeric(plan, knobs, floats, leaf, k, standing)
    if plan[at.PLAN_NOMINAL] > 0:
        glance_nominal(plan, knobs, ints, floats, t, node, leaf, k, standing)
    if standing[_SUGGESTIONS] == 0.0:
        return math.inf
    return standing[_BEST] - standing[_SECOND] + 2.0 * _ERROR * (10 + k)


@kernel
def note(standing: Any, possibly: float, surely: float) -> None:
    """Take in the best merits of an attribute: of all its tests, and of those that are suggested for sure.

    A merit that is no number makes the gap unknown.
    """
    if math.isnan(possibly):
        possibly = math.inf
    standing[_BEST] = max(standing[_BEST], possibly)
    if surely > -math.inf:
        standing[_SUGGESTIONS] += 1.0
    if surely > standing[_FIRST]:
        standing[_FIRST], standing[_SECOND] = surely, standing[_FIRST]
    else:
        standing[_SECOND] = max(standing[_SECOND], surely)


@kernel
def glance_numeric(plan: Any, knobs: Any, floats: Any, leaf: int, k: int, standing: Any) -> None:
    """Take in the thresholds of all numeric attributes."""
    kind, criterion = plan[at.PLAN_NUMERIC_OBSERVER], plan[at.PLAN_CRITERION]
    share = knobs[plan[at.PLAN_CRITERION + 1]]
    candidates = candidates_numeric(kind, plan, knobs)
    d = plan[at.PLAN_NUMERIC]
    n = d * candidates
    left, right, thresholds = np.empty((k, n)), np.empty((k, n)), np.empty(n)
    statistics = leaf + at.LEAF_FIELDS + plan[at.PLAN_CLASSES]
    propose_roughly(kind, plan, knobs, floats, statistics, k, left, right, thresholds)
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
        note(standing, possibly, surely)


@kernel
def glance_nominal(
    plan: Any, knobs: Any, ints: Any, floats: Any, t: int, node: int, leaf: int, k: int, standing: Any
) -> None:
    """Take in the tests of all nominal attributes; their weights, and so what is suggested, are exact."""
    criterion, table = plan[at.PLAN_CRITERION], plan[at.PLAN_NOMINAL_TABLE]
    share = knobs[plan[at.PLAN_CRITERION + 1]]
    multiway = knobs[plan[at.PLAN_NOMINAL_OBSERVER + 1]] == 0.0
    d, n, seen = plan[at.PLAN_NOMINAL], plan[at.PLAN_VALUES], plan[at.PLAN_VALUES_SEEN]
    equal, other, totals = np.empty((k, n)), np.empty((k, n)), np.empty((k, d))
    statistics = leaf + ints[t + at.TREE_NOMINAL_AT]
    masses_nominal(plan[at.PLAN_NOMINAL_OBSERVER], plan, floats, statistics, k, 0, n, equal)
    complement(plan, k, 0, d, equal, other, totals)
    mixed, weight = np.empty(n), np.empty(n)
    mixed_other, weight_other = np.zeros(n), np.zeros(n)
    mixed_before, weight_before = np.empty(d), np.empty(d)
    impurity_roughly(criterion, equal, k, n, mixed, weight)
    impurity_roughly(criterion, totals, k, d, mixed_before, weight_before)
    halves = multiway  # attributes of two values have no test but the multiway one
    for j in range(d):
        halves = halves and ints[seen + j] == 2
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
        if multiway and end > first:
            merit = rough_multiway(share, first, end, base, mixed, weight)
        if not multiway or end - first != 2:
            for v in range(first, end):
                total = weight[v] + weight_other[v]
                if share <= 0.0 or min(weight[v], weight_other[v]) / total > share:
                    merit = max(merit, base - (mixed[v] + mixed_other[v]) / total)
        note(standing, merit, merit)


@kernel
def rough_multiway(share: float, first: int, end: int, base: float, mixed: Any, weight: Any) -> float:
    """Return the merit of one branch per value, minus infinity if it is no suggestion."""
    total, remaining, large = 0.0, 0.0, 0
    for v in range(first, end):
        total += weight[v]
        remaining += mixed[v]
    for v in range(first, end):
        if weight[v] / total > share:
            large += 1
    return base - remaining / total if share <= 0.0 or large >= 2 else -math.inf
