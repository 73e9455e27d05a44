"""IMAC's rivals: the two merits that an attempt would compare, and the weight in which they cannot suffice.

A record of weight w adds at most w·steepest (core/criteria/base.py) to mass times impurity, and subtracts
nothing, so that a gap that is far too small stays too small for a known weight, the quiet weight.
"""

from __future__ import annotations

import math

from core.criteria import base as criteria
from core.kernels.jit import kernel
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules._imac.candidates import AHEAD
from core.learners.hoeffding.schedules._imac.state import columns_of, state_of
from core.tree import quirks

steepest = criteria.steepness_dispatcher()


@kernel
def known_range(plan: PlanRecord, node: Node, leaf: Leaf, classes: int) -> float:
    """Return R² of the merit for this number of classes, as stored; a new number ends the quiet weight."""
    state = state_of(plan, leaf)
    if state.classes != classes:
        state.classes = classes
        state.quiet = 0.0
        state.square = waiting.squared_range(plan, node)
    return state.square


@kernel
def quiet_weight(plan: PlanRecord, gap: float, needed: float, n: float, ratio: float, head: float) -> float:
    """Return the weight that has to come before a gap of merits that is too small can suffice.

    n: the mass that the merits come from; inherited weight in ε makes ε fall even more slowly.

    A unit of weight changes the difference of two impurities, times the mass, by no more than ``steepest``,
    while the gap needed, times the mass, grows. ratio: result of ``evaluate``; head: the part of the gap that
    no record changes, if it is above 0: times the mass, it grows too.
    """
    if plan.incremental == 0 or math.isnan(ratio) or not gap <= needed:
        return 0.0
    slope = steepest(plan.criterion, (1.0 + AHEAD) * n, ratio) + head
    return min(AHEAD * n, (needed - gap) * n / slope)


@kernel
def quiet_leaf(
    plan: PlanRecord, tree: Tree, leaf: Leaf, gap: float, needed: float, n: float, ratio: float
) -> float:
    """Return ``quiet_weight`` of a leaf whose gap comes from ``rivals``."""
    if plan.revision == 0:
        return quiet_weight(plan, gap, needed, n, ratio, 0.0)
    columns, revision = columns_of(plan, leaf), tree.revision(plan, leaf)
    head = 0.0
    for q in range(state_of(plan, leaf).count):
        head = max(head, revision.merits[columns.attribute[q]])
    evaluations = revision.evaluations + 1.0
    return quiet_weight(plan, gap * evaluations, needed * evaluations, n, ratio, head)


@kernel
def leaders(plan: PlanRecord, leaf: Leaf, null: float) -> tuple[float, float]:
    """Return the best merit of the candidates and the second best; "do not split" is one of them.

    null: the merit of "do not split".
    """
    columns = columns_of(plan, leaf)
    best, second = -math.inf, null
    for q in range(state_of(plan, leaf).count):
        merit = columns.merit[q]
        if merit >= best:
            second = max(second, best)
            best = merit
        elif merit > second:
            second = merit
    return best, second


@kernel
def rivals(plan: PlanRecord, tree: Tree, leaf: Leaf, null: float) -> tuple[float, float]:
    """Return the two merits that an attempt would compare; where splits are final, those of ``leaders``.

    Where splits are revised, the best average over the evaluations of the leaf, including the present one,
    and 0 for "do not split" (core/learners/hoeffding/reevaluation.py) [D39]; the candidates' merits are
    gains.
    """
    if plan.revision == 0 or plan.has(quirks.FOLLOWED_IMPURITY):
        return leaders(plan, leaf, null)
    columns, revision = columns_of(plan, leaf), tree.revision(plan, leaf)
    best = -math.inf
    for q in range(state_of(plan, leaf).count):
        best = max(best, revision.merits[columns.attribute[q]] + columns.merit[q])
    return best / (revision.evaluations + 1.0), 0.0
