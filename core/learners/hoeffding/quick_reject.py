"""Quick rejection: a due leaf whose approximate merits rule out a split is not ranked exactly.

Ranking a leaf exactly is the most expensive part of a split attempt, and most attempts fail by far. Here the
merits are computed with a short approximation of the normal distribution and of the logarithm whose error is
bounded: the gap between the two best merits is at most the approximate gap plus that bound. If this gap is
too small for a split at the leaf's weight, the attempt has failed; in all other cases the exact ranking
decides. So the tree is always the same.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from core.criteria import base as criteria
from core.criteria.base import min_branch_frac
from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.ranking import complement, untested
from core.observers import base as observers

_ERROR: Final = 1e-5
"""Error of a merit: this for each class, plus ten times (special.rough_log2, rough_cdf: at most 4e-7)."""

_SHARE_ERROR: Final = 1e-6
"""Error of a branch's share of the weight."""


class Leaders(NamedTuple):
    """The best merits so far."""

    best: float
    """Upper bound of the best merit, including "do not split" with merit 0."""
    first: float
    """The best merit of tests that are certainly suggested."""
    second: float
    """The second best merit of such tests."""
    suggestions: float
    """Number of attributes with such tests."""


candidates_numeric = observers.numeric_dispatcher()[2]
masses_nominal, may_be_multiway = observers.nominal_dispatcher()[1:3]
propose_roughly = observers.rough_dispatcher()
impurity_roughly = criteria.rough_dispatcher()


@kernel
def gap_at_most(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf) -> float:
    """Return an upper bound of the gap between best and second best merit; infinity if there is none.

    For leaves whose numeric observer and criterion have approximations (``PlanRecord.quick_reject``). "Do not
    split" is one of the tests, with merit 0.
    """
    leaders = Leaders(0.0, 0.0, -math.inf, 0.0)
    k = tree.model.classes
    if plan.numeric > 0:
        leaders = scan_numeric(plan, tree, leaf, k, leaders)
    if plan.nominal > 0:
        leaders = scan_nominal(plan, tree, node, leaf, k, leaders)
    if leaders.suggestions == 0.0:
        return math.inf
    return leaders.best - leaders.second + 2.0 * _ERROR * (10 + k)


@kernel
def with_merits(leaders: Leaders, possibly: float, surely: float) -> Leaders:
    """Return the leaders after an attribute's best merits: of all its tests, and of those surely suggested.

    A merit that is not a number makes the gap unknown.
    """
    if math.isnan(possibly):
        possibly = math.inf
    best, first, second = max(leaders.best, possibly), leaders.first, leaders.second
    suggestions = leaders.suggestions + (1.0 if surely > -math.inf else 0.0)
    if surely > first:
        first, second = surely, first
    else:
        second = max(second, surely)
    return Leaders(best, first, second, suggestions)


@kernel
def scan_numeric(plan: PlanRecord, tree: Tree, leaf: Leaf, k: int, leaders: Leaders) -> Leaders:
    """Return the leaders after the thresholds of all numeric attributes."""
    kind, criterion, share = plan.numeric_observer, plan.criterion, min_branch_frac(plan)
    p = plan.parameters(plan.numeric_observer_at)
    candidates = candidates_numeric(kind, plan, p)
    n = plan.numeric * candidates
    left, right, thresholds = np.empty((k, n)), np.empty((k, n)), np.empty(n)
    statistics = tree.numeric_statistics(plan, leaf)
    d = propose_roughly(kind, plan, p, statistics, k, observers.Candidates(left, right, thresholds))
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
        leaders = with_merits(leaders, possibly, surely)
    return leaders


@kernel
def scan_nominal(plan: PlanRecord, tree: Tree, node: Node, leaf: Leaf, k: int, leaders: Leaders) -> Leaders:
    """Return the leaders after all nominal attributes; the weights, and so the suggestions, are exact."""
    kind, criterion, share = plan.nominal_observer, plan.criterion, min_branch_frac(plan)
    p, model = plan.parameters(plan.nominal_observer_at), tree.model
    d, n = plan.nominal, plan.values
    equal, other, totals = np.empty((k, n)), np.empty((k, n)), np.empty((k, d))
    masses_nominal(kind, plan, tree.nominal_statistics(leaf), k, 0, n, equal)
    complement(plan, k, 0, d, equal, other, totals)
    mixed, weight = np.empty(n), np.empty(n)
    mixed_other, weight_other = np.zeros(n), np.zeros(n)
    mixed_before, weight_before = np.empty(d), np.empty(d)
    impurity_roughly(criterion, equal, k, n, mixed, weight)
    impurity_roughly(criterion, totals, k, d, mixed_before, weight_before)
    halves = True  # attributes of two values have only the multiway test
    for j in range(d):
        halves = halves and model.values_seen(plan)[j] == 2 and may_be_multiway(kind, plan, p, 2)
    if not halves:
        impurity_roughly(criterion, other, k, n, mixed_other, weight_other)
    usable = untested(plan, tree, node)
    for j in range(d):
        column = plan.nominal_column(j)
        if not usable[column.column] or weight_before[j] <= 0.0:
            continue
        base = mixed_before[j] / weight_before[j]
        first, seen = column.first, model.values_seen(plan)[j]
        merit = -math.inf
        multiway = may_be_multiway(kind, plan, p, seen)
        if multiway and seen > 0:
            merit = rough_multiway(share, first, first + seen, base, mixed, weight)
        if not multiway or seen != 2:
            for v in range(first, first + seen):
                total = weight[v] + weight_other[v]
                if share <= 0.0 or min(weight[v], weight_other[v]) / total > share:
                    merit = max(merit, base - (mixed[v] + mixed_other[v]) / total)
        leaders = with_merits(leaders, merit, merit)
    return leaders


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
