"""CGD (constant gain difference): due when ε has shrunk to the gap of the last attempt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.kernels.jit import kernel
from core.layout.learning import Row
from core.layout.plan import PlanRecord
from core.layout.tree import Leaf, Node, Tree
from core.learners.hoeffding.ranking import BEST_MERIT, SECOND_MERIT, Ranking
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import period


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due first after ``grace_period``, then when ε has shrunk to the gap of the last attempt.

    ``{"schedule": "cgd"}``: the interval is the smaller of R² ln(1/δ)/(2g²) - n for the gap g and of the
    weight until ε is below τ. A leaf waits ``grace_period`` if it has one class, if its best test is not to
    split, or if ε has no closed form (García-Martín 2017).
    """

    grace_period: float = period(200.0)
    """Labelled weight before the first attempt at a leaf."""

    def first(self) -> float:
        return self.grace_period


@kernel
def interval(gap: float, n: float, needed: float, tie: float) -> float:
    """Return the weight to wait for from weight n on, at most ``tie``; a gap of 1 needs weight ``needed``."""
    enough = needed / (gap * gap) - n if gap > 0.0 else math.inf
    return min(tie, enough, waiting.FARTHEST)


@kernel
def observe(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, row: Row) -> bool:
    return waiting.is_over(leaf)


@kernel
def reschedule(plan: PlanRecord, p, tree: Tree, node: Node, leaf: Leaf, ranking: Ranking) -> None:
    """Wait until the gap is enough."""
    weight, out = p.grace_period, ranking.out
    n = waiting.weight_of_evidence(plan, node, leaf)
    tie = waiting.until_tie(plan, node, n)
    if waiting.can_reckon(plan, out) and tie > 0.0:
        needed = plan.gap * waiting.squared_range(plan, node)
        weight = interval(out[BEST_MERIT] - out[SECOND_MERIT], n, needed, tie)
    waiting.wait(plan, node, leaf, weight)
