"""Grace period: a fixed weight between two attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.kernels.jit import kernel
from core.learners.hoeffding.schedules.base import Schedule
from core.plugin import period
from core.tree import layout as at
from core.tree import quirks
from core.tree.byoffset.statistics import SLACK, later, reckoned_weight


@dataclass(frozen=True, slots=True)
class Plugin(Schedule):
    """Due whenever the leaf has seen ``grace_period`` more than at its last attempt (Domingos and Hulten
    2000)."""

    grace_period: float = period(200.0)
    """Labelled weight between two attempts at a leaf."""

    ranked: ClassVar[bool] = False

    @property
    def step(self) -> float | None:
        return self.grace_period

    def first(self) -> float:
        return self.grace_period


@kernel
def observe(
    plan, params, ints, floats, t: int, node: int, leaf: int, x, xs, label: int, weight: float
) -> bool:
    return floats[leaf + at.LEAF_OBSERVED] >= floats[leaf + at.LEAF_NEXT]


@kernel
def reschedule(plan, params, ints, floats, t: int, node: int, leaf: int, merit, test, value, out) -> None:
    due = later(floats[leaf + at.LEAF_OBSERVED], params[plan[at.PLAN_SCHEDULE + 1]])
    floats[leaf + at.LEAF_EVALUATED] = reckoned_weight(plan, ints, floats, node, leaf)
    floats[leaf + at.LEAF_NEXT] = due if plan[at.PLAN_QUIRKS] & quirks.INHERITED_COUNTS == 0 else due - SLACK
