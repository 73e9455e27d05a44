"""OSM (one-sided minimum): due when the best test could lead by enough at the earliest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.criteria import base as criteria
from core.kernels.jit import kernel, outlined
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Tree
from core.learners.hoeffding import ranking
from core.learners.hoeffding.branch_masses import branches_of, divide_leaf
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import period
from core.tree import layout as at
from core.tree.byoffset.statistics import evidence

impurity = criteria.dispatcher()


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due first after ``grace_period``, then when the best test could lead by ε at the earliest.

    ``{"schedule": "osm"}``: the second best is assumed to stay, and all future records to be of the majority
    class of the purest branch of the best test. The interval is at least ``grace_period``, but ends when ε
    falls below τ. A leaf waits ``grace_period`` if it has one class, if its best test is not to split, or if
    ε has no closed form (ALGORITHMS section 16 [D37]; Losing, Wersing, Hammer 2018).
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
    column, one, one_weight = masses[:, purest : purest + 1].copy(), np.empty(1), np.empty(1)
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
        impurity(criterion, column, k, 1, one, one_weight)
        lead = second - (mixed_all - mixed[purest] + one[0]) / (total + x)
        if lead > math.sqrt(needed / (n + x)):
            high = x
        else:
            low = x
    return float(high)


earliest_here: Any = outlined(earliest)


@kernel
def observe(
    plan, params, ints, floats, t: int, node: int, leaf: int, x, xs, label: int, weight: float
) -> bool:
    return waiting.is_over(floats, leaf)


@kernel
def reschedule(plan, params, ints, floats, t: int, node: int, leaf: int, merit, test, value, out) -> None:
    """Wait until the best test could lead by enough."""
    weight = params[plan[at.PLAN_SCHEDULE + 1]]
    best = int(out[ranking.BEST_ATTRIBUTE])
    n = evidence(plan, ints, floats, node, leaf)
    tie = waiting.until_tie(plan, params, ints, node, n)
    if waiting.can_reckon(params, out) and tie > 0.0:
        k = ints[at.MODEL_CLASSES]
        branches = np.empty(
            (branches_of(PlanRecord(plan, params, 0), Tree(ints, floats, t), best, test[best]), k)
        )
        divide_leaf(
            PlanRecord(plan, params, 0),
            Tree(ints, floats, t),
            Leaf(ints, floats, leaf),
            best,
            test[best],
            value[best],
            branches,
        )
        masses = np.maximum(branches, 0.0).T.copy()
        needed = params[at.PLAN_GAP] * waiting.squared_range(plan, ints, node)
        gap = out[ranking.BEST_MERIT] - out[ranking.SECOND_MERIT]
        weight = min(tie, max(weight, earliest_here(plan[at.PLAN_CRITERION], masses, gap, n, needed)))
    waiting.wait(plan, ints, floats, node, leaf, weight)
