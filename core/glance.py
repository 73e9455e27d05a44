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
from core.tree import layout as at

_ERROR: Final = 1e-5
"""Of a merit, for each class and ten times over (special.rough_log2, rough_cdf: at most 4e-7)."""

_SHARE_ERROR: Final = 1e-6
"""Of a branch's share of the weight."""

candidates_numeric = observers.numeric_dispatcher()[2]
propose_roughly = observers.rough_dispatcher()
impurity_roughly = criteria.rough_dispatcher()


@kernel
def gap_at_most(plan: Any, knobs: Any, floats: Any, leaf: int, k: int) -> float:
    """Return what the gap between best and second best merit cannot exceed, infinity if that is unknown.

    For leaves of numeric attributes, whose observer and criterion can be rough (PLAN_GLANCE). "Do not split"
    is one of the tests, with merit 0.
    """
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
    best, first, second = 0.0, 0.0, -math.inf
    suggestions = 0
    for a in range(d):
        base = mixed_before[a] / weight_before[a]
        surely = -math.inf
        for i in range(a * candidates, (a + 1) * candidates):
            if math.isnan(thresholds[i]):
                continue
            total = weight[i] + weight_right[i]
            gain = base - (mixed[i] + mixed_right[i]) / total
            smaller = min(weight[i], weight_right[i]) / total
            if math.isnan(gain):
                return math.inf
            if share <= 0.0 or smaller > share - _SHARE_ERROR:
                best = max(best, gain)
            if share <= 0.0 or smaller > share + _SHARE_ERROR:
                surely = max(surely, gain)
        if surely > -math.inf:
            suggestions += 1
        if surely > first:
            first, second = surely, first
        else:
            second = max(second, surely)
    return best - second + 2.0 * _ERROR * (10 + k) if suggestions > 0 else math.inf
