"""CGD (constant gain difference): due when ε has shrunk to the gap of the last attempt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.kernels.jit import kernel
from core.learners.hoeffding import ranking
from core.learners.hoeffding.schedules import _waiting as waiting
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import period
from core.tree import layout as at
from core.tree.byoffset.statistics import evidence


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due first after ``grace_period``, then when ε has shrunk to the gap of the last attempt.

    ``{"schedule": "cgd"}``: the interval is the smaller of R² ln(1/δ)/(2g²) - n for the gap g and of the
    weight until ε is below τ. A leaf waits ``grace_period`` if it has one class, if its best test is not to
    split, or if ε has no closed form (ALGORITHMS section 16; García-Martín 2017).
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
def observe(
    plan, params, ints, floats, t: int, node: int, leaf: int, x, xs, label: int, weight: float
) -> bool:
    return waiting.is_over(floats, leaf)


@kernel
def reschedule(plan, params, ints, floats, t: int, node: int, leaf: int, merit, test, value, out) -> None:
    """Wait until the gap is enough."""
    weight = params[plan[at.PLAN_SCHEDULE + 1]]
    n = evidence(plan, ints, floats, node, leaf)
    tie = waiting.until_tie(plan, params, ints, node, n)
    if waiting.can_reckon(params, out) and tie > 0.0:
        needed = params[at.PLAN_GAP] * waiting.squared_range(plan, ints, node)
        gap = out[ranking.BEST_MERIT] - out[ranking.SECOND_MERIT]
        weight = interval(gap, n, needed, tie)
    waiting.wait(plan, ints, floats, node, leaf, weight)
