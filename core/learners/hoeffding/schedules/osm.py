"""OSM (one-sided minimum): due when the best test could lead by enough at the earliest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.criteria import base as criteria
from core.kernels.jit import kernel, outlined
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.branch_masses import branches_of, divide_leaf
from core.learners.hoeffding.ranking import BEST_ATTRIBUTE, BEST_MERIT, SECOND_MERIT, Ranking
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import period

impurity = criteria.dispatcher()


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due first after ``grace_period``, then when the best test could lead by ε at the earliest.

    ``{"schedule": "osm"}``: the second best is assumed to stay, and all future records to be of the majority
    class of the purest branch of the best test. The interval is at least ``grace_period``, but ends when ε
    falls below τ. A leaf waits ``grace_period`` if it has one class, if its best test is not to split, or if
    ε has no closed form [D37] (Losing, Wersing, Hammer 2018).
    """

    grace_period: float = period(200.0)
    """Labelled weight before the first attempt, and at least between two attempts."""

    def first(self) -> float:
        return self.grace_period


@kernel("float64(int64, float64[:, ::1], float64, float64, float64)", alone=True)
def earliest(criterion: int, masses, gap: float, n: float, needed: float) -> float:
    """Return the least whole weight after which the best test may lead by enough, at most 100,000.

    masses: float64[class, branch] of the best test, which leads by ``gap`` at weight n; a gap of 1 is enough
    from weight ``needed`` on. The lead grows with the weight, so that bisection finds the only crossing.
    """
    k, branches = masses.shape
    mixed, weight = np.empty(branches), np.empty(branches)
    impurity(criterion, masses, k, branches, mixed, weight)
    total = mixed_all = 0.0
    purest = -1
    for b in range(branches):
        total += weight[b]
        mixed_all += mixed[b]
        if weight[b] > 0.0 and (purest < 0 or mixed[b] / weight[b] < mixed[purest] / weight[purest]):
            purest = b
    if purest < 0:
        return waiting.FARTHEST
    column, impurity_of_column, one_weight = masses[:, purest : purest + 1].copy(), np.empty(1), np.empty(1)
    majority = 0
    for c in range(1, k):
        if column[c, 0] > column[majority, 0]:
            majority = c
    have = column[majority, 0]
    second = mixed_all / total + gap
    low, high = -1, int(waiting.FARTHEST)
    while high - low > 1:
        x = (low + high) // 2
        column[majority, 0] = have + x
        impurity(criterion, column, k, 1, impurity_of_column, one_weight)
        lead = second - (mixed_all - mixed[purest] + impurity_of_column[0]) / (total + x)
        if lead > math.sqrt(needed / (n + x)):
            high = x
        else:
            low = x
    return float(high)


earliest_here: Any = outlined(earliest)


@kernel
def observe(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, row: Row) -> bool:
    return waiting.is_over(leaf)


@kernel
def reschedule(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, ranking: Ranking) -> None:
    """Wait until the best test could lead by enough."""
    weight, out = p.grace_period, ranking.out
    n = waiting.weight_of_evidence(plan, node, leaf)
    tie = waiting.until_tie(plan, node, n)
    if waiting.can_reckon(plan, out) and tie > 0.0:
        best = int(out[BEST_ATTRIBUTE])
        test, value = ranking.test[best], ranking.value[best]
        branches = np.empty((branches_of(plan, tree, best, test), tree.model.classes))
        divide_leaf(plan, tree, leaf, best, test, value, branches)
        masses = np.maximum(branches, 0.0).T.copy()
        needed = plan.gap * waiting.squared_range(plan, node)
        gap = out[BEST_MERIT] - out[SECOND_MERIT]
        weight = min(tie, max(weight, earliest_here(plan.criterion, masses, gap, n, needed)))
    waiting.wait(plan, node, leaf, weight)
